//! What travels down a chain of agents: where a call has been, until when it counts, and the trace it belongs to.

mod member;
mod trace;

pub use member::{Ancestor, Ancestry, Claim, MOST_ANCESTORS};
pub use member::{find as find_member, put as put_member, without as drop_member};
pub use trace::{SpanId, Trace, TraceId};

use crate::time::Millis;
use crate::wire::{Json, Object};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The extension under which ancestry travels: a member of this name in a request's or a message's metadata.
pub const ANCESTRY: &str = "urn:flotilla:ext:ancestry:1.0";
/// How many calls from agent to agent led to this one, those that are only claimed too, for those who read no metadata.
pub const HOPS: &str = "x-fleet-hops";
pub const TRACEPARENT: &str = "traceparent";
pub const TRACESTATE: &str = "tracestate";

/// Who called for a task, or for what it is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// A caller of this hub, or an agent of it.
    #[default]
    Local,
    /// An agent of another hub, which told its chain and is believed.
    A2aRemote,
    /// An agent somewhere: what it told of itself is too little, or came without a key and is not believed.
    A2aExternal,
}

impl Provenance {
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::A2aRemote => "a2a-remote",
            Self::A2aExternal => "a2a-external",
        }
    }
}

/// Where a task comes from, as far as it is believed. It is kept with the task and does not change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    pub provenance: Provenance,
    /// The tasks this one was called for, the oldest first; the last is its parent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<Ancestor>,
    /// Calls from agent to agent so far, at least as many as the chain is long.
    #[serde(default)]
    pub hops: u32,
    /// The most hops the beginning of the chain allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_hops: Option<u32>,
    /// The caller's trace and span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// What somebody without a key told of the calls before these. It is not believed, only held against the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<Claim>,
}

impl Origin {
    pub fn parent(&self) -> Option<&Ancestor> {
        self.chain.last()
    }

    /// The agents of a hub the call was made for, those that are only claimed too.
    pub fn passed<'a>(&'a self, hub: &'a str) -> impl Iterator<Item = &'a str> {
        let claimed = self.claimed.iter().flat_map(|claim| &claim.chain);
        claimed.chain(&self.chain).filter(move |one| one.hub == hub).map(|one| one.agent.as_str())
    }

    /// The same below a parent that is known to be one: where that comes from counts, whatever was told of it. What was
    /// told beyond that still shows a ring, but names no task of the parent's hub.
    pub fn below(&self, parent: Ancestor, above: Option<&Self>) -> Self {
        let known = above.map_or(&[][..], |above| &above.chain);
        let is_known = |one: &Ancestor| {
            let same_task =
                |known: &Ancestor| !one.task.is_empty() && (&known.hub, &known.task) == (&one.hub, &one.task);
            known.iter().any(|known| known.is(&one.hub, &one.agent) || same_task(known))
        };
        let told = self.chain.split_last().map_or(&[][..], |(_, before)| before);
        let mut chain: Vec<Ancestor> = told.iter().filter(|one| !is_known(one)).cloned().collect();
        chain.iter_mut().filter(|one| one.hub == parent.hub).for_each(|one| one.task.clear());
        chain.extend(known.iter().cloned());
        chain.push(parent);
        let length = u32::try_from(chain.len()).unwrap_or(u32::MAX);
        let hops = above.map_or(0, |above| above.hops.saturating_add(1)).max(self.hops).max(length);
        let max_hops = self.max_hops.into_iter().chain(above.and_then(|above| above.max_hops)).min();
        let claimed = self.claimed.clone().or_else(|| above?.claimed.clone());
        // Work for somebody elsewhere stays that, whoever here does a part of it.
        let provenance = above.map_or(self.provenance, |above| above.provenance);
        Self { provenance, chain, hops, max_hops, trace: self.trace.clone(), claimed }
    }
}

/// What a run hands on to whomever it calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lineage {
    /// This hub, the agent and the task.
    pub here: Ancestor,
    /// What the task's own caller told; none if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Arc<Origin>>,
    /// When the task ends, done or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Millis>,
    /// The task's trace, with a span of the run's own.
    pub trace: Trace,
}

impl Lineage {
    /// What goes on every call this run makes to another agent: this hub is appended, and one hop counted.
    pub fn onward(&self) -> Onward {
        let origin = self.origin.as_deref();
        let mut chain = origin.map(|origin| origin.chain.clone()).unwrap_or_default();
        chain.push(self.here.clone());
        let hops = origin.map_or(0, |origin| origin.hops).saturating_add(1);
        let max_hops = origin.and_then(|origin| origin.max_hops);
        let claimed = origin.and_then(|origin| origin.claimed.clone());
        // Whoever reads no metadata has only this number to pass on, so it counts what was claimed too.
        let all = hops.saturating_add(claimed.as_ref().map_or(0, |claim| claim.hops));
        let mut headers = vec![(TRACEPARENT, self.trace.traceparent()), (HOPS, all.to_string())];
        headers.extend(self.trace.state.clone().map(|state| (TRACESTATE, state)));
        // As many as the chain is long need not be told.
        let told = (usize::try_from(hops) != Ok(chain.len())).then_some(hops);
        Onward { headers, ancestry: Ancestry { chain, hops: told, deadline: self.deadline, max_hops, claimed } }
    }
}

/// The next call's share of a lineage.
#[derive(Debug, Clone, PartialEq)]
pub struct Onward {
    /// HTTP headers, or metadata of gRPC: names in lower case.
    pub headers: Vec<(&'static str, String)>,
    pub ancestry: Ancestry,
}

impl Onward {
    /// The request's metadata with the ancestry in it; all other members stay as they were written.
    pub fn request_metadata(&self, metadata: Option<&Object>) -> Object {
        member::put(metadata, ANCESTRY, self.json())
    }

    /// The message's metadata, where an older ancestry must not go on; without one it stays as it is.
    pub fn message_metadata(&self, metadata: Option<&Object>) -> Option<Object> {
        let metadata = metadata?;
        let stale = member::find(metadata, ANCESTRY).is_some();
        Some(if stale { member::put(Some(metadata), ANCESTRY, self.json()) } else { metadata.clone() })
    }

    fn json(&self) -> Json {
        let json = self.ancestry.lone().map_or_else(|| Json::of(&self.ancestry), |one| Json::of(&one));
        json.expect("texts and numbers are JSON")
    }
}

#[cfg(test)]
mod tests;
