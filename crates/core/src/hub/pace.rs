//! The pace of callers and of messages to agents, and how many connections a caller has.

use super::{Hub, Place};
use crate::ids::{AgentId, PrincipalId};
use crate::limits::Limit;
use crate::rate::Pace;
use flotilla_protocol::a2a::error::Refusal;
use std::time::Duration;

impl Hub {
    /// Counts a request of a caller, unless there were too many of late.
    pub fn count_request(&self, principal: PrincipalId) -> Result<(), Refusal> {
        let most = self.limits.load().requests_per_caller;
        self.requests.take(principal, Pace { most, per: Duration::from_secs(1) }).map_err(|wait| {
            let text =
                format!("You make more requests than you may ({most} a second). Wait a moment, then go on slower.");
            Limit::RequestsPerCaller.refuse(most, text).retry_after(wait)
        })
    }

    /// Counts a connection of a caller, as long as the place is kept.
    pub fn connection_place(&self, principal: PrincipalId) -> Result<Place<PrincipalId>, Refusal> {
        let most = self.limits.load().connections_per_caller;
        self.connections.place(principal, most, usize::MAX).map_err(|_| {
            let text = format!("You have as many connections as you may ({most}). Close one, or use those you have.");
            Limit::ConnectionsPerCaller.refuse(most, text).retry_after(Duration::from_secs(1))
        })
    }

    /// Counts a message to an agent, unless there were too many of late. Reading does not reach an agent.
    pub(super) fn count_send(&self, agent: AgentId) -> Result<(), Refusal> {
        let pace = self.send_pace();
        let most = pace.most;
        self.sends.take(agent, pace).map_err(|wait| {
            let text = format!("The agent gets more messages than it may ({most} a second). Try again in a moment.");
            Limit::SendsPerAgent.refuse(most, text).retry_after(wait)
        })
    }

    /// A message that was counted did not get there.
    pub(super) fn uncount_send(&self, agent: AgentId) {
        self.sends.give_back(agent, self.send_pace());
    }

    fn send_pace(&self) -> Pace {
        Pace { most: self.limits.load().sends_per_agent, per: Duration::from_secs(1) }
    }
}
