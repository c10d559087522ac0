//! GopherHole's dialect, spoken below `/gopherhole` alone: requests that name a task or no agent, answered in its own
//! form. What is asked anywhere else is A2A.

mod agent;
mod catalog;
mod conversation;
pub mod discover;
mod frame;
pub mod http;
mod news;
mod push;
mod stream;

pub use agent::{check_run, reports};
pub use frame::send_frame;
pub use news::{Followed, News, catch_up};

use crate::app::App;
use agent::{for_agent, own_agent};
use flotilla_core::caller::Caller;
use flotilla_core::descent::Told;
use flotilla_core::error::{Error, Fault};
use flotilla_core::hub::{Outcome, OwnPage, SendOptions};
use flotilla_core::ids::TaskId;
use flotilla_core::registry::Agent;
use flotilla_core::rights::Right;
use flotilla_core::roster::Several;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::model::{Message, Task, TaskState};
use flotilla_protocol::a2a::request::{GetTaskRequest, SendMessageConfiguration, SendMessageRequest};
use flotilla_protocol::gopherhole::{self, Asked, Parties};
use flotilla_protocol::lineage::Trace;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a request is answered with. The news of a task that it began come after that, so that its caller knows of whom.
pub struct Answered {
    pub result: Value,
    pub news: Option<News>,
}

impl From<Value> for Answered {
    fn from(result: Value) -> Self {
        Self { result, news: None }
    }
}

/// The paths below `/gopherhole`: requests, the socket, and where its clients look for agents.
pub fn is_path(rest: &[&str]) -> bool {
    is_request(rest) || matches!(rest, ["ws"] | ["api", "discover" | "auth" | "access", ..])
}

/// The paths of requests over HTTP, as at the root.
pub fn is_request(rest: &[&str]) -> bool {
    matches!(rest, [] | ["a2a" | "rpc"])
}

/// Tells the operator once of a client that speaks this dialect where A2A is spoken: A2A passes over the agent it names,
/// so its messages go to the default agent.
#[derive(Default)]
pub struct Misplaced(AtomicBool);

impl Misplaced {
    pub fn check(&self, caller: &Caller, configuration: Option<&SendMessageConfiguration>) {
        let names_agent =
            configuration.is_some_and(|configuration| configuration.unknown.iter().any(|(name, _)| name == "agentId"));
        if names_agent && !self.0.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                caller = %caller.name,
                "a message names its agent in configuration.agentId, which A2A ignores. Connect clients of GopherHole to \
                 /gopherhole/ws"
            );
        }
    }
}

/// Whether a request is answered in A2A: only for the agent card does this dialect have no form of its own.
pub fn leaves_to_a2a(method: &str) -> bool {
    method == Method::GetExtendedAgentCard.name()
}

/// Answers a request of this dialect.
pub async fn answer(app: &Arc<App>, caller: &Caller, method: &str, params: &str) -> Result<Answered, Error> {
    let fresh = gopherhole::message_id(&uuid::Uuid::now_v7().to_string());
    match gopherhole::read(method, params, fresh)? {
        Asked::Send { to, request } => {
            let request = conversation::to_agent(app, caller, &to, *request).await?;
            send(app, caller, &to, request).await
        }
        Asked::Say { context, message, configuration } => say(app, caller, context, *message, *configuration).await,
        other => Box::pin(look(app, caller, other)).await.map(Answered::from),
    }
}

/// All but messages.
async fn look(app: &Arc<App>, caller: &Caller, asked: Asked) -> Result<Value, Error> {
    match asked {
        Asked::Send { .. } | Asked::Say { .. } => Err(Fault::new("a message is to be sent").into()),
        Asked::Get(request) => get(app, caller, &request).await,
        Asked::List(request) => {
            caller.check(Right::TasksRead)?;
            let wanted = Some(request.status).filter(|state| *state != TaskState::Unspecified);
            let (inbox, states) = (own_agent(app, caller), gopherhole::states_of(wanted.as_slice()));
            let OwnPage { list, sides } = app.hub.list_own(caller, &request, states, inbox.as_deref()).await?;
            let parties: Vec<Parties> =
                sides.into_iter().map(|sides| Parties { client: sides.from, server: sides.agent }).collect();
            Ok(gopherhole::page(&list, wanted, &parties))
        }
        Asked::Cancel(request) => {
            caller.check(Right::TasksWrite)?;
            let agent = app.hub.agent_of(caller, &request.id).await?.ok_or_else(|| Refusal::no_task(&request.id))?;
            let task = app.hub.cancel(caller.with_agent(agent.id), &request.id).await?;
            Ok(gopherhole::task(&task, &parties(caller, &agent)))
        }
        asked @ (Asked::CreatePush(_) | Asked::GetPush(_) | Asked::ListPush(_) | Asked::DeletePush(_)) => {
            push::perform(app, caller, asked).await
        }
        Asked::Respond(response) => agent::respond(app, caller, &response).await,
        Asked::Available(search) => catalog::available(app, caller, &search).map_err(Error::from),
        Asked::Discover(search) => catalog::discover(app, caller, &search).map_err(Error::from),
    }
}

/// Of a task that a caller has with an agent.
fn parties(caller: &Caller, agent: &Agent) -> Parties {
    Parties { client: caller.shown_as().to_owned(), server: agent.name.clone() }
}

/// The task, for the one who asked and the one who was asked.
async fn get(app: &App, caller: &Caller, request: &GetTaskRequest) -> Result<Value, Error> {
    caller.check(Right::TasksRead)?;
    if let Some(agent) = app.hub.agent_of(caller, &request.id).await? {
        let task = app.hub.get_task(caller.with_agent(agent.id), request).await?;
        return Ok(gopherhole::task(&task, &parties(caller, &agent)));
    }
    let agent = own_agent(app, caller).ok_or_else(|| Refusal::no_task(&request.id))?;
    let mut theirs = app.hub.task_of_agent(&agent, &request.id).await?;
    // It looks at what it is about to answer, by the context alone.
    let shown = TaskId::parse(&request.id).and_then(|task| app.hub.roster().desk(agent.id).context_shown(task));
    if let Some(context) = shown {
        theirs.task.context_id = context;
    }
    Ok(for_agent(&agent, &theirs))
}

async fn send(app: &Arc<App>, caller: &Caller, to: &str, request: SendMessageRequest) -> Result<Answered, Error> {
    let most = request.configuration.as_ref().and_then(|configuration| configuration.history_length);
    let (Posted { task, news, .. }, parties) = post_to(app, caller, to, request, None).await?;
    Ok(Answered { result: gopherhole::sent(&task, &parties, most.map(|most| most.0)), news })
}

/// A message that is in a task's log.
struct Posted {
    task: Box<Task>,
    repeated: bool,
    news: Option<News>,
}

async fn post_to(
    app: &Arc<App>,
    caller: &Caller,
    to: &str,
    request: SendMessageRequest,
    trace: Option<Trace>,
) -> Result<(Posted, Parties), Error> {
    caller.check(Right::TasksWrite)?;
    if request.configuration.as_ref().is_some_and(|configuration| configuration.push_config.is_some()) {
        caller.check(Right::PushWrite)?;
    }
    let registry = app.hub.registry();
    let agent = registry.resolve(caller, Some(to), "")?;
    let options = SendOptions { told: Told { trace, hops: None }, ..SendOptions::default() };
    let posted = Box::pin(app.hub.post(caller, agent, Box::new(request), options)).await?;
    let Outcome::Task(task) = posted.outcome else {
        return Err(Fault::new("a send that returns at once has a task").into());
    };
    let news = News::of(app, caller, agent, &task);
    Ok((Posted { task, repeated: posted.repeated, news }, parties(caller, agent)))
}

/// A message that names no agent: an agent's answer, or something for somebody else.
async fn say(
    app: &Arc<App>,
    caller: &Caller,
    context: String,
    message: Message,
    configuration: SendMessageConfiguration,
) -> Result<Answered, Error> {
    if message.task_id.is_empty()
        && let Some(agent) = own_agent(app, caller)
        && let Some(run) = app.hub.roster().desk(agent.id).in_context(&context).map_err(|Several| several(&context))?
    {
        return agent::answer(app, &agent, run, message).await.map(Answered::from);
    }
    let (to, request) = conversation::to_nobody(app, caller, context, message, configuration).await?;
    send(app, caller, &to, request).await
}

/// An answer that may be for one caller as well as for another is given to none.
fn several(context: &str) -> Refusal {
    let shown: String = context.chars().take(100).collect();
    let text = format!(
        "is not enough here: several callers have a context '{shown}'. Say the contextId that GetTask shows for the task \
         you answer, or use task/respond"
    );
    Refusal::invalid("configuration.contextId", text)
}
