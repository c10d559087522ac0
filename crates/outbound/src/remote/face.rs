//! What an agent's card says of it, told to the hub whenever the card is read anew.

use super::Remote;
use crate::client::card::{Card, Extension};
use flotilla_core::registry::Face;
use flotilla_protocol::a2a::HUB_EXTENSIONS;
use flotilla_protocol::a2a::card::{AgentExtension, AgentSkill};
use flotilla_protocol::wire::Object;
use std::sync::Weak;
use std::time::Duration;

/// The pauses between tries to read a card that cannot be read.
const FIRST_PAUSE: Duration = Duration::from_secs(2);

/// Reads the card now and again, and tells what it says, until the agent is gone from the configuration.
pub async fn watch(remote: Weak<Remote>, tell: impl Fn(Face) + Send) {
    let mut pause = FIRST_PAUSE;
    loop {
        let wait = {
            let Some(remote) = remote.upgrade() else { return };
            let refresh = remote.options.refresh;
            match remote.way.refresh().await {
                Ok(client) => {
                    tell(face(client.card()));
                    pause = FIRST_PAUSE;
                    refresh
                }
                Err(error) => {
                    let agent = &remote.options.name;
                    if pause == FIRST_PAUSE {
                        tracing::warn!(%agent, %error, "the agent's card cannot be read; it is tried again");
                    }
                    let wait = pause;
                    pause = (pause * 2).min(refresh);
                    wait.min(refresh)
                }
            }
        };
        tokio::time::sleep(wait).await;
    }
}

fn face(card: &Card) -> Face {
    let skill = |skill: &crate::client::card::Skill| AgentSkill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
        input_modes: skill.input_modes.clone(),
        output_modes: skill.output_modes.clone(),
    };
    let own = |extension: &&Extension| !extension.uri.is_empty() && !extension.uri.starts_with(HUB_EXTENSIONS);
    let extension = |extension: &Extension| AgentExtension {
        uri: extension.uri.clone(),
        description: extension.description.clone(),
        required: extension.required,
        params: extension.params.as_ref().and_then(|params| Object::of(params).ok()),
    };
    Face {
        extensions: card.capabilities.extensions.iter().filter(own).map(extension).collect(),
        description: card.description.clone(),
        skills: card.skills.iter().map(skill).collect(),
        input_modes: card.default_input_modes.clone(),
        output_modes: card.default_output_modes.clone(),
        streaming: card.capabilities.streaming,
    }
}
