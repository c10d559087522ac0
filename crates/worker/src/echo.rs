//! The agent that gives back what it was given.

use crate::agent::{Outbox, Stopped};
use flotilla_protocol::a2a::model::{Artifact, TaskState};
use flotilla_protocol::work::{Assignment, Contents, Report};
use uuid::Uuid;

pub(crate) async fn answer(assignment: &Assignment, outbox: &Outbox) -> Result<(), Stopped> {
    let artifact = Artifact { artifact_id: Uuid::now_v7().to_string(), name: "echo".into(), ..Artifact::default() };
    let report = Report::Artifact {
        artifact: Box::new(artifact),
        contents: Contents::Parts(assignment.message.parts.clone()),
        append: false,
        last_chunk: true,
        metadata: None,
    };
    outbox.report(report).await?;
    outbox.report(Report::status(TaskState::Completed)).await
}
