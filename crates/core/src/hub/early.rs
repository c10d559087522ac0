//! Runs that begin within the decision: what an agent without effects outside the hub says at once is committed together
//! with what it was asked, in one change. What takes it longer is done after the commit, as for every other agent.

use super::Hub;
use super::run::{RunHandle, Start, one_change};
use crate::limits::Limits;
use crate::ports::{Beginning, Rest};
use crate::registry::Agent;
use crate::task::{Command, Decision, Effect, Head, RunState, apply_events, room, step};
use flotilla_protocol::event::Event;
use flotilla_protocol::time::Millis;
use flotilla_protocol::work::Report;
use std::sync::Arc;

/// What became of a run within the decision to start it.
pub(super) enum Begun {
    /// It is over.
    Over,
    /// There is more to do when this is committed.
    Remains(Box<Remains>),
}

pub(super) struct Remains {
    /// What was said and did not fit.
    reports: Vec<Report>,
    rest: Rest,
}

impl Hub {
    /// Lets the first run of a new task begin, and adds to the decision what came of it at once.
    pub(super) fn begin(&self, head: &Head, decision: &mut Decision, at: Millis, limits: &Limits) -> Option<Begun> {
        let [Effect::StartRun { run, watched }] = decision.effects[..] else { return None };
        // Whoever wants the task at once is shown it as it was asked for.
        if head.version > 0 || decision.events.iter().any(|event| matches!(event, Event::Opened {})) {
            return None;
        }
        let agent = self.registry.load().by_id(head.agent).cloned()?;
        let mut scratch = head.clone();
        apply_events(&mut scratch, &decision.events, at);
        let start = Start { run, watched, resumed: false };
        let Beginning { mut reports, rest } = self.beginning(&agent, &scratch, decision, at, start)?;
        let later = reports.split_off(one_change(&reports));
        if !take_up(decision, &mut scratch, head, (run, &reports, at), limits) {
            reports.extend(later);
            return Some(Begun::Remains(Box::new(Remains { reports, rest })));
        }
        Some(match scratch.run_state {
            RunState::Idle => Begun::Over,
            _ => Begun::Remains(Box::new(Remains { reports: later, rest })),
        })
    }

    fn beginning(
        &self,
        agent: &Arc<Agent>,
        head: &Head,
        decision: &Decision,
        at: Millis,
        start: Start,
    ) -> Option<Beginning> {
        let asked = decision.events.iter().find(|event| matches!(event, Event::Asked { .. }))?;
        agent.link.begin(&|| {
            let work = self.assigned(head, agent, (at, asked), start)?;
            // Whether work under a contract may begin is decided first.
            matches!(self.contract(agent, &work.message, &[]), (None, None)).then_some(work)
        })
    }

    /// Goes on with a run whose beginning is committed.
    pub(super) fn go_on(&self, Remains { reports, rest }: Remains, mut run: RunHandle) {
        self.runtime.spawn(async move {
            // A run that is over by then hears so from its handle. In a box, which is gone while the run goes on.
            let _ = Box::pin(run.report(reports)).await;
            rest(run).await;
        });
    }
}

/// Adds to a decision what follows from reports, if they can be taken and fit; otherwise it stays as it was.
fn take_up(
    decision: &mut Decision,
    scratch: &mut Head,
    head: &Head,
    (run, reports, at): (u32, &[Report], Millis),
    limits: &Limits,
) -> bool {
    let before = decision.events.len();
    match step(scratch, Command::Report { run, reports: reports.to_vec() }) {
        Ok(said) if said.effects.is_empty() => {
            apply_events(scratch, &said.events, at);
            decision.events.extend(said.events);
        }
        Ok(_) | Err(_) => return false,
    }
    let fits = room::fits(head, &decision.events, limits).is_ok();
    if !fits {
        decision.events.truncate(before);
    }
    fits
}
