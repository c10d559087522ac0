//! Something that can do an assignment, and the way its reports get back to the hub.

use crate::acp::Acp;
use crate::attach::receipt;
use crate::claude::Claude;
use crate::codex::Codex;
use crate::command::{Program, Talk};
use crate::echo;
use crate::evidence::witness::Witness;
use crate::script::Script;
use crate::supervise::is_program;
use flotilla_protocol::a2a::model::Message;
use flotilla_protocol::approval::{ApprovalDecision, ApprovalRequest};
use flotilla_protocol::fleet::Announce;
use flotilla_protocol::work::{Assignment, Report};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// Who does the work of an agent.
#[derive(Debug, Clone)]
pub enum Agent {
    Echo,
    Script(Arc<Script>),
    Command(Arc<Program>),
    Acp(Arc<Acp>),
    Claude(Arc<Claude>),
    Codex(Arc<Codex>),
}

impl Agent {
    /// Whether its work is done by a program of its own, which takes a moment to end.
    pub fn is_supervised(&self) -> bool {
        matches!(self, Self::Command(_) | Self::Acp(_) | Self::Claude(_) | Self::Codex(_))
    }

    /// What has gone from this machine since its program was found; none if all is there.
    pub fn missing(&self) -> Option<String> {
        let (program, folder) = match self {
            Self::Echo | Self::Script(_) => return None,
            // A folder of its own is made when it is needed.
            Self::Command(program) if program.own.contains(&program.folder) => (&program.program, Path::new("/")),
            Self::Command(program) => (&program.program, program.folder.as_path()),
            Self::Acp(acp) => (&acp.program, acp.folder.as_path()),
            Self::Claude(claude) => (&claude.settings.program, claude.settings.folder.as_path()),
            Self::Codex(codex) => (&codex.program, codex.folder.as_path()),
        };
        if !is_program(program) {
            return Some(format!("program: {} is not there any more, or may not be run", program.display()));
        }
        (!folder.is_dir()).then(|| format!("folder: {} is not there any more", folder.display()))
    }

    /// All that it says to an assignment, if it needs nothing but a moment's thought for that.
    pub fn at_once(&self, assignment: &Assignment) -> Option<Vec<Report>> {
        matches!(self, Self::Echo).then(|| echo::reports(assignment).into())
    }

    /// Whether it takes up what its caller says while it works.
    pub fn takes_more(&self) -> bool {
        matches!(self, Self::Claude(claude) if claude.takes_more())
    }

    /// Whether it sees the contract its work comes under, or has the form of its replies from its settings.
    fn reads_contract(&self, message: &Message) -> bool {
        match self {
            Self::Echo | Self::Script(_) => true,
            Self::Command(program) => program.talk == Talk::JsonLines,
            Self::Claude(claude) => claude.schema(message).is_some(),
            Self::Acp(_) | Self::Codex(_) => false,
        }
    }

    /// Puts what its sessions have said of themselves into an announcement.
    pub fn announce(&self, announce: &mut Announce) {
        match self {
            Self::Acp(acp) => acp.learned.facts().fill(announce),
            Self::Claude(claude) => claude.facts().into_iter().for_each(|facts| facts.fill(announce)),
            Self::Echo | Self::Script(_) | Self::Command(_) | Self::Codex(_) => {}
        }
    }

    /// Works until all is said, nobody listens any more, or it is asked to stop. May be dropped at any await: a program
    /// of its own is ended by that, but one that was asked to stop is gone when this returns.
    pub fn work(&self, assignment: impl Into<Box<Assignment>>, outbox: Outbox, stop: Stop) -> impl Future<Output = ()> {
        // In a box: a future has room for what it is given more than once.
        self.work_on(assignment.into(), outbox, stop)
    }

    async fn work_on(&self, mut assignment: Box<Assignment>, outbox: Outbox, stop: Stop) {
        if !self.reads_contract(&assignment.message) {
            tell_how_to_end(&mut assignment);
        }
        // Programs in boxes, so that a run of the simplest is not as large as one of theirs. An agent whose hub stopped
        // listening has nobody left to tell.
        let _ = match self {
            Self::Echo => echo::answer(&assignment, &outbox).await,
            Self::Script(script) => script.play(&assignment, &outbox).await,
            Self::Command(program) => Box::pin(program.work(&assignment, &outbox, stop)).await,
            Self::Acp(acp) => Box::pin(acp.work(&assignment, &outbox, stop)).await,
            Self::Claude(claude) => Box::pin(claude.work(&assignment, &outbox, stop)).await,
            Self::Codex(codex) => Box::pin(codex.work(&assignment, &outbox, stop)).await,
        };
    }
}

/// Puts the words that say how a result is told at the end of the brief.
fn tell_how_to_end(assignment: &mut Assignment) {
    if let Some(dispatch) = receipt::dispatch(&assignment.message) {
        let message = Arc::make_mut(&mut assignment.message);
        if let Some(brief) = message.parts.iter_mut().find_map(|part| part.text.as_mut()) {
            brief.push_str(&dispatch.ending());
        }
    }
}

/// Where an agent puts its reports. In boxes: a channel keeps room for dozens, and most runs are quiet.
#[derive(Debug, Clone)]
pub struct Outbox {
    reports: mpsc::Sender<Box<Report>>,
    /// Where questions to the agent's owner go, in boxes too; none if nobody can be asked.
    asks: Option<mpsc::Sender<Box<Asked>>>,
    /// Who reads along, to know what the agent claims.
    witness: Option<Arc<Witness>>,
}

/// A question to the agent's owner, and where the answer goes.
#[derive(Debug)]
pub struct Asked {
    pub request: ApprovalRequest,
    pub tell: oneshot::Sender<ApprovalDecision>,
}

impl Outbox {
    /// For agents whose owner cannot be asked: every question is answered with no.
    pub fn new(reports: mpsc::Sender<Box<Report>>) -> Self {
        Self { reports, asks: None, witness: None }
    }

    pub fn asking(reports: mpsc::Sender<Box<Report>>, asks: mpsc::Sender<Box<Asked>>) -> Self {
        Self { reports, asks: Some(asks), witness: None }
    }

    #[must_use]
    pub fn heard_by(&self, witness: &Arc<Witness>) -> Self {
        Self { witness: Some(Arc::clone(witness)), ..self.clone() }
    }

    /// The same for whoever looks at the reports first and passes them on.
    pub fn through(&self, reports: mpsc::Sender<Box<Report>>) -> Self {
        Self { reports, ..self.clone() }
    }

    /// Asks the agent's owner for leave, and waits for what they say. The request's id is the asker's own name for the
    /// question: asked again under it in the same run, it is the same question.
    pub async fn ask(&self, request: ApprovalRequest) -> Result<ApprovalDecision, Stopped> {
        let Some(asks) = &self.asks else { return Ok(ApprovalDecision::denied("nobody can be asked here")) };
        let (tell, told) = oneshot::channel();
        asks.send(Box::new(Asked { request, tell })).await.map_err(|_| Stopped)?;
        told.await.map_err(|_| Stopped)
    }

    /// Waits for room, so that an agent cannot outrun the hub.
    pub async fn report(&self, report: Report) -> Result<(), Stopped> {
        if let Some(witness) = &self.witness {
            witness.hear(&report);
        }
        self.reports.send(Box::new(report)).await.map_err(|_| Stopped)
    }

    /// Resolves once the hub no longer listens.
    pub async fn stopped(&self) {
        self.reports.closed().await;
    }
}

/// What work under way is told: the word to stop, for what takes a moment to end, and what its caller says meanwhile.
#[derive(Debug)]
pub struct Stop {
    word: watch::Receiver<bool>,
    more: More,
}

/// What the caller says while the work goes on, for an agent that takes it up.
#[derive(Debug, Default)]
pub struct More(Option<mpsc::Receiver<Arc<Message>>>);

impl More {
    pub fn new(messages: mpsc::Receiver<Arc<Message>>) -> Self {
        Self(Some(messages))
    }

    /// Resolves with the next message; never if there will be none. May be dropped at any await.
    pub async fn next(&mut self) -> Arc<Message> {
        if let Some(messages) = &mut self.0
            && let Some(message) = messages.recv().await
        {
            return message;
        }
        std::future::pending().await
    }
}

impl Stop {
    /// The word's two ends: said through the first, heard by the second.
    pub fn pair() -> (watch::Sender<bool>, Self) {
        let (say, hear) = watch::channel(false);
        (say, Self { word: hear, more: More::default() })
    }

    /// The same for work that also hears its caller.
    #[must_use]
    pub fn hearing(self, more: More) -> Self {
        Self { more, ..self }
    }

    pub fn take_more(&mut self) -> More {
        std::mem::take(&mut self.more)
    }

    /// Resolves when it was said. Whoever could have said it and is gone did not.
    pub async fn asked(&mut self) {
        if self.word.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The hub no longer listens: the run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the run was stopped")
    }
}

impl std::error::Error for Stopped {}
