//! What a message may hold: how much, and of which media types.

use super::{Hub, no_push};
use crate::limits::{Limit, Limits};
use crate::media;
use crate::registry::Agent;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::model::Message;
use flotilla_protocol::a2a::request::SendMessageConfiguration;

impl Hub {
    pub(super) fn check_parts(
        &self,
        agent: &Agent,
        message: &Message,
        configuration: Option<&SendMessageConfiguration>,
    ) -> Result<(), Refusal> {
        let Limits { parts, part_bytes, .. } = self.limits();
        if message.parts.len() > parts {
            let text = format!(
                "must hold at most {parts} parts, got {}; send the rest in another message",
                message.parts.len()
            );
            return Err(Limit::Parts.refuse_field(parts, "message.parts", text));
        }
        for (index, part) in message.parts.iter().enumerate() {
            let size = part.size();
            if size > part_bytes {
                let text = format!("must be at most {part_bytes} bytes, got {size}; send large files as a url part");
                return Err(Limit::PartBytes.refuse_field(part_bytes, &format!("message.parts[{index}]"), text));
            }
            let offered = part.effective_media_type();
            if agent.checks_modes && !media::fits(&agent.input_modes, offered) {
                let accepted = agent.input_modes.join(", ");
                let text = format!(
                    "message.parts[{index}] is of media type {offered}, which the agent '{}' does not take. \
                     It takes: {accepted}.",
                    agent.name
                );
                return Err(Refusal::new(Reason::ContentTypeNotSupported, text).fact("mediaType", offered));
            }
        }
        let Some(configuration) = configuration else { return Ok(()) };
        if configuration.push_config.is_some() && !agent.capabilities.push_notifications {
            return Err(no_push(&agent.name));
        }
        let accepted = &configuration.accepted_output_modes;
        if agent.checks_modes && !accepted.is_empty() && !media::intersect(accepted, &agent.output_modes) {
            let makes = agent.output_modes.join(", ");
            let text =
                format!("The agent '{}' makes none of the accepted output modes. It makes: {makes}.", agent.name);
            return Err(Refusal::new(Reason::ContentTypeNotSupported, text));
        }
        Ok(())
    }
}
