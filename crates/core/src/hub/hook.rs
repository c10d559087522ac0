//! The owner's view of webhooks: where each stands, every attempt, and what can be done about one.

use super::Hub;
use crate::caller::{Caller, Scope};
use crate::error::Error;
use crate::ids::{HookId, TaskId};
use crate::push::{Attempt, Hook, HookChange, HookFilter, HookState};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use std::sync::Arc;

/// The most hooks in a page, and the most attempts shown of one.
const PAGE: usize = 100;
const ATTEMPTS: usize = 1_000;

pub struct HookPage {
    pub hooks: Vec<Hook>,
    /// Where the next page starts; none after the last one.
    pub next: Option<HookId>,
}

impl Hub {
    /// A page of the hooks of the agents this caller owns, newest first.
    pub async fn hook_page(
        &self,
        caller: &Caller,
        state: Option<&str>,
        task: Option<&str>,
        agent: Option<&str>,
        before: Option<&str>,
    ) -> Result<HookPage, Error> {
        let state = state.map(|name| HookState::from_name(name).ok_or_else(|| no_state(name))).transpose()?;
        let before = before.map(|text| HookId::parse(text).ok_or_else(no_place)).transpose()?;
        let registry = self.registry();
        let agent = agent.map(|name| registry.resolve(caller, Some(name), "").map(|agent| agent.id)).transpose()?;
        // What cannot be a task has no deliveries, like a task that is not there.
        let Some(task) = task.map(TaskId::parse).map_or(Some(None), |task| task.map(Some)) else {
            return Ok(HookPage { hooks: Vec::new(), next: None });
        };
        let filter = HookFilter { state, task, agent, before, limit: PAGE + 1 };
        let mut hooks = self.store.hook_page(caller.as_owner(), filter).await?;
        let more = hooks.len() > PAGE;
        hooks.truncate(PAGE);
        let next = hooks.last().map(|hook| hook.uid).filter(|_| more);
        hooks.retain(|hook| self.shows(caller, hook));
        Ok(HookPage { hooks, next })
    }

    /// One hook with its latest attempts.
    pub async fn hook(&self, caller: &Caller, id: &str) -> Result<(Hook, Vec<Attempt>), Error> {
        let uid = HookId::parse(id).ok_or_else(|| no_hook(id))?;
        let hook = self.owned_hook(caller, id).await?;
        let attempts = self.store.attempts(caller.as_owner(), uid, ATTEMPTS).await?;
        Ok((hook, attempts))
    }

    /// Tries again now, from where the hook stands or from an event on.
    pub async fn redeliver(self: &Arc<Self>, caller: &Caller, id: &str, from: Option<u64>) -> Result<Hook, Error> {
        let known = self.owned_hook(caller, id).await?;
        if known.state == HookState::Deleted {
            let text = "Its caller deleted the push config, and with it where to deliver to. Only its caller can make \
                        it again.";
            return Err(Refusal::new(Reason::NotFound, text).into());
        }
        if known.state == HookState::Done && from.is_none() {
            let text = "Everything is delivered. Say from which event on to deliver again (from=1 for all of it).";
            return Err(Refusal::new(Reason::UnsupportedOperation, text).into());
        }
        let told = self.store.head(Scope::Admin, known.task).await?.map_or(0, |head| head.peer_seq);
        if from.is_some_and(|from| from > told + 1) {
            let text = format!("must be an event of the task, which has {told}, or the next one");
            return Err(Refusal::invalid("from", text).into());
        }
        let after = match from {
            Some(from) => Some(self.unit_start(&known, from.saturating_sub(1)).await?),
            None => None,
        };
        self.change_hook(caller, id, HookChange::Redeliver { after }).await
    }

    /// A key that is limited to agents shows the hooks of these only.
    fn shows(&self, caller: &Caller, hook: &Hook) -> bool {
        let registry = self.registry();
        let agent = registry.by_id(hook.agent);
        caller.agents.is_none() || agent.is_some_and(|agent| caller.may_call(&agent.name))
    }

    async fn owned_hook(&self, caller: &Caller, id: &str) -> Result<Hook, Error> {
        let uid = HookId::parse(id).ok_or_else(|| no_hook(id))?;
        let hook = self.store.hook(caller.as_owner(), uid).await?.filter(|hook| self.shows(caller, hook));
        hook.ok_or_else(|| no_hook(id).into())
    }

    /// Tells a webhook nothing any more, until it is redelivered to.
    pub async fn disable_hook(&self, caller: &Caller, id: &str) -> Result<Hook, Error> {
        self.owned_hook(caller, id).await?;
        let reason = format!("disabled by {}", caller.name);
        self.change_hook(caller, id, HookChange::Disable { reason }).await
    }

    async fn change_hook(&self, caller: &Caller, id: &str, change: HookChange) -> Result<Hook, Error> {
        let uid = HookId::parse(id).ok_or_else(|| no_hook(id))?;
        let changed = self.store.change_hook(caller.as_owner(), uid, change).await?;
        let hook = changed.ok_or_else(|| no_hook(id))?;
        match hook.state {
            HookState::Active => {
                self.desk.add(hook.clone());
                self.desk.start(uid, &self.push.schedule, self.clock.now());
            }
            HookState::Done | HookState::Parked | HookState::Disabled | HookState::Deleted => self.desk.remove(uid),
        }
        Ok(hook)
    }
}

fn no_hook(id: &str) -> Refusal {
    let shown: String = id.chars().take(100).collect();
    let text = format!("There is no delivery '{shown}' for you. 'flotilla push list' shows those there are.");
    Refusal::new(Reason::NotFound, text)
}

fn no_place() -> Refusal {
    Refusal::invalid("before", "is not the nextBefore of a page; leave it out to start")
}

fn no_state(name: &str) -> Refusal {
    let known: Vec<&str> = HookState::ALL.into_iter().map(HookState::name).collect();
    let shown: String = name.chars().take(100).collect();
    Refusal::invalid("state", format!("'{shown}' is none of {}", known.join(", ")))
}
