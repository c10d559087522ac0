//! What an agent answers in A2A, as the reports it stands for.

use crate::a2a::model::{Artifact, Message, StreamResponse, Task, TaskState, TaskStatus};
use crate::work::{Contents, Report, Upstream};
use std::collections::HashSet;
use std::sync::Arc;

/// What an agent has told of a run so far: what it tells again is not reported again.
#[derive(Debug, Default)]
pub struct Relay {
    upstream: Upstream,
    /// Ids of the messages that were reported.
    said: HashSet<String>,
    /// It has named its task in this run.
    linked: bool,
    ended: bool,
}

impl Relay {
    pub fn new(upstream: Upstream, said: impl IntoIterator<Item = String>) -> Self {
        Self { upstream, said: said.into_iter().collect(), linked: false, ended: false }
    }

    /// The id its agent knows the task by, once it is known.
    pub fn task(&self) -> &str {
        &self.upstream.task
    }

    /// What its agent said on another connection that it calls the task.
    pub fn knows(&mut self, task: &str) {
        if !task.is_empty() {
            task.clone_into(&mut self.upstream.task);
        }
    }

    /// Whether all was said: the task ended, waits for its caller, or was answered.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// The reports of one frame; or what is wrong with it, and nothing more is to be expected.
    pub fn reports(&mut self, frame: StreamResponse) -> Result<Vec<Report>, String> {
        let (place, task, context) = match &frame {
            StreamResponse::Message(_) => return Ok(self.told(frame)),
            StreamResponse::Task(task) => ("task.id", &task.id, &task.context_id),
            StreamResponse::StatusUpdate(update) => ("statusUpdate.taskId", &update.task_id, &update.context_id),
            StreamResponse::ArtifactUpdate(update) => ("artifactUpdate.taskId", &update.task_id, &update.context_id),
        };
        let known = &self.upstream.task;
        // Some begin another task of the same conversation with whatever is said to one that waits.
        let goes_on = !self.linked && !context.is_empty() && self.upstream.context == *context;
        if !task.is_empty() && !known.is_empty() && task != known && !goes_on {
            self.ended = true;
            return Err(format!("{place} is '{task}', and the task asked for is '{known}'"));
        }
        self.linked |= !task.is_empty();
        Ok(self.told(frame))
    }

    fn told(&mut self, frame: StreamResponse) -> Vec<Report> {
        match frame {
            StreamResponse::Message(message) => self.answer(&message),
            StreamResponse::Task(task) => self.task_reports(task),
            StreamResponse::StatusUpdate(update) => {
                let mut reports = self.link(&update.task_id, &update.context_id);
                reports.extend(self.status(update.status, update.metadata));
                reports
            }
            StreamResponse::ArtifactUpdate(update) => {
                let mut reports = self.link(&update.task_id, &update.context_id);
                let mut report = whole(&update.artifact);
                if let Report::Artifact { append, last_chunk, metadata, .. } = &mut report {
                    (*append, *last_chunk, *metadata) = (update.append, update.last_chunk, update.metadata);
                }
                reports.push(report);
                reports
            }
        }
    }

    fn answer(&mut self, message: &Arc<Message>) -> Vec<Report> {
        self.ended = true;
        let mut reports = self.link("", &message.context_id);
        let contents = Contents::Message(Box::new((**message).clone()));
        reports.push(Report::Answer { contents, metadata: None });
        reports
    }

    fn task_reports(&mut self, task: Task) -> Vec<Report> {
        let mut reports = self.link(&task.id, &task.context_id);
        reports.extend(task.artifacts.iter().flatten().map(whole));
        reports.extend(self.status(task.status, None));
        reports
    }

    /// The ids it knows the task by, told once.
    fn link(&mut self, task: &str, context: &str) -> Vec<Report> {
        let upstream = Upstream {
            task: if task.is_empty() { self.upstream.task.clone() } else { task.to_owned() },
            context: if context.is_empty() { self.upstream.context.clone() } else { context.to_owned() },
            ..Upstream::default()
        };
        if upstream == self.upstream {
            return Vec::new();
        }
        self.upstream = upstream.clone();
        vec![Report::Linked { upstream, metadata: None, unknown: Vec::new() }]
    }

    fn status(&mut self, status: TaskStatus, metadata: Option<crate::wire::Object>) -> Option<Report> {
        let TaskStatus { state, message, .. } = status;
        self.ended |= state.is_settled();
        let fresh =
            |message: &Arc<Message>| message.message_id.is_empty() || self.said.insert(message.message_id.clone());
        let contents = message.filter(fresh).map(|message| Contents::Message(Box::new((*message).clone())));
        let state = match state {
            // That it was submitted is the hub's to say; what was said with it is not lost.
            TaskState::Unspecified | TaskState::Submitted if contents.is_none() => return None,
            TaskState::Unspecified | TaskState::Submitted => TaskState::Working,
            state => state,
        };
        Some(Report::Status { state, contents, metadata })
    }
}

fn whole(artifact: &Arc<Artifact>) -> Report {
    let mut artifact = (**artifact).clone();
    let parts = std::mem::take(&mut artifact.parts);
    let contents = Contents::Parts(parts);
    Report::Artifact { artifact: Box::new(artifact), contents, append: false, last_chunk: true, metadata: None }
}

#[cfg(test)]
mod tests {
    use super::Relay;
    use crate::a2a::model::{StreamResponse, TaskState};
    use crate::work::{Contents, Report, Upstream};
    use serde_json::{Value, json};

    fn told(relay: &mut Relay, frame: Value) -> Vec<String> {
        let frame: StreamResponse = serde_json::from_value(frame).unwrap();
        let word = |report: Report| match report {
            Report::Linked { upstream, .. } => format!("linked {}", upstream.task),
            Report::Status { state, contents, .. } => format!("{} {}", state.name(), contents.is_some()),
            Report::Artifact { artifact, append, .. } => format!("artifact {} {append}", artifact.artifact_id),
            Report::Answer { contents: Contents::Message(message), .. } => format!("answer {}", message.message_id),
            other => format!("{other:?}"),
        };
        relay.reports(frame).map_or_else(|wrong| vec![wrong], |reports| reports.into_iter().map(word).collect())
    }

    #[test]
    fn frames_become_reports_once() {
        let mut relay = Relay::default();
        let status = |state: &str| json!({"state": state, "message": {"messageId": "m", "parts": [{"text": "x"}]}});
        let task = json!({"task": {"id": "theirs", "contextId": "c", "status": {"state": "TASK_STATE_SUBMITTED"}}});
        assert_eq!(told(&mut relay, task), ["linked theirs"]);
        let update =
            |state: &str| json!({"statusUpdate": {"taskId": "theirs", "contextId": "c", "status": status(state)}});
        assert_eq!(told(&mut relay, update("TASK_STATE_WORKING")), ["TASK_STATE_WORKING true"]);
        assert_eq!(told(&mut relay, update("TASK_STATE_WORKING")), ["TASK_STATE_WORKING false"], "it was said");
        let chunk = json!({"artifactUpdate": {"taskId": "theirs", "artifact": {"artifactId": "a"}, "append": true}});
        assert_eq!(told(&mut relay, chunk), ["artifact a true"]);
        assert!(!relay.has_ended());
        let ended = json!({"task": {"id": "theirs", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"},
            "artifacts": [{"artifactId": "b", "parts": []}]}});
        assert_eq!(told(&mut relay, ended), ["artifact b false", "TASK_STATE_COMPLETED false"]);
        assert!(relay.has_ended() && relay.task() == "theirs");
    }

    #[test]
    fn what_is_said_of_another_task_ends_it() {
        let of = |task: &str, context: &str| json!({"statusUpdate": {"taskId": task, "contextId": context, "status": {"state": "TASK_STATE_COMPLETED"}}});
        let before = Upstream { task: "first".into(), context: "c".into(), ..Upstream::default() };
        let mut relay = Relay::new(before.clone(), []);
        assert_eq!(
            told(&mut relay, of("next", "c")),
            ["linked next", "TASK_STATE_COMPLETED false"],
            "it goes on there"
        );
        let wrong = told(&mut relay, of("other", "c"));
        assert_eq!(wrong, ["statusUpdate.taskId is 'other', and the task asked for is 'next'"]);
        let mut relay = Relay::new(before, []);
        let wrong = told(&mut relay, of("other", "another conversation"));
        assert!(wrong[0].contains("the task asked for is 'first'") && relay.has_ended(), "{wrong:?}");
    }

    #[test]
    fn a_message_is_an_answer() {
        let mut relay = Relay::new(Upstream::default(), []);
        assert_eq!(told(&mut relay, json!({"message": {"messageId": "m", "parts": [{"text": "x"}]}})), ["answer m"]);
        assert!(relay.has_ended());
        assert_eq!(TaskState::Working.name(), "TASK_STATE_WORKING");
    }
}
