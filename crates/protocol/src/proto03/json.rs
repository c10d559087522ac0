//! The ProtoJSON form of 0.3's HTTP+JSON, read and written with opaque JSON as it came.
//! Readers of this form refuse fields their proto file does not have, so nothing else is written.

mod model;
mod read;
mod write;

pub use read::{frame, push_config, push_list, task};
pub use write::{Proto, write_create_push, write_send};

use super::file::Files;
use super::name;
use crate::a2a::error::Refusal;
use crate::a2a::request::{PushConfig, SendMessageRequest};
use crate::decode;

/// Reads the body of a send.
pub fn read_send(bytes: &[u8], files: Files) -> Result<SendMessageRequest, Refusal> {
    decode::message::<model::SendMessageRequest>(bytes).map(|request| read::send_message(request, files))
}

/// Reads the body that makes a config: the whole request as the published SDKs send it, or what its `config` holds, as
/// the proto file's annotations have it. The task is the path's.
pub fn read_create_push(task_id: &str, bytes: &[u8]) -> Result<PushConfig, Refusal> {
    let request: model::CreatePushRequest = decode::message(bytes)?;
    if !request.parent.is_empty() && name::task("parent", &request.parent)? != task_id {
        return Err(Refusal::invalid("parent", "names another task than the path"));
    }
    let outer = request.config.unwrap_or(model::TaskPushConfig { config: request.bare, ..Default::default() });
    let config = read::bare_config(outer.config.unwrap_or_default());
    let id = if config.id.is_empty() { request.config_id } else { config.id.clone() };
    Ok(PushConfig { task_id: task_id.to_owned(), id, ..config })
}

#[cfg(test)]
mod tests;
