//! From steps as they are written to actions that can be performed; what cannot work is refused here.

use super::amount::{self, Told};
use super::config::{ApprovalConfig, ArtifactConfig, ChunksConfig, ProgressConfig, RepeatConfig};
use super::content::{self, Content, Fields};
use super::place::{Place, ScriptError};
use super::step::{Said, SaidMap, Step};
use super::template::{Template, Tree};
use flotilla_protocol::a2a::model::TaskState;
use serde_json::Value;
use std::time::Duration;

#[derive(Debug)]
pub(super) enum Action {
    Status { state: TaskState, content: Option<Content>, metadata: Option<Tree> },
    Artifact { shell: Shell, content: Content, append: bool, last: bool },
    Chunks { shell: Shell, chunks: Chunks },
    Answer { content: Content, metadata: Option<Tree> },
    Blocks(Vec<Tree>),
    Progress { progress: Told<Value>, total: Option<Told<Value>>, message: Option<Template> },
    Wait(Told<Duration>),
    Repeat { times: Told<u64>, actions: Vec<Action> },
    Approval { tool: Template, input: Option<Tree>, text: Template },
}

impl Action {
    /// Whether nothing can follow.
    pub fn ends(&self) -> bool {
        match self {
            Self::Status { state, .. } => state.is_terminal() || state.is_interrupted(),
            Self::Answer { .. } => true,
            _ => false,
        }
    }

    /// Whether it makes the exchange a task, for all to see.
    fn begins_task(&self) -> bool {
        match self {
            Self::Status { .. } | Self::Artifact { .. } | Self::Chunks { .. } | Self::Approval { .. } => true,
            Self::Repeat { actions, .. } => actions.iter().any(Self::begins_task),
            _ => false,
        }
    }
}

/// An artifact without what it holds.
#[derive(Debug)]
pub(super) struct Shell {
    pub id: Option<Template>,
    pub name: Template,
    pub description: Template,
    pub metadata: Option<Tree>,
    pub extensions: Vec<String>,
}

#[derive(Debug)]
pub(super) enum Chunks {
    Texts(Vec<Template>),
    Counted { count: Told<u64>, text: Template, every: Option<Told<Duration>> },
}

pub(super) fn steps(steps: &[Step], place: &Place) -> Result<Vec<Action>, ScriptError> {
    let mut actions: Vec<Action> = Vec::with_capacity(steps.len());
    for (i, step) in steps.iter().enumerate() {
        let place = place.index(i);
        if actions.last().is_some_and(Action::ends) {
            return Err(place.error("can never be reached: the step before it ends the run"));
        }
        let action = action(step, &place)?;
        if action.ends() && place.is_counted() {
            return Err(place.error("ends the run, so it cannot be repeated"));
        }
        if matches!(action, Action::Answer { .. }) && actions.iter().any(Action::begins_task) {
            return Err(place.error("a message stands instead of a task, and the steps before it began one"));
        }
        actions.push(action);
    }
    Ok(actions)
}

fn action(step: &Step, place: &Place) -> Result<Action, ScriptError> {
    match step {
        Step::Working(said) => status(TaskState::Working, said, &place.field("working")),
        Step::Completed(said) => status(TaskState::Completed, said, &place.field("completed")),
        Step::Failed(said) => status(TaskState::Failed, said, &place.field("failed")),
        Step::Rejected(said) => status(TaskState::Rejected, said, &place.field("rejected")),
        Step::InputRequired(said) => status(TaskState::InputRequired, said, &place.field("input_required")),
        Step::AuthRequired(said) => status(TaskState::AuthRequired, said, &place.field("auth_required")),
        Step::Canceled(said) => status(TaskState::Canceled, said, &place.field("canceled")),
        Step::Artifact(config) => artifact(config, &place.field("artifact")),
        Step::Message(said) => answer(said, &place.field("message")),
        Step::Blocks(blocks) => Ok(Action::Blocks(content::block_trees(blocks, &place.field("blocks"))?)),
        Step::Progress(config) => progress(config, &place.field("progress")),
        Step::Delay(text) => Ok(Action::Wait(amount::wait(text, &place.field("delay"))?)),
        Step::Repeat(config) => repeat(config, &place.field("repeat")),
        Step::Approval(config) => approval(config, &place.field("approval")),
    }
}

fn said(said: &Said, place: &Place) -> Result<(Option<Content>, Option<Tree>), ScriptError> {
    match said {
        Said::Nothing => Ok((None, None)),
        Said::Text(text) => Ok((Some(Content::text(place.template(text)?)), None)),
        Said::Map(map) => {
            let SaidMap { text, file, data, parts, blocks, metadata } = map.as_ref();
            let fields = Fields {
                text: text.as_ref(),
                file: file.as_ref(),
                data: data.as_ref(),
                parts: parts.as_ref(),
                blocks: blocks.as_ref(),
            };
            Ok((Content::compile(&fields, place)?, content::metadata(metadata.as_ref(), place)?))
        }
    }
}

fn status(state: TaskState, what: &Said, place: &Place) -> Result<Action, ScriptError> {
    let (content, metadata) = said(what, place)?;
    Ok(Action::Status { state, content, metadata })
}

fn answer(what: &Said, place: &Place) -> Result<Action, ScriptError> {
    let (content, metadata) = said(what, place)?;
    let content = content.ok_or_else(|| place.error("needs a text, or a map with something to say"))?;
    Ok(Action::Answer { content, metadata })
}

fn artifact(config: &ArtifactConfig, place: &Place) -> Result<Action, ScriptError> {
    let fields = Fields {
        text: config.text.as_ref(),
        file: config.file.as_ref(),
        data: config.data.as_ref(),
        parts: config.parts.as_ref(),
        blocks: config.blocks.as_ref(),
    };
    let content = Content::compile(&fields, place)?;
    let shell = Shell {
        id: config.id.as_ref().map(|id| place.field("id").template(id)).transpose()?,
        name: place.optional("name", config.name.as_ref())?,
        description: place.optional("description", config.description.as_ref())?,
        metadata: content::metadata(config.metadata.as_ref(), place)?,
        extensions: config.extensions.clone(),
    };
    if config.append && shell.id.is_none() {
        return Err(place.field("append").error("needs the `id` of the artifact to add to"));
    }
    match (content, &config.chunks) {
        (Some(content), None) => {
            Ok(Action::Artifact { shell, content, append: config.append, last: config.last.unwrap_or(true) })
        }
        (None, Some(_)) if config.append || config.last.is_some() => {
            Err(place.error("takes `chunks`, or `append` and `last`, not both"))
        }
        (None, Some(chunks)) => Ok(Action::Chunks { shell, chunks: compile_chunks(chunks, &place.field("chunks"))? }),
        (Some(_), Some(_)) => Err(place.field("chunks").error("stands alone: the chunks are what the artifact holds")),
        (None, None) => Err(place.error("needs `text`, `file`, `data`, `parts`, `blocks` or `chunks`")),
    }
}

fn compile_chunks(config: &ChunksConfig, place: &Place) -> Result<Chunks, ScriptError> {
    match config {
        ChunksConfig::Texts(texts) if texts.is_empty() => Err(place.error("needs at least one chunk")),
        ChunksConfig::Texts(texts) => {
            let chunk = |(i, text): (usize, &String)| place.counted().index(i).template(text);
            Ok(Chunks::Texts(texts.iter().enumerate().map(chunk).collect::<Result<_, _>>()?))
        }
        ChunksConfig::Counted(counted) => {
            let every = counted.every.as_ref().map(|every| amount::wait(every, &place.field("every")));
            Ok(Chunks::Counted {
                count: amount::chunks(&counted.count, &place.field("count"))?,
                text: place.field("text").counted().template(&counted.text)?,
                every: every.transpose()?,
            })
        }
    }
}

fn progress(config: &ProgressConfig, place: &Place) -> Result<Action, ScriptError> {
    let total = config.total.as_ref().map(|total| amount::number(total, &place.field("total")));
    let message = config.message.as_ref().map(|message| place.field("message").template(message));
    Ok(Action::Progress {
        progress: amount::number(&config.progress, &place.field("progress"))?,
        total: total.transpose()?,
        message: message.transpose()?,
    })
}

fn repeat(config: &RepeatConfig, place: &Place) -> Result<Action, ScriptError> {
    let times = amount::rounds(&config.times, &place.field("times"))?;
    Ok(Action::Repeat { times, actions: steps(&config.steps, &place.field("do").counted())? })
}

fn approval(config: &ApprovalConfig, place: &Place) -> Result<Action, ScriptError> {
    if config.tool.is_none() && config.text.is_none() {
        return Err(place.error("needs a `tool`, or a `text` that says what is asked"));
    }
    let input = config.input.as_ref().map(|input| place.field("input").tree(input)).transpose()?;
    let (tool, text) = (place.optional("tool", config.tool.as_ref())?, place.optional("text", config.text.as_ref())?);
    Ok(Action::Approval { tool, input, text })
}
