//! The other side of a task: a caller who is the agent that has it to do, and what they say of it.

use crate::app::App;
use flotilla_core::caller::Caller;
use flotilla_core::error::Error;
use flotilla_core::hub::{Hub, OfAgent};
use flotilla_core::ids::TaskId;
use flotilla_core::registry::Agent;
use flotilla_core::rights::Right;
use flotilla_core::roster::Desk;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::model::{Artifact, Message, TaskState};
use flotilla_protocol::gopherhole::{self, Parties};
use flotilla_protocol::hub_frame::TaskResponse;
use flotilla_protocol::work::{Contents, Report};
use serde_json::Value;
use std::sync::Arc;

/// The agent a caller is: the one whose connection it asks over, or else the one its key is.
pub fn own_agent(app: &App, caller: &Caller) -> Option<Arc<Agent>> {
    if caller.agent.is_none() && !caller.rights.names_one(Right::AgentsConnect) {
        return None;
    }
    let name = Hub::agent_name(caller, caller.agent.as_deref()).ok()?;
    let registry = app.hub.registry();
    let agent = registry.by_name(&name)?;
    let own = agent.owner == caller.principal || caller.agents.is_some();
    (own && agent.link.dialed().is_some()).then(|| Arc::clone(agent))
}

/// A task for the agent that has it to do.
pub fn for_agent(agent: &Agent, OfAgent { task, from }: &OfAgent) -> Value {
    gopherhole::task(task, &Parties { client: from.clone(), server: agent.name.clone() })
}

/// A message that is the answer to what an agent was asked, and the end of its run.
pub async fn answer(app: &App, agent: &Agent, (task, run): (TaskId, u32), message: Message) -> Result<Value, Error> {
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
    Ok(for_agent(agent, &app.hub.respond(agent, task, run, reports).await?))
}

/// `task/respond`: what a frame of this kind says, over HTTP or as a request.
pub async fn respond(app: &App, caller: &Caller, response: &TaskResponse) -> Result<Value, Error> {
    let no_task = || Refusal::no_task(&response.task_id);
    let agent = own_agent(app, caller).ok_or_else(no_task)?;
    let task = TaskId::parse(&response.task_id).ok_or_else(no_task)?;
    let desk = app.hub.roster().desk(agent.id);
    let run = desk.run_of(task).filter(|run| response.run.is_none_or(|named| named == *run));
    let Some(run) = run else {
        let last = app.hub.last_run(&agent, task).await?.ok_or_else(no_task)?;
        check_run(response, last)?;
        return Ok(for_agent(&agent, &app.hub.task_of_agent(&agent, &response.task_id).await?));
    };
    let reports = reports(&desk, task, response)?;
    Ok(for_agent(&agent, &app.hub.respond(&agent, task, run, reports).await?))
}

/// What an agent says of a run that it has.
pub fn reports(desk: &Desk, task: TaskId, response: &TaskResponse) -> Result<Vec<Report>, Refusal> {
    let mut reports = gopherhole::reports(response, |artifact, made| desk.knows_artifact(task, artifact, made))?;
    // Whoever makes something works, also without saying so; who says so, or what else came of it, need not be told.
    if desk.begins(task) && response.status.is_none() {
        reports.insert(0, Report::status(TaskState::Working));
    }
    Ok(reports)
}

/// Refuses the number of a run that never was: nothing of what it says is over.
pub fn check_run(response: &TaskResponse, last: u32) -> Result<(), Refusal> {
    match response.run {
        Some(run) if run == 0 || run > last => {
            let text =
                format!("there is no run {run} of this task, whose last one is {last}; say the run of the message");
            Err(Refusal::invalid("run", text))
        }
        _ => Ok(()),
    }
}
