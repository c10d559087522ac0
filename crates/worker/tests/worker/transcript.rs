//! Runs an agent and writes down what it reports, one line each, so that a test can compare texts.

use flotilla_protocol::a2a::model::{Artifact, Message, Part, Role};
use flotilla_protocol::lineage::{Ancestor, Lineage, SpanId, Trace, TraceId};
use flotilla_protocol::time::Millis;
use flotilla_protocol::work::{Assignment, Contents, Report, Trail};
use flotilla_worker::script::{Script, ScriptConfig};
use flotilla_worker::{Agent, Outbox, Stop};
use serde::Serialize;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The first message of task `t-1`, with a text.
pub fn saying(text: &str) -> Assignment {
    sending("m-1", vec![Part::text(text)])
}

pub fn sending(message_id: &str, parts: Vec<Part>) -> Assignment {
    let message = Message { message_id: message_id.into(), role: Role::User, parts, ..Message::default() };
    Assignment {
        task_id: "t-1".into(),
        context_id: "c-1".into(),
        run: 1,
        caller: 1,
        turn: 1,
        message: Arc::new(message),
        accepted_output_modes: Vec::new(),
        metadata: None,
        asked_at: Millis(0),
        from: String::new(),
        ttl: None,
        watched: true,
        max_cost_usd: None,
        trail: Trail::default(),
        lineage: lineage(),
    }
}

/// A task that nobody above called for.
fn lineage() -> Lineage {
    let here = Ancestor { hub: "h-1".into(), agent: "a".into(), task: "t-1".into() };
    let trace = Trace::begun(TraceId::of([1; 16]).unwrap(), SpanId::of(1).unwrap());
    Lineage { here, origin: None, deadline: None, trace }
}

pub fn script(yaml: &str) -> Result<Agent, String> {
    let config: ScriptConfig = serde_saphyr::from_str(yaml).map_err(|e| e.to_string())?;
    Script::compile(&config).map(|script| Agent::Script(Arc::new(script))).map_err(|e| e.to_string())
}

/// What a script with these steps for every message reports to `text`.
pub async fn steps(steps: &str, text: &str) -> String {
    let indented: String = steps.lines().map(|line| format!("  {line}\n")).collect();
    transcript(&script(&format!("otherwise:\n{indented}")).unwrap(), saying(text)).await
}

/// Time that passes is written as `+4s`; the channel holds one report, so an agent that does not wait would hang.
pub async fn transcript(agent: &Agent, assignment: Assignment) -> String {
    let (sender, mut receiver) = mpsc::channel(1);
    let agent = agent.clone();
    let work = tokio::spawn(async move { agent.work(assignment, Outbox::new(sender), Stop::pair().1).await });
    let mut lines = Vec::new();
    let mut before = Instant::now();
    while let Some(report) = receiver.recv().await {
        if before.elapsed().as_millis() > 0 {
            lines.push(format!("+{:?}", before.elapsed()));
        }
        before = Instant::now();
        lines.push(line(&report));
    }
    work.await.unwrap();
    lines.join("\n")
}

pub fn line(report: &Report) -> String {
    match report {
        Report::Status { state, contents, metadata } => {
            let name = state.name().trim_start_matches("TASK_STATE_");
            format!("{name}{}{}", contents.as_ref().map(show).unwrap_or_default(), labelled("metadata", metadata))
        }
        Report::Artifact { artifact, contents, append, last_chunk, metadata } => format!(
            "artifact{}{}{}{}{}",
            head(artifact),
            show(contents),
            if *append { " append" } else { "" },
            if *last_chunk { " last" } else { "" },
            labelled("metadata", metadata)
        ),
        Report::Answer { contents, metadata } => format!("message{}{}", show(contents), labelled("metadata", metadata)),
        Report::Note { blocks } => format!("note{}", each(blocks)),
        Report::TookUp => "took up".into(),
        Report::Linked { .. } | Report::Received { .. } => panic!("no agent here is elsewhere"),
    }
}

/// Fresh ids differ each time, so only given ones are shown.
fn head(artifact: &Artifact) -> String {
    assert!(artifact.parts.is_empty() && artifact.unknown.is_empty());
    let mut shown = artifact.clone();
    if uuid_v7(&shown.artifact_id) {
        shown.artifact_id.clear();
    }
    let json = serde_json::to_string(&shown).unwrap();
    if json == "{}" { String::new() } else { format!(" {json}") }
}

pub fn uuid_v7(id: &str) -> bool {
    id.len() == 36 && id.as_bytes()[14] == b'7'
}

fn show(contents: &Contents) -> String {
    match contents {
        Contents::Parts(parts) => each(parts),
        Contents::Blocks(blocks) => format!(" blocks{}", each(blocks)),
        Contents::Message(message) => each(&message.parts),
    }
}

fn each<T: Serialize>(items: &[T]) -> String {
    items.iter().map(|item| format!(" {}", serde_json::to_string(item).unwrap())).collect()
}

fn labelled<T: Serialize>(label: &str, value: &Option<T>) -> String {
    value.as_ref().map(|value| format!(" {label} {}", serde_json::to_string(value).unwrap())).unwrap_or_default()
}
