//! States, roles and moments as 0.3 spells them.

use super::{V03, Write};
use crate::a2a::model::{Role, TaskState};
use crate::time::Moment;
use serde::de::{Deserializer, Error};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The name of a state; what 1.0 calls unspecified is `unknown`.
pub fn name(state: TaskState) -> &'static str {
    match state {
        TaskState::Unspecified => "unknown",
        TaskState::Submitted => "submitted",
        TaskState::Working => "working",
        TaskState::Completed => "completed",
        TaskState::Failed => "failed",
        TaskState::Canceled => "canceled",
        TaskState::InputRequired => "input-required",
        TaskState::Rejected => "rejected",
        TaskState::AuthRequired => "auth-required",
    }
}

/// Reads a state. Those who mix dialects also say `TASK_STATE_WORKING`, `input_required`, or `cancelled` with two l as the
/// proto file of 0.3 has it.
pub fn from_name(text: &str) -> Option<TaskState> {
    let known = |text: &str| TaskState::ALL.iter().copied().find(|state| name(*state) == text);
    known(text).or_else(|| TaskState::from_name(text)).or_else(|| {
        let plain = text.to_ascii_lowercase().replace('_', "-");
        match plain.strip_prefix("task-state-").unwrap_or(&plain) {
            "cancelled" => Some(TaskState::Canceled),
            other => known(other),
        }
    })
}

impl Write for TaskState {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(name(*self))
    }
}

impl<'de> Deserialize<'de> for V03<TaskState> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        from_name(&text).map(V03).ok_or_else(|| {
            let choices: Vec<&str> = TaskState::ALL.iter().copied().map(name).collect();
            let shown: String = text.chars().take(40).collect();
            D::Error::custom(format!("'{shown}' is not one of {}", choices.join(", ")))
        })
    }
}

/// A message whose role nobody gave is an agent's: a caller's is refused without one.
impl Write for Role {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(if *self == Self::User { "user" } else { "agent" })
    }
}

impl<'de> Deserialize<'de> for V03<Role> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        match &*text {
            "user" | "ROLE_USER" => Ok(Self(Role::User)),
            "agent" | "ROLE_AGENT" => Ok(Self(Role::Agent)),
            other => {
                let shown: String = other.chars().take(40).collect();
                Err(D::Error::custom(format!("'{shown}' is not one of user, agent")))
            }
        }
    }
}

/// A moment. In 0.3 it is any text: one without a zone is UTC, and what is no time at all is left out.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LooseMoment(pub Option<Moment>);

impl Serialize for LooseMoment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LooseMoment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let read = Moment::parse(&text).or_else(|_| Moment::parse(&format!("{text}Z")));
        Ok(Self(read.ok()))
    }
}
