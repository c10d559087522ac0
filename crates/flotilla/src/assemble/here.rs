//! The link to an agent that works in this process, spoken to in the same frames as one elsewhere.

use super::member::{Here, Member};
use flotilla_core::error::Error;
use flotilla_core::hub::RunHandle;
use flotilla_core::ids::TaskId;
use flotilla_core::ports::{Beginning, Link, Stopped, Stopping};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::model::Message;
use flotilla_protocol::approval::ApprovalDecision;
use flotilla_protocol::work::{Assignment, Report};
use flotilla_worker::attach::Found;
use flotilla_worker::attach::receipt::Blocked;
use flotilla_worker::{Agent as Doer, Asked, More, Outbox, Stop};
use std::collections::HashMap;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Reports an agent may be ahead of the store.
const AHEAD: usize = 256;
/// Questions an agent may have asked that nobody has looked at.
const QUESTIONS: usize = 8;
/// Messages that came during a run and that its agent has not looked at; more wait for another run.
const MESSAGES: usize = 16;
/// Reports that become one change.
const BATCH: usize = 64;

pub struct InProcess {
    doer: Doer,
    programs: Programs,
    /// What is known of a program; none of an agent that is part of this process.
    member: Option<Arc<Member>>,
}

/// Runs that are programs, by task and number. A run is there until nothing of its program is left.
pub(super) type Programs = Arc<Mutex<HashMap<(String, u32), watch::Sender<bool>>>>;

impl InProcess {
    /// Runs are on the list of the process, so that a link which takes the place of this one can end them.
    pub fn new(name: &str, found: Found, here: &Here) -> Self {
        let (doer, programs) = (found.doer.clone(), Arc::clone(&here.programs));
        let member = doer.is_supervised().then(|| here.add(name, found));
        Self { doer, programs, member }
    }
}

impl Link for InProcess {
    fn run(&self, assignment: Assignment, run: RunHandle) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let doer = self.doer.clone();
        if let Some(member) = &self.member {
            let (programs, member) = (Arc::clone(&self.programs), Arc::clone(member));
            return Box::pin(async move {
                let objection = tokio::select! {
                    objection = member.objection(&assignment) => objection,
                    () = run.fenced() => return run.finish().await,
                };
                if let Some(blocked) = objection {
                    return refused(blocked, run).await;
                }
                supervised(&member, doer.takes_more(), assignment, run, programs).await;
                member.worked();
            });
        }
        Box::pin(async move {
            let (outbox, inbox) = boxes();
            let (_never, stop) = Stop::pair();
            let work = doer.work(assignment, outbox, stop);
            talk(work, inbox, run, Hold::default()).await;
        })
    }

    fn begin(&self, assignment: &dyn Fn() -> Option<Assignment>) -> Option<Beginning> {
        if self.doer.is_supervised() {
            return None;
        }
        let assignment = Box::new(assignment()?);
        if let Some(reports) = self.doer.at_once(&assignment) {
            let rest = |run: RunHandle| -> Pin<Box<dyn Future<Output = ()> + Send>> { Box::pin(run.finish()) };
            return Some(Beginning { reports, rest: Box::new(rest) });
        }
        let (outbox, mut inbox) = boxes();
        let (never, stop) = Stop::pair();
        let doer = self.doer.clone();
        let mut work = Box::pin(async move { doer.work(assignment, outbox, stop).await });
        // Nobody needs to be woken: what is not done by now is looked at again when it goes on.
        let is_done = work.as_mut().poll(&mut task::Context::from_waker(task::Waker::noop())).is_ready();
        let reports = std::iter::from_fn(|| inbox.reports.try_recv().ok()).map(|report| *report).collect();
        let rest = move |run: RunHandle| -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(async move {
                let _never = never;
                match is_done {
                    true => Box::pin(run.finish()).await,
                    false => talk(work, inbox, run, Hold::default()).await,
                }
            })
        };
        Some(Beginning { reports, rest: Box::new(rest) })
    }

    fn stops_later(&self, task: TaskId) -> bool {
        let task = task.to_string();
        lock(&self.programs).keys().any(|(of, _)| *of == task)
    }

    fn stop(&self, stopping: Stopping) -> Pin<Box<dyn Future<Output = Result<Stopped, Refusal>> + Send>> {
        let programs = Arc::clone(&self.programs);
        Box::pin(async move {
            let task = stopping.task.to_string();
            let runs = |((of, _), say): (&(String, u32), &watch::Sender<bool>)| (*of == task).then(|| say.clone());
            let running: Vec<_> = lock(&programs).iter().filter_map(runs).collect();
            for say in running {
                say.send_replace(true);
                // The other end goes when nothing of the program is left.
                say.closed().await;
            }
            Ok(Stopped::Now(None))
        })
    }
}

fn lock(programs: &Programs) -> std::sync::MutexGuard<'_, HashMap<(String, u32), watch::Sender<bool>>> {
    programs.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a run off the list when it is over, however that came about.
struct Listed(Programs, (String, u32));

impl Drop for Listed {
    fn drop(&mut self) {
        lock(&self.0).remove(&self.1);
    }
}

/// Nothing is started for work that cannot be done.
async fn refused(blocked: Blocked, mut run: RunHandle) {
    // A run that is over needs no reason any more.
    let _ = run.report(blocked.reports()).await;
    run.finish().await;
}

async fn supervised(member: &Member, takes_more: bool, assignment: Assignment, run: RunHandle, programs: Programs) {
    let (say, stop) = Stop::pair();
    let name = (assignment.task_id.clone(), assignment.run);
    lock(&programs).insert(name.clone(), say.clone());
    let _listed = Listed(programs, name);
    let (outbox, inbox) = boxes();
    let (more, messages) = mpsc::channel(MESSAGES);
    let more = takes_more.then_some(more);
    let hold = Hold { say: Some(say), turn: assignment.turn, more };
    let work = member.work(assignment, outbox, stop.hearing(More::new(messages)));
    talk(work, inbox, run, hold).await;
}

/// What an agent that is a program is told while it works.
#[derive(Default)]
struct Hold {
    say: Option<watch::Sender<bool>>,
    /// How many messages of its caller it has.
    turn: u32,
    /// Where the next ones go, if it takes them up.
    more: Option<mpsc::Sender<Arc<Message>>>,
}

impl Hold {
    /// One that has no room for more gets it in another run.
    fn pass_on(&mut self, message: Option<Arc<Message>>) {
        let taken =
            message.is_some_and(|message| self.more.as_ref().is_some_and(|more| more.try_send(message).is_ok()));
        self.turn += 1;
        if !taken {
            self.more = None;
        }
    }
}

/// What an agent says and asks.
struct Inbox {
    reports: mpsc::Receiver<Box<Report>>,
    asks: mpsc::Receiver<Box<Asked>>,
}

fn boxes() -> (Outbox, Inbox) {
    let ((reports_out, reports), (asks_out, asks)) = (mpsc::channel(AHEAD), mpsc::channel(QUESTIONS));
    (Outbox::asking(reports_out, asks_out), Inbox { reports, asks })
}

/// Puts a question to the agent's owner. One that could not be put is answered with no, and why.
fn put(run: &RunHandle, Asked { request, tell }: Asked, waiting: &mut JoinSet<()>) {
    let answer = run.ask(request);
    waiting.spawn(async move {
        let decision = answer.await.unwrap_or_else(|error| match error {
            Error::Refused(refusal) => ApprovalDecision::denied(refusal.message),
            Error::Failed(fault) => {
                tracing::error!(%fault, "an approval could not be asked for");
                ApprovalDecision::denied("the hub could not keep the question; ask again")
            }
        });
        // Whoever asked may be gone.
        let _ = tell.send(decision);
    });
}

/// Passes reports on until the work is done or the run is over. Work that takes a moment to end is asked to, and waited
/// for.
async fn talk(work: impl Future<Output = ()>, mut inbox: Inbox, mut run: RunHandle, mut hold: Hold) {
    let mut work = pin!(work);
    let mut working = true;
    let mut batch = Vec::new();
    let mut waiting = JoinSet::new();
    let mut said = Box::pin(run.said_after(hold.turn));
    loop {
        // The agent goes first, so that what it says in one breath becomes one change.
        let over = tokio::select! {
            biased;
            () = &mut work, if working => {
                working = false;
                false
            }
            count = inbox.reports.recv_many(&mut batch, BATCH) => {
                let reports = batch.drain(..).map(|report| *report).collect();
                // In a box: a run is quiet for long.
                count == 0 || Box::pin(run.report(reports)).await.is_err()
            }
            // After the reports, so that what was said before a question stands before it in the log.
            Some(asked) = inbox.asks.recv() => {
                put(&run, *asked, &mut waiting);
                false
            }
            Some(_) = waiting.join_next() => false,
            message = &mut said, if hold.more.is_some() => {
                hold.pass_on(message);
                said = Box::pin(run.said_after(hold.turn));
                false
            }
            () = run.fenced() => true,
        };
        if over {
            break;
        }
    }
    let Some(say) = hold.say else { return Box::pin(run.finish()).await };
    let was_asked = *say.borrow();
    if working {
        say.send_replace(true);
        hear_out(work, inbox, &mut run).await;
    }
    // Whoever asked may not wait for it any more.
    match was_asked {
        true => Box::pin(run.canceled()).await,
        false => Box::pin(run.finish()).await,
    }
}

/// Waits for the end of work that was told to. What it says on its way out is late, and what it used is booked all the
/// same; nobody answers it any more.
async fn hear_out(mut work: Pin<&mut impl Future<Output = ()>>, inbox: Inbox, run: &mut RunHandle) {
    let Inbox { mut reports, asks } = inbox;
    drop(asks);
    let (mut batch, mut ended) = (Vec::new(), false);
    while !ended {
        tokio::select! {
            biased;
            () = &mut work => ended = true,
            Some(report) = reports.recv() => batch.push(*report),
        }
        batch.extend(std::iter::from_fn(|| reports.try_recv().ok()).map(|report| *report));
        if !batch.is_empty() {
            let _ = Box::pin(run.report(std::mem::take(&mut batch))).await;
        }
    }
}
