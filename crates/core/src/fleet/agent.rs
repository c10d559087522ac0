//! The agent that stands for all workers, as callers see it.

use super::FLEET;
use crate::hub::RunHandle;
use crate::ids::{AgentId, PrincipalId, WorkspaceId};
use crate::ports::Link;
use crate::registry::{Agent, DedupeBy, OnLost, Visibility, hub_capabilities};
use flotilla_protocol::a2a::card::{AgentExtension, AgentSkill};
use flotilla_protocol::fleet::HANDSHAKE;
use flotilla_protocol::fleet::version::CURRENT;
use flotilla_protocol::wire::Object;
use flotilla_protocol::work::Assignment;
use std::pin::Pin;
use std::sync::Arc;

/// Its work is always under a contract, so the hub gives it to a worker and never comes here.
struct ToWorkers;

impl Link for ToWorkers {
    fn run(&self, _: Assignment, run: RunHandle) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(run.finish())
    }

    /// What was under way when the hub stopped is taken up again: it waited, or a worker has it.
    fn is_remote(&self) -> bool {
        true
    }
}

/// How cards say that an agent understands a dispatch.
pub fn extension() -> AgentExtension {
    let versions = serde_json::json!({"versions": {"min": CURRENT, "max": CURRENT}});
    AgentExtension {
        uri: HANDSHAKE.into(),
        description:
            "A message's metadata may hold a TASK_DISPATCH: priority, budget, deadline, reply schema, required \
                      tools. The result is an artifact with a TASK_RESULT."
                .into(),
        required: false,
        params: Object::of(&versions).ok(),
    }
}

pub fn virtual_agent(id: AgentId, owner: PrincipalId, workspace: WorkspaceId) -> Agent {
    let mut capabilities = hub_capabilities(true, true);
    capabilities.extensions.push(extension());
    let description = "Gives work to the worker that fits it best now, or says why none can take it.";
    let skill = AgentSkill {
        id: FLEET.into(),
        name: FLEET.into(),
        description: description.into(),
        tags: vec!["dispatch".into()],
        examples: Vec::new(),
        input_modes: Vec::new(),
        output_modes: Vec::new(),
    };
    Agent {
        id,
        name: FLEET.into(),
        owner,
        workspace,
        visibility: Visibility::Workspace,
        description: description.into(),
        version: "1.0.0".into(),
        capabilities,
        input_modes: vec!["*/*".into()],
        output_modes: vec!["*/*".into()],
        checks_modes: true,
        skills: vec![skill],
        extended: None,
        dedupe: DedupeBy::MessageId,
        on_lost: OnLost::Fail,
        link: Arc::new(ToWorkers),
    }
}
