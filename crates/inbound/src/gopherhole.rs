//! GopherHole's dialect: its requests over `/a2a` and `/ws`, which name a task or nobody, answered in its own form.

mod catalog;
pub mod discover;
mod memory;
mod news;
pub mod refused;
pub mod stream;

pub use memory::{Program, Speakers};

use crate::app::App;
use flotilla_core::caller::Caller;
use flotilla_core::error::{Error, Fault};
use flotilla_core::hub::{Hub, Outcome, SendOptions};
use flotilla_core::ids::TaskId;
use flotilla_core::registry::Agent;
use flotilla_core::rights::Right;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::model::{Artifact, Message, Role, Task, TaskState};
use flotilla_protocol::a2a::request::{GetTaskRequest, SendMessageConfiguration, SendMessageRequest, TTL};
use flotilla_protocol::gopherhole::{self, Asked, Listing};
use flotilla_protocol::hub_frame::{Sending, TaskResponse};
use flotilla_protocol::v03;
use flotilla_protocol::work::{Contents, Report};
use serde_json::Value;
use std::sync::Arc;

/// How a request came.
#[derive(Debug, Clone, Copy)]
pub struct Came {
    pub program: Program,
    /// Whether its id is a number, as those of the dialect's clients are.
    pub numbered: bool,
}

impl Came {
    pub fn new(program: Program, id: &str) -> Self {
        Self { program, numbered: id.parse::<u64>().is_ok() }
    }
}

/// The answer to a request, if it is one of this dialect: it says so itself, or is about a task that was begun in it, or
/// could be of either and looks like one of a program that has spoken it last.
pub async fn answer(
    app: &Arc<App>,
    caller: &Caller,
    came: Came,
    method: &str,
    params: &str,
) -> Option<Result<Value, Error>> {
    // Some of its clients use the names of 0.3.
    let named = Method::from_name(method).or_else(|| v03::method::from_name(method));
    if named == Some(Method::SendStreamingMessage) {
        return None;
    }
    let speaks = gopherhole::is_dialect(method, params)
        || match named {
            Some(Method::GetTask | Method::CancelTask) => match about_its_task(app, caller, params).await {
                Ok(speaks) => speaks,
                Err(error) => return Some(Err(error)),
            },
            Some(Method::ListTasks) => match gopherhole::listing(params) {
                // Under the old name, the state is one of 0.3 as well.
                Listing::Own if method == Method::ListTasks.name() => true,
                Listing::Own | Listing::Either => came.numbered && app.speakers.know(caller, came.program),
                Listing::Other => false,
            },
            _ => false,
        };
    if !speaks {
        return None;
    }
    let answered = perform(app, caller, method, params).await;
    if named == Some(Method::SendMessage) && answered.is_ok() {
        app.speakers.remember(caller, came.program);
    }
    Some(answered)
}

/// Whether a task that is named alone was begun in this dialect, or is one the caller has to do as an agent.
async fn about_its_task(app: &App, caller: &Caller, params: &str) -> Result<bool, Error> {
    let Ok(request) = serde_json::from_str::<GetTaskRequest>(params) else { return Ok(false) };
    if !request.tenant.is_empty() {
        return Ok(false);
    }
    if let Some(agent) = app.hub.agent_of(caller, &request.id).await? {
        let request = GetTaskRequest { id: request.id, ..GetTaskRequest::default() };
        let task = app.hub.get_task(caller.with_agent(agent.id), &request).await;
        return Ok(task.is_ok_and(|task| gopherhole::speaks_of(&task)));
    }
    let Some(agent) = own_agent(app, caller) else { return Ok(false) };
    let Some(task) = TaskId::parse(&request.id) else { return Ok(false) };
    Ok(app.hub.is_of_agent(&agent, task).await?)
}

/// The agent a caller is.
fn own_agent(app: &App, caller: &Caller) -> Option<Arc<Agent>> {
    if !caller.rights.names_one(Right::AgentsConnect) {
        return None;
    }
    let name = Hub::agent_name(caller, None).ok()?;
    let registry = app.hub.registry();
    let agent = registry.by_name(&name)?;
    let own = agent.owner == caller.principal || caller.agents.is_some();
    (own && agent.link.dialed().is_some()).then(|| Arc::clone(agent))
}

async fn perform(app: &Arc<App>, caller: &Caller, method: &str, params: &str) -> Result<Value, Error> {
    let fresh = gopherhole::message_id(&uuid::Uuid::now_v7().to_string());
    match gopherhole::read(method, params, fresh)? {
        Asked::Send { to, request } => send(app, caller, &to, *request).await,
        Asked::Say { context, message, configuration } => say(app, caller, context, *message, *configuration).await,
        Asked::Get(request) => get(app, caller, &request).await.map(|task| gopherhole::task(&task)),
        Asked::List(request) => {
            caller.check(Right::TasksRead)?;
            Ok(gopherhole::page(&app.hub.list_own(caller, &request).await?))
        }
        Asked::Cancel(request) => {
            caller.check(Right::TasksWrite)?;
            let agent = app.hub.agent_of(caller, &request.id).await?.ok_or_else(|| Refusal::no_task(&request.id))?;
            let task = app.hub.cancel(caller.with_agent(agent.id), &request.id).await?;
            Ok(gopherhole::task(&task))
        }
        Asked::Respond(response) => respond(app, caller, &response).await,
        Asked::Available(search) => catalog::available(app, caller, &search).map_err(Error::from),
        Asked::Discover(search) => catalog::discover(app, caller, &search).map_err(Error::from),
    }
}

/// The task, for the one who asked and the one who was asked.
async fn get(app: &App, caller: &Caller, request: &GetTaskRequest) -> Result<Task, Error> {
    caller.check(Right::TasksRead)?;
    if let Some(agent) = app.hub.agent_of(caller, &request.id).await? {
        return app.hub.get_task(caller.with_agent(agent.id), request).await;
    }
    let agent = own_agent(app, caller).ok_or_else(|| Refusal::no_task(&request.id))?;
    // It looks at what it is about to answer.
    if let Some(task) = TaskId::parse(&request.id) {
        app.hub.roster().desk(agent.id).run_of(task);
    }
    app.hub.task_of_agent(&agent, &request.id).await
}

async fn send(app: &Arc<App>, caller: &Caller, to: &str, request: SendMessageRequest) -> Result<Value, Error> {
    let task = send_to(app, caller, to, request).await?;
    Ok(gopherhole::task(&task))
}

async fn send_to(app: &Arc<App>, caller: &Caller, to: &str, request: SendMessageRequest) -> Result<Task, Error> {
    caller.check(Right::TasksWrite)?;
    if request.configuration.as_ref().is_some_and(|configuration| configuration.push_config.is_some()) {
        caller.check(Right::PushWrite)?;
    }
    let registry = app.hub.registry();
    let agent = registry.resolve(caller, Some(to), "")?;
    let (outcome, _) = Box::pin(app.hub.send(caller, agent, Box::new(request), SendOptions::default())).await?;
    let Outcome::Task(task) = outcome else {
        return Err(Fault::new("a send that returns at once has a task").into());
    };
    news::tell(app, caller, agent, &task);
    Ok(*task)
}

/// A message that names no agent: an agent's answer, more for a task, or something for the default agent.
async fn say(
    app: &Arc<App>,
    caller: &Caller,
    context: String,
    mut message: Message,
    configuration: SendMessageConfiguration,
) -> Result<Value, Error> {
    if message.task_id.is_empty()
        && let Some(agent) = own_agent(app, caller)
        && let Some((task, run)) = app.hub.roster().desk(agent.id).in_context(&context)
    {
        let artifact = Artifact { artifact_id: message.message_id, name: "response".into(), ..Artifact::default() };
        let reports = vec![
            Report::Artifact {
                artifact: Box::new(artifact),
                contents: Contents::Parts(message.parts),
                append: false,
                last_chunk: true,
                metadata: None,
            },
            Report::status(TaskState::Completed),
        ];
        let task = app.hub.respond(&agent, task, run, reports).await?;
        return Ok(gopherhole::task(&task));
    }
    let known = app.hub.agent_of(caller, &message.task_id).await?;
    let to = known.or_else(|| app.hub.registry().default_agent().cloned()).map(|agent| agent.name.clone());
    if message.context_id.is_empty() {
        message.context_id = context;
    }
    let request = SendMessageRequest {
        message: Some(message),
        configuration: Some(configuration),
        ..SendMessageRequest::default()
    };
    let text = "is required here: this hub has no default agent. Name one";
    let to = to.ok_or_else(|| Refusal::invalid("configuration.agentId", text))?;
    send(app, caller, &to, request).await
}

/// `task/respond`: what a frame of this kind says, over HTTP or as a request.
async fn respond(app: &App, caller: &Caller, response: &TaskResponse) -> Result<Value, Error> {
    let no_task = || Refusal::no_task(&response.task_id);
    let agent = own_agent(app, caller).ok_or_else(no_task)?;
    let task = TaskId::parse(&response.task_id).ok_or_else(no_task)?;
    let desk = app.hub.roster().desk(agent.id);
    let run = desk.run_of(task).filter(|run| response.run.is_none_or(|named| named == *run));
    let Some(run) = run else {
        // Over, or never its own.
        return Ok(gopherhole::task(&app.hub.task_of_agent(&agent, &response.task_id).await?));
    };
    let reports = gopherhole::reports(response, |artifact, made| desk.knows_artifact(task, artifact, made))?;
    Ok(gopherhole::task(&app.hub.respond(&agent, task, run, reports).await?))
}

/// A message in a frame of its own; its task.
pub async fn send_frame(app: &Arc<App>, caller: &Caller, sending: Sending) -> Result<Task, Error> {
    let mut message = gopherhole::read_message(&sending.payload, Role::User)?;
    let given = sending.id.filter(|_| message.message_id.is_empty()).unwrap_or(message.message_id);
    let id = if given.is_empty() { uuid::Uuid::now_v7().to_string() } else { given };
    message.message_id = gopherhole::message_id(&id);
    message.task_id = sending.task_id.unwrap_or(message.task_id);
    message.context_id = sending.context_id.unwrap_or(message.context_id);
    let configuration = SendMessageConfiguration {
        return_immediately: true,
        unknown: sending.ttl.map(|ttl| (TTL.to_owned(), ttl)).into_iter().collect(),
        ..SendMessageConfiguration::default()
    };
    let request = SendMessageRequest {
        message: Some(message),
        configuration: Some(configuration),
        ..SendMessageRequest::default()
    };
    let task = send_to(app, caller, &sending.to, request).await?;
    app.speakers.remember(caller, Program::Socket);
    Ok(task)
}
