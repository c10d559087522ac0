//! An agent's post at the hub: the runs it has in hand, and what is still to be told of them.

use super::hand::{Hand, Key, finish};
use super::look::look_for;
use super::profile::{self, Find, Found, Profile};
use super::receipt::{self, Now};
use super::spool::{Room, Spool};
use crate::agent::{Asked, More, Outbox, Stop};
use flotilla_protocol::approval::ApprovalDecision;
use flotilla_protocol::fleet;
use flotilla_protocol::hub_frame::worker::{Gone, Kept, MoreFrame, RunFrame, probe_frame, taken};
use flotilla_protocol::work::{Assignment, Report};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use tokio::sync::{Notify, mpsc, watch};

/// Reports an agent may be ahead of the disk.
const AHEAD: usize = 64;
/// Questions an agent may have asked that were not looked at.
const QUESTIONS: usize = 8;
/// Messages that came during a run and that its agent has not looked at; more wait for another run.
const MESSAGES: usize = 16;
/// What goes into one frame: the hub keeps so much in one piece.
const TOGETHER: usize = 128 * 1024;
/// Frames of one run that are sent and not acknowledged.
const IN_FLIGHT: usize = 32;
/// The largest frame a hub takes that did not say.
const FRAME: usize = 16 * 1024 * 1024;

/// An agent on this machine that is to be one of the hub's.
#[derive(Clone)]
pub struct LocalAgent {
    pub name: String,
    /// What it says of itself, as JSON.
    pub card: String,
    /// Runs it has at once.
    pub places: usize,
    pub find: Find,
}

pub struct Post {
    pub agent: LocalAgent,
    folder: PathBuf,
    room: Arc<Room>,
    hands: Mutex<BTreeMap<Key, Hand>>,
    /// There may be something to send, or nothing left to wait for.
    pub wake: Notify,
    pub profile: Profile,
    /// The frame that asks for a probe turn, until it is sent.
    turn: Mutex<Option<String>>,
    found: OnceLock<Found>,
    /// Whether there is somebody to do the work; none before that was looked at.
    pub usable: watch::Sender<Option<bool>>,
    draining: AtomicBool,
    frame: AtomicUsize,
}

impl Post {
    pub fn new(agent: LocalAgent, folder: PathBuf, room: Arc<Room>, leftovers: Vec<Spool>) -> Arc<Self> {
        let left = |spool: Spool| {
            let key = (spool.task.clone(), spool.run);
            let stop = watch::channel(true).0;
            (key, Hand { working: false, ..Hand::new(spool, stop, None) })
        };
        let hands = Mutex::new(leftovers.into_iter().map(left).collect());
        let (wake, draining, frame) = (Notify::new(), AtomicBool::new(false), AtomicUsize::new(FRAME));
        let (found, usable) = (OnceLock::new(), watch::channel(None).0);
        let (profile, turn) = (Profile::default(), Mutex::default());
        Arc::new(Self { agent, folder, room, hands, wake, profile, turn, found, usable, draining, frame })
    }

    /// Who does the work. One that is not there keeps nobody else from working, and is looked for again.
    pub async fn find(&self) -> Result<&Found, String> {
        let found = match self.found.get() {
            Some(found) => found.doer.missing().map_or(Ok(found), Err),
            None => (self.agent.find)().await.map(|found| self.found.get_or_init(|| found)),
        };
        let is_new = self.usable.send_replace(Some(found.is_ok())) != Some(found.is_ok());
        let agent = &self.agent.name;
        match &found {
            Ok(_) if is_new => tracing::info!(agent, "ready to work"),
            Err(problem) if is_new => {
                tracing::warn!(agent, "cannot work, and is looked for again every now and then: {problem}");
            }
            _ => {}
        }
        found
    }

    /// Has the hub send a message that shows whether the agent works.
    pub fn ask_for_turn(&self, id: &str, text: &str) {
        *self.turn.lock().expect("no panic while holding a frame") = Some(probe_frame(id, text));
        self.wake.notify_one();
    }

    fn hands(&self) -> MutexGuard<'_, BTreeMap<Key, Hand>> {
        self.hands.lock().expect("no panic while holding the runs")
    }

    /// Takes no more runs.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// The hub takes frames of this size, and no larger ones.
    pub fn set_frame(&self, bytes: usize) {
        self.frame.store(bytes, Ordering::Relaxed);
    }

    /// Nothing runs, and nothing is left to tell.
    pub fn is_idle(&self) -> bool {
        self.hands().is_empty()
    }

    /// How many runs are at work.
    pub fn working(&self) -> usize {
        self.hands().values().filter(|hand| hand.working).count()
    }

    /// How many runs the hub is yet to hear the end of.
    pub fn untold(&self) -> usize {
        self.hands().len()
    }

    /// A run from the hub; what to answer.
    pub fn take(self: &Arc<Self>, run: RunFrame) -> Option<String> {
        let key = (run.task_id.clone(), run.run);
        let mut hands = self.hands();
        if let Some(hand) = hands.get(&key) {
            // It came before. One that is over is about to be told so.
            return hand.working.then(|| taken(&key.0, key.1, hand.more.is_some()));
        }
        if self.draining.load(Ordering::Relaxed) {
            return None;
        }
        let Some(found) = self.found.get() else {
            let reason = "the agent's program is not there; its owner sees more with 'flotilla fleet show'".to_owned();
            return Some(Gone { task_id: key.0, run: key.1, number: 0, reason }.frame());
        };
        let spool = match Spool::create(&self.folder, &key.0, key.1, &self.room) {
            Ok(spool) => spool,
            Err(error) => {
                tracing::error!(task = key.0, folder = %self.folder.display(), %error, "a run cannot be taken");
                let reason = format!("its worker cannot write to its state folder: {error}");
                return Some(Gone { task_id: key.0, run: key.1, number: 0, reason }.frame());
            }
        };
        let working = hands.values().filter(|hand| hand.working).count();
        if let Some(blocked) = self.objection(&run, working) {
            tracing::info!(agent = self.agent.name, task = key.0, reason = blocked.reason.name(), "work is not begun");
            let hand = Hand { working: false, ..Hand::new(spool, watch::channel(false).0, None) };
            hands.insert(key.clone(), hand);
            drop(hands);
            self.tell(&key, blocked.reports());
            return None;
        }
        let (say, stop) = Stop::pair();
        let asked = say.subscribe();
        let (more, messages) = mpsc::channel(MESSAGES);
        let more = found.doer.takes_more().then_some(more);
        let answer = taken(&key.0, key.1, more.is_some());
        hands.insert(key.clone(), Hand::new(spool, say, more));
        drop(hands);
        tracing::info!(agent = self.agent.name, task = key.0, run = key.1, "a run begins");
        let stop = stop.hearing(More::new(messages));
        tokio::spawn(Arc::clone(self).work(found.clone(), key, run.into_assignment(), stop, asked));
        Some(answer)
    }

    /// The same after another look, where something may have changed since the last.
    async fn second_thoughts(&self, found: &Found, assignment: &Assignment) -> Option<receipt::Blocked> {
        let dispatch = receipt::dispatch(&assignment.message).filter(receipt::wants_a_look)?;
        if let Some(looks) = &found.looks {
            look_for(&dispatch.requirements, looks, &self.profile).await;
        }
        self.profile.announce(&self.agent.name, self.agent.places, Ok(found));
        self.wake.notify_one();
        let profile = self.profile.current();
        let now = Now { profile: profile.as_ref(), working: 0, places: self.agent.places, time: profile::now() };
        receipt::objection(&dispatch, &now)
    }

    /// Why work that comes under a contract cannot be begun.
    fn objection(&self, run: &RunFrame, working: usize) -> Option<receipt::Blocked> {
        let dispatch = receipt::dispatch(&run.message)?;
        let (profile, time) = (self.profile.current(), profile::now());
        let now = Now { profile: profile.as_ref(), working, places: self.agent.places, time };
        receipt::objection(&dispatch, &now)
    }

    /// What is announced now, with how busy the agent is.
    pub fn announcement(&self) -> Option<String> {
        let mut announce = self.profile.current()?;
        announce.session.active_tasks = u32::try_from(self.working()).ok();
        fleet::write(&announce).ok()
    }

    /// Does a run, and keeps what its agent says. One that was asked to stop is gone when this has ended.
    async fn work(
        self: Arc<Self>,
        found: Found,
        key: Key,
        assignment: Assignment,
        stop: Stop,
        mut asked: watch::Receiver<bool>,
    ) {
        let objection = tokio::select! {
            objection = self.second_thoughts(&found, &assignment) => objection,
            _ = asked.wait_for(|asked| *asked) => return self.worked(&key),
        };
        if let Some(blocked) = objection {
            tracing::info!(agent = self.agent.name, task = key.0, reason = blocked.reason.name(), "work is not begun");
            self.tell(&key, blocked.reports());
        } else {
            let ((sender, mut inbox), (asks, mut questions)) = (mpsc::channel(AHEAD), mpsc::channel(QUESTIONS));
            let mut work = pin!(found.work(assignment, Outbox::asking(sender, asks), stop));
            let mut working = true;
            let mut batch = Vec::new();
            loop {
                tokio::select! {
                    biased;
                    () = &mut work, if working => working = false,
                    count = inbox.recv_many(&mut batch, AHEAD) => {
                        if count == 0 {
                            break;
                        }
                        self.tell(&key, batch.drain(..).map(|report| *report).collect());
                    }
                    // After the reports, so that what was said before a question stands before it in the log.
                    Some(question) = questions.recv() => self.ask(&key, *question),
                    // Work without a program of its own ends by being dropped.
                    _ = asked.wait_for(|asked| *asked), if !found.doer.is_supervised() => break,
                }
            }
        }
        self.worked(&key);
    }

    /// Keeps what an agent said, in pieces the hub takes whole.
    fn tell(&self, key: &Key, reports: Vec<Report>) {
        let mut hands = self.hands();
        let Some(hand) = hands.get_mut(key) else { return };
        let (mut piece, mut size) = (Vec::new(), 0);
        let mut kept = Ok(());
        for report in hand.heard(reports) {
            let large = report.size();
            if size + large > TOGETHER && !piece.is_empty() {
                kept = kept.and_then(|()| hand.keep(std::mem::take(&mut piece), self.frame.load(Ordering::Relaxed)));
                size = 0;
            }
            size += large;
            piece.push(report);
        }
        kept = kept.and_then(|()| hand.keep(piece, self.frame.load(Ordering::Relaxed)));
        if let Err(problem) = kept {
            tracing::error!(agent = self.agent.name, task = key.0, run = key.1, problem, "a run is ended");
            (hand.settled, hand.full) = (None, true);
            hand.end(problem);
        }
        drop(hands);
        self.wake.notify_one();
    }

    fn ask(&self, key: &Key, question: Asked) {
        if let Some(hand) = self.hands().get_mut(key) {
            hand.questions.put(&key.0, key.1, question);
        }
        self.wake.notify_one();
    }

    /// The agent's owner answered a question of a task.
    pub fn decided(&self, task: &str, id: &str, decision: &ApprovalDecision) {
        let mut hands = self.hands();
        let mut of_task = hands.iter_mut().filter(|((of, _), _)| of == task).map(|(_, hand)| hand);
        of_task.any(|hand| hand.questions.answer(id, decision.clone()));
    }

    /// The hub could not take something that had a name: a question, which is then answered with no.
    pub fn not_taken(&self, id: &str, problem: &str) -> bool {
        let decision = ApprovalDecision::denied(problem);
        self.hands().values_mut().any(|hand| hand.questions.answer(id, decision.clone()))
    }

    /// The caller says something while a run is under way. One that has no room for it gets it in another run.
    pub fn more(&self, more: MoreFrame) {
        if let Some(hand) = self.hands().get_mut(&(more.task_id, more.run))
            && hand.more.as_ref().is_some_and(|to| to.try_send(more.message).is_err())
        {
            hand.more = None;
        }
    }

    /// Nothing of a run is alive any more.
    fn worked(&self, key: &Key) {
        let mut hands = self.hands();
        if let Some(hand) = hands.get_mut(key) {
            hand.working = false;
            let untold = hand.settled.is_none() && !hand.over;
            let reason = hand.reason.as_deref().unwrap_or("the agent stopped without a result");
            if untold && let Err(problem) = hand.spool.end(reason) {
                tracing::error!(task = key.0, run = key.1, %problem, "that a run ended cannot be kept");
            }
        }
        finish(&mut hands, key);
        drop(hands);
        // It may have changed files, or told what its session has.
        self.profile.look.notify_one();
        self.wake.notify_one();
    }

    /// The hub has kept something, or wants nothing more.
    pub fn kept(&self, kept: &Kept) {
        let key = (kept.task_id.clone(), kept.run);
        let mut hands = self.hands();
        let Some(hand) = hands.get_mut(&key) else { return };
        let upto = if kept.over { u64::MAX } else { kept.number };
        if let Err(error) = hand.spool.acknowledged(upto) {
            tracing::warn!(task = key.0, run = key.1, %error, "the file of a run");
        }
        if kept.over || hand.settled.is_some_and(|settled| settled <= kept.number) {
            hand.over = true;
            hand.stop.send_replace(true);
        }
        finish(&mut hands, &key);
        drop(hands);
        self.wake.notify_one();
    }

    /// The hub asks for the end of a run; what to answer at once, if there is nothing to end.
    pub fn cancel(&self, task: &str, run: u32) -> Option<String> {
        let mut hands = self.hands();
        let Some(hand) = hands.get_mut(&(task.to_owned(), run)) else {
            let reason = "the worker has no such run".to_owned();
            return Some(Gone { task_id: task.to_owned(), run, number: 0, reason }.frame());
        };
        hand.end("it was asked to stop".to_owned());
        None
    }

    /// Ends all that is at work.
    pub fn stop_all(&self, reason: &str) {
        self.hands().values_mut().filter(|hand| hand.working).for_each(|hand| hand.end(reason.to_owned()));
    }

    /// A new connection: everything is said again that was not acknowledged, beginning with which runs are in hand.
    pub fn hello(&self) -> Vec<String> {
        let mut hands = self.hands();
        for hand in hands.values_mut() {
            hand.spool.rewind();
            hand.questions.rewind();
        }
        let working = hands.iter().filter(|(_, hand)| hand.working);
        working.map(|((task, run), hand)| taken(task, *run, hand.more.is_some())).collect()
    }

    /// The next frame to be sent.
    pub fn next_frame(&self) -> Option<String> {
        if let Some(frame) = self.turn.lock().expect("no panic while holding a frame").take() {
            return Some(frame);
        }
        let mut hands = self.hands();
        hands.iter_mut().find_map(|((task, run), hand)| match hand.spool.unsent(IN_FLIGHT) {
            Ok(None) if hand.spool.is_sent() => hand.questions.unsent(),
            Ok(frame) => frame,
            Err(error) => {
                tracing::error!(task, run, %error, "what a run said cannot be read back");
                None
            }
        })
    }
}
