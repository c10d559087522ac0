//! Answers on the wire: the model is written as the proto has it, each as one message of gRPC. Fields the proto does not
//! know stay behind. Fields are written backwards, the one with the highest number first.

use crate::backwards::Backwards;
use crate::json;
use crate::write::{object, timestamp};
use flotilla_protocol::a2a::model::{
    Artifact, ArtifactUpdate, Message, Part, StatusUpdate, StreamResponse, Task, TaskStatus,
};
use flotilla_protocol::a2a::request::ListTasksResponse;
use flotilla_protocol::wire::Object;
use prost::bytes::Bytes;

pub fn task(task: &Task) -> Bytes {
    let mut out = Backwards::new();
    put_task(&mut out, task);
    out.framed()
}

/// The answer to SendMessage, which is never an update.
pub fn sent(sent: &StreamResponse) -> Bytes {
    let mut out = Backwards::new();
    match sent {
        StreamResponse::Task(task) => out.nested(1, |out| put_task(out, task)),
        StreamResponse::Message(message) => out.nested(2, |out| put_message(out, message)),
        StreamResponse::StatusUpdate(_) | StreamResponse::ArtifactUpdate(_) => {}
    }
    out.framed()
}

/// One message of a stream.
pub fn frame(frame: &StreamResponse) -> Bytes {
    let mut out = Backwards::new();
    match frame {
        StreamResponse::Task(task) => out.nested(1, |out| put_task(out, task)),
        StreamResponse::Message(message) => out.nested(2, |out| put_message(out, message)),
        StreamResponse::StatusUpdate(update) => out.nested(3, |out| put_status_update(out, update)),
        StreamResponse::ArtifactUpdate(update) => out.nested(4, |out| put_artifact_update(out, update)),
    }
    out.framed()
}

pub fn list(list: &ListTasksResponse) -> Bytes {
    let mut out = Backwards::new();
    // An int32 is all the proto has.
    out.number(4, list.total_size.clamp(0, i64::from(i32::MAX)) as u64);
    out.number(3, list.page_size.max(0) as u64);
    out.text(2, &list.next_page_token);
    list.tasks.iter().rev().for_each(|task| out.nested(1, |out| put_task(out, task)));
    out.framed()
}

fn put_task(out: &mut Backwards, task: &Task) {
    put_object(out, 6, task.metadata.as_ref());
    task.history.iter().rev().for_each(|message| out.nested(5, |out| put_message(out, message)));
    let artifacts = task.artifacts.iter().flatten().rev();
    artifacts.for_each(|artifact| out.nested(4, |out| put_artifact(out, artifact)));
    out.nested(3, |out| put_status(out, &task.status));
    out.text(2, &task.context_id);
    out.text(1, &task.id);
}

fn put_status(out: &mut Backwards, status: &TaskStatus) {
    if let Some(moment) = status.timestamp {
        out.generated(3, &timestamp(moment));
    }
    if let Some(message) = &status.message {
        out.nested(2, |out| put_message(out, message));
    }
    out.number(1, status.state as u64);
}

fn put_message(out: &mut Backwards, message: &Message) {
    out.texts(8, &message.reference_task_ids);
    out.texts(7, &message.extensions);
    put_object(out, 6, message.metadata.as_ref());
    put_parts(out, 5, &message.parts);
    out.number(4, message.role as u64);
    out.text(3, &message.task_id);
    out.text(2, &message.context_id);
    out.text(1, &message.message_id);
}

fn put_artifact(out: &mut Backwards, artifact: &Artifact) {
    out.texts(6, &artifact.extensions);
    put_object(out, 5, artifact.metadata.as_ref());
    put_parts(out, 4, &artifact.parts);
    out.text(3, &artifact.description);
    out.text(2, &artifact.name);
    out.text(1, &artifact.artifact_id);
}

fn put_parts(out: &mut Backwards, tag: u32, parts: &[Part]) {
    parts.iter().rev().for_each(|part| out.nested(tag, |out| put_part(out, part)));
}

/// What a part holds is told even if it is empty.
fn put_part(out: &mut Backwards, part: &Part) {
    out.text(7, &part.media_type);
    out.text(6, &part.filename);
    put_object(out, 5, part.metadata.as_ref());
    if let Some(text) = &part.text {
        out.bytes(1, text.as_bytes());
    } else if let Some(raw) = &part.raw {
        out.bytes(2, &raw.decode());
    } else if let Some(url) = &part.url {
        out.bytes(3, url.as_bytes());
    } else if let Some(data) = &part.data.0 {
        out.generated(4, &json::to_value(data));
    }
}

fn put_status_update(out: &mut Backwards, update: &StatusUpdate) {
    put_object(out, 4, update.metadata.as_ref());
    out.nested(3, |out| put_status(out, &update.status));
    out.text(2, &update.context_id);
    out.text(1, &update.task_id);
}

fn put_artifact_update(out: &mut Backwards, update: &ArtifactUpdate) {
    put_object(out, 6, update.metadata.as_ref());
    out.number(5, update.last_chunk.into());
    out.number(4, update.append.into());
    out.nested(3, |out| put_artifact(out, &update.artifact));
    out.text(2, &update.context_id);
    out.text(1, &update.task_id);
}

fn put_object(out: &mut Backwards, tag: u32, members: Option<&Object>) {
    if let Some(members) = object(members) {
        out.generated(tag, &members);
    }
}

#[cfg(test)]
mod tests;
