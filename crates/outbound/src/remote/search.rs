//! The search for a message that may have reached an agent: before anything is sent again, the agent is asked.

use crate::client::Client;
use crate::client::error::ClientError;
use flotilla_protocol::a2a::error::Reason;
use flotilla_protocol::a2a::model::{Message, Task};
use flotilla_protocol::a2a::request::{GetTaskRequest, ListTasksRequest};
use flotilla_protocol::wire::Int32;
use flotilla_protocol::work::{Assignment, Upstream};

/// Pages of the latest tasks that are looked through.
const PAGES: usize = 3;
const PAGE: i32 = 50;

/// What the agent knows of a message.
#[derive(Debug)]
pub enum Found {
    /// It is working at it, or has.
    Task(Box<Task>),
    /// Its task does not show it. That proves nothing as long as it may be working: some keep a message only once they
    /// have something to say about it.
    NotYet,
    /// It cannot say.
    Unknown(&'static str),
}

pub async fn search(client: &Client, assignment: &Assignment, upstream: &Upstream) -> Result<Found, ClientError> {
    if upstream.task.is_empty() {
        among_all(client, assignment, upstream).await
    } else {
        in_task(client, assignment, upstream).await
    }
}

async fn in_task(client: &Client, assignment: &Assignment, upstream: &Upstream) -> Result<Found, ClientError> {
    let request = GetTaskRequest { id: upstream.task.clone(), ..GetTaskRequest::default() };
    let task = match client.task(request).await {
        Ok(answer) => answer.value,
        Err(error) if error.is(Reason::TaskNotFound) => {
            return Ok(Found::Unknown("the agent no longer knows the task"));
        }
        Err(error) => return Err(error),
    };
    let asked = &assignment.message.message_id;
    let has_it = task.history.iter().any(|message| message.message_id == *asked);
    // It waited for its caller before. What has moved since is to be told, whatever moved it.
    let waits = task.status.state.is_interrupted()
        && upstream.waits.as_ref().is_none_or(|before| before.is_unmoved(&task, asked));
    Ok(if has_it || !waits { Found::Task(Box::new(task)) } else { Found::NotYet })
}

async fn among_all(client: &Client, assignment: &Assignment, upstream: &Upstream) -> Result<Found, ClientError> {
    let mut request = ListTasksRequest {
        context_id: upstream.context.clone(),
        page_size: Some(Int32(PAGE)),
        history_length: Some(Int32(PAGE)),
        include_artifacts: true,
        ..ListTasksRequest::default()
    };
    let mut found: Option<Task> = None;
    for _ in 0..PAGES {
        let page = match client.tasks(request.clone()).await {
            Ok(answer) => answer.value,
            Err(error) if error.is_not_offered() => return Ok(Found::Unknown("the agent does not list its tasks")),
            Err(error) if error.is_unusable() => {
                return Ok(Found::Unknown("the agent's list of its tasks cannot be read"));
            }
            // A server that stumbles may find its feet.
            Err(error) => return Err(error),
        };
        for task in page.tasks {
            if task.history.iter().any(|message| is_same(message, &assignment.message)) {
                if found.is_some() {
                    return Ok(Found::Unknown("several of the agent's tasks hold this message"));
                }
                found = Some(task);
            }
        }
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    // An agent that answered with a Message has no task to show for it.
    Ok(found.map_or(Found::Unknown("the agent lists no task with this message"), |task| Found::Task(Box::new(task))))
}

/// An id is its caller's choice, and another caller may choose the same.
fn is_same(kept: &Message, sent: &Message) -> bool {
    kept.message_id == sent.message_id
        && serde_json::to_value(&kept.parts).ok() == serde_json::to_value(&sent.parts).ok()
}
