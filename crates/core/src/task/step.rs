//! The decision: from a task's head and a command to the facts and the work that follow. Pure.

use super::approve::{self, Question, Settling};
use super::conclude::{self, Account};
use super::spend::{Late, late, near_budget, no_budget, overspent};
use super::stop::{ask_to_stop, cancel, overdue};
use super::wait::{delivered, hold, moved, taken, waits};
use super::{Head, Kind, RunState, report};
use crate::budget::Broke;
use crate::descent::{Descent, Objection};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::model::{Message, Role, TaskState};
use flotilla_protocol::event::{Event, Said};
use flotilla_protocol::fleet::route::Step;
use flotilla_protocol::time::Millis;
use flotilla_protocol::wire::Object;
use flotilla_protocol::work::{Contents, Report, Upstream};
use std::sync::Arc;

/// A caller's message, with what its request asked for.
#[derive(Debug, Clone, Default)]
pub struct Say {
    pub message: Arc<Message>,
    pub accepted_output_modes: Vec<String>,
    pub metadata: Option<Object>,
    /// Where the message comes from, if its caller told.
    pub descent: Option<Box<Descent>>,
    /// The caller wants a task at once, whatever the agent will say.
    pub as_task: bool,
    /// Somebody may see how the work goes, and not only what comes of it.
    pub watched: bool,
    /// Who asks, where the agent is to be told.
    pub from: String,
    /// How long it may wait for its agent, in seconds, where the caller says so.
    pub ttl: Option<u32>,
    /// The extensions asked for, where the agent is elsewhere.
    pub extensions: Vec<String>,
    /// The only agents that may do it, where the hub chooses and the caller's key is limited to some.
    pub agents: Option<Arc<[String]>>,
    /// Why it has to wait: its agent is not there.
    pub held: Option<String>,
    /// Why nothing can be begun: there is no budget left for it.
    pub broke: Option<Box<Broke>>,
}

/// What may happen to a task.
#[derive(Debug, Clone)]
pub enum Command {
    Say(Box<Say>),
    /// Make an undecided exchange a task now.
    Open,
    /// What an agent says during a run.
    Report {
        run: u32,
        reports: Vec<Report>,
    },
    /// The work is known to have stopped, with what the agent said about it.
    Cancel {
        said: Option<Contents>,
    },
    /// The run is to end, and whoever has it takes a while for that.
    AskToStop {
        run: u32,
    },
    /// The agent took the run, and has not said anything yet. If it opens, it will not answer with a Message.
    Taken {
        run: u32,
        opens: bool,
    },
    /// The agent went away before it took the run, which waits for it.
    Hold {
        run: u32,
        reason: String,
    },
    /// The run waited, as its caller was told, and is on its way to its agent now.
    Delivered {
        run: u32,
    },
    /// An agent elsewhere went on by itself while its task waited for its caller after this run.
    Moved {
        run: u32,
        upstream: Box<Upstream>,
    },
    /// Much of a budget is used; the owner is told.
    NearBudget {
        limit: String,
        used: u64,
        most: u64,
    },
    /// A hard budget is used up.
    Overspent(Broke),
    /// The agent asks its owner for leave.
    Ask(Box<Question>),
    /// Somebody answers that, or its time is over.
    Settle(Box<Settling>),
    /// It is this time now, and the task's deadline may have passed.
    Overdue {
        now: Millis,
    },
    /// Something happens to dispatched work: if it ends with it, its result is told.
    Under {
        account: Arc<Account>,
        command: Box<Command>,
    },
    /// Something was decided about dispatched work; the task ends at a time that comes with it, if that is sooner.
    Route {
        run: u32,
        step: Box<Step>,
        deadline: Option<Millis>,
    },
    /// The worker of a run did not do the work, which is tried again.
    Again {
        run: u32,
        step: Box<Step>,
    },
    /// A run that is over says what it used.
    Late(Late),
    /// The run will not report any more.
    Lost {
        run: u32,
        reason: String,
        retry: Retry,
    },
}

impl Command {
    /// What happens, whatever it happens to.
    pub fn plain(&self) -> &Self {
        match self {
            Self::Under { command, .. } => command.plain(),
            plain => plain,
        }
    }
}

/// Whether a lost run may be followed by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    Never,
    /// Only if the agent was never heard of, so that nothing can have been done twice.
    IfUnstarted,
    Always,
}

/// How many runs beyond one per message a task gets before it is failed: a task that kills its agent must end.
const SPARE_RUNS: u32 = 5;

/// Work that follows from a decision, to be done after its commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    StartRun { run: u32, watched: bool },
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    pub events: Vec<Event>,
    pub effects: Vec<Effect>,
}

/// Decides what follows from a command. An empty decision means: nothing happens.
pub fn step(head: &Head, command: Command) -> Result<Decision, Refusal> {
    let mut decision = match command {
        Command::Say(say) => say_to(head, *say)?,
        Command::Open => open(head),
        Command::Report { run, reports } => report::decide(head, run, reports)?,
        Command::Cancel { said } => cancel(head, said)?,
        Command::AskToStop { run } => ask_to_stop(head, run),
        Command::Taken { run, opens } => taken(head, run, opens),
        Command::Hold { run, reason } => hold(head, run, reason),
        Command::Delivered { run } => delivered(head, run),
        Command::Moved { run, upstream } => moved(head, run, *upstream),
        Command::Overdue { now } => overdue(head, now),
        Command::Under { account, command } => {
            let by = conclude::ended_by(&command);
            let mut decision = step(head, *command)?;
            conclude::conclude(head, &mut decision, &account, by);
            return Ok(decision);
        }
        Command::NearBudget { limit, used, most } => near_budget(head, limit, used, most),
        Command::Overspent(broke) => overspent(head, &broke),
        Command::Ask(question) => approve::ask(head, *question)?,
        Command::Settle(settling) => approve::settle(head, *settling)?,
        Command::Route { run, step, deadline } => route(head, run, step, deadline),
        Command::Again { run, step } => again(head, run, step),
        Command::Late(told) => late(head, told),
        Command::Lost { run, reason, retry } => lost(head, run, reason, retry),
    };
    approve::withdraw(head, &mut decision.events);
    Ok(decision)
}

fn say_to(head: &Head, say: Say) -> Result<Decision, Refusal> {
    if head.kind == Kind::Message {
        return Err(Refusal::no_task(&head.id.to_string()));
    }
    if head.state.is_terminal() {
        let text = format!(
            "The task has ended ({}) and takes no more messages. Send a message without taskId to start a new one; \
             name this one in referenceTaskIds if the new work builds on it.",
            head.state.name()
        );
        return Err(Refusal::new(Reason::UnsupportedOperation, text).fact("taskId", head.id.to_string()));
    }
    let mut decision = Decision::default();
    let objection = say.descent.as_ref().and_then(|descent| descent.objection());
    let origin = say.descent.as_ref().filter(|_| head.version > 0).map(|descent| Arc::clone(&descent.origin));
    if let Some(descent) = say.descent {
        descend(head, *descent, objection.as_ref(), &mut decision)?;
    }
    decision.events.push(Event::Asked {
        message: say.message,
        accepted_output_modes: say.accepted_output_modes,
        metadata: say.metadata,
        from: say.from,
        ttl: say.ttl,
        extensions: say.extensions,
        origin,
        agents: say.agents,
    });
    if let Some(objection) = objection {
        decision.events.push(Event::Opened {});
        let contents = Contents::text(objection.text());
        let said = report::said(head, head.peer_seq + 2, contents, objection.metadata());
        decision.events.push(Event::Status { state: TaskState::Rejected, said: Some(said), metadata: None });
        return Ok(decision);
    }
    if let Some(broke) = say.broke {
        return no_budget(head, &broke, decision);
    }
    // A run that only looks on may be wrong about what it sees: nothing waits for its end.
    let starts = matches!(head.run_state, RunState::Idle | RunState::Watching);
    let held = say.held.filter(|_| starts);
    let opens = head.kind == Kind::Undecided && (say.as_task || held.is_some());
    if opens {
        decision.events.push(Event::Opened {});
    }
    if starts {
        if let Some(reason) = held {
            decision.events.push(waits(head, head.peer_seq + u64::from(opens) + 1, reason));
        } else if head.state.is_interrupted() || head.run_state == RunState::Watching {
            decision.events.push(status(TaskState::Submitted));
        }
        queue_run(&mut decision, head.run + 1, say.watched || head.kind == Kind::Task);
    }
    Ok(decision)
}

/// A new task is of the message's descent. A later message can only tell another deadline, and what speaks against it
/// speaks against the message, not against the task.
fn descend(
    head: &Head,
    descent: Descent,
    objection: Option<&Objection>,
    decision: &mut Decision,
) -> Result<(), Refusal> {
    let Descent { origin, deadline, .. } = descent;
    if head.version == 0 {
        decision.events.push(Event::Descended { origin: Some(origin), deadline });
        return Ok(());
    }
    if let Some(objection) = objection {
        let refusal = Refusal::new(Reason::UnsupportedOperation, objection.text());
        return Err(refusal.fact("taskId", head.id.to_string()).fact("refused", objection.name()));
    }
    if deadline.is_some() && deadline != head.deadline {
        decision.events.push(Event::Descended { origin: None, deadline });
    }
    Ok(())
}

fn open(head: &Head) -> Decision {
    let mut decision = Decision::default();
    if head.kind == Kind::Undecided {
        decision.events.push(Event::Opened {});
    }
    decision
}

/// Dispatched work is a task, whatever its worker will say.
fn route(head: &Head, run: u32, step: Box<Step>, deadline: Option<Millis>) -> Decision {
    let mut decision = Decision::default();
    if head.run != run || head.run_state == RunState::Idle {
        return decision;
    }
    if head.kind == Kind::Undecided {
        decision.events.push(Event::Opened {});
    }
    if let Some(deadline) = deadline.filter(|deadline| head.deadline.is_none_or(|known| *deadline < known)) {
        decision.events.push(Event::Descended { origin: None, deadline: Some(deadline) });
    }
    decision.events.push(Event::Routed { run, step });
    decision
}

fn again(head: &Head, run: u32, step: Box<Step>) -> Decision {
    let mut decision = route(head, run, step, None);
    if !decision.events.is_empty() {
        if head.state != TaskState::Submitted && head.kind == Kind::Task {
            decision.events.push(status(TaskState::Submitted));
        }
        queue_run(&mut decision, run + 1, true);
    }
    decision
}

/// A run that never started is simply run again; one that did is failed, unless the agent may be run twice.
fn lost(head: &Head, run: u32, reason: String, retry: Retry) -> Decision {
    let mut decision = Decision::default();
    if head.run != run || head.run_state == RunState::Idle {
        return decision;
    }
    let again = match retry {
        Retry::Never => false,
        Retry::IfUnstarted => head.run_state == RunState::Claimed,
        Retry::Always => true,
    };
    decision.events.push(Event::RunLost { run, reason: reason.clone() });
    if again && head.run < head.turn + SPARE_RUNS {
        queue_run(&mut decision, run + 1, true);
        return decision;
    }
    fail(head, format!("The run was lost: {reason}."), &mut decision);
    decision
}

/// Ends the task in the hub's own words.
pub(super) fn fail(head: &Head, text: String, decision: &mut Decision) {
    fail_with(head, text, None, decision);
}

pub(super) fn fail_with(head: &Head, text: String, metadata: Option<Object>, decision: &mut Decision) {
    if head.kind == Kind::Undecided {
        decision.events.push(Event::Opened {});
    }
    let peer_seq = head.peer_seq + u64::from(head.kind == Kind::Undecided) + 1;
    let said = report::said(head, peer_seq, Contents::text(text), metadata);
    decision.events.push(Event::Status { state: TaskState::Failed, said: Some(said), metadata: None });
}

pub(super) fn queue_run(decision: &mut Decision, run: u32, watched: bool) {
    decision.events.push(Event::RunQueued { run });
    decision.effects.push(Effect::StartRun { run, watched });
}

pub(super) fn status(state: TaskState) -> Event {
    Event::Status { state, said: None, metadata: None }
}

/// A message of the agent, numbered after the peer-visible event that carries it.
pub(super) fn agent_message(head: &Head, peer_seq: u64, in_task: bool) -> Message {
    Message {
        message_id: format!("{}-{peer_seq}", head.id),
        context_id: head.context.to_string(),
        task_id: if in_task { head.id.to_string() } else { String::new() },
        role: Role::Agent,
        ..Message::default()
    }
}

pub(super) fn wrap(message: Message, blocks: Vec<flotilla_protocol::block::Block>) -> Said {
    Said { message: Arc::new(message), blocks }
}
