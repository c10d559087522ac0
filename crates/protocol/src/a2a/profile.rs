//! What an agent that dials in says of itself: the parts of a card that are its own to say.

use super::card::AgentSkill;
use super::error::{Reason, Refusal};
use crate::wire::Json;
use serde::{Deserialize, Serialize};

/// The most a profile may hold, in bytes.
pub const MOST: usize = 64 * 1024;

/// Where it is reached and how one signs in is the hub's to say, so that is passed over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Profile {
    /// What people call it; its name on the hub is that of its key.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub version: String,
    pub capabilities: Abilities,
    #[serde(alias = "inputModes")]
    pub default_input_modes: Vec<String>,
    #[serde(alias = "outputModes")]
    pub default_output_modes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Ability>,
}

/// Whether its callers may stream; an agent that says nothing of it can be streamed, as the hub does that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Abilities {
    pub streaming: bool,
    pub push_notifications: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ability {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub examples: Vec<String>,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
}

impl Default for Abilities {
    fn default() -> Self {
        Self { streaming: true, push_notifications: true }
    }
}

impl Default for Profile {
    fn default() -> Self {
        let anything = || vec!["*/*".to_owned()];
        Self {
            name: String::new(),
            description: String::new(),
            version: "1.0.0".to_owned(),
            capabilities: Abilities::default(),
            default_input_modes: anything(),
            default_output_modes: anything(),
            skills: Vec::new(),
        }
    }
}

impl Profile {
    /// Reads a card of either version, or less than one.
    pub fn read(card: &Json) -> Result<Self, Refusal> {
        if card.text().len() > MOST {
            let text = format!("A card may hold {MOST} bytes, this one has {}. Say less in it.", card.text().len());
            return Err(Refusal::new(Reason::PayloadTooLarge, text));
        }
        let mut profile: Self = crate::decode::message(card.text().as_bytes())?;
        let usual = Self::default();
        if profile.default_input_modes.is_empty() {
            profile.default_input_modes = usual.default_input_modes;
        }
        if profile.default_output_modes.is_empty() {
            profile.default_output_modes = usual.default_output_modes;
        }
        let modes = profile.default_input_modes.iter().chain(&profile.default_output_modes);
        if let Some(wrong) = modes.clone().find(|mode| !mode.contains('/') && *mode != "text") {
            return Err(Refusal::invalid(
                "defaultInputModes",
                format!("'{wrong}' is no media type, such as text/plain"),
            ));
        }
        Ok(profile)
    }

    /// As a card has them: each with a name, and at least one.
    pub fn skills(&self, agent: &str, description: &str) -> Vec<AgentSkill> {
        let own = Ability { id: agent.to_owned(), description: description.to_owned(), ..Ability::default() };
        let all = if self.skills.is_empty() { std::slice::from_ref(&own) } else { &self.skills };
        all.iter()
            .map(|skill| AgentSkill {
                id: if skill.id.is_empty() { skill.name.clone() } else { skill.id.clone() },
                name: if skill.name.is_empty() { skill.id.clone() } else { skill.name.clone() },
                description: skill.description.clone(),
                tags: skill.tags.clone(),
                examples: skill.examples.clone(),
                input_modes: skill.input_modes.clone(),
                output_modes: skill.output_modes.clone(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Profile;
    use crate::wire::Json;

    fn read(card: &str) -> Result<Profile, String> {
        Profile::read(&Json::new(card.to_owned()).unwrap()).map_err(|refusal| refusal.message)
    }

    #[test]
    fn less_than_a_card_is_enough() {
        let profile = read(r#"{"name":"Weather","skills":[{"id":"now","name":"Now"}],"url":"http://x"}"#).unwrap();
        assert_eq!(profile.skills("w", "")[0].name, "Now");
        assert_eq!(
            (profile.version.as_str(), profile.default_input_modes.as_slice()),
            ("1.0.0", &["*/*".to_owned()][..])
        );
        assert_eq!(read("{}").unwrap().skills("w", "does things")[0].description, "does things");
    }

    #[test]
    fn what_is_no_card_is_told() {
        assert!(read(r#"{"skills":{}}"#).unwrap_err().contains("skills"));
        assert!(read(r#"{"defaultInputModes":["words"]}"#).unwrap_err().contains("'words'"));
        assert!(read(&format!(r#"{{"description":"{}"}}"#, "x".repeat(70_000))).unwrap_err().contains("65536"));
    }
}
