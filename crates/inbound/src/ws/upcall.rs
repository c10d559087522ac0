//! Requests the hub makes of an agent over its connection: what is answered, canceled, and asked again after a cut.

use super::agent::{Asked, relay};
use super::connection::{Connection, Manner};
use super::held::{Awaited, Held, Kept};
use flotilla_core::ids::TaskId;
use flotilla_protocol::a2a::error::Reason;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::model::{StreamResponse, Task, TaskState};
use flotilla_protocol::a2a::request::{CancelTaskRequest, GetTaskRequest, Request, SubscribeToTaskRequest};
use flotilla_protocol::channel::{self, Failure};
use flotilla_protocol::decode;
use flotilla_protocol::hub_frame;
use flotilla_protocol::relay::Relay;
use flotilla_protocol::v03;
use flotilla_protocol::work::{Assignment, Contents, Report};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// What an agent answers whose task is gone.
const NO_TASK: i64 = -32001;

/// What is wrong with an answer in which there is nothing of an answer.
const NEITHER: &str = "it is neither a Task nor a Message, and no update";

/// What is under way with an agent, by the task it is about.
#[derive(Default)]
pub struct Upcalls(pub(super) HashMap<TaskId, Upcall>, VecDeque<(TaskId, u32)>, pub(super) Awaited);

/// Runs that said all and whose answer may still be open: the word that it ends is not taken for one that came too early.
const ENDED: usize = 256;

impl Upcalls {
    fn end(&mut self, task: TaskId, run: u32) {
        self.0.remove(&task);
        if self.1.len() == ENDED {
            self.1.pop_front();
        }
        self.1.push_back((task, run));
    }

    fn has_ended(&self, task: TaskId, run: u32) -> bool {
        self.1.contains(&(task, run))
    }
}

pub struct Upcall {
    run: u32,
    relay: Relay,
    /// It was asked to say more after its answer ended too early.
    followed: bool,
    /// It was asked what became of the run after a cut.
    resumed: bool,
    /// The mark of the last question for the rest, or for what became of it.
    mark: String,
    /// What it says comes by the answer to that, which began with all there was: what comes under other ids is passed over.
    follows: bool,
    /// What came under earlier ids since it was asked after a cut. Before it has said what became of the run, nobody
    /// knows what is missing between.
    held: Option<Held>,
    /// It is to be asked to stop as soon as it has named its task.
    to_stop: bool,
}

impl Upcall {
    pub fn new(work: &Assignment) -> Self {
        Self {
            run: work.run,
            relay: relay(work),
            followed: false,
            resumed: false,
            mark: String::new(),
            follows: false,
            held: None,
            to_stop: false,
        }
    }

    /// Whether something comes under the id of another request than the one whose answer counts, or is waited for.
    fn is_earlier(&self, asked: &Asked) -> bool {
        match asked.what {
            'f' | 'g' => asked.mark != self.mark,
            what => what != 'c',
        }
    }

    /// Whether something came under an earlier id, and so is passed over, or kept; otherwise it counts.
    fn puts_aside(&mut self, asked: &Asked, id: &str, frame: impl FnOnce() -> Kept) -> bool {
        if !self.is_earlier(asked) {
            return false;
        }
        if let Some(held) = &mut self.held {
            held.keep(id, frame());
            return true;
        }
        self.follows
    }
}

fn unusable(problem: &str) -> Report {
    let problem = problem.trim_end_matches('.');
    failed(format!("The agent's answer cannot be used (InvalidAgentResponseError): {problem}."))
}

fn failed(text: String) -> Report {
    Report::Status { state: TaskState::Failed, contents: Some(Contents::text(text)), metadata: None }
}

impl Connection {
    /// The run is to end, or is over for the hub. One that goes on is asked about by a request whose answer counts.
    pub fn stop(&mut self, task: TaskId, run: u32, theirs: String) -> Vec<String> {
        if matches!(self.manner, Manner::Frames | Manner::GopherHole | Manner::Worker) {
            return vec![hub_frame::cancel(&task.to_string(), run)];
        }
        let goes_on = self.place.as_ref().is_some_and(|place| place.session.desk().is_to_end(task));
        let theirs = self.theirs(task).unwrap_or(theirs);
        if theirs.is_empty() && goes_on {
            if let Some(upcall) = self.upcall(task, run) {
                upcall.to_stop = true;
            }
            return Vec::new();
        }
        if !goes_on {
            self.upcalls.0.remove(&task);
        }
        if theirs.is_empty() {
            // The agent has not named its task, so there is only its answer to do without.
            return vec![channel::cancel_stream(&Asked::id(task, run, 's', ""))];
        }
        self.cancel(task, run, theirs).into_iter().collect()
    }

    fn cancel(&self, task: TaskId, run: u32, id: String) -> Option<String> {
        let request = Request::CancelTask(CancelTaskRequest { id, ..CancelTaskRequest::default() });
        self.request(&Asked::id(task, run, 'c', ""), &request, BTreeMap::new())
    }

    /// What the agent calls a task, on whichever connection it said so; none if it has not.
    fn theirs(&self, task: TaskId) -> Option<String> {
        let known = self.upcalls.0.get(&task).map(|upcall| upcall.relay.task().to_owned());
        let linked = || self.place.as_ref().map(|place| place.session.desk().linked(task));
        known.filter(|id| !id.is_empty()).or_else(linked).filter(|id| !id.is_empty())
    }

    /// After a cut: asks what became of a run. The answer begins with the whole task.
    pub fn resume(&mut self, task: TaskId, run: u32) -> Vec<String> {
        let Some(is_new) = self.enter(task, run) else { return Vec::new() };
        // It was asked on this connection, and has not answered yet.
        let is_asked = !is_new && self.upcalls.0.get(&task).is_some_and(|upcall| upcall.held.is_some());
        let asked = if is_asked { None } else { self.ask_after(task, run) };
        asked.into_iter().collect()
    }

    fn ask_after(&mut self, task: TaskId, run: u32) -> Option<String> {
        let theirs = self.theirs(task)?;
        let upcall = self.upcalls.0.get_mut(&task)?;
        (upcall.resumed, upcall.follows) = (true, false);
        upcall.held.get_or_insert_default();
        let asked = self.subscribe(task, run, theirs);
        if let Some(upcall) = self.upcalls.0.get(&task) {
            self.upcalls.2.add(task, run, upcall.mark.clone());
        }
        asked
    }

    /// Each question has an id of its own, so that its answer is not taken for one to an earlier question.
    fn subscribe(&mut self, task: TaskId, run: u32, theirs: String) -> Option<String> {
        let mark = uuid::Uuid::new_v4().simple().to_string().split_off(20);
        let id = Asked::id(task, run, 'f', &mark);
        self.upcalls.0.get_mut(&task)?.mark = mark;
        let request = SubscribeToTaskRequest { id: theirs, ..SubscribeToTaskRequest::default() };
        self.request(&id, &Request::SubscribeToTask(request), BTreeMap::new())
    }

    /// What an agent answers. That it has a run at all counts as having taken it.
    pub async fn upcall_result(&mut self, id: &str, result: Option<&str>) {
        let Some(asked) = Asked::read(id) else { return };
        let Asked { task, run, what, .. } = asked;
        let frame = self.frame_of(what, result);
        let Some(upcall) = self.upcall(task, run) else { return };
        if upcall.puts_aside(&asked, id, || Kept::Result(result.map(str::to_owned))) {
            return self.tell(task, run, Vec::new()).await;
        }
        if matches!(what, 'f' | 'g') {
            // It holds what was said before it, also what was lost of that. What goes on under an earlier question goes
            // on under no other.
            upcall.held = None;
            upcall.follows |= what == 'f' && !upcall.is_earlier(&asked);
        }
        let read = frame.and_then(|frame| upcall.relay.reports(frame));
        let ended = upcall.relay.has_ended() || read.is_err();
        let reports = match read {
            Ok(reports) => reports,
            Err(problem) if what == 'c' => return self.goes_on(task, Some(&problem)),
            Err(problem) => vec![unusable(&problem)],
        };
        let theirs = upcall.relay.task().to_owned();
        let to_stop = upcall.to_stop && !theirs.is_empty();
        upcall.to_stop &= !to_stop;
        let reports = self.unsaid(task, &theirs, reports);
        self.tell(task, run, reports).await;
        if to_stop && !ended {
            let text = self.cancel(task, run, theirs);
            text.into_iter().for_each(|text| self.say(text));
        }
        let streams = self.place.as_ref().is_some_and(|place| place.agent.capabilities.streaming);
        match what {
            // It was asked to stop, and says what it makes of that.
            'c' if !ended => self.goes_on(task, None),
            // An answer that is no stream says all there is for now.
            's' if !ended && !streams => self.upcall_ended(id).await,
            _ => {}
        }
        if ended {
            self.upcalls.end(task, run);
        }
    }

    fn goes_on(&self, task: TaskId, refused: Option<&str>) {
        if let Some(place) = &self.place {
            place.session.desk().goes_on(task, refused);
        }
    }

    /// A frame of an answer; the answers to some requests are a task without a word around it.
    fn frame_of(&self, what: char, result: Option<&str>) -> Result<StreamResponse, String> {
        let result = result.ok_or("it has neither a result nor an error")?;
        if result == "null" {
            return Err("it is null, and no Task, Message or update".into());
        }
        if result.trim_matches(['{', '}', ' ']).is_empty() || !result.starts_with('{') {
            return Err(NEITHER.into());
        }
        let method = match what {
            'c' => Method::CancelTask,
            'g' => Method::GetTask,
            _ => Method::SendStreamingMessage,
        };
        let json = match self.manner {
            Manner::V03 => v03::answer::upgraded(method, result).map_err(|error| error.to_string())?,
            _ => result.to_owned(),
        };
        let read = match what {
            'c' | 'g' => decode::message::<Task>(json.as_bytes()).map(StreamResponse::Task),
            _ => decode::message(json.as_bytes()),
        };
        // The frame was read, so it is JSON: what is wrong is that none of these is in it.
        read.map_err(|refusal| match refusal.reason {
            Reason::ParseError => NEITHER.to_owned(),
            _ => refusal.message,
        })
    }

    /// Reports without the messages that were reported before, on this connection or an earlier one.
    fn unsaid(&self, task: TaskId, theirs: &str, mut reports: Vec<Report>) -> Vec<Report> {
        let Some(place) = &self.place else { return reports };
        let desk = place.session.desk();
        desk.link(task, theirs);
        for report in &mut reports {
            if let Report::Status { contents, .. } = report
                && let Some(Contents::Message(message)) = contents
                && !message.message_id.is_empty()
                && desk.knows_report(task, &format!("message {}", message.message_id))
            {
                *contents = None;
            }
        }
        reports
    }

    pub async fn upcall_failed(&mut self, id: &str, error: &Failure) {
        let Some(asked) = Asked::read(id) else { return };
        let Asked { task, run, what, mark } = &asked;
        let (task, run) = (*task, *run);
        let shown: String = error.message.chars().take(2_000).collect();
        let Some(upcall) = self.upcall(task, run) else { return };
        if upcall.puts_aside(&asked, id, || Kept::Failed(error.clone())) {
            return;
        }
        let (resumed, theirs) = (upcall.resumed, upcall.relay.task().to_owned());
        match what {
            'c' => return self.goes_on(task, Some(&format!("{shown} ({})", error.code))),
            'f' | 'g' if resumed && error.code == NO_TASK => return self.lost(task, run).await,
            // Nothing to follow: it may have ended, which the task itself says.
            'f' if resumed => {
                let request = GetTaskRequest { id: theirs, ..GetTaskRequest::default() };
                let text = self.request(&Asked::id(task, run, 'g', mark), &Request::GetTask(request), BTreeMap::new());
                return text.into_iter().for_each(|text| self.say(text));
            }
            // It goes on by itself under the first request, or is held until the grace time is over.
            'g' => return Box::pin(self.release(task, run)).await,
            _ => {}
        }
        self.tell(task, run, vec![failed(format!("The agent refused: {shown} ({}).", error.code))]).await;
        self.upcalls.0.remove(&task);
    }

    /// Somebody's time for an answer is over.
    pub async fn no_answer(&mut self) {
        let Some((task, run, mark)) = self.upcalls.2.take() else { return };
        // Asked again meanwhile, it has its time for that.
        if self.upcalls.0.get(&task).is_some_and(|upcall| upcall.mark == mark) {
            self.release(task, run).await;
        }
    }

    /// The agent does not say what became of the run: what it said under earlier ids is all there is.
    async fn release(&mut self, task: TaskId, run: u32) {
        let upcall = self.upcalls.0.get_mut(&task).filter(|upcall| upcall.run == run);
        let Some(held) = upcall.and_then(|upcall| upcall.held.take()) else { return };
        tracing::warn!(%task, run, "after a cut the agent does not say what became of its task: what it goes on with counts");
        let Some(frames) = held.into_frames() else {
            let text =
                "The agent was cut off, went on with more than is kept, and did not say what became of its task.";
            self.tell(task, run, vec![failed(text.to_owned())]).await;
            return self.upcalls.end(task, run);
        };
        for (id, kept) in frames {
            match kept {
                Kept::Result(result) => self.upcall_result(&id, result.as_deref()).await,
                Kept::Failed(error) => self.upcall_failed(&id, &error).await,
                Kept::Ended => self.upcall_ended(&id).await,
            }
        }
    }

    /// The agent came back without the run.
    async fn lost(&mut self, task: TaskId, run: u32) {
        self.upcalls.0.remove(&task);
        if let Some(place) = &self.place {
            let reason = "the agent was cut off, came back, and does not know the task any more".to_owned();
            let _ = place.session.gone(task, run, reason).await;
        }
    }

    /// An answer that ended before the task did is followed by a question for the rest, once.
    pub async fn upcall_ended(&mut self, id: &str) {
        let Some(asked) = Asked::read(id).filter(|asked| asked.what != 'c') else { return };
        let Asked { task, run, .. } = asked;
        if self.upcalls.has_ended(task, run) {
            return;
        }
        let Some(upcall) = self.upcall(task, run) else { return };
        if upcall.relay.has_ended() {
            self.upcalls.0.remove(&task);
            return;
        }
        if upcall.puts_aside(&asked, id, || Kept::Ended) {
            return;
        }
        if upcall.held.is_some() {
            // It ended without a word.
            return Box::pin(self.release(task, run)).await;
        }
        let theirs = upcall.relay.task().to_owned();
        if upcall.followed || theirs.is_empty() {
            let text = "The agent's answer ended before its task did.".to_owned();
            self.tell(task, run, vec![failed(text)]).await;
            self.upcalls.0.remove(&task);
            return;
        }
        upcall.followed = true;
        let text = self.subscribe(task, run, theirs);
        text.into_iter().for_each(|text| self.say(text));
    }

    /// A request of this connection, or of an earlier one whose run the agent still has. Of such a one it is asked first
    /// what became of it.
    fn upcall(&mut self, task: TaskId, run: u32) -> Option<&mut Upcall> {
        let is_new = self.enter(task, run)?;
        if is_new && self.place.as_ref()?.session.is_to_be_asked(task, run) {
            let text = self.ask_after(task, run);
            text.into_iter().for_each(|text| self.say(text));
        }
        self.upcalls.0.get_mut(&task)
    }

    /// Whether a run the agent has was not known on this connection; none if it has no such run.
    fn enter(&mut self, task: TaskId, run: u32) -> Option<bool> {
        let desk = self.place.as_ref()?.session.desk();
        let work = desk.work_of(task).filter(|work| work.run == run)?;
        let is_new = self.upcalls.0.get(&task).is_none_or(|upcall| upcall.run != run);
        if is_new {
            let mut upcall = Upcall::new(&work);
            upcall.relay.knows(&desk.linked(task));
            self.upcalls.0.insert(task, upcall);
        }
        Some(is_new)
    }
}
