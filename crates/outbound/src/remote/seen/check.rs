//! Whether what an agent said can be told to others: what is garbage, and what says nothing.

use super::Garbage;
use flotilla_protocol::a2a::model::{Message, Part, Role};
use flotilla_protocol::a2a::validate::check_part;
use std::sync::Arc;

/// Whether a message holds anything. A2A wants at least one part; some servers write a message with every status, and
/// leave it empty where there is nothing to say.
pub fn says(message: &Message) -> bool {
    !message.parts.is_empty() || message.metadata.is_some()
}

/// What shows neither who said it nor what is no message. Parts are looked at whoever said them.
pub fn history(history: &[Arc<Message>]) -> Result<(), Garbage> {
    for (index, message) in history.iter().enumerate() {
        if message.role == Role::Unspecified && message.parts.is_empty() {
            return Err(Garbage(format!("task.history[{index}] has neither role nor parts")));
        }
        parts(&message.parts, &format!("task.history[{index}]"))?;
    }
    Ok(())
}

pub fn parts(parts: &[Part], place: &str) -> Result<(), Garbage> {
    for (index, part) in parts.iter().enumerate() {
        check_part(part).map_err(|problem| Garbage(format!("{place}.parts[{index}] {problem}")))?;
    }
    Ok(())
}
