//! Finding agents among those a caller sees: by words, skill, tag, mode, capability, version and state.

use super::{Agent, Liveness, Registry};
use crate::caller::Caller;
use crate::media;
use std::sync::Arc;

/// What is looked for; what is not said does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Search {
    /// Words that must all be in the agent's name, description or skills.
    pub words: String,
    /// A skill's id or name.
    pub skill: Option<String>,
    pub tag: Option<String>,
    /// A media type it takes or makes.
    pub mode: Option<String>,
    /// `streaming`, `pushNotifications`, `extendedAgentCard`, or the URI of an extension.
    pub capability: Option<String>,
    /// A version of A2A that it speaks itself.
    pub version: Option<String>,
    pub state: Option<Liveness>,
    /// Only agents after this name.
    pub after: Option<String>,
    pub limit: usize,
}

/// A page of agents, by name.
pub struct Found {
    pub agents: Vec<Arc<Agent>>,
    /// How many there are on all pages.
    pub total: usize,
    /// The name the next page comes after.
    pub next: Option<String>,
}

impl Registry {
    pub fn search(&self, caller: &Caller, search: &Search, state: impl Fn(&Agent) -> Liveness) -> Found {
        let fits = |agent: &&Arc<Agent>| {
            agent.is_seen_by(caller)
                && search.fits(agent)
                && search.state.is_none_or(|wanted| state(agent.as_ref()) == wanted)
        };
        // Those who are gone are found by whoever asks for them, and by nobody else.
        let all: Vec<&Arc<Agent>> = match search.state {
            Some(Liveness::Gone) => self.departed().filter(fits).collect(),
            _ => self.agents().filter(fits).collect(),
        };
        let total = all.len();
        let after = search.after.as_deref().unwrap_or_default();
        let start = all.partition_point(|agent| agent.name.as_str() <= after);
        let rest = &all[start..];
        let agents: Vec<Arc<Agent>> = rest.iter().take(search.limit).map(|agent| Arc::clone(agent)).collect();
        let next = agents.last().filter(|_| rest.len() > agents.len()).map(|agent| agent.name.clone());
        Found { agents, total, next }
    }
}

impl Search {
    fn fits(&self, agent: &Agent) -> bool {
        let same = |wanted: &Option<String>, holds: &dyn Fn(&str) -> bool| wanted.as_deref().is_none_or(holds);
        let skill = |wanted: &str| {
            agent.skills.iter().any(|s| s.id.eq_ignore_ascii_case(wanted) || s.name.eq_ignore_ascii_case(wanted))
        };
        let tag = |wanted: &str| agent.skills.iter().flat_map(|s| &s.tags).any(|tag| tag.eq_ignore_ascii_case(wanted));
        let mode = |wanted: &str| takes_or_makes(agent, wanted);
        let capability = |wanted: &str| can(agent, wanted);
        let version = |wanted: &str| agent.versions.iter().any(|known| is_version(known, wanted));
        self.holds_words(agent)
            && same(&self.skill, &skill)
            && same(&self.tag, &tag)
            && same(&self.mode, &mode)
            && same(&self.capability, &capability)
            && same(&self.version, &version)
    }

    fn holds_words(&self, agent: &Agent) -> bool {
        if self.words.trim().is_empty() {
            return true;
        }
        let mut text = format!("{} {}", agent.name, agent.description);
        for skill in &agent.skills {
            for word in [&skill.id, &skill.name, &skill.description].into_iter().chain(&skill.tags) {
                text.push(' ');
                text.push_str(word);
            }
        }
        let text = text.to_lowercase();
        self.words.to_lowercase().split_whitespace().all(|word| text.contains(word))
    }
}

/// Whether an agent takes or makes a media type.
pub fn takes_or_makes(agent: &Agent, wanted: &str) -> bool {
    let of_skills = agent.skills.iter().flat_map(|skill| skill.input_modes.iter().chain(&skill.output_modes));
    let mut modes = agent.input_modes.iter().chain(&agent.output_modes).chain(of_skills);
    modes.any(|mode| media::fits(std::slice::from_ref(mode), wanted))
}

fn can(agent: &Agent, wanted: &str) -> bool {
    let capabilities = &agent.capabilities;
    match wanted {
        "streaming" => capabilities.streaming,
        "pushNotifications" => capabilities.push_notifications,
        "extendedAgentCard" => capabilities.extended_agent_card,
        uri => capabilities.extensions.iter().any(|extension| extension.uri == uri),
    }
}

/// Patch numbers do not matter.
fn is_version(known: &str, wanted: &str) -> bool {
    known == wanted || known.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('.'))
}
