//! A call's descent: what of its caller's word on its lineage is believed, and what speaks against doing the work.

use crate::caller::Caller;
use crate::fleet::FLEET;
use crate::limits::{Limit, Limits, count_over};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::request::SendMessageRequest;
use flotilla_protocol::lineage::{ANCESTRY, Ancestor, Ancestry, Claim, HOPS, Origin, Provenance, Trace};
use flotilla_protocol::time::Millis;
use flotilla_protocol::wire::Object;
use serde_json::json;
use std::sync::Arc;

/// What a request's headers tell of its lineage, as they came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    pub trace: Option<Trace>,
    /// `X-Fleet-Hops`.
    pub hops: Option<String>,
}

/// Where a message comes from and when its work ends, with what is needed to judge that.
#[derive(Debug, Clone, PartialEq)]
pub struct Descent {
    pub origin: Arc<Origin>,
    pub deadline: Option<Millis>,
    /// This hub and the agent the message is for; its task is not known yet.
    pub here: Ancestor,
    /// The most hops this hub allows.
    pub most_hops: u32,
    pub now: Millis,
}

/// Why a message is not worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Objection {
    /// The agent is one of those the call was made for.
    Ring(Vec<String>),
    Hops {
        hops: u32,
        most: u32,
    },
    Deadline(Millis),
}

impl Descent {
    /// Reads what a request tells. None for one that tells nothing, which is nearly all of them.
    pub fn of(
        caller: &Caller,
        request: &SendMessageRequest,
        told: Told,
        here: impl FnOnce() -> Ancestor,
        (limits, now): (&Limits, impl FnOnce() -> Millis),
    ) -> Result<Option<Self>, Refusal> {
        let (beside, within) = (request.metadata.as_ref(), request.message.as_ref().and_then(|m| m.metadata.as_ref()));
        if caller.is_anonymous() {
            let called = told.hops.is_some() || Ancestry::is_told(beside, within);
            let provenance = if called { Provenance::A2aExternal } else { Provenance::Local };
            let claimed = called.then(|| claim(&told, Ancestry::readable(beside, within), limits));
            // Anybody could say anything. The trace decides nothing, so it may stay.
            let origin = Origin { provenance, trace: told.trace, claimed: claimed.flatten(), ..Origin::default() };
            return Ok((origin != Origin::default()).then(|| Self::new(origin, None, here(), limits, now())));
        }
        let hops = told.hops.as_deref().map(hops).transpose()?;
        let ancestry = Ancestry::of(beside, within)?;
        if ancestry.is_none() && hops.is_none() && told.trace.is_none() {
            return Ok(None);
        }
        let Ancestry { chain, hops: counted, deadline, max_hops, claimed } = ancestry.unwrap_or_default();
        let hops = hops.map(|all| beyond(all, claimed.as_ref()));
        let here = here();
        let hops = hops.max(counted).unwrap_or(0).max(u32::try_from(chain.len()).unwrap_or(u32::MAX));
        let provenance = match chain.last() {
            Some(parent) if parent.hub != here.hub => Provenance::A2aRemote,
            None if hops > 0 => Provenance::A2aExternal,
            _ => Provenance::Local,
        };
        let origin = Origin { provenance, chain, hops, max_hops, trace: told.trace, claimed };
        Ok(Some(Self::new(origin, deadline, here, limits, now())))
    }

    fn new(origin: Origin, deadline: Option<Millis>, here: Ancestor, limits: &Limits, now: Millis) -> Self {
        Self { origin: Arc::new(origin), deadline, here, most_hops: limits.hops, now }
    }

    /// What speaks against the work, if anything does. A claim counts here like what is believed: whoever makes one
    /// that is not so harms nobody else.
    pub fn objection(&self) -> Option<Objection> {
        let Origin { chain, hops, max_hops, claimed, .. } = &*self.origin;
        let before = claimed.as_ref().map_or(&[][..], |claim| &claim.chain);
        // The fleet is no place: whom its work must not come back to is told where its worker is chosen.
        let is_place = self.here.agent != FLEET;
        if is_place && before.iter().chain(chain).any(|one| one.is(&self.here.hub, &self.here.agent)) {
            let names = before.iter().chain(chain).chain([&self.here]).map(|one| one.agent.clone());
            return Some(Objection::Ring(names.collect()));
        }
        let told = max_hops.iter().chain(claimed.iter().filter_map(|claim| claim.max_hops.as_ref()));
        let most = told.copied().chain([self.most_hops]).min().unwrap_or_default();
        let hops = hops.saturating_add(claimed.as_ref().map_or(0, |claim| claim.hops));
        if hops > most {
            return Some(Objection::Hops { hops, most });
        }
        self.deadline.filter(|deadline| *deadline <= self.now).map(Objection::Deadline)
    }
}

impl Objection {
    /// What the caller is told, and what to do about it.
    pub fn text(&self) -> String {
        match self {
            Self::Ring(names) => format!(
                "This call has come round in a ring ({}), so nothing was run. Have one of these agents do the work \
                 itself, or ask one that is not among them.",
                names.join(" to ")
            ),
            Self::Hops { hops, most } => format!(
                "This call is {hops} hops from where it began, and at most {most} are allowed, so nothing was run. \
                 Shorten the chain of agents, or raise limits.hops (or maxHops, where the caller set it)."
            ),
            Self::Deadline(deadline) => format!(
                "The deadline passed before the work began ({deadline}), so nothing was run. Send it again with a \
                 later one."
            ),
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Ring(_) => "ring",
            Self::Hops { .. } => "hops",
            Self::Deadline(_) => "deadline",
        }
    }

    /// The same for machines: metadata of the message that tells it.
    pub fn metadata(&self) -> Option<Object> {
        Object::of(&json!({ANCESTRY: {"refused": self.name()}})).ok()
    }

    /// Where a limit of this hub was gone beyond, it is counted like any other.
    pub fn count(&self, limits: &Limits) {
        if matches!(self, Self::Hops { most, .. } if *most == limits.hops) {
            count_over(Limit::Hops.name(), "task");
        }
    }
}

/// What a stranger tells, as far as it can be read; what cannot is nothing.
fn claim(told: &Told, ancestry: Option<Ancestry>, limits: &Limits) -> Option<Claim> {
    let counted = told.hops.as_deref().and_then(|text| hops(text).ok());
    let mut ancestry = ancestry.unwrap_or_default();
    ancestry.hops = ancestry.hops.max(counted.map(|all| beyond(all, ancestry.claimed.as_ref())));
    // A longer chain is beyond the limit of hops, whatever it holds.
    let claim = Claim::of(ancestry, usize::try_from(limits.hops).unwrap_or(usize::MAX));
    (claim != Claim::default()).then_some(claim)
}

/// The header counts all hops, and those that are claimed are told beside it too.
fn beyond(all: u32, claimed: Option<&Claim>) -> u32 {
    all.saturating_sub(claimed.map_or(0, |claim| claim.hops))
}

fn hops(text: &str) -> Result<u32, Refusal> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits);
    number.ok_or_else(|| Refusal::invalid(HOPS, "must be a whole number: the calls from agent to agent so far"))
}

#[cfg(test)]
mod tests;
