//! From an assignment to the call of an agent elsewhere: the one place that says what goes along.

use flotilla_protocol::a2a::model::{Message, Role};
use flotilla_protocol::a2a::request::{CancelTaskRequest, SendMessageConfiguration, SendMessageRequest};
use flotilla_protocol::lineage::{ANCESTRY, Onward};
use flotilla_protocol::work::{Assignment, Upstream};

/// Names the hub's message, so that an agent that knows the header does not do the same work twice.
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
const EXTENSIONS: &str = "A2A-Extensions";

/// The headers of every call a run makes.
pub fn headers(assignment: &Assignment, onward: &Onward) -> Vec<(String, String)> {
    with_extensions(onward, asked(assignment))
}

/// Those of a call that is made for a task beside its runs.
pub fn headers_beside(onward: &Onward) -> Vec<(String, String)> {
    with_extensions(onward, [])
}

fn with_extensions<'a>(onward: &Onward, asked: impl IntoIterator<Item = &'a str>) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> =
        onward.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let extensions: Vec<&str> = std::iter::once(ANCESTRY).chain(asked).collect();
    headers.push((EXTENSIONS.to_owned(), extensions.join(", ")));
    headers
}

/// The extensions the caller asks for: those of the request and those the message names, each once.
pub fn asked(assignment: &Assignment) -> impl Iterator<Item = &str> {
    let (request, message) = (&assignment.trail.extensions, &assignment.message.extensions);
    let more = message.iter().filter(|uri| !request.contains(uri) && *uri != ANCESTRY);
    request.iter().chain(more).map(String::as_str)
}

/// The key under which this message is the same, however often it is sent. Message ids are the callers', and two of
/// them may choose the same.
pub fn key(assignment: &Assignment) -> (String, String) {
    let again = match assignment.trail.refused {
        0 => String::new(),
        times => format!("-{times}"),
    };
    (IDEMPOTENCY_KEY.to_owned(), format!("{}-{}{again}", assignment.task_id, assignment.turn))
}

/// The message as its caller wrote it, under the agent's own ids. `at_once` asks for a receipt instead of the result.
pub fn send(assignment: &Assignment, onward: &Onward, upstream: &Upstream, at_once: bool) -> SendMessageRequest {
    let theirs = |id: &String| {
        let known = assignment.trail.references.iter().find(|(ours, _)| ours == id);
        known.map_or_else(|| id.clone(), |(_, theirs)| theirs.clone())
    };
    let message = Message {
        reference_task_ids: assignment.message.reference_task_ids.iter().map(theirs).collect(),
        task_id: upstream.task.clone(),
        context_id: upstream.context.clone(),
        role: Role::User,
        metadata: onward.message_metadata(assignment.message.metadata.as_ref()),
        ..(*assignment.message).clone()
    };
    let configuration = SendMessageConfiguration {
        accepted_output_modes: assignment.accepted_output_modes.clone(),
        return_immediately: at_once,
        ..SendMessageConfiguration::default()
    };
    SendMessageRequest {
        message: Some(message),
        // Where nothing is asked for, an agent has nothing to read.
        configuration: (configuration != SendMessageConfiguration::default()).then_some(configuration),
        metadata: Some(onward.request_metadata(assignment.metadata.as_ref())),
        ..SendMessageRequest::default()
    }
}

/// The agent is told to stop, under its own id of the task.
pub fn cancel(id: &str, onward: &Onward) -> CancelTaskRequest {
    let metadata = Some(onward.request_metadata(None));
    CancelTaskRequest { id: id.to_owned(), metadata, ..CancelTaskRequest::default() }
}
