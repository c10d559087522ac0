//! Recovery at the start: every run the last process left open is run again or failed, never left WORKING.

use super::Hub;
use super::run::Start;
use super::trail::is_to_stop;
use crate::caller::Scope;
use crate::error::Fault;
use crate::fleet::FLEET;
use crate::registry::{Agent, OnLost};
use crate::task::{Command, Retry, RunState};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long those who may call are kept waiting for runs to be at their agents' desks again.
const START: Duration = Duration::from_secs(10);

/// What recovery did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    pub retried: usize,
    /// Runs of agents elsewhere, which may have gone on meanwhile.
    pub taken_up: usize,
    /// Ended, most of them as failed.
    pub failed: usize,
}

impl Hub {
    /// Takes up what was open. Safe to call once before the first request is served.
    pub async fn recover(self: &Arc<Self>) -> Result<Recovered, Fault> {
        for (principal, open) in self.store.open_tasks().await? {
            self.open_tasks.add(principal, open);
        }
        // Before anything happens to a task: nothing that happens may find its webhooks missing.
        self.load_hooks().await?;
        for (task, deadline) in self.store.deadlines().await? {
            self.deadlines.changed(task, None, Some(deadline));
        }
        self.load_approvals().await?;
        let open = self.store.open_runs().await?;
        // What is too late is not run again.
        self.end_overdue().await;
        let mut recovered = Recovered::default();
        let mut at_desks = Vec::new();
        for id in open {
            let Some(live) = self.find(Scope::Admin, id).await? else { continue };
            let Some(head) = live.committed() else { continue };
            if head.run_state == RunState::Idle {
                self.stop_when_back(&live, &head).await?;
                continue;
            }
            let agent = self.registry.load().by_id(head.agent).cloned();
            if agent.as_ref().is_some_and(|agent| agent.link.is_remote()) {
                let absent = agent.as_ref().is_some_and(|agent| agent.link.absence().is_some());
                let place = self.place_of_old(agent.as_ref(), &head, absent);
                let start = Start { run: head.run, watched: true, resumed: true };
                let may_dial = |agent: &Arc<Agent>| agent.link.dialed().is_some() || agent.name == FLEET;
                if agent.as_ref().is_some_and(may_dial) {
                    at_desks.push((self.asked_at(&live, &head).await?, id, live, start, place));
                } else {
                    self.start_run(&live, start, place);
                }
                recovered.taken_up += 1;
                continue;
            }
            if self.still_waits(&live, agent.as_ref()).await {
                let place = self.place_of_old(agent.as_ref(), &head, true);
                self.start_run(&live, Start { run: head.run, watched: true, resumed: false }, place);
                recovered.taken_up += 1;
                continue;
            }
            // Its program ended with the hub, as somebody had asked for.
            if is_to_stop(&self.log_of(&live).await?, head.run)
                && self.end(&live, || Command::Cancel { said: None }).await.is_ok()
            {
                recovered.failed += 1;
                continue;
            }
            let may_repeat = self.registry.load().by_id(head.agent).is_some_and(|a| a.on_lost == OnLost::Retry);
            let retry = if may_repeat { Retry::Always } else { Retry::IfUnstarted };
            let reason = match head.run_state {
                RunState::Claimed => "the hub stopped before the agent had said anything of it",
                _ => "the hub stopped while the agent was at work",
            };
            let command = || Command::Lost { run: head.run, reason: reason.to_owned(), retry };
            match self.end(&live, command).await {
                Ok(_) if live.committed().is_some_and(|head| head.is_over()) => recovered.failed += 1,
                Ok(_) => recovered.retried += 1,
                Err(error) => return Err(Fault::new(format!("recovering task {id}: {error}"))),
            }
        }
        // Messages are delivered in the order they were sent. Ids grow within a millisecond.
        at_desks.sort_by_key(|(asked_at, id, ..)| (*asked_at, *id));
        let until = Instant::now() + START;
        for (_, _, live, start, place) in at_desks {
            self.start_at_desk(&live, start, place, until).await;
        }
        self.look_after_all().await?;
        Ok(recovered)
    }
}
