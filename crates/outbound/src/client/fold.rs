//! The task a stream adds up to, for agents that do not keep what they streamed.

use super::frame::Sent;
use flotilla_protocol::a2a::model::{ArtifactUpdate, Task};
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct Fold {
    task: Option<Task>,
}

impl Fold {
    pub fn take(&mut self, sent: &Sent) {
        match (sent, &mut self.task) {
            (Sent::Task(task), _) => self.task = Some((**task).clone()),
            (Sent::Status(update), Some(task)) => task.status = update.status.clone(),
            (Sent::Artifact(update), Some(task)) => extend(task, update),
            // A stream begins with its task; what comes before it has no place.
            _ => {}
        }
    }

    pub fn task(self) -> Option<Task> {
        self.task
    }
}

fn extend(task: &mut Task, update: &ArtifactUpdate) {
    let artifacts = task.artifacts.get_or_insert_default();
    let known = artifacts.iter_mut().find(|known| known.artifact_id == update.artifact.artifact_id);
    match known {
        Some(known) if update.append => {
            // Copied once at most, however often it is appended to.
            Arc::make_mut(known).parts.extend_from_slice(&update.artifact.parts);
        }
        Some(known) => *known = Arc::clone(&update.artifact),
        None => artifacts.push(Arc::clone(&update.artifact)),
    }
}

#[cfg(test)]
mod tests {
    use super::Fold;

    #[test]
    fn many_pieces_of_one_artifact_cost_no_more_each_than_few() {
        let mut fold = Fold::default();
        fold.take(
            &serde_json::from_str(r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}"#)
                .unwrap(),
        );
        let piece =
            r#"{"artifactUpdate":{"taskId":"t","append":true,"artifact":{"artifactId":"a","parts":[{"text":"1"}]}}}"#;
        let piece = serde_json::from_str(piece).unwrap();
        let started = std::time::Instant::now();
        (0..40_000).for_each(|_| fold.take(&piece));
        // Copied anew for each, they take minutes.
        assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
        assert_eq!(fold.task().unwrap().artifacts.unwrap()[0].parts.len(), 40_000);
    }

    #[test]
    fn a_stream_adds_up_to_its_task() {
        let mut fold = Fold::default();
        for frame in [
            r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}"#,
            r#"{"artifactUpdate":{"taskId":"t","artifact":{"artifactId":"a","parts":[{"text":"1"}]}}}"#,
            r#"{"artifactUpdate":{"taskId":"t","append":true,"artifact":{"artifactId":"a","parts":[{"text":"2"}]}}}"#,
            r#"{"artifactUpdate":{"taskId":"t","artifact":{"artifactId":"b","parts":[{"text":"x"}]}}}"#,
            r#"{"artifactUpdate":{"taskId":"t","artifact":{"artifactId":"b","parts":[{"text":"y"}]}}}"#,
            r#"{"statusUpdate":{"taskId":"t","status":{"state":"TASK_STATE_COMPLETED"}}}"#,
        ] {
            fold.take(&serde_json::from_str(frame).unwrap());
        }
        let expected = r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[{"text":"1"},{"text":"2"}]},{"artifactId":"b","parts":[{"text":"y"}]}]}"#;
        assert_eq!(serde_json::to_string(&fold.task().unwrap()).unwrap(), expected);
    }
}
