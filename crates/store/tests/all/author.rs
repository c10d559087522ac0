//! Writes tasks the way the hub does: core decides, the change is applied, and the store is asked to keep it.

use crate::random::Random;
use flotilla_core::descent::Descent;
use flotilla_core::ids::{AgentId, ApprovalId, PrincipalId, TaskId};
use flotilla_core::log;
use flotilla_core::ports::{Commit, Dedupe, Done, Folded, NotCommitted, Record, Store};
use flotilla_core::project::Fold;
use flotilla_core::task::approve::{Answer, Question, Settling};
use flotilla_core::task::{Command, Head, Late, Retry, Say, apply, step};
use flotilla_protocol::a2a::model::{Artifact, Message, Part, TaskState};
use flotilla_protocol::approval::{ApprovalRequest, ApprovalState};
use flotilla_protocol::block::Block;
use flotilla_protocol::event::Change;
use flotilla_protocol::fleet::route::{Considered, Form, Step};
use flotilla_protocol::lineage::{Ancestor, Origin, Provenance, Trace};
use flotilla_protocol::time::Millis;
use flotilla_protocol::wire::{Json, Object};
use flotilla_protocol::work::{Contents, Report, Upstream};
use std::sync::Arc;
use tokio::sync::oneshot;

pub const CALLER: PrincipalId = PrincipalId(7);
pub const AGENT: AgentId = AgentId(3);
/// The task that a delegated one is for.
pub const PARENT: &str = "018bcfe5-6800-7000-8000-0000000000aa";
pub const OWNER: PrincipalId = PrincipalId(5);

/// One task, and all that was ever decided about it.
#[derive(Clone)]
pub struct Author {
    pub head: Head,
    pub log: Vec<Arc<Change>>,
}

/// A decision that is not kept yet.
#[derive(Clone)]
pub struct Draft {
    pub head: Head,
    state_before: Option<u8>,
    pub change: Arc<Change>,
    body: Vec<u8>,
    dedupe: Option<Dedupe>,
}

/// An id as it would have been given at that time.
pub fn id_at(at: i64, random: &mut Random) -> TaskId {
    let mut bytes = *TaskId::floor_of(at).bytes();
    bytes[6..].copy_from_slice(&random.digest()[..10]);
    TaskId::from_bytes(bytes)
}

impl Author {
    pub fn new(id: TaskId) -> Self {
        Self::of(id, CALLER, AGENT, "context")
    }

    pub fn of(id: TaskId, principal: PrincipalId, agent: AgentId, context: &str) -> Self {
        Self { head: Head::new(id, principal, agent, OWNER, context.into()), log: Vec::new() }
    }

    pub fn id(&self) -> TaskId {
        self.head.id
    }

    /// What core makes of a word; none if it refuses or nothing follows.
    pub fn draft(&self, word: &str, at: i64) -> Option<Draft> {
        let decision = step(&self.head, command(word, &self.head)).ok()?;
        if decision.events.is_empty() {
            return None;
        }
        let (first_seq, first_peer_seq) = (self.head.seq + 1, self.head.peer_seq + 1);
        let change = Arc::new(Change { first_seq, first_peer_seq, at: Millis(at), events: decision.events });
        let mut head = self.head.clone();
        apply(&mut head, &change);
        let state_before = (self.head.version > 0).then(|| self.head.state_code());
        let body = log::encode(&change).unwrap();
        head.bytes += body.len() as u64;
        Some(Draft { head, state_before, body, change, dedupe: None })
    }

    /// The store has kept it.
    pub fn kept(&mut self, draft: &Draft) {
        self.head = draft.head.clone();
        self.log.push(Arc::clone(&draft.change));
    }

    /// Decides on each word in turn; the drafts follow each other.
    pub fn write(&mut self, words: &str, at: i64) -> Vec<Draft> {
        let mut drafts = Vec::new();
        for word in words.split_whitespace() {
            let draft = self.draft(word, at).unwrap_or_else(|| panic!("{word} changes nothing"));
            self.kept(&draft);
            drafts.push(draft);
        }
        drafts
    }

    /// Writes and has it kept.
    pub async fn keep(&mut self, store: &Arc<dyn Store>, words: &str, at: i64) {
        for told in queue(store, self.write(words, at)) {
            told.await.unwrap().unwrap();
        }
    }

    pub fn fold(&self) -> Fold {
        fold_of(None, &self.log)
    }
}

/// A whole task, kept.
pub async fn keep(store: &Arc<dyn Store>, id: TaskId, words: &str, at: i64) -> Author {
    let mut author = Author::new(id);
    author.keep(store, words, at).await;
    author
}

impl Draft {
    pub fn with_key(mut self, dedupe: Dedupe) -> Self {
        self.dedupe = Some(dedupe);
        self
    }

    pub fn has_key(&self) -> bool {
        self.dedupe.is_some()
    }

    pub fn into_commit(self, done: Done) -> Commit {
        let Self { head, state_before, change, body, dedupe } = self;
        Commit { head, state_before, change, body, dedupe, done }
    }

    /// With events no store can keep: they are not text.
    pub fn spoiled(mut self) -> Self {
        self.body = vec![0xff, 0xfe];
        self
    }
}

pub type Told = oneshot::Receiver<Result<(), NotCommitted>>;

/// Hands the drafts to the store in one breath.
pub fn queue(store: &Arc<dyn Store>, drafts: impl IntoIterator<Item = Draft>) -> Vec<Told> {
    let hand_over = |draft: Draft| {
        let (tell, told) = oneshot::channel();
        let is_mine = store.commit(draft.into_commit(Box::new(move |result| drop(tell.send(result)))));
        (is_mine, told)
    };
    let (mine, told): (Vec<_>, _) = drafts.into_iter().map(hand_over).unzip();
    if mine.contains(&true) {
        store.attend();
    }
    told
}

/// What became of each, in a word.
pub async fn outcomes(told: Vec<Told>) -> Vec<&'static str> {
    let mut words = Vec::new();
    for told in told {
        words.push(match told.await.unwrap() {
            Ok(()) => "kept",
            Err(NotCommitted::Stale) => "stale",
            Err(NotCommitted::Duplicate(_)) => "duplicate",
            Err(NotCommitted::Failed(_)) => "failed",
        });
    }
    words
}

pub fn fold_of(start: Option<&Folded>, changes: &[Arc<Change>]) -> Fold {
    let mut fold = start.map(|folded| folded.fold.clone()).unwrap_or_default();
    for change in changes {
        fold.change(change, u64::MAX);
    }
    fold
}

/// What a record comes to.
pub fn folded(record: &Record) -> Fold {
    fold_of(record.fold.as_ref(), &record.changes)
}

/// Words for what may happen to a task.
pub const WORDS: [&str; 21] = [
    "say",
    "say!",
    "open",
    "work",
    "ask",
    "auth",
    "done",
    "fail",
    "reject",
    "answer",
    "note",
    "chunk",
    "whole",
    "cancel",
    "lost",
    "linked",
    "delegated",
    "sooner",
    "approve",
    "always",
    "use",
];

fn command(word: &str, head: &Head) -> Command {
    let report = |report| Command::Report { run: head.run, reports: vec![report] };
    let status = |state| report(Report::Status { state, contents: Some(Contents::text("said")), metadata: None });
    let artifact = |append| {
        let artifact_id = if append { "pieces".into() } else { format!("whole-{}", head.seq) };
        let artifact = Box::new(Artifact { artifact_id, name: "result".into(), ..Artifact::default() });
        let contents = Contents::text(format!("piece {}", head.seq));
        report(Report::Artifact { artifact, contents, append, last_chunk: !append, metadata: None })
    };
    match word {
        "say" | "say!" => Command::Say(Box::new(Say {
            message: Arc::new(message(head)),
            accepted_output_modes: vec!["text/plain".into()],
            as_task: word == "say!",
            ..Say::default()
        })),
        // Somebody else's agent asks, and the work is to be done by then.
        "delegated" | "sooner" => Command::Say(Box::new(Say {
            message: Arc::new(message(head)),
            descent: Some(Box::new(descent(if word == "sooner" { 1_000 } else { 9_000 }))),
            ..Say::default()
        })),
        "open" => Command::Open,
        "work" => status(TaskState::Working),
        "ask" => status(TaskState::InputRequired),
        "auth" => status(TaskState::AuthRequired),
        "done" => status(TaskState::Completed),
        "fail" => status(TaskState::Failed),
        "reject" => status(TaskState::Rejected),
        "answer" => report(Report::Answer { contents: Contents::text("direct"), metadata: None }),
        "note" => report(Report::Note { blocks: vec![Block::text("a thought")] }),
        "chunk" => artifact(true),
        "whole" => artifact(false),
        "large" => report(large()),
        "linked" => {
            let upstream = Upstream {
                task: format!("theirs-{}", head.seq),
                context: "theirs".into(),
                activated: vec!["urn:x".into()],
                ..Upstream::default()
            };
            let metadata = Some(Object(Json::new(r#"{"n": 1.0}"#.into()).unwrap()));
            report(Report::Linked {
                upstream,
                metadata,
                unknown: vec![("later".into(), Json::new("1e2".into()).unwrap())],
            })
        }
        // Its owner is asked, and says something that goes for the whole task.
        "approve" => Command::Ask(Box::new(Question {
            id: ApprovalId::of(head.id, head.run, "q"),
            run: head.run,
            request: Arc::new(ApprovalRequest { id: "q".into(), tool: "Bash".into(), ..ApprovalRequest::default() }),
            expires: Some(Millis(9_000)),
            answer: None,
            asker: None,
        })),
        "always" => Command::Settle(Box::new(Settling {
            id: ApprovalId::of(head.id, head.run, "q"),
            answer: Answer { always: true, ..Answer::new(ApprovalState::Allowed, "anna") },
        })),
        "use" => report(Report::Note { blocks: vec![usage()] }),
        "given" => given(head.run),
        "late" => late(head.run - 1),
        "cancel" => Command::Cancel { said: None },
        "lost" => Command::Lost { run: head.run, reason: "gone".into(), retry: Retry::IfUnstarted },
        other => panic!("no such word: {other}"),
    }
}

fn usage() -> Block {
    Block::new(Json::new(r#"{"type": "usage", "input_tokens": 7}"#.into()).unwrap()).unwrap()
}

/// Too large for many of its kind to be read at once.
fn large() -> Report {
    Report::Artifact {
        artifact: Box::new(Artifact { artifact_id: "large".into(), ..Artifact::default() }),
        contents: Contents::text("x".repeat(400_000)),
        append: true,
        last_chunk: false,
        metadata: None,
    }
}

/// What an earlier run used is told by the agent `before`, which had it.
fn late(run: u32) -> Command {
    Command::Late(Late { run, worker: "before".into(), blocks: vec![usage()], received: None })
}

/// Dispatched work goes to the agent `doer`.
fn given(run: u32) -> Command {
    let step = Step::Assigned {
        worker: "doer".into(),
        epoch: None,
        lease_until: Millis(0),
        form: Form::Text,
        fallback: Some("it never announced itself".into()),
        unverified: Vec::new(),
        considered: Considered::default(),
    };
    Command::Route { run, step: Box::new(step), deadline: None }
}

fn descent(deadline: i64) -> Descent {
    let ancestor = |hub: &str, task: &str| Ancestor { hub: hub.into(), agent: "agént".into(), task: task.into() };
    let chain = vec![ancestor("first", "t"), ancestor("second", PARENT)];
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let trace = Trace::parse(parent, Some("vendor=1"));
    let origin =
        Origin { provenance: Provenance::A2aRemote, chain, hops: 3, max_hops: Some(5), trace, ..Origin::default() };
    let (here, deadline) = (ancestor("here", ""), Some(Millis(deadline)));
    Descent { origin: Arc::new(origin), deadline, here, most_hops: 8, now: Millis(0) }
}

/// A message whose opaque parts must come back byte for byte.
fn message(head: &Head) -> Message {
    let opaque = Json::new(r#"{"n": 9007199254740993, "x": [1.0, 1e2], "s": "\u00e9 \n"}"#.into()).unwrap();
    Message {
        message_id: format!("m-{}-{}", head.id, head.turn),
        parts: vec![Part::text("héllo\u{2028}\0")],
        metadata: Some(Object(opaque.clone())),
        unknown: vec![("later".into(), opaque)],
        ..Message::default()
    }
}
