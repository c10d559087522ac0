//! The lines a hub and a program exchange: a task in, what becomes of it out.

use flotilla_protocol::a2a::model::{Artifact, Message, Part, TaskState};
use flotilla_protocol::block::Block;
use flotilla_protocol::decode::is_deeper;
use flotilla_protocol::hub_frame::worker::check;
use flotilla_protocol::wire;
use flotilla_protocol::wire::{Json, Object};
use flotilla_protocol::work::{Assignment, Contents, Report};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// How deep a line may be nested: a hub's `limits.json_depth`, if nothing else is set, less what its frame puts around it.
const DEPTH: usize = 60;

/// What came from a program.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    Text(String),
    Line(String),
    /// On standard error: for the owner.
    Aside(String),
}

/// The line that tells a program of a task.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskLine<'a> {
    r#type: &'static str,
    task_id: &'a str,
    context_id: &'a str,
    /// How many messages the caller has sent in this task, this one included.
    turn: u32,
    message: &'a Message,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    accepted_output_modes: &'a [String],
    /// The request's, with the ancestry that calls made for the task are to tell.
    metadata: Object,
    traceparent: String,
}

pub fn task_line(assignment: &Assignment) -> Result<String, String> {
    let line = TaskLine {
        r#type: "task",
        task_id: &assignment.task_id,
        context_id: &assignment.context_id,
        turn: assignment.turn,
        message: &assignment.message,
        accepted_output_modes: &assignment.accepted_output_modes,
        metadata: assignment.lineage.onward().request_metadata(assignment.metadata.as_ref()),
        traceparent: assignment.lineage.trace.traceparent(),
    };
    let json = serde_json::to_string(&line).map_err(|error| format!("the task cannot be written as JSON: {error}"))?;
    Ok(format!("{json}\n"))
}

/// The texts of a message, one below the other.
pub fn text_of(message: &Message) -> String {
    let texts: Vec<&str> = message.parts.iter().filter_map(|part| part.text.as_deref()).collect();
    texts.join("\n")
}

wire! {
    /// A line a program printed: the members of all kinds of lines.
    pub struct Line {
        kind: String = "type",
        state: Option<State> = "state",
        text: Option<String> = "text",
        parts: Option<Vec<Part>> = "parts",
        blocks: Option<Vec<Json>> = "blocks",
        block: Option<Json> = "block",
        artifact_id: String = "artifactId" | "artifact_id",
        name: String = "name",
        description: String = "description",
        append: bool = "append",
        last_chunk: Option<bool> = "lastChunk" | "last_chunk",
        metadata: Option<Object> = "metadata",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Working,
    Completed,
    Failed,
    Rejected,
    InputRequired,
    AuthRequired,
}

impl State {
    fn of_task(self) -> TaskState {
        match self {
            Self::Working => TaskState::Working,
            Self::Completed => TaskState::Completed,
            Self::Failed => TaskState::Failed,
            Self::Rejected => TaskState::Rejected,
            Self::InputRequired => TaskState::InputRequired,
            Self::AuthRequired => TaskState::AuthRequired,
        }
    }
}

impl Line {
    pub fn read(line: &str) -> Result<Self, String> {
        if is_deeper(line.as_bytes(), DEPTH) {
            return Err(format!("it is nested deeper than {DEPTH} levels"));
        }
        serde_json::from_str(line).map_err(|error| flotilla_protocol::decode::plain(&error.to_string()))
    }

    pub fn ends_turn(&self) -> bool {
        self.kind == "answer" || self.kind == "status" && self.state != Some(State::Working)
    }

    pub fn into_report(self) -> Result<Report, String> {
        let report = self.read_report()?;
        check(&report).map_err(|problem| format!("a part {problem}"))?;
        Ok(report)
    }

    fn read_report(mut self) -> Result<Report, String> {
        let contents = self.contents()?;
        let metadata = self.metadata;
        Ok(match self.kind.as_str() {
            "status" => {
                let state = self.state.ok_or("a status needs a state")?.of_task();
                Report::Status { state, contents, metadata }
            }
            "artifact" => {
                let Self { mut artifact_id, name, description, append, last_chunk, .. } = self;
                if artifact_id.is_empty() {
                    artifact_id = Uuid::now_v7().to_string();
                }
                let artifact = Box::new(Artifact { artifact_id, name, description, ..Artifact::default() });
                let contents = contents.unwrap_or(Contents::Parts(Vec::new()));
                // Only the word that nothing more comes may be without any.
                if contents.is_empty() && !(append && last_chunk == Some(true)) {
                    return Err("an artifact needs text, parts or blocks, and at least one of them".into());
                }
                // One that is not continued is whole.
                Report::Artifact { artifact, contents, append, last_chunk: last_chunk.unwrap_or(!append), metadata }
            }
            "answer" => {
                let contents = contents.filter(|contents| !contents.is_empty());
                let contents = contents.ok_or("an answer needs text, parts or blocks")?;
                Report::Answer { contents, metadata }
            }
            "block" => Report::Note { blocks: vec![Block::new(self.block.ok_or("a block is missing")?)?] },
            "" => return Err("it has no type".into()),
            other => return Err(format!("the type is one of status, artifact, answer and block, not '{other}'")),
        })
    }

    fn contents(&mut self) -> Result<Option<Contents>, String> {
        match (self.text.take(), self.parts.take(), self.blocks.take()) {
            (None, None, None) => Ok(None),
            (Some(text), None, None) => Ok(Some(Contents::text(text))),
            (None, Some(parts), None) => Ok(Some(Contents::Parts(parts))),
            (None, None, Some(blocks)) => {
                let blocks = blocks.into_iter().map(Block::new).collect::<Result<_, _>>()?;
                Ok(Some(Contents::Blocks(blocks)))
            }
            _ => Err("a line has one of text, parts and blocks".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Line;

    #[test]
    fn a_line_no_hub_takes_is_not_understood() {
        let problem = |line: &str| Line::read(line).and_then(Line::into_report).unwrap_err();
        for line in [
            r#"{"type":"artifact","name":"a","parts":[{"nope":1}]}"#,
            r#"{"type":"status","state":"completed","parts":[{"nope":1}]}"#,
            r#"{"type":"answer","parts":[{"text":"a"},{"text":"a","url":"b"}]}"#,
        ] {
            assert!(problem(line).contains("one of text, raw, url and data"), "{line}");
        }
        for line in [
            r#"{"type":"artifact","name":"a"}"#,
            r#"{"type":"artifact","name":"a","parts":[]}"#,
            r#"{"type":"answer","blocks":[]}"#,
        ] {
            assert!(problem(line).contains("needs text, parts or blocks"), "{line}");
        }
        let last = r#"{"type":"artifact","artifactId":"a","append":true,"lastChunk":true}"#;
        assert!(Line::read(last).and_then(Line::into_report).is_ok(), "it says that nothing more comes");
        let deep =
            |depth| format!(r#"{{"type":"answer","parts":[{{"data":{}{}}}]}}"#, "[".repeat(depth), "]".repeat(depth));
        assert!(problem(&deep(58)).contains("deeper than 60 levels"));
        assert!(Line::read(&deep(57)).and_then(Line::into_report).is_ok());
    }
}
