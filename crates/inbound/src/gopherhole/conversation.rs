//! Whom a message is for that names nobody, and the task it belongs to: clients of the dialect often say the context alone.

use super::own_agent;
use crate::app::App;
use flotilla_core::caller::Caller;
use flotilla_core::error::Error;
use flotilla_core::hub::Talk;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::model::Message;
use flotilla_protocol::a2a::request::{GetTaskRequest, SendMessageConfiguration, SendMessageRequest};

/// A message to an agent. In a context where the agent waits for an answer of the caller's, this is the answer: these
/// clients have no other way to give one.
pub async fn to_agent(
    app: &App,
    caller: &Caller,
    to: &str,
    mut request: SendMessageRequest,
) -> Result<SendMessageRequest, Error> {
    if let Some(message) = request.message.as_mut().filter(|message| message.task_id.is_empty()) {
        let agent = app.hub.registry().resolve(caller, Some(to), "")?.id;
        let talks = app.hub.talks(caller, &message.context_id, Some(agent)).await?;
        if let Some(task) = talks.first().and_then(|talk| talk.waiting) {
            message.task_id = task.to_string();
        }
    }
    Ok(request)
}

/// The same for a message that may come again, under its id: it belongs where it was said first, whoever waits by now.
pub async fn once_to_agent(
    app: &App,
    caller: &Caller,
    to: &str,
    mut request: SendMessageRequest,
) -> Result<SendMessageRequest, Error> {
    if let Some(message) = request.message.as_mut().filter(|message| message.task_id.is_empty()) {
        let agent = app.hub.registry().resolve(caller, Some(to), "")?.id;
        let talks = app.hub.talks(caller, &message.context_id, Some(agent)).await?;
        if let Some(Talk { latest, waiting, .. }) = talks.first() {
            let id = waiting.unwrap_or(*latest).to_string();
            let task = GetTaskRequest { id, ..GetTaskRequest::default() };
            let task = app.hub.get_task(caller.with_agent(agent), &task).await.unwrap_or_default();
            message.task_id = match task.history.iter().position(|said| said.message_id == message.message_id) {
                Some(0) => String::new(),
                Some(_) => task.id,
                None => waiting.map(|task| task.to_string()).unwrap_or_default(),
            };
        }
    }
    Ok(request)
}

/// A message to nobody: for the task it names, or the conversation it goes on with, or else the default agent.
pub async fn to_nobody(
    app: &App,
    caller: &Caller,
    context: String,
    mut message: Message,
    configuration: SendMessageConfiguration,
) -> Result<(String, SendMessageRequest), Error> {
    if message.context_id.is_empty() {
        message.context_id = context;
    }
    let mut known = app.hub.agent_of(caller, &message.task_id).await?;
    if known.is_none() && message.task_id.is_empty() {
        let talks = app.hub.talks(caller, &message.context_id, None).await?;
        if let Some(talk) = meant(talks)? {
            message.task_id = talk.waiting.map(|task| task.to_string()).unwrap_or_default();
            known = Some(talk.agent);
        } else if !message.context_id.is_empty() && own_agent(app, caller).is_some() {
            return Err(late(&message.context_id).into());
        }
    }
    let to = known.or_else(|| app.hub.registry().default_agent().cloned()).map(|agent| agent.name.clone());
    let text = "is required here: this hub has no default agent. Name one";
    let to = to.ok_or_else(|| Refusal::invalid("configuration.agentId", text))?;
    let (message, configuration) = (Some(message), Some(configuration));
    Ok((to, SendMessageRequest { message, configuration, ..SendMessageRequest::default() }))
}

/// Of those in a conversation, the one a message is for: who waits for an answer goes before who does not.
fn meant(talks: Vec<Talk>) -> Result<Option<Talk>, Refusal> {
    let asked = talks.iter().any(|talk| talk.waiting.is_some());
    let mut meant: Vec<Talk> = talks.into_iter().filter(|talk| talk.waiting.is_some() || !asked).collect();
    if meant.len() > 1 {
        let names: Vec<&str> = meant.iter().map(|talk| talk.agent.name.as_str()).collect();
        let text = format!("is required here: the context has tasks of several agents ({})", names.join(", "));
        return Err(Refusal::invalid("configuration.agentId", text));
    }
    Ok(meant.pop())
}

/// What an agent answers after its run is over is nothing for others to do.
fn late(context: &str) -> Refusal {
    let shown: String = context.chars().take(100).collect();
    let text = format!(
        "You have no run and no task in the context '{shown}': what you were asked there is over. To write to an agent, \
         name it in configuration.agentId."
    );
    Refusal::new(Reason::TaskNotFound, text)
}
