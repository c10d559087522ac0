//! A run of a script: one action after the other, until one ends it or the hub stops listening.

use super::compile::{Action, Chunks, Shell};
use super::content::{block_from, make_blocks, make_object};
use super::template::{Scene, Template, Tree};
use crate::agent::{Outbox, Stopped};
use flotilla_protocol::a2a::model::{Artifact, TaskState};
use flotilla_protocol::approval::{ApprovalKind, ApprovalRequest};
use flotilla_protocol::wire::Json;
use flotilla_protocol::work::{Assignment, Contents, Report};
use serde_json::{Map, Value};
use std::pin::Pin;
use std::time::Duration;
use uuid::Uuid;

/// Why a run went no further.
enum Halt {
    Stopped,
    /// What the message asked for cannot be done.
    Failed(String),
}

impl From<Stopped> for Halt {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl From<String> for Halt {
    fn from(problem: String) -> Self {
        Self::Failed(problem)
    }
}

pub(super) async fn perform(actions: &[Action], assignment: &Assignment, outbox: &Outbox) -> Result<(), Stopped> {
    let last = match sequence(actions, Scene { assignment, n: 0 }, outbox).await {
        Ok(()) if actions.last().is_some_and(Action::ends) => return Ok(()),
        Ok(()) => Report::status(TaskState::Completed),
        Err(Halt::Stopped) => return Err(Stopped),
        Err(Halt::Failed(problem)) => {
            Report::Status { state: TaskState::Failed, contents: Some(Contents::text(problem)), metadata: None }
        }
    };
    outbox.report(last).await
}

type Run<'a> = Pin<Box<dyn Future<Output = Result<(), Halt>> + Send + 'a>>;

/// Boxed because a repeat holds a sequence of its own.
fn sequence<'a>(actions: &'a [Action], scene: Scene<'a>, outbox: &'a Outbox) -> Run<'a> {
    Box::pin(async move {
        for action in actions {
            act(action, scene, outbox).await?;
        }
        Ok(())
    })
}

async fn act(action: &Action, scene: Scene<'_>, outbox: &Outbox) -> Result<(), Halt> {
    let report = match action {
        Action::Status { state, content, metadata } => Report::Status {
            state: *state,
            contents: content.as_ref().map(|content| content.make(scene)).transpose()?,
            metadata: make_object(metadata.as_ref(), scene)?,
        },
        Action::Artifact { shell, content, append, last } => Report::Artifact {
            artifact: Box::new(make_artifact(shell, scene)?),
            contents: content.make(scene)?,
            append: *append,
            last_chunk: *last,
            metadata: None,
        },
        Action::Answer { content, metadata } => {
            Report::Answer { contents: content.make(scene)?, metadata: make_object(metadata.as_ref(), scene)? }
        }
        Action::Blocks(trees) => Report::Note { blocks: make_blocks(trees, scene)? },
        Action::Progress { progress, total, message } => {
            let mut block = Map::from_iter([("type".to_owned(), Value::from("progress"))]);
            block.insert("progress".into(), progress.value(scene)?);
            if let Some(total) = total {
                block.insert("total".into(), total.value(scene)?);
            }
            if let Some(message) = message {
                block.insert("message".into(), message.render(scene).into());
            }
            Report::Note { blocks: vec![block_from(&Value::Object(block))?] }
        }
        Action::Chunks { shell, chunks } => return send_chunks(shell, chunks, scene, outbox).await,
        Action::Wait(time) => return pause(time.value(scene)?, outbox).await,
        Action::Repeat { times, actions } => {
            for n in 1..=times.value(scene)? {
                sequence(actions, Scene { n, ..scene }, outbox).await?;
            }
            return Ok(());
        }
        Action::Approval { tool, input, text } => return ask(tool, input.as_ref(), text, scene, outbox).await,
    };
    Ok(outbox.report(report).await?)
}

/// Goes on only with the owner's leave. The caller is not told of the question, nor of what was said to it.
async fn ask(
    tool: &Template,
    input: Option<&Tree>,
    text: &Template,
    scene: Scene<'_>,
    outbox: &Outbox,
) -> Result<(), Halt> {
    let input = input.map(|tree| Json::of(&tree.render(scene)).map_err(|error| error.to_string())).transpose()?;
    let (id, kind) = (Uuid::now_v7().to_string(), ApprovalKind::default());
    let (tool, text) = (tool.render(scene), text.render(scene));
    let decision = outbox.ask(ApprovalRequest { id, kind, tool, input, text, expires_in: None }).await?;
    if decision.is_allowed() { Ok(()) } else { Err(Halt::Failed("The agent was not allowed to do this.".into())) }
}

fn make_artifact(shell: &Shell, scene: Scene<'_>) -> Result<Artifact, Halt> {
    Ok(Artifact {
        artifact_id: shell.id.as_ref().map_or_else(|| Uuid::now_v7().to_string(), |id| id.render(scene)),
        name: shell.name.render(scene),
        description: shell.description.render(scene),
        metadata: make_object(shell.metadata.as_ref(), scene)?,
        extensions: shell.extensions.clone(),
        ..Artifact::default()
    })
}

async fn send_chunks(shell: &Shell, chunks: &Chunks, scene: Scene<'_>, outbox: &Outbox) -> Result<(), Halt> {
    let (count, every) = match chunks {
        Chunks::Texts(texts) => (texts.len() as u64, Duration::ZERO),
        Chunks::Counted { count, every, .. } => {
            let every = every.as_ref().map(|every| every.value(scene)).transpose()?;
            (count.value(scene)?, every.unwrap_or_default())
        }
    };
    let mut artifact = make_artifact(shell, scene)?;
    for n in 1..=count {
        if n > 1 && !every.is_zero() {
            pause(every, outbox).await?;
        }
        let text = chunk(chunks, n).render(Scene { n, ..scene });
        // What the artifact is called need be said only once.
        let rest = Artifact { artifact_id: artifact.artifact_id.clone(), ..Artifact::default() };
        let report = Report::Artifact {
            artifact: Box::new(std::mem::replace(&mut artifact, rest)),
            contents: Contents::text(text),
            append: n > 1,
            last_chunk: n == count,
            metadata: None,
        };
        outbox.report(report).await?;
    }
    Ok(())
}

fn chunk(chunks: &Chunks, n: u64) -> &Template {
    match chunks {
        Chunks::Texts(texts) => &texts[n as usize - 1],
        Chunks::Counted { text, .. } => text,
    }
}

/// A wait ends early when nobody listens any more.
async fn pause(time: Duration, outbox: &Outbox) -> Result<(), Halt> {
    tokio::select! {
        () = tokio::time::sleep(time) => Ok(()),
        () = outbox.stopped() => Err(Halt::Stopped),
    }
}
