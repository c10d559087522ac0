//! A turn of Claude Code as reports to the hub: what each frame means, whoever runs the program.

use super::calls::Calls;
use super::facts::Facts;
use super::frame::{Frame, Outcome, Piece, RateLimitInfo, Request, Retry, Spoken};
use flotilla_protocol::a2a::model::{Artifact, Part, TaskState};
use flotilla_protocol::block::{Block, Kind};
use flotilla_protocol::fleet::HANDSHAKE;
use flotilla_protocol::usage::{TOLD, Usage};
use flotilla_protocol::wire::{AnyValue, Json, Object};
use flotilla_protocol::work::{Assignment, Contents, Report};
use serde_json::json;

/// What follows from a frame, beside reports.
#[derive(Debug)]
pub enum Next {
    GoOn,
    Begun(Facts),
    Answer(Request),
    /// It took up what it was told under this id.
    TookUp(String),
    Over(Box<Outcome>),
}

/// A turn as far as it was heard.
#[derive(Debug, Default)]
pub struct Turn {
    number: u32,
    task: String,
    wants_structure: bool,
    /// Text was passed on, so its artifact is open.
    printed: bool,
    /// The text that is being said, as far as it came in pieces.
    pieces: String,
    /// Heard, and not yet passed on.
    pending: String,
    /// The model refused for want of allowance; when it may be asked again, in seconds since 1970.
    limited: Option<Option<f64>>,
    /// How long the program last waited for the model's allowance, in seconds.
    waited: Option<f64>,
    /// What the caller is asked.
    question: Option<Contents>,
    /// What the model's calls used.
    calls: Calls,
}

impl Turn {
    pub fn new(assignment: &Assignment, wants_structure: bool) -> Self {
        let (number, task) = (assignment.turn, assignment.task_id.clone());
        Self { number, task, ..Self::structured(wants_structure) }
    }

    pub(super) fn structured(wants_structure: bool) -> Self {
        Self { wants_structure, ..Self::default() }
    }

    pub fn take(&mut self, frame: Frame) -> (Vec<Report>, Next) {
        match frame {
            Frame::Piece(piece) => {
                self.piece(&piece);
                self.calls.piece(&piece);
                (note(self.calls.due()), Next::GoOn)
            }
            Frame::Heartbeat => (Vec::new(), Next::GoOn),
            Frame::Init(init) => {
                let facts = Facts::of(&init);
                (note(facts.block()), Next::Begun(facts))
            }
            Frame::Assistant(spoken) => {
                self.calls.spoken(&spoken);
                let mut reports = self.spoken(&spoken);
                reports.extend(note(self.calls.due()));
                (reports, Next::GoOn)
            }
            Frame::User(spoken) if spoken.is_replay => (Vec::new(), Next::TookUp(spoken.uuid)),
            Frame::User(spoken) => (note(blocks(&spoken)), Next::GoOn),
            Frame::Request(request) => (self.flush(false).into_iter().collect(), Next::Answer(request)),
            Frame::Result(outcome) => (Vec::new(), Next::Over(outcome)),
            Frame::Retry(retry) => (self.retry(&retry), Next::GoOn),
            Frame::RateLimit(limit) => (self.rate_limit(&limit.rate_limit_info), Next::GoOn),
            Frame::Unknown(json) => (note(kept(&json)), Next::GoOn),
            Frame::Garbage(line) => (note([Block::text(&line)]), Next::GoOn),
        }
    }

    /// The caller is to answer something before the work can go on.
    pub fn ask(&mut self, question: Contents) {
        self.question = Some(question);
    }

    /// A text of the model itself is the caller's, piece by piece; that of agents below it is not.
    fn piece(&mut self, piece: &Piece) {
        let text = piece.event.delta.as_ref().filter(|delta| delta.kind == "text_delta").map(|delta| &delta.text);
        if let (Some(text), None) = (text, &piece.parent_tool_use_id) {
            self.say(text, self.pieces.is_empty());
            self.pieces.push_str(text);
        }
    }

    /// Texts stand apart from each other as paragraphs do.
    fn say(&mut self, text: &str, is_new: bool) {
        if is_new && (self.printed || !self.pending.is_empty()) {
            self.pending.push_str("\n\n");
        }
        self.pending.push_str(text);
    }

    fn spoken(&mut self, spoken: &Spoken) -> Vec<Report> {
        if spoken.error.is_some() {
            self.limited = self.limited.or_else(|| limit_in(spoken));
            return note(blocks(spoken));
        }
        let mut noted = Vec::new();
        for block in blocks(spoken) {
            match text_of(&block) {
                Some(text) if spoken.parent_tool_use_id.is_none() => {
                    let pieces = std::mem::take(&mut self.pieces);
                    // What came in pieces is not said again.
                    match text.strip_prefix(&pieces) {
                        Some(rest) => self.say(rest, pieces.is_empty()),
                        None => self.say(&text, true),
                    }
                }
                _ => noted.push(block),
            }
        }
        let mut reports: Vec<Report> = self.flush(false).into_iter().collect();
        reports.extend(note(noted));
        reports
    }

    /// What was said and not passed on yet.
    pub fn flush(&mut self, is_last: bool) -> Option<Report> {
        let text = std::mem::take(&mut self.pending);
        if text.is_empty() && !(is_last && self.printed) {
            return None;
        }
        let append = std::mem::replace(&mut self.printed, true);
        let contents = if text.is_empty() { Contents::Parts(Vec::new()) } else { Contents::text(text) };
        let artifact = artifact(format!("reply-{}", self.number), "reply");
        Some(Report::Artifact { artifact, contents, append, last_chunk: is_last, metadata: None })
    }

    fn rate_limit(&mut self, info: &RateLimitInfo) -> Vec<Report> {
        if info.status == "rejected" {
            self.limited = Some(info.resets_at);
        }
        let told = json!({"type": "rate_limit", "status": info.status, "resets_at": info.resets_at});
        note(Json::of(&told).ok().and_then(|json| Block::new(json).ok()))
    }

    /// What the model says of when it may be asked again is told by how long the program waits.
    fn retry(&mut self, retry: &Retry) -> Vec<Report> {
        if retry.error_status == Some(429) {
            self.waited = retry.retry_delay_ms.map(|millis| millis / 1000.0);
        }
        let told = json!({"type": "api_retry", "attempt": retry.attempt, "status": retry.error_status,
            "retry_delay_ms": retry.retry_delay_ms});
        note(Json::of(&told).ok().and_then(|json| Block::new(json).ok()))
    }

    /// The program goes on with something else: what it used for this is told already.
    pub fn pause(&mut self, outcome: &Outcome) -> Vec<Report> {
        let mut reports: Vec<Report> = self.flush(false).into_iter().collect();
        reports.extend(note(self.usage(outcome)));
        reports
    }

    /// The last reports: the rest of the text, what was used, and what became of the work.
    pub fn end(&mut self, outcome: &Outcome, resources: Option<Block>, now: u64) -> Vec<Report> {
        let succeeded = outcome.subtype == "success" && !outcome.is_error;
        if let Some(result) = outcome.result.as_deref().filter(|_| succeeded && !self.wants_structure)
            && !self.printed
            && self.pending.is_empty()
        {
            self.say(result, true);
        }
        let mut reports: Vec<Report> = self.flush(true).into_iter().collect();
        if let Some(data) = &outcome.structured_output {
            let contents = Contents::Parts(vec![Part { data: AnyValue(Some(data.clone())), ..Part::default() }]);
            let artifact = artifact(format!("result-{}", self.number), "result");
            reports.push(Report::Artifact { artifact, contents, append: false, last_chunk: true, metadata: None });
        }
        reports.extend(note(self.usage(outcome).into_iter().chain(resources)));
        reports.push(self.status(outcome, succeeded, now));
        reports
    }

    /// What the model used that was not told yet, in the words of the handshake.
    fn usage(&mut self, outcome: &Outcome) -> Vec<Block> {
        let (seen, rest) = self.calls.settle(outcome);
        let block = |rest: Usage| {
            let mut told = json!({
                "type": "usage", "turns": outcome.num_turns, "duration_ms": outcome.duration_ms,
                "models": outcome.model_usage,
            });
            TOLD.iter().enumerate().for_each(|(index, name)| told[*name] = rest.shown(index));
            Block::new(Json::of(&told).ok()?).ok()
        };
        seen.into_iter().chain(rest.and_then(block)).collect()
    }

    /// The program is gone, and does not say any more what it used.
    pub fn break_off(&mut self) -> Vec<Report> {
        let mut reports: Vec<Report> = self.flush(true).into_iter().collect();
        reports.extend(note(self.calls.break_off()));
        reports
    }

    fn status(&mut self, outcome: &Outcome, succeeded: bool, now: u64) -> Report {
        if let Some(question) = self.question.take() {
            return Report::Status { state: TaskState::InputRequired, contents: Some(question), metadata: None };
        }
        if succeeded && !(self.wants_structure && outcome.structured_output.is_none()) {
            return Report::status(TaskState::Completed);
        }
        if outcome.api_error_status == Some(429) {
            self.limited = self.limited.or(Some(None));
        }
        if let (Some(until), false) = (self.limited, succeeded) {
            let seconds = until.map(|at| (at - now as f64).max(0.0)).or(self.waited).map(|left| left.ceil() as u64);
            return limit_reached(seconds);
        }
        let why = why(outcome, succeeded);
        let text = format!("{why} The agent's owner sees more with 'flotilla task log {}'.", self.task);
        Report::Status { state: TaskState::Failed, contents: Some(Contents::text(text)), metadata: None }
    }
}

/// In words for the caller. The program's own may name what is the owner's alone, and stand in the log.
fn why(outcome: &Outcome, succeeded: bool) -> String {
    match (outcome.subtype.as_str(), outcome.api_error_status) {
        _ if succeeded => "The agent did not reply in the form that is asked of it (json_schema).".into(),
        ("error_max_turns", _) => "The agent reached its limit of turns before it was done.".into(),
        ("error_max_budget_usd", _) => "The agent reached its budget before it was done.".into(),
        (_, Some(401 | 403)) => "The agent is not signed in to its model.".into(),
        (_, Some(status)) => format!("The agent's model refused the request (HTTP {status})."),
        ("success", None) => "The agent's model did not answer.".into(),
        _ => "The agent broke off with an error.".into(),
    }
}

fn limit_reached(seconds: Option<u64>) -> Report {
    let when = seconds.map_or_else(|| "later".to_owned(), |seconds| format!("in {seconds} s"));
    let text =
        format!("The agent's model takes no more requests for now (usage limit). Send the message again {when}.");
    let told = json!({HANDSHAKE: {"blocked_reason": "usage_limit", "retryable": true, "retry_after": seconds}});
    let metadata = Object::of(&told).ok();
    Report::Status { state: TaskState::Failed, contents: Some(Contents::text(text)), metadata }
}

/// Whether an error the program tells of is a limit of the model's, and until when.
fn limit_in(spoken: &Spoken) -> Option<Option<f64>> {
    let is_limit = spoken.error.as_ref().is_some_and(|error| error.text().contains("rate_limit"));
    let texts: Vec<String> = blocks(spoken).iter().filter_map(text_of).collect();
    // Some versions end their words with the time.
    let until = texts.iter().find_map(|text| text.rsplit_once("limit reached|")?.1.trim().parse().ok());
    (is_limit || until.is_some()).then_some(until)
}

fn artifact(artifact_id: String, name: &str) -> Box<Artifact> {
    Box::new(Artifact { artifact_id, name: name.into(), ..Artifact::default() })
}

fn note(blocks: impl IntoIterator<Item = Block>) -> Vec<Report> {
    let blocks: Vec<Block> = blocks.into_iter().collect();
    if blocks.is_empty() { Vec::new() } else { vec![Report::Note { blocks }] }
}

fn text_of(block: &Block) -> Option<String> {
    match block.kind() {
        Kind::Text => block.to_part().and_then(|part| part.text),
        _ => None,
    }
}

/// The blocks of a message, each with the tool use it belongs to.
fn blocks(spoken: &Spoken) -> Vec<Block> {
    let content = spoken.message.content.text();
    if let Ok(text) = serde_json::from_str::<String>(content) {
        return vec![Block::text(&text)];
    }
    let parent = spoken.parent_tool_use_id.as_deref();
    let all: Vec<Json> = serde_json::from_str(content).unwrap_or_default();
    all.into_iter()
        .filter_map(|json| Block::new(with_parent(json.clone(), parent)).ok().or_else(|| kept(&json)))
        .collect()
}

/// The bytes stay as they are; only a member is put in front.
fn with_parent(json: Json, parent: Option<&str>) -> Json {
    let Some(parent) = parent else { return json };
    let rest = json.text().trim_start().strip_prefix('{').unwrap_or_default();
    let text = format!(r#"{{"parent_tool_use_id":{},{rest}"#, json!(parent));
    Json::new(text).unwrap_or(json)
}

/// Something of a kind nobody knows, for the owner.
fn kept(json: &Json) -> Option<Block> {
    Block::new(Json::new(format!(r#"{{"type":"claude_code","frame":{}}}"#, json.text())).ok()?).ok()
}
