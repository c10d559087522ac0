//! Where a send comes from: read before it is decided on, and told in the hub's log where it was rejected for that.

use super::Hub;
use crate::caller::Caller;
use crate::descent::{Descent, Objection, Told};
use crate::dispatch::Target;
use crate::fleet::FLEET;
use crate::fleet::contract::{self, Carried};
use crate::ids::TaskId;
use crate::registry::Agent;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::request::SendMessageRequest;
use flotilla_protocol::lineage::{Ancestor, Origin};

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
        let descent = Descent::of(caller, request, told, here, (&self.limits.load(), self.clock.now()))?;
        Ok(descent.map(Box::new))
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
