//! Where approvals are kept: beside the log that tells of them, in the same commit.

use super::Later;
use crate::approval::{Approval, ApprovalFilter};
use crate::caller::Scope;
use crate::ids::{ApprovalId, TaskId};
use flotilla_protocol::time::Millis;

/// The part of the store that shows approvals. Commits write them; nothing else does. They are the owner's: a caller's
/// scope sees none.
pub trait ApprovalStore: Send + Sync + 'static {
    fn approval(&self, scope: Scope, id: ApprovalId) -> Later<Option<Approval>>;
    /// The newest first.
    fn approvals(&self, scope: Scope, filter: ApprovalFilter) -> Later<Vec<Approval>>;
    /// Those that are open and will expire.
    fn expiring(&self) -> Later<Vec<(Millis, TaskId, ApprovalId)>>;
    /// The latest answer that goes for every question of a task about a tool.
    fn standing_approval(&self, task: TaskId, tool: &str) -> Later<Option<Approval>>;
}
