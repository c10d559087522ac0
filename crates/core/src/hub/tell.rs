//! News for people: what changed, told to whoever listens and may know.

use super::Hub;
use super::tally::Place;
use crate::approval::{Told, told};
use crate::caller::{Caller, Scope};
use crate::error::Error;
use crate::ids::PrincipalId;
use crate::notice::{Heard, Listener, Notice, What};
use crate::task::{Head, Kind};
use flotilla_protocol::approval::ApprovalState;
use flotilla_protocol::event::Change;
use flotilla_protocol::usage::Usage;
use std::sync::Arc;
use std::time::Duration;

/// What somebody who listens gets next.
pub enum EventNext {
    Notice(Arc<Notice>),
    /// Some are no longer kept: look up how things are.
    Gap,
    Quiet,
    Stopping,
}

/// One who listens.
pub struct EventFollow {
    hub: Arc<Hub>,
    caller: Caller,
    listener: Listener,
    gap: bool,
    /// Counts among the streams its caller reads.
    _place: Place<PrincipalId>,
}

impl Hub {
    /// Listens for the caller: from now on, or after a notice that was the last one heard. `boot` tells this process from
    /// the ones before it, whose numbers say nothing here.
    pub fn listen(self: &Arc<Self>, caller: &Caller, after: Option<(&str, u64)>) -> Result<EventFollow, Error> {
        let place = self.stream_place(caller.principal)?;
        let known = after.map(|(boot, name)| self.notices.number_of(name).filter(|_| boot == self.boot()));
        let (listener, gap) = match known {
            None => (self.notices.listen(), false),
            Some(Some(number)) => (self.notices.listen_from(number + 1), false),
            Some(None) => (self.notices.listen(), true),
        };
        Ok(EventFollow { hub: Arc::clone(self), caller: caller.clone(), listener, gap, _place: place })
    }

    /// A name for this run of the hub.
    pub fn boot(&self) -> &str {
        &self.boot
    }

    /// A task's log grew. A direct answer is no task, and nothing to tell of but what it used.
    pub(super) fn tell_of(&self, head: &Head, change: &Change) {
        if !self.notices.has_listeners() {
            return;
        }
        let doer = self.doer(head).map_or((head.owner, head.agent), |doer| (doer.owner, doer.id));
        if head.kind == Kind::Task {
            let (task, caller, state, seq) = (head.id, head.principal, head.state.name(), head.seq);
            let what = What::Task { task, caller, state, seq, worker: Some(doer).filter(|(_, id)| *id != head.agent) };
            self.notices.tell(Notice { at: change.at, owner: head.owner, agent: head.agent, what });
        }
        // What is asked and used is whoever's who does the work, and their owner's to know.
        let tell = |(owner, agent), what| self.notices.tell(Notice { at: change.at, owner, agent, what });
        for told in told(&change.events) {
            // Whoever asked may not have the work any more when that is settled.
            let (id, state, asker) = match told {
                Told::Asked { id, .. } => (id, ApprovalState::Open, None),
                Told::Settled { id, answer } => (id, answer.state, self.approvals.asker(id)),
            };
            let what = What::Approval { approval: id.to_string().into(), task: head.id, state: state.name() };
            tell(asker.unwrap_or(doer), what);
        }
        if let Some(usage) = Usage::of(&change.events) {
            tell(doer, What::Usage { task: head.id, usage });
        }
    }
}

impl EventFollow {
    /// The next one that is for this listener.
    pub async fn next(&mut self, patience: Duration) -> EventNext {
        if std::mem::take(&mut self.gap) {
            return EventNext::Gap;
        }
        let quiet = tokio::time::sleep(patience);
        let mut quiet = std::pin::pin!(quiet);
        loop {
            let heard = tokio::select! {
                biased;
                heard = self.listener.next() => heard,
                () = self.hub.stopped() => return EventNext::Stopping,
                () = &mut quiet => return EventNext::Quiet,
            };
            match heard {
                Some(Heard::Notice(notice)) if self.is_for(&notice) => return EventNext::Notice(notice),
                Some(Heard::Notice(_)) => {}
                Some(Heard::Missed(_)) => return EventNext::Gap,
                None => return EventNext::Stopping,
            }
        }
    }

    /// The name of what was heard last, if anything was told yet.
    pub fn last(&self) -> Option<u64> {
        self.listener.position().checked_sub(1).map(|number| self.hub.notices.name_of(number))
    }

    /// Whose agents it is about decides; a key that is limited to agents hears of these only.
    fn is_for(&self, notice: &Notice) -> bool {
        let owned = |principal| match self.caller.as_owner() {
            Scope::Admin => true,
            Scope::Agent { owner } => principal == owner,
            Scope::Caller { .. } | Scope::Own { .. } => false,
        };
        let registry = self.hub.registry();
        let named = |id| registry.by_id(id).is_some_and(|agent| self.caller.may_call(&agent.name));
        let mut concerns = notice.concerns();
        concerns.any(|(owner, agent)| owned(owner) && (self.caller.agents.is_none() || named(agent)))
    }
}
