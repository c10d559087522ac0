//! One turn with an ACP agent: the handshake, its session, the prompt, and what it asks on the way.

use super::choice::Choice;
use super::permission::{Permission, Request, taken_back};
use super::prompt::{self, Takes};
use super::turn::Turn;
use super::wire::{Heard, Refused, Wire};
use super::{Acp, Halt, Outcome, aside, servers};
use crate::agent::{Outbox, Stopped};
use crate::command::aside::LastWords;
use crate::command::watch::Silence;
use crate::sessions::Held;
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::approval::ApprovalDecision;
use flotilla_protocol::block::Block;
use flotilla_protocol::wire::Json;
use flotilla_protocol::work::{Assignment, Report};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio::task::JoinSet;

/// The version that is spoken here.
const VERSION: u64 = 1;
/// The code of "sign in first".
const NOT_SIGNED_IN: i64 = -32000;

pub struct Conversation<'a> {
    agent: &'a Acp,
    wire: Wire,
    assignment: &'a Assignment,
    outbox: &'a Outbox,
    turn: Turn,
    /// None until there is one; what is said before belongs to no turn of ours.
    session: Option<String>,
    /// The prompt that is being worked on.
    prompted: Option<u64>,
    /// The context that is spoken in, and its session.
    held: &'a mut Held,
    last_words: &'a mut LastWords,
    /// Questions that its owner has not answered yet.
    asking: JoinSet<Decided>,
    questions: u64,
}

/// What the owner said to a request, under the agent's own number of it.
struct Decided {
    id: Value,
    request: Request,
    decision: Result<ApprovalDecision, Stopped>,
}

/// What an agent is asked comes to nothing: it refuses, or the run is over.
enum Trouble {
    Refused(Refused),
    Halt(Halt),
}

impl<H: Into<Halt>> From<H> for Trouble {
    fn from(halt: H) -> Self {
        Self::Halt(halt.into())
    }
}

impl<'a> Conversation<'a> {
    pub fn new(
        agent: &'a Acp,
        wire: Wire,
        assignment: &'a Assignment,
        outbox: &'a Outbox,
        held: &'a mut Held,
        last_words: &'a mut LastWords,
    ) -> Self {
        Self {
            agent,
            wire,
            assignment,
            outbox,
            turn: Turn::new(assignment),
            session: None,
            prompted: None,
            held,
            last_words,
            asking: JoinSet::new(),
            questions: 0,
        }
    }

    /// From the handshake to the end of the turn.
    pub async fn hold(&mut self, folder: &Path) -> Result<Outcome, Halt> {
        let capabilities = self.greet().await?;
        let blocks = prompt::blocks(&self.assignment.message, Takes::of(&capabilities)).map_err(Halt::Rejected)?;
        let session = self.open(folder, &capabilities).await?;
        self.held.begun(&session);
        self.session = Some(session.clone());
        self.turn.begin(&self.held.memo);
        let prompt = json!({"sessionId": session, "prompt": blocks});
        let answer = self.ask("session/prompt", &prompt).await;
        let answer = answer.map_err(|trouble| self.plain("worked on the message", trouble))?;
        for report in self.turn.end(&answer["usage"]) {
            self.outbox.report(report).await?;
        }
        Ok(outcome(answer["stopReason"].as_str().unwrap_or_default()))
    }

    /// What the agent can do.
    async fn greet(&mut self) -> Result<Value, Halt> {
        let hello = json!({
            "protocolVersion": VERSION,
            // What is not offered is not asked for: the agent reads, writes and runs by itself.
            "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false},
            "clientInfo": {"name": "flotilla", "title": "Flotilla", "version": env!("CARGO_PKG_VERSION")},
        });
        let answer =
            self.ask("initialize", &hello).await.map_err(|trouble| self.plain("answered the handshake", trouble))?;
        if answer["protocolVersion"] != VERSION {
            let version = &answer["protocolVersion"];
            return Err(Halt::Failed(format!("the agent speaks version {version} of ACP, and the hub {VERSION}")));
        }
        self.agent.learned.greeted(&answer);
        if let Some(method) = &self.agent.sign_in {
            let answer = self.ask("authenticate", &json!({"methodId": method})).await;
            answer.map_err(|trouble| self.plain("let itself be signed in", trouble))?;
        }
        Ok(answer["agentCapabilities"].clone())
    }

    /// The session of the context, gone on with if there is one and the agent can.
    async fn open(&mut self, folder: &Path, capabilities: &Value) -> Result<String, Halt> {
        let servers = servers::listed(&self.agent.mcp_servers, capabilities)?;
        let mut params = json!({"cwd": folder, "mcpServers": servers});
        let method = if capabilities["sessionCapabilities"]["resume"].is_object() {
            Some("session/resume")
        } else {
            (capabilities["loadSession"] == true).then_some("session/load")
        };
        let opened = match (self.held.known.clone(), method) {
            (Some(session), Some(method)) => {
                params["sessionId"] = session.as_str().into();
                match self.ask(method, &params).await {
                    Ok(answer) => Some((session, answer)),
                    Err(Trouble::Refused(refused)) if refused.code != NOT_SIGNED_IN => {
                        let words = format!(
                            "the session is begun anew: the agent does not go on with it ({})",
                            refused.message
                        );
                        self.outbox.report(aside(&words)).await?;
                        self.held.lost();
                        None
                    }
                    Err(trouble) => return Err(self.plain("went on with its session", trouble)),
                }
            }
            (Some(_), None) => {
                self.outbox
                    .report(aside("the agent cannot go on with a session, so this message begins a new one"))
                    .await?;
                None
            }
            (None, _) => None,
        };
        let (session, answer) = match opened {
            Some(opened) => opened,
            None => {
                if let Some(params) = params.as_object_mut() {
                    params.remove("sessionId");
                }
                let answer = self.ask("session/new", &params).await;
                let answer = answer.map_err(|trouble| self.plain("began a session", trouble))?;
                let session = answer["sessionId"].as_str().map(str::to_owned);
                (session.ok_or_else(|| Halt::Failed("the agent began a session without a name".into()))?, answer)
            }
        };
        self.agent.learned.opened(&answer);
        self.choose(&session, &answer).await?;
        Ok(session)
    }

    async fn choose(&mut self, session: &str, opened: &Value) -> Result<(), Halt> {
        for (choice, wanted) in [(Choice::Model, &self.agent.model), (Choice::Mode, &self.agent.mode)] {
            let Some(wanted) = wanted else { continue };
            if let Some((method, params)) = choice.request(wanted, session, opened).map_err(Halt::Failed)? {
                let set = self.ask(method, &params).await;
                let set = set.map_err(|trouble| self.plain("let itself be set as the configuration says", trouble))?;
                self.agent.learned.opened(&set);
            }
        }
        Ok(())
    }

    /// Asks, and deals with all that is said until the answer comes.
    async fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Trouble> {
        let id = self.wire.ask(method, params)?;
        if method == "session/prompt" {
            self.prompted = Some(id);
        }
        loop {
            let next = tokio::select! {
                next = self.wire.next() => next,
                Some(Ok(decided)) = self.asking.join_next() => {
                    self.wire.excuse();
                    self.decided(decided).await?;
                    continue;
                }
            };
            let heard = match next {
                Ok(Some(heard)) => heard,
                Ok(None) => return Err(Halt::Ended.into()),
                // An agent that waits for its owner has nothing to say.
                Err(Silence::Quiet) if !self.asking.is_empty() => {
                    self.wire.excuse();
                    continue;
                }
                Err(Silence::Quiet) => {
                    let seconds = self.agent.bounds.silence.as_secs();
                    return Err(Halt::Failed(format!("the agent said nothing for {seconds} s and was stopped")).into());
                }
                Err(Silence::TooMuch(what)) => {
                    return Err(Halt::Failed(format!("the agent was stopped: {what}")).into());
                }
            };
            match heard {
                Heard::Answer { id: of, result } if of == id => {
                    self.prompted = None;
                    return result.map_err(Trouble::Refused);
                }
                Heard::Answer { .. } => {}
                Heard::Request { id, method, params } => self.serve(&id, &method, &params).await?,
                Heard::Notice { method, params } => self.notice(&method, &params).await?,
                Heard::Aside(words) => self.aside(words).await?,
            }
        }
    }

    async fn notice(&mut self, method: &str, params: &Value) -> Result<(), Halt> {
        let is_cost = params["update"]["sessionUpdate"] == "usage_update";
        // A session that is loaded is told again from its beginning; only what it has cost is news.
        if method != "session/update" || (self.prompted.is_none() && !is_cost) {
            return Ok(());
        }
        if self.session.is_some() && params["sessionId"].as_str() != self.session.as_deref() {
            return Ok(());
        }
        self.agent.learned.updated(&params["update"]);
        for report in self.turn.update(&params["update"]) {
            self.outbox.report(report).await?;
        }
        if is_cost {
            self.remember();
        }
        Ok(())
    }

    /// Keeps with the session what of it is booked.
    fn remember(&mut self) {
        // What is told before there is one is of another, or not booked.
        if self.session.is_none() {
            return;
        }
        if let Some(memo) = self.turn.memo().filter(|memo| *memo != self.held.memo) {
            self.held.remember(memo);
        }
    }

    async fn serve(&mut self, id: &Value, method: &str, params: &Value) -> Result<(), Halt> {
        if method != "session/request_permission" {
            return self.wire.refuse(id, method);
        }
        let request = Request::of(params);
        match self.agent.permission {
            Permission::Deny => self.settle(id, &request, false, "the configuration says 'permission: deny'").await,
            Permission::Allow => self.settle(id, &request, true, "the configuration says 'permission: allow'").await,
            Permission::Ask => {
                self.questions += 1;
                let (outbox, question, id) = (self.outbox.clone(), request.question(self.questions), id.clone());
                self.asking.spawn(async move {
                    let decision = outbox.ask(question).await;
                    Decided { id, request, decision }
                });
                Ok(())
            }
        }
    }

    async fn decided(&mut self, Decided { id, request, decision }: Decided) -> Result<(), Halt> {
        let decision = decision?;
        if decision.is_allowed() && decision.input.is_some() {
            let why = "the owner changed what the tool is to be used with, which ACP has no way to say";
            return self.settle(&id, &request, false, why).await;
        }
        // The question and its answer are in the log already.
        self.wire.answer(&id, &request.answer(decision.is_allowed()))
    }

    /// Answers without asking anybody, and tells the owner.
    async fn settle(&mut self, id: &Value, request: &Request, allowed: bool, why: &str) -> Result<(), Halt> {
        let note = Json::new(request.note(allowed, why).to_string()).ok().and_then(|json| Block::new(json).ok());
        self.outbox.report(Report::Note { blocks: note.into_iter().collect() }).await?;
        self.wire.answer(id, &request.answer(allowed))
    }

    async fn aside(&mut self, words: String) -> Result<(), Halt> {
        self.last_words.take(&words);
        Ok(self.outbox.report(aside(&words)).await?)
    }

    /// In words for the caller; what the owner can do about it stands with it.
    fn plain(&self, what: &str, trouble: Trouble) -> Halt {
        match trouble {
            Trouble::Halt(halt) => halt,
            Trouble::Refused(refused) if refused.code == NOT_SIGNED_IN => Halt::Failed(
                "the agent is not signed in: its owner signs it in with its own program, or says how with 'sign_in'"
                    .into(),
            ),
            Trouble::Refused(refused) => {
                Halt::Failed(format!("the agent has not {what}: {} ({})", refused.message, refused.code))
            }
        }
    }

    /// Breaks the turn off, and gives what is left to say of it.
    pub async fn break_off(&mut self, patience: Duration) -> Vec<Report> {
        let mut reports = Vec::new();
        let usage = self.cancel(patience, &mut reports).await;
        self.remember();
        reports.extend(if usage.is_null() { self.turn.break_off() } else { self.turn.end(&usage) });
        reports
    }

    /// Asks the agent to end its turn, and waits for that a moment: it may have something to put back. Gives what it says
    /// it used.
    async fn cancel(&mut self, patience: Duration, reports: &mut Vec<Report>) -> Value {
        let (Some(session), Some(prompt)) = (self.session.clone(), self.prompted.take()) else { return Value::Null };
        if self.wire.tell("session/cancel", &json!({"sessionId": session})).is_err() {
            return Value::Null;
        }
        self.asking.shutdown().await;
        let mut usage = Value::Null;
        let answered = async {
            while let Ok(Some(heard)) = self.wire.next().await {
                match heard {
                    Heard::Answer { id, result } if id == prompt => {
                        usage = result.map(|answer| answer["usage"].clone()).unwrap_or_default();
                        return;
                    }
                    Heard::Notice { params, .. } if params["update"]["sessionUpdate"] == "usage_update" => {
                        reports.extend(self.turn.update(&params["update"]));
                    }
                    Heard::Request { id, method, .. } if method == "session/request_permission" => {
                        let _ = self.wire.answer(&id, &taken_back());
                    }
                    _ => {}
                }
            }
        };
        let _ = tokio::time::timeout(patience, answered).await;
        usage
    }

    pub fn leave(self) -> Wire {
        self.wire
    }
}

fn outcome(reason: &str) -> Outcome {
    let (state, words) = match reason {
        "end_turn" => (TaskState::Completed, None),
        "max_tokens" => (TaskState::Failed, Some("the agent stopped: its limit of tokens was reached")),
        "max_turn_requests" => (TaskState::Failed, Some("the agent stopped: its limit of steps in a turn was reached")),
        "refusal" => (TaskState::Rejected, Some("the agent refused")),
        "cancelled" => (TaskState::Failed, Some("the agent broke its turn off")),
        _ => (TaskState::Failed, Some("the agent ended its turn for a reason that is not known here")),
    };
    Outcome { state, words: words.map(str::to_owned) }
}
