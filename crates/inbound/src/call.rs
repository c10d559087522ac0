//! The one place where a decoded request of any binding meets the core.

use crate::app::App;
use crate::dialect::Dialect;
use crate::parameters::Parameters;
use crate::signed::{self, Signed};
use flotilla_core::access::Leave;
use flotilla_core::caller::Caller;
use flotilla_core::error::{Error, Fault};
use flotilla_core::hub::{Ended, Follow, Outcome, SendOptions, no_streaming};
use flotilla_core::registry::Agent;
use flotilla_core::rights::Right;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::model::{StreamResponse, Task};
use flotilla_protocol::a2a::push::ListPushConfigsResponse;
use flotilla_protocol::a2a::request::{
    ListPushConfigsRequest, ListTasksResponse, PushConfig, PushConfigRequest, Request, SendMessageRequest,
};
use flotilla_protocol::a2a::validate;
use http::HeaderValue;
use std::pin::Pin;
use std::sync::Arc;

/// What an operation comes to.
pub enum Answer {
    Task(Box<Task>),
    /// A task or a direct Message, under its own name.
    Sent(StreamResponse),
    List(ListTasksResponse),
    PushConfig(Box<PushConfig>),
    PushConfigs(ListPushConfigsResponse),
    /// An extended card.
    Card(Box<Signed>),
    /// Done, and nothing to say about it.
    Empty,
    /// A stream, and what it goes on with.
    Stream(Box<Follow>, Leave),
}

/// An answer with the extensions in force.
pub struct Answered {
    pub answer: Answer,
    pub extensions: Option<HeaderValue>,
}

/// Checks what every operation must check, then performs it. What is asked for is looked at before there is anything to
/// wait for, so that what waits has not to hold it.
pub fn perform<'a>(
    app: &'a App,
    caller: &'a Caller,
    path: Option<&str>,
    dialect: Dialect,
    parameters: &'a Parameters,
    request: Request,
) -> impl Future<Output = Result<Answered, Error>> + Send + 'a {
    let checked = check(app, caller, path, parameters, &request);
    let named = path.is_some();
    let begun = checked.map(|agent| {
        let asked = Asked { caller, agent: Arc::clone(&agent), named, dialect };
        (operate(app, asked, parameters, request), agent)
    });
    async move {
        let (operating, agent) = begun?;
        let (answer, activated) = operating.await?;
        Ok(Answered { answer, extensions: parameters.activated(|| app.hub.extensions(&agent), activated.as_deref()) })
    }
}

/// The agent that is asked, if everything that can be told beforehand is in order.
fn check(
    app: &App,
    caller: &Caller,
    path: Option<&str>,
    parameters: &Parameters,
    request: &Request,
) -> Result<Arc<Agent>, Error> {
    caller.check(Right::for_method(request.method()))?;
    if request.inline_push_config().is_some() {
        caller.check(Right::PushWrite)?;
    }
    if let Request::SendMessage(send) | Request::SendStreamingMessage(send) = request {
        app.misplaced.check(caller, send.configuration.as_ref());
    }
    let registry = app.hub.registry();
    let agent = registry.resolve(caller, path, request.tenant())?;
    parameters.check_extensions(agent)?;
    parameters.check_key()?;
    Ok(Arc::clone(agent))
}

/// Who asks whom, and how.
struct Asked<'a> {
    caller: &'a Caller,
    agent: Arc<Agent>,
    /// Whether the request's path names the agent.
    named: bool,
    dialect: Dialect,
}

/// The answer, and, where an agent elsewhere has said it, which extensions it activated.
type Operated = Result<(Answer, Option<Vec<String>>), Error>;

/// In a box of its own kind: otherwise each would be as large as the largest of them, on the way of every request.
fn operate<'a>(
    app: &'a App,
    asked: Asked<'a>,
    parameters: &'a Parameters,
    request: Request,
) -> Pin<Box<dyn Future<Output = Operated> + Send + 'a>> {
    match request {
        Request::SendMessage(request) => Box::pin(send(app, asked, parameters, Box::new(request))),
        other => Box::pin(async move { Ok((operate_otherwise(app, asked, parameters, other).await?, None)) }),
    }
}

async fn send(app: &App, asked: Asked<'_>, parameters: &Parameters, request: Box<SendMessageRequest>) -> Operated {
    let Asked { caller, agent, dialect, .. } = &asked;
    let mut leave = app.access.leave(caller);
    let (outcome, activated) = tokio::select! {
        biased;
        outcome = app.hub.send(caller, agent, request, options(parameters, *dialect)) => outcome?,
        // The wait ends with the key; the task goes on.
        refusal = leave.ended() => return Err(refusal.into()),
    };
    let answer = Answer::Sent(match outcome {
        Outcome::Task(task) => StreamResponse::Task(*task),
        Outcome::Message(message) => StreamResponse::Message(message),
    });
    Ok((answer, agent.link.is_remote().then_some(activated)))
}

fn options(parameters: &Parameters, dialect: Dialect) -> SendOptions {
    SendOptions {
        idempotency_key: parameters.idempotency_key.clone(),
        told: parameters.told.clone(),
        version: dialect.version(),
        extensions: parameters.extensions.clone(),
    }
}

async fn operate_otherwise(
    app: &App,
    asked: Asked<'_>,
    parameters: &Parameters,
    request: Request,
) -> Result<Answer, Error> {
    let Asked { caller, ref agent, named, dialect } = asked;
    let hub = &app.hub;
    let scope = caller.with_agent(agent.id);
    match request {
        Request::SendMessage(_) => Err(Fault::new("a send is operated on by itself").into()),
        Request::SendStreamingMessage(request) => {
            let options = options(parameters, dialect);
            let follow = Box::pin(hub.send_streaming(caller, agent, Box::new(request), options)).await?;
            Ok(Answer::Stream(Box::new(follow), app.access.leave(caller)))
        }
        Request::GetTask(request) => Ok(Answer::Task(Box::new(hub.get_task(scope, &request).await?))),
        Request::ListTasks(request) => Ok(Answer::List(hub.list_tasks(caller, agent, &request).await?)),
        Request::CancelTask(request) => {
            validate::task_id("id", &request.id)?;
            Ok(Answer::Task(Box::new(hub.cancel(scope, &request.id).await?)))
        }
        Request::SubscribeToTask(request) => {
            if !agent.capabilities.streaming {
                return Err(no_streaming(&agent.name).into());
            }
            let follow = hub.subscribe(caller, agent.id, &request.id, parameters.cursor()?, ended(dialect)).await?;
            Ok(Answer::Stream(Box::new(follow), app.access.leave(caller)))
        }
        Request::CreatePushConfig(config) => {
            Ok(Answer::PushConfig(Box::new(hub.create_push(caller, agent, config, dialect.version()).await?)))
        }
        Request::GetPushConfig(request) if matches!(request.id.as_str(), "" | "default") && dialect != Dialect::V10 => {
            Ok(Answer::PushConfig(Box::new(first_push(app, caller, agent, request).await?)))
        }
        Request::GetPushConfig(request) => {
            Ok(Answer::PushConfig(Box::new(hub.get_push(caller, agent, &request).await?)))
        }
        Request::ListPushConfigs(request) => Ok(Answer::PushConfigs(hub.list_push(caller, agent, &request).await?)),
        Request::DeletePushConfig(request) => {
            hub.delete_push(caller, agent, &request).await?;
            Ok(Answer::Empty)
        }
        Request::GetExtendedAgentCard(request) => {
            let named = named || !request.tenant.is_empty();
            Ok(Answer::Card(Box::new(signed::extended(app, caller, agent, named, dialect)?)))
        }
    }
}

/// In 0.3 a stream of a task that has ended is the task; in 1.0 it is refused (spec 3.1.6).
fn ended(dialect: Dialect) -> Ended {
    match dialect {
        Dialect::V10 => Ended::Refused,
        Dialect::V03(_) => Ended::Shown,
    }
}

/// In 0.3 a config may be asked for without its id, or as the default: the task's first, then.
async fn first_push(
    app: &App,
    caller: &Caller,
    agent: &Agent,
    request: PushConfigRequest,
) -> Result<PushConfig, Error> {
    let task = request.task_id.clone();
    let listed = ListPushConfigsRequest { task_id: request.task_id, ..ListPushConfigsRequest::default() };
    let mut configs = app.hub.list_push(caller, agent, &listed).await?.configs;
    let named = configs.iter().position(|config| config.id == request.id).unwrap_or(0);
    let found = (named < configs.len()).then(|| configs.swap_remove(named));
    found.ok_or_else(|| {
        let refusal = Refusal::new(Reason::TaskNotFound, "The task has no push config.");
        refusal.fact("taskId", task).into()
    })
}
