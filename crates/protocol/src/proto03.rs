//! A2A 0.3 as its proto file has it: what gRPC and the ProtoJSON form of HTTP+JSON have in common.

pub mod file;
pub mod json;
pub mod name;
pub mod opaque;

use crate::a2a::model::TaskState;

/// Whether a stream of 0.3 ends with this state (`final`): the task is over, or waits for its caller.
pub fn is_final(state: TaskState) -> bool {
    state.is_terminal() || state.is_interrupted()
}
