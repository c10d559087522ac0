//! Which messages a rule is for.

use super::config::{PartKind, When, Whens};
use super::place::{Place, ScriptError};
use super::template::first_text;
use flotilla_protocol::a2a::model::Part;
use flotilla_protocol::work::Assignment;

/// How closely a message was matched: the lengths of the message id prefix and of the text prefix.
pub(super) type Rank = (usize, usize);

/// Conditions that must all hold.
#[derive(Debug)]
pub(super) struct Condition {
    message_id: String,
    text: String,
    contains: String,
    part: Option<PartKind>,
    turns: std::ops::RangeInclusive<u32>,
}

pub(super) fn conditions(whens: &Whens, place: &Place) -> Result<Vec<Condition>, ScriptError> {
    match whens {
        Whens::One(when) => Ok(vec![condition(when, place)?]),
        Whens::Any(any) if any.is_empty() => Err(place.error("an empty list matches nothing")),
        Whens::Any(any) => any.iter().enumerate().map(|(i, when)| condition(when, &place.index(i))).collect(),
    }
}

fn condition(when: &When, place: &Place) -> Result<Condition, ScriptError> {
    let text = |name, value: &Option<String>| match value {
        Some(text) if text.is_empty() => Err(place.field(name).error("must not be empty: leave it out to match all")),
        Some(text) => Ok(text.clone()),
        None => Ok(String::new()),
    };
    let turns = match (when.turn, when.min_turn) {
        (Some(_), Some(_)) => return Err(place.error("takes `turn` or `min_turn`, not both")),
        (Some(0), None) => return Err(place.field("turn").error("turns count from 1")),
        (Some(turn), None) => turn..=turn,
        (None, min) => min.unwrap_or(0)..=u32::MAX,
    };
    Ok(Condition {
        message_id: text("message_id", &when.message_id)?,
        text: text("text", &when.text)?,
        contains: text("contains", &when.contains)?,
        part: when.part,
        turns,
    })
}

impl Condition {
    /// Nothing when the message is not meant.
    pub fn rank(&self, assignment: &Assignment) -> Option<Rank> {
        let message = &assignment.message;
        let holds = self.turns.contains(&assignment.turn)
            && message.message_id.starts_with(&self.message_id)
            && (self.text.is_empty() || first_text(assignment).starts_with(&self.text))
            && (self.contains.is_empty() || message.parts.iter().any(|part| self.is_in(part)))
            && self.part.is_none_or(|kind| message.parts.iter().any(|part| is_kind(part, kind)));
        holds.then_some((self.message_id.len(), self.text.len()))
    }

    fn is_in(&self, part: &Part) -> bool {
        part.text.as_deref().is_some_and(|text| text.contains(&self.contains))
    }
}

fn is_kind(part: &Part, kind: PartKind) -> bool {
    match kind {
        PartKind::Text => part.text.is_some(),
        PartKind::File => part.raw.is_some() || part.url.is_some(),
        PartKind::Data => part.data.0.is_some(),
    }
}
