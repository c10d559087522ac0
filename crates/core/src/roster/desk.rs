//! An agent's desk: its runs in the order they came, and which of its connections has which.

mod arrival;
mod context;
mod ending;
mod hands;
mod known;
mod token;
mod unsaid;
mod worker;

pub use context::Several;
pub(super) use ending::{Answers, End, Ending};

use super::session::{Delivery, Order, Session};
use super::{Connections, Presence, Terms};
use crate::error::Fault;
use crate::hub::Latecomer;
use crate::ids::TaskId;
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::work::{Assignment, Report};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::Instant;

/// Batches of reports an agent may be ahead of the store, in one run.
const AHEAD: usize = 16;

/// Where a run stands with its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Not sent, or sent and not taken before the connection was cut.
    Waiting,
    /// Written to a connection.
    Sent(u64),
    /// Taken: acknowledged, or reported on.
    Taken(u64),
    /// Taken, and the connection was cut at that time.
    Away(Instant),
}

/// What an agent says of a run at once, and who wants to know when it is kept.
pub struct Reported {
    pub reports: Vec<Report>,
    /// The agent has the run, and will speak of a task.
    pub acknowledged: bool,
    /// Of a worker: nothing of the run is left, and why.
    pub gone: Option<String>,
    /// Told whether it was: false if the run is over, so that it changed nothing.
    pub kept: oneshot::Sender<bool>,
}

/// Ids of reports that are remembered in one run, so that one that comes again is recognised.
const REMEMBERED: usize = 1_024;

struct Entry {
    run: u32,
    /// Its place in the order.
    place: u64,
    /// The agent was told its context when it was alone there.
    named: bool,
    attempt: u32,
    standing: watch::Sender<Standing>,
    work: Arc<Assignment>,
    reports: mpsc::Sender<Reported>,
    /// Artifacts it has made so far.
    artifacts: HashSet<String>,
    /// Its caller knows that it is worked on, or what else became of it.
    begun: bool,
    /// Ids of the latest reports.
    told: VecDeque<String>,
    /// The highest number of a worker's reports.
    received: u64,
    /// How whoever has it answers when it is asked to end it.
    answers: Answers,
    end: watch::Sender<End>,
    /// What its agent calls the task, once it has said so.
    upstream: String,
    /// Whether whoever has it takes up what its caller says meanwhile.
    more: bool,
    /// It is known to have come through the connection it was sent over.
    arrived: bool,
    /// The connection that had it last, where none has it now.
    last: u64,
}

impl Entry {
    fn stands(&self) -> Standing {
        *self.standing.borrow()
    }
}

/// A connection of the agent.
struct Seat {
    id: u64,
    since: Instant,
    /// What to go on with after it; empty once another connection has gone on for it.
    token: String,
    /// The token it was opened with, until its own is known to have arrived.
    came_with: Option<String>,
    window: usize,
    wake: Arc<Notify>,
    orders: VecDeque<Order>,
    /// Runs it has at once.
    places: usize,
    answers: Answers,
    /// Others of the agent may be connected beside it.
    shares: bool,
    /// It has acknowledged a run.
    acknowledges: bool,
    /// It was asked whether all has arrived, and has not answered yet.
    asked: bool,
}

#[derive(Default)]
struct State {
    seats: Vec<Seat>,
    /// When the last connection was closed.
    left: Option<Instant>,
    /// Tokens of connections that were cut, by the number under which their runs are away; the latest last.
    cut: VecDeque<(String, u64)>,
    runs: HashMap<TaskId, Entry>,
    /// Runs to be sent, in the order they came.
    queue: BTreeMap<u64, TaskId>,
    /// Runs that were taken on a connection which is gone, by its number.
    held: HashMap<u64, Vec<TaskId>>,
    /// Runs that were ended while nobody could be told, by the connection that had them; the latest last.
    unsaid: VecDeque<(u64, Order)>,
    next: u64,
    /// The latest connection, and the first of its line (`Presence::line`).
    latest: u64,
    line: u64,
    /// Begins the tokens of this process, so that those of an earlier one are told from them.
    process: String,
    /// The connection that went on for those before the hub started; zero until one has.
    returned: u64,
    /// It has its own token by now, so that those of before the start are good no more.
    settled: bool,
}

/// Tokens kept for those who come back; the oldest go.
const CUT: usize = 16;

#[derive(Default)]
pub struct Desk {
    state: Mutex<State>,
}

/// A run at the desk. It is taken off when this is dropped.
pub(super) struct Entered {
    desk: Arc<Desk>,
    task: TaskId,
    run: u32,
    pub standing: watch::Receiver<Standing>,
    pub reports: mpsc::Receiver<Reported>,
    /// Takes what is told when the run is off the desk.
    pub late: Option<Latecomer>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut state = self.desk.state();
        if state.runs.get(&self.task).is_some_and(|entry| entry.run == self.run)
            && let Some(entry) = state.runs.remove(&self.task)
        {
            state.queue.remove(&entry.place);
            state.wake_all();
        }
        drop(state);
        if let Some(late) = self.late.take() {
            late.takes_over(std::mem::replace(&mut self.reports, mpsc::channel(1).1));
        }
    }
}

impl Desk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while holding a desk")
    }

    /// Whether the agent is connected.
    pub fn is_present(&self) -> bool {
        self.state().seats.iter().any(|seat| seat.window > 0)
    }

    pub fn presence(&self) -> Presence {
        let state = self.state();
        Presence {
            connections: state.seats.len(),
            line: state.line,
            connected_for: state.seats.iter().map(|seat| seat.since.elapsed()).max(),
            gone_for: state.left.filter(|_| state.seats.is_empty()).map(|left| left.elapsed()),
            waiting: state.queue.len(),
            running: state.runs.len() - state.queue.len().min(state.runs.len()),
        }
    }

    /// Puts a run where the agent will find it. One it had already taken when the hub stopped is its own if it came back
    /// with its token, and otherwise waits for the agent to speak of it again.
    pub(super) fn enter(self: &Arc<Self>, task: TaskId, work: Arc<Assignment>) -> Entered {
        // What was to end when the hub stopped was with a worker, and is not begun again.
        let is_to_end = work.trail.stopping;
        let taken = work.trail.resumed && (work.trail.started || is_to_end);
        let (tell, standing) = watch::channel(if taken { Standing::Away(Instant::now()) } else { Standing::Waiting });
        let (sender, reports) = mpsc::channel(AHEAD);
        let run = work.run;
        let mut state = self.state();
        state.next += 1;
        let place = state.next;
        // What was under way when the hub stopped may have been sent before.
        let attempt = u32::from(work.trail.resumed);
        let artifacts = work.trail.artifacts.iter().map(|artifact| artifact.artifact_id.clone()).collect();
        let (begun, received) = (work.trail.state == TaskState::Working, work.trail.received);
        let upstream = work.trail.upstream.task.clone();
        let told = work.trail.told.iter().rev().take(REMEMBERED).rev().cloned().collect();
        let entry = Entry {
            run,
            place,
            named: false,
            attempt,
            standing: tell,
            work,
            reports: sender,
            artifacts,
            begun,
            told,
            received,
            answers: if received > 0 || is_to_end { Answers::WhenGone } else { Answers::Never },
            end: watch::channel(if is_to_end { End::Asked } else { End::Open }).0,
            upstream,
            more: false,
            arrived: false,
            last: state.returned,
        };
        state.runs.insert(task, entry);
        if taken {
            state.returns(task);
        } else {
            state.queue.insert(place, task);
            state.wake_all();
        }
        drop(state);
        Entered { desk: Arc::clone(self), task, run, standing, reports, late: None }
    }

    /// Opens a connection; with the token of one that was cut, or is about to be, its runs go on here. `seal` is the same
    /// after a restart of the hub, and another for every agent.
    pub fn open(self: &Arc<Self>, resume: Option<&str>, terms: Terms, seal: &str) -> Result<(Session, bool), Fault> {
        let mut state = self.state();
        let token = state.fresh_token(seal)?;
        state.next += 1;
        let id = state.next;
        let shares = terms.connections == Connections::Share;
        let resumed = resume.and_then(|resume| state.take_token(resume).or_else(|| state.before(resume, shares, seal)));
        state.line_up(id, resumed, shares);
        if let Some(old) = resumed {
            state.hand_over(old, id);
        }
        if terms.connections == Connections::Replace {
            for seat in &mut state.seats {
                seat.orders.push_back(Order::Leave);
                seat.wake.notify_one();
            }
        }
        let wake = Arc::new(Notify::new());
        // What was to end while nobody could be told is to end still.
        let here = state.runs.iter().filter(|(_, entry)| entry.stands() == Standing::Taken(id));
        let mut orders: VecDeque<Order> = here.filter_map(|(task, entry)| entry.reminder(*task)).collect();
        orders.extend(state.take_unsaid(resumed, shares));
        state.seats.push(Seat {
            id,
            since: Instant::now(),
            token: token.clone(),
            came_with: resume.filter(|_| resumed.is_some()).map(str::to_owned),
            window: terms.window,
            wake: Arc::clone(&wake),
            orders,
            places: usize::MAX,
            answers: Answers::Never,
            shares,
            acknowledges: false,
            asked: false,
        });
        let line = state.line;
        drop(state);
        Ok((Session::new(Arc::clone(self), (id, line), token, wake), resumed.is_some()))
    }

    /// A connection is gone: what it did not take is sent again, what it took is held.
    pub(super) fn close(&self, id: u64) {
        let mut state = self.state();
        let Some(index) = state.seats.iter().position(|seat| seat.id == id) else { return };
        let seat = state.seats.remove(index);
        state.left = Some(Instant::now());
        state.keep_tokens(seat);
        let State { runs, queue, held, .. } = &mut *state;
        for (task, entry) in runs.iter_mut() {
            match entry.stands() {
                Standing::Sent(on) if on == id => {
                    entry.last = id;
                    entry.standing.send_replace(Standing::Waiting);
                    queue.insert(entry.place, *task);
                }
                Standing::Taken(on) if on == id => {
                    entry.last = id;
                    entry.standing.send_replace(Standing::Away(Instant::now()));
                    held.entry(id).or_default().push(*task);
                }
                _ => {}
            }
        }
        held.retain(|_, tasks| tasks.iter().any(|task| runs.contains_key(task)));
        state.ask_after_away();
        state.wake_all();
    }

    /// What a connection is to do next, if there is something.
    pub(super) fn order(&self, id: u64) -> Option<Order> {
        let mut state = self.state();
        let index = state.seats.iter().position(|seat| seat.id == id)?;
        if let Some(order) = state.seats[index].orders.pop_front() {
            return Some(order);
        }
        let (place, task) = state.queue.iter().next().map(|(place, task)| (*place, *task))?;
        let loads = state.loads();
        let (sent, load) = loads[index];
        if !state.seats[index].has_room(sent, load) {
            return state.ask_arrival(index);
        }
        // Of several connections, one with less to do has the next run.
        let other = state.seats.iter().zip(&loads);
        let other = other.into_iter().find(|(seat, (sent, other))| *other < load && seat.has_room(*sent, *other));
        if let Some((seat, _)) = other {
            seat.wake.notify_one();
            return None;
        }
        state.queue.remove(&place);
        let answers = state.seats[index].answers;
        let entry = state.runs.get_mut(&task)?;
        entry.arrived = false;
        entry.answers = answers;
        entry.standing.send_replace(Standing::Sent(id));
        // It was to end before it was known to have come through: a worker that has it ends it, and no other begins it.
        if let Some(order) = entry.reminder(task).filter(|_| answers == Answers::WhenGone) {
            return Some(order);
        }
        entry.attempt += 1;
        Some(Order::Deliver(Delivery { task, attempt: entry.attempt, work: Arc::clone(&entry.work) }))
    }

    /// The agent speaks of a run: it has taken it. None if there is no such run, or it is over.
    pub(super) fn taken(&self, id: u64, task: TaskId, run: Option<u32>) -> Option<mpsc::Sender<Reported>> {
        let mut state = self.state();
        let answers = state.seats.iter().find(|seat| seat.id == id).map(|seat| seat.answers);
        let entry = state.runs.get_mut(&task).filter(|entry| run.is_none_or(|run| run == entry.run))?;
        entry.answers = answers.unwrap_or(entry.answers);
        let (place, reports, before) = (entry.place, entry.reports.clone(), entry.stands());
        if before != Standing::Taken(id) {
            entry.standing.send_replace(Standing::Taken(id));
            let told = matches!(before, Standing::Sent(on) if on == id);
            let reminder = if told { None } else { entry.reminder(task) };
            state.queue.remove(&place);
            if let Some(seat) = state.seats.iter_mut().find(|seat| seat.id == id) {
                seat.orders.extend(reminder);
                seat.wake.notify_one();
            }
        }
        Some(reports)
    }

    /// The run of a task that the agent has, or is to have.
    pub fn run_of(&self, task: TaskId) -> Option<u32> {
        self.state().runs.get(&task).map(|entry| entry.run)
    }

    /// What a run is about.
    pub fn work_of(&self, task: TaskId) -> Option<Arc<Assignment>> {
        self.state().runs.get(&task).map(|entry| Arc::clone(&entry.work))
    }

    /// A report that comes without a connection of its own, as an answer over HTTP does.
    pub fn reports_of(&self, task: TaskId, run: u32) -> Option<mpsc::Sender<Reported>> {
        let on = {
            let state = self.state();
            let entry = state.runs.get(&task)?;
            match entry.stands() {
                Standing::Sent(on) | Standing::Taken(on) => Some(on),
                _ => state.seats.first().map(|seat| seat.id),
            }
        };
        self.taken(on.unwrap_or_default(), task, Some(run))
    }
}
