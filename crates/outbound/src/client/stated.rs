//! Whether an answer says how the task is that it tells of: a state that is not known has a name too, which ProtoJSON may
//! leave out of a status that says something else.

use super::error::ClientError;
use flotilla_protocol::a2a::model::TaskState;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// What an answer is read as.
pub trait Stated {
    /// The state of the task it tells of, where it tells of one.
    fn state(&self) -> Option<TaskState> {
        None
    }
}

#[derive(Deserialize)]
struct Named {
    state: Option<IgnoredAny>,
    timestamp: Option<IgnoredAny>,
    message: Option<IgnoredAny>,
}

impl Named {
    /// In the JSON of 1.0, which is that of its proto. An empty status is none.
    fn says_anything(&self) -> bool {
        self.state.is_some() || self.timestamp.is_some() || self.message.is_some()
    }
}

/// As much of an answer as shows whether it names a state.
#[derive(Deserialize)]
struct Shown {
    kind: Option<String>,
    id: Option<IgnoredAny>,
    status: Option<Named>,
    task: Option<Box<Shown>>,
    #[serde(alias = "status_update", rename = "statusUpdate")]
    update: Option<Box<Shown>>,
}

impl Shown {
    fn check(&self, place: &str, is_enough: impl Fn(&Named) -> bool) -> Result<(), ClientError> {
        match self.status.as_ref().is_some_and(is_enough) {
            true => Ok(()),
            false => Err(ClientError::malformed(format!("{place}.status.state is missing"))),
        }
    }
}

/// A task that says nothing of how it is is none.
pub fn check(json: &str) -> Result<(), ClientError> {
    let Ok(shown) = serde_json::from_str::<Shown>(json) else { return Ok(()) };
    match (&shown.task, &shown.update) {
        (Some(task), _) => task.check("task", Named::says_anything),
        (None, Some(update)) => update.check("statusUpdate", Named::says_anything),
        // What has no id either is no task at all, and told as that.
        (None, None) if shown.id.is_none() => Ok(()),
        (None, None) => shown.check("task", Named::says_anything),
    }
}

/// The same in 0.3, whose JSON is not that of its proto: only in the proto form is that name left out.
pub fn check_old(json: &str) -> Result<(), ClientError> {
    // What is no object, or holds something else there, is told of with its place.
    let Ok(shown) = serde_json::from_str::<Shown>(json) else { return Ok(()) };
    let names_state = |status: &Named| status.state.is_some();
    match (shown.kind.as_deref(), &shown.status) {
        (Some("status-update"), _) => shown.check("statusUpdate", names_state),
        (Some("task"), _) | (None, Some(_)) => shown.check("task", names_state),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::client::dialect::{Writer, read};
    use crate::client::frame::Sent;
    use flotilla_protocol::a2a::method::Method;
    use serde_json::{Value, json};

    #[test]
    fn a_state_that_is_not_known_is_told_from_none() {
        let told = |json: &Value, writer| read::<Sent>(Method::SendMessage, json.to_string(), writer);
        let task = |status: Value| json!({"task": {"id": "t", "status": status}});
        let update = |status: Value| json!({"statusUpdate": {"taskId": "t", "status": status}});
        let left_out = json!({"timestamp": "2026-11-17T00:00:00Z"});
        for named in [json!({"state": "TASK_STATE_UNSPECIFIED"}), json!({"state": 0}), left_out] {
            assert!(told(&task(named.clone()), Writer::Agent).is_ok(), "{named}");
            assert!(told(&update(named.clone()), Writer::Agent).is_ok(), "{named}");
        }
        for none in [json!({}), json!(null), json!({"state": null})] {
            let problem = told(&task(none.clone()), Writer::Agent).unwrap_err().to_string();
            assert!(problem.contains("task.status.state is missing"), "{problem}");
            let problem = told(&update(none.clone()), Writer::Agent).unwrap_err().to_string();
            assert!(problem.contains("statusUpdate.status.state is missing"), "{problem}");
            assert!(told(&task(none.clone()), Writer::Here).is_ok(), "{none}");
        }
        let old = json!({"kind": "task", "id": "t", "status": {"state": "unknown"}});
        assert!(told(&old, Writer::Agent).is_ok(), "also in the words of 0.3");
    }
}
