//! Where a send comes from: read before it is decided on, and told in the hub's log where it was rejected for that.

use super::Hub;
use crate::caller::{Caller, Scope};
use crate::descent::{Descent, Objection, Told};
use crate::dispatch::Target;
use crate::error::Fault;
use crate::fleet::FLEET;
use crate::fleet::contract::{self, Carried};
use crate::ids::TaskId;
use crate::registry::Agent;
use crate::task::{Head, Say};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::request::SendMessageRequest;
use flotilla_protocol::lineage::{Ancestor, Origin};
use std::sync::Arc;

impl Hub {
    pub(super) fn descent(
        &self,
        caller: &Caller,
        agent: &Agent,
        request: &SendMessageRequest,
        told: Told,
    ) -> Result<Option<Box<Descent>>, Refusal> {
        let hub = self.store.hub_id();
        let here = || Ancestor { hub: hub.to_owned(), agent: addressed(agent, request), task: String::new() };
        let descent = Descent::of(caller, request, told, here, (&self.limits.load(), || self.clock.now()))?;
        Ok(descent.map(Box::new))
    }

    /// A message to a task may bring another deadline, beside it or in its contract. It is no later than those of the
    /// tasks that the task is part of.
    pub(super) async fn date(&self, agent: &Agent, head: &Head, say: &mut Say) -> Result<(), Fault> {
        let contracted = match contract::carried(&say.message, self.reads_texts(agent)) {
            Ok(Carried::Dispatch(dispatch)) => dispatch.deadline,
            _ => None,
        };
        let told = say.descent.as_ref().and_then(|descent| descent.deadline);
        let Some(mut deadline) = told.into_iter().chain(contracted).min() else { return Ok(()) };
        let hub = self.store.hub_id();
        let above = head.origin.iter().flat_map(|origin| &origin.chain).filter(|one| one.hub == hub);
        for task in above.filter_map(|one| TaskId::parse(&one.task)) {
            let above = self.store.head(Scope::Admin, task).await?.and_then(|head| head.deadline);
            deadline = above.map_or(deadline, |above| above.min(deadline));
        }
        let here = || Ancestor { hub: hub.to_owned(), agent: agent.name.clone(), task: String::new() };
        let descent = say.descent.get_or_insert_with(|| {
            let (most_hops, now) = (self.limits.load().hops, self.clock.now());
            Box::new(Descent { origin: Arc::default(), deadline: None, here: here(), most_hops, now })
        });
        descent.deadline = Some(deadline);
        Ok(())
    }

    pub(super) fn note_rejection(&self, task: TaskId, objection: &Objection, origin: &Origin) {
        objection.count(&self.limits());
        let trace = origin.trace.as_ref().map_or_else(|| task.trace(), |trace| trace.id);
        tracing::info!(%task, %trace, refused = objection.name(), "a call is rejected for where it comes from");
    }
}

/// Who is asked: of the fleet, the worker that its dispatch names, if it names one.
fn addressed(agent: &Agent, request: &SendMessageRequest) -> String {
    let message = request.message.as_ref().filter(|_| agent.name == FLEET);
    match message.map(|message| contract::carried(message, true)) {
        Some(Ok(Carried::Dispatch(dispatch))) => match contract::target(agent, &dispatch) {
            Target::Worker(name) => name,
            _ => agent.name.clone(),
        },
        _ => agent.name.clone(),
    }
}
