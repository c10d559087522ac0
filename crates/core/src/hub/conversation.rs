//! Conversations: with whom a caller has tasks in a context, for messages that name nothing but that.

use super::Hub;
use crate::caller::Caller;
use crate::error::Fault;
use crate::ids::{AgentId, TaskId};
use crate::ports::ListFilter;
use crate::registry::Agent;
use crate::task::Head;
use flotilla_protocol::a2a::model::TaskState;
use std::sync::Arc;

/// What a caller has with one agent in a context.
pub struct Talk {
    pub agent: Arc<Agent>,
    /// The task whose state changed last.
    pub latest: TaskId,
    /// The task in which the agent asked last, and waits for an answer.
    pub waiting: Option<TaskId>,
}

impl Hub {
    /// The agents a caller has tasks with in a context; of them one alone, if that is named.
    pub async fn talks(&self, caller: &Caller, context: &str, with: Option<AgentId>) -> Result<Vec<Talk>, Fault> {
        if context.is_empty() {
            return Ok(Vec::new());
        }
        let agents = match with {
            Some(agent) => self.registry.load().by_id(agent).cloned().into_iter().collect(),
            None => self.agents_seen(caller).await?,
        };
        let mut talks = Vec::new();
        for agent in agents {
            let id = agent.id;
            let Some(latest) = self.latest(caller, id, context, None).await? else { continue };
            let mut waiting: Option<Head> = None;
            for state in [TaskState::InputRequired, TaskState::AuthRequired] {
                let other = self.latest(caller, id, context, Some(state)).await?;
                waiting = waiting.into_iter().chain(other).max_by_key(|head| (head.status_at, head.id));
            }
            talks.push(Talk { agent, latest: latest.id, waiting: waiting.map(|head| head.id) });
        }
        Ok(talks)
    }

    /// The task of a context whose state changed last, of all or of those in one state.
    async fn latest(
        &self,
        caller: &Caller,
        agent: AgentId,
        context: &str,
        state: Option<TaskState>,
    ) -> Result<Option<Head>, Fault> {
        let filter = ListFilter { context: Some(context.to_owned()), state, limit: 1, ..ListFilter::default() };
        let page = self.store.list(caller.principal, agent, filter).await?;
        Ok(page.records.into_iter().next().map(|record| record.head))
    }
}
