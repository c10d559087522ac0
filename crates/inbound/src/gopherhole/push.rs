//! Push configs of tasks, which clients of the dialect name without their agent.

use crate::app::App;
use flotilla_core::caller::Caller;
use flotilla_core::error::{Error, Fault};
use flotilla_core::hub::SendOptions;
use flotilla_core::registry::Agent;
use flotilla_core::rights::Right;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::gopherhole::{self, Asked};
use serde_json::{Value, json};
use std::sync::Arc;

pub async fn perform(app: &Arc<App>, caller: &Caller, asked: Asked) -> Result<Value, Error> {
    caller.check(Right::PushWrite)?;
    let hub = &app.hub;
    Ok(match asked {
        Asked::CreatePush(config) => {
            let agent = agent(app, caller, &config.task_id).await?;
            // In the version a webhook is written in that comes with a message.
            let version = SendOptions::default().version;
            gopherhole::push_config(&hub.create_push(caller, &agent, *config, version).await?)
        }
        Asked::GetPush(request) => {
            let agent = agent(app, caller, &request.task_id).await?;
            gopherhole::push_config(&hub.get_push(caller, &agent, &request).await?)
        }
        Asked::ListPush(request) => {
            let agent = agent(app, caller, &request.task_id).await?;
            gopherhole::push_configs(&hub.list_push(caller, &agent, &request).await?)
        }
        Asked::DeletePush(request) => {
            let agent = agent(app, caller, &request.task_id).await?;
            hub.delete_push(caller, &agent, &request).await?;
            json!({"success": true})
        }
        _ => return Err(Fault::new("not about a push config").into()),
    })
}

async fn agent(app: &App, caller: &Caller, task: &str) -> Result<Arc<Agent>, Error> {
    Ok(app.hub.agent_of(caller, task).await?.ok_or_else(|| Refusal::no_task(task))?)
}
