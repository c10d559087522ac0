//! Agents that dial in: which one a key speaks for, and what it says of itself.

use super::Hub;
use crate::caller::Caller;
use crate::error::Error;
use crate::registry::{Agent, Registration, check_name};
use crate::rights::Right;
use crate::roster::Terms;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::profile::Profile;
use std::sync::Arc;

impl Hub {
    /// The name a key speaks under: that of the one agent it is limited to, the one asked for, or its principal's own.
    pub fn agent_name(caller: &Caller, asked: Option<&str>) -> Result<String, Refusal> {
        caller.check(Right::AgentsConnect)?;
        let name = match (asked, caller.agents.as_deref()) {
            (Some(asked), None) => asked,
            (Some(asked), Some(allowed)) if allowed.iter().any(|name| name == asked) => asked,
            (Some(asked), Some(allowed)) => {
                let text = format!("Your key does not speak for the agent '{asked}', but for: {}.", allowed.join(", "));
                return Err(Refusal::new(Reason::PermissionDenied, text));
            }
            (None, Some([only])) => only,
            (None, Some(allowed)) => {
                let text =
                    format!("Your key speaks for several agents; say which with ?agent=NAME: {}.", allowed.join(", "));
                return Err(Refusal::invalid("agent", text));
            }
            (None, None) => &caller.stands_for,
        };
        check_name(name).map_err(|problem| Refusal::invalid("agent", problem))?;
        Ok(name.to_owned())
    }

    /// The agent a caller may be, which is registered if it is not there yet.
    pub async fn dial_in(self: &Arc<Self>, caller: &Caller, asked: Option<&str>) -> Result<(Arc<Agent>, Terms), Error> {
        let name = Self::agent_name(caller, asked)?;
        if let Some(known) = self.registry.load().by_name(&name).cloned() {
            return Ok(may_be(caller, known)?);
        }
        if !self.roster.welcome().register {
            let text = format!(
                "There is no agent '{name}' here, and agents may not register themselves. The hub's owner can add it to \
                 the configuration with 'kind: socket', or set sockets.register."
            );
            return Err(Refusal::new(Reason::AgentNotFound, text).into());
        }
        let agent = self.keep(caller, &name, Profile::default()).await?;
        Ok(may_be(caller, agent)?)
    }

    /// An agent says what it is; whether that is new. One that is configured has the configuration's card, and is not
    /// asked.
    pub async fn describe(self: &Arc<Self>, caller: &Caller, agent: &Agent, profile: Profile) -> Result<bool, Error> {
        if agent.link.dialed().is_some_and(|terms| terms.describes_itself) {
            // Most say the same each time they connect, and thousands may do so at once.
            let known = self.registry.load().by_name(&agent.name).cloned();
            let is_new = known.is_none_or(|known| !known.says(&profile));
            if is_new {
                let kept = self.keep(caller, &agent.name, profile).await?;
                if self.fleet.has(&kept.name) {
                    // Work may wait for a skill that it has now.
                    self.fleet.describe_one(&kept);
                    self.look_at_workers();
                }
            }
            return Ok(is_new);
        }
        let text = format!("The card of '{}' is in the hub's configuration; what it says there counts.", agent.name);
        Err(Refusal::new(Reason::PermissionDenied, text).into())
    }

    async fn keep(self: &Arc<Self>, caller: &Caller, name: &str, profile: Profile) -> Result<Arc<Agent>, Error> {
        let _alone = self.roster.registering.lock().await;
        let welcome = self.roster.welcome();
        let known = self.registry.load().by_name(name).cloned();
        let (owner, workspace, visibility) = match known {
            // Two that came at once: the first has it.
            Some(known) => may_be(caller, known).map(|(known, _)| (known.owner, known.workspace, known.visibility))?,
            None => (caller.principal, caller.workspace, welcome.visibility),
        };
        let (name, at) = (name.to_owned(), self.clock.now());
        let registration = Registration { name, owner, workspace, visibility, profile, at };
        // Who was given a key for it by name was given its tasks too.
        let take_over = caller.rights.is_admin() || speaks_for(caller, &registration.name);
        let Some(id) = self.store.register(registration.clone(), take_over).await? else {
            return Err(was_anothers(&registration.name).into());
        };
        let agent = registration.agent(id, welcome.terms.on_lost, self.roster.link(id));
        Ok(self.put_in(&Arc::new(agent)))
    }
}

/// Its owner may be an agent, and whoever was given a key for it by name.
fn may_be(caller: &Caller, agent: Arc<Agent>) -> Result<(Arc<Agent>, Terms), Refusal> {
    match agent.link.dialed() {
        Some(terms) if agent.owner == caller.principal || speaks_for(caller, &agent.name) => Ok((agent, terms)),
        _ => Err(taken(&agent.name)),
    }
}

fn speaks_for(caller: &Caller, name: &str) -> bool {
    caller.agents.as_deref().is_some_and(|allowed| allowed.iter().any(|one| one == name))
}

/// Whoever has an agent's name has its tasks, also those of one that was removed.
pub(super) fn was_anothers(name: &str) -> Refusal {
    let text = format!(
        "The name '{name}' was another owner's, whose tasks are still in the log. Choose another name, or ask the hub's \
         owner to add the agent, or for a key that is limited to it."
    );
    Refusal::new(Reason::AlreadyExists, text)
}

fn taken(name: &str) -> Refusal {
    let text =
        format!("The name '{name}' belongs to another agent. Choose another: with ?agent=NAME, or in a worker's file.");
    Refusal::new(Reason::AlreadyExists, text)
}
