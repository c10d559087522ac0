//! What is written backwards is what generated code would have written, and reads back as it was.

use super::{frame, list, sent, task};
use crate::{Reader, a2a as pb};
use flotilla_protocol::a2a::model::{ArtifactUpdate, StatusUpdate, StreamResponse, Task};
use flotilla_protocol::a2a::request::ListTasksResponse;
use prost::Message;
use prost::bytes::Bytes;
use std::sync::Arc;

const READER: Reader = Reader { json_depth: 64 };

/// A task with every field the proto has, filled and empty.
fn whole() -> Task {
    let part = |content: &str| format!(r#"{{{content}, "metadata": {{"n":1}}, "filename": "f", "mediaType": "a/b"}}"#);
    let parts = ["\"text\": \"\"", "\"raw\": \"AP8=\"", "\"url\": \"http://u\"", "\"data\": [1,{\"a\":null}]"]
        .map(part)
        .join(", ");
    let message = format!(
        r#"{{"messageId": "m", "contextId": "c", "taskId": "t", "role": "ROLE_AGENT", "parts": [{parts}],
            "metadata": {{}}, "extensions": ["", "e"], "referenceTaskIds": ["r", "s"]}}"#
    );
    let artifact = format!(
        r#"{{"artifactId": "a", "name": "n", "description": "{}", "parts": [{parts}], "metadata": {{"x":"y"}},
            "extensions": ["e"]}}"#,
        "long".repeat(500)
    );
    let json = format!(
        r#"{{"id": "t", "contextId": "c", "status": {{"state": "TASK_STATE_WORKING", "message": {message},
            "timestamp": "2026-01-02T03:04:05.678Z"}}, "artifacts": [{artifact}, {{"artifactId": "b"}}],
            "history": [{message}, {{"messageId": "last", "role": "ROLE_USER"}}], "metadata": {{"k":[true]}}}}"#
    );
    serde_json::from_str(&json).unwrap()
}

/// What generated code reads from it, having checked that generated code would have written the same.
fn generated<T: Message + Default>(bytes: &Bytes) -> T {
    let (prefix, message) = bytes.split_at(5);
    assert_eq!(prefix[0], 0);
    assert_eq!(prefix[1..], (message.len() as u32).to_be_bytes());
    let read = T::decode(message).unwrap();
    assert_eq!(read.encode_to_vec(), message);
    read
}

#[test]
fn a_task_is_written_as_generated_code_would() {
    let whole = whole();
    assert_eq!(READER.task(generated(&task(&whole))).unwrap(), whole);
    let empty = Task { id: "t".into(), ..Task::default() };
    assert_eq!(READER.task(generated(&task(&empty))).unwrap(), empty);
}

#[test]
fn every_frame_is_written_as_generated_code_would() {
    let whole = whole();
    let artifact = Arc::clone(&whole.artifacts.as_ref().unwrap()[0]);
    let status = StatusUpdate {
        task_id: "t".into(),
        context_id: "c".into(),
        status: whole.status.clone(),
        metadata: whole.metadata.clone(),
        ..Default::default()
    };
    let grown = ArtifactUpdate {
        task_id: "t".into(),
        context_id: "c".into(),
        artifact,
        append: true,
        last_chunk: true,
        metadata: whole.metadata.clone(),
        ..Default::default()
    };
    let message = Arc::clone(&whole.history[0]);
    let frames = [
        StreamResponse::Task(whole),
        StreamResponse::Message(message),
        StreamResponse::StatusUpdate(status),
        StreamResponse::ArtifactUpdate(grown.clone()),
        StreamResponse::ArtifactUpdate(ArtifactUpdate { append: false, last_chunk: false, ..grown }),
    ];
    for one in &frames {
        assert_eq!(READER.frame(generated(&frame(one))).unwrap(), *one);
    }
    for one in &frames[..2] {
        let payload = generated::<pb::SendMessageResponse>(&sent(one)).payload.unwrap();
        let read = match payload {
            pb::send_message_response::Payload::Task(task) => StreamResponse::Task(READER.task(task).unwrap()),
            pb::send_message_response::Payload::Message(message) => {
                StreamResponse::Message(Arc::new(READER.message("message", message).unwrap()))
            }
        };
        assert_eq!(read, *one);
    }
}

#[test]
fn a_page_is_written_as_generated_code_would() {
    let page = ListTasksResponse {
        tasks: vec![whole(), Task { id: "u".into(), ..Task::default() }],
        next_page_token: "next".into(),
        page_size: 50,
        total_size: 1 << 40,
    };
    let read: pb::ListTasksResponse = generated(&list(&page));
    assert_eq!((read.page_size, read.total_size), (50, i32::MAX));
    assert_eq!(read.next_page_token, "next");
    assert_eq!(read.tasks.into_iter().map(|task| READER.task(task).unwrap()).collect::<Vec<_>>(), page.tasks);
}
