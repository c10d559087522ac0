//! How well an agent fits what somebody says they need, in their own words.

use crate::registry::Agent;
use std::collections::HashSet;

/// Words of a question that say nothing of what is wanted.
const EMPTY: [&str; 40] = [
    "a", "an", "the", "i", "me", "my", "we", "us", "you", "it", "is", "are", "be", "to", "of", "in", "on", "for",
    "and", "or", "with", "that", "this", "which", "who", "what", "how", "can", "could", "do", "does", "find", "need",
    "want", "please", "some", "any", "agent", "agents", "help",
];
/// More words than these are passed over.
const MOST: usize = 32;
/// Below this, an agent is not found.
pub const CUTOFF: u8 = 20;

/// What somebody needs, as words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need(Vec<String>);

impl Need {
    pub fn of(text: &str) -> Self {
        let all: Vec<String> = words(text).take(MOST).collect();
        let telling: Vec<String> = all.iter().filter(|word| !EMPTY.contains(&word.as_str())).cloned().collect();
        Self(if telling.is_empty() { all } else { telling })
    }

    /// From 0 to 100. What an agent is called counts more than what is told about it, and a piece of a word least.
    pub fn score(&self, agent: &Agent) -> u8 {
        if self.0.is_empty() {
            return 0;
        }
        let skills = &agent.skills;
        let names = skills.iter().flat_map(|skill| [&skill.id, &skill.name].into_iter().chain(&skill.tags));
        let names: HashSet<String> = names.chain([&agent.name]).flat_map(|text| words(text)).collect();
        let told = skills.iter().flat_map(|skill| skill.examples.iter().chain([&skill.description]));
        let told: HashSet<String> = told.chain([&agent.description]).flat_map(|text| words(text)).collect();
        let worth = |word: &String| {
            let part = |all: &HashSet<String>| word.len() > 3 && all.iter().any(|known| known.contains(word.as_str()));
            if names.contains(word) {
                100
            } else if told.contains(word) {
                80
            } else if part(&names) || part(&told) {
                50
            } else {
                0
            }
        };
        let sum: usize = self.0.iter().map(worth).sum();
        u8::try_from(sum / self.0.len()).unwrap_or(100)
    }
}

/// Lower case, and without the `s` of a plural.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(|word| {
        let word = word.to_lowercase();
        match word.strip_suffix('s') {
            Some(stem) if stem.len() > 3 && !stem.ends_with('s') => stem.to_owned(),
            _ => word,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{CUTOFF, Need};
    use crate::ids::{AgentId, PrincipalId, WorkspaceId};
    use crate::registry::{OnLost, Registration, Visibility};
    use crate::roster::{Roster, Welcome};
    use flotilla_protocol::a2a::profile::Profile;
    use flotilla_protocol::time::Millis;
    use flotilla_protocol::wire::Json;

    fn score(need: &str) -> u8 {
        let card = r#"{"name": "Sky", "description": "Looks out of the window.", "skills": [{"id": "forecast", "name":
            "Forecasts", "description": "Tells tomorrow's temperature.", "tags": ["weather"], "examples": ["Will it rain?"]}]}"#;
        let profile = Profile::read(&serde_json::from_str::<Json>(card).expect("JSON")).expect("a card");
        let registration = Registration {
            name: "sky".into(),
            owner: PrincipalId::OWNER,
            workspace: WorkspaceId::DEFAULT,
            visibility: Visibility::Public,
            profile,
            at: Millis(0),
        };
        let roster = Roster::new(Welcome::default());
        Need::of(need).score(&registration.agent(AgentId(1), OnLost::Fail, roster.link(AgentId(1))))
    }

    #[test]
    fn names_count_more_than_descriptions_and_other_needs_nothing() {
        assert_eq!((score("weather"), score("weather forecast"), score("Forecasts")), (100, 100, 100));
        assert_eq!(score("find me an agent for the weather"), 100, "empty words do not count");
        assert!(score("rain tomorrow") < score("weather") && score("rain tomorrow") > CUTOFF);
        assert!(score("temper") < score("temperature"), "a piece of a word");
        assert_eq!((score("flight booking"), score(""), score("?!")), (0, 0, 0));
        assert!(score("weather in the stock market of finance") < score("weather forecast"));
    }
}
