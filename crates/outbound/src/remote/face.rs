//! A check of an agent elsewhere: whether it is there, what its card says of it, and what is wrong with that.

use super::Remote;
use super::options::Place;
use crate::client::card::{Card, Extension};
use crate::client::check;
use crate::client::error::ClientError;
use flotilla_core::ports::{Checked, Missed};
use flotilla_core::registry::Face;
use flotilla_protocol::a2a::HUB_EXTENSIONS;
use flotilla_protocol::a2a::card::{AgentExtension, AgentSkill};
use flotilla_protocol::wire::Object;
use std::sync::Arc;

impl Remote {
    /// Reads the card anew. A problem is told with the agent's address.
    pub async fn check(&self) -> Result<Checked, Missed> {
        let read = self.way.refresh().await;
        let read = match (read, &self.options.place) {
            // A file says nothing about whether anyone is there.
            (Ok(client), Place::File(_)) => self.way.knock().await.map(|()| client),
            (read, _) => read,
        };
        match read {
            Ok(client) => {
                self.breaker.checked(None);
                self.stale.store(None);
                self.problem.store(None);
                let signed = self.way.judge(client.card()).await.signed();
                let (_, mut findings) = check::findings(&client.card().json);
                findings.extend(client.card().unproven());
                Ok(Checked { face: face(client.card()), signed, findings })
            }
            Err(error) => {
                let problem = error.to_string();
                // A card may be elsewhere than its agent: the agent itself is asked, where it is known.
                let answers = self.way.chosen().is_some() && self.way.knock().await.is_ok();
                let refused = !error.is_passing() || matches!(error, ClientError::Exhausted { .. });
                // Of one whose card was never read, whoever refuses it is there, and tells callers why.
                let is_there = answers || self.way.chosen().is_none() && refused;
                self.breaker.checked(Some(problem.as_str()).filter(|_| !is_there));
                self.problem.store(Some(Arc::new(problem.clone())));
                self.stale.store(answers.then(|| Arc::new(problem.clone())));
                Err(Missed { problem, answers })
            }
        }
    }
}

fn face(card: &Card) -> Face {
    // What a skill only repeats of its card is the entry's to say otherwise, where it names modes.
    let apart = |own: &[String], defaults: &[String]| if own == defaults { Vec::new() } else { own.to_vec() };
    let skill = |skill: &crate::client::card::Skill| AgentSkill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
        input_modes: apart(&skill.input_modes, &card.default_input_modes),
        output_modes: apart(&skill.output_modes, &card.default_output_modes),
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
        versions: versions(card),
    }
}

/// The versions of A2A a card's interfaces speak, each once.
fn versions(card: &Card) -> Vec<String> {
    let mut versions: Vec<String> = Vec::new();
    for version in card.supported_interfaces.iter().map(|interface| &interface.protocol_version) {
        if !version.is_empty() && !versions.contains(version) {
            versions.push(version.clone());
        }
    }
    versions
}
