//! Requests the hub makes of an agent over its connection: what is answered, canceled, and asked again after a cut.

use super::agent::{read_id, relay, request_id};
use super::connection::{Connection, Manner};
use flotilla_core::ids::TaskId;
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

/// What is under way with an agent, by the task it is about.
#[derive(Default)]
pub struct Upcalls(pub(super) HashMap<TaskId, Upcall>, VecDeque<(TaskId, u32)>);

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
    /// What it says comes by a second stream, which began with all there was: the first is passed over.
    follows: bool,
    /// It is to be asked to stop as soon as it has named its task.
    to_stop: bool,
}

impl Upcall {
    pub fn new(work: &Assignment) -> Self {
        let relay = relay(work);
        Self { run: work.run, relay, followed: false, resumed: false, follows: false, to_stop: false }
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
        if matches!(self.manner, Manner::Frames | Manner::Worker) {
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
            return vec![channel::cancel_stream(&request_id(&task.to_string(), run, 's'))];
        }
        self.cancel(task, run, theirs).into_iter().collect()
    }

    fn cancel(&self, task: TaskId, run: u32, id: String) -> Option<String> {
        let request = Request::CancelTask(CancelTaskRequest { id, ..CancelTaskRequest::default() });
        self.request(&request_id(&task.to_string(), run, 'c'), &request, BTreeMap::new())
    }

    /// What the agent calls a task, on whichever connection it said so; none if it has not.
    fn theirs(&self, task: TaskId) -> Option<String> {
        let known = self.upcalls.0.get(&task).map(|upcall| upcall.relay.task().to_owned());
        let linked = || self.place.as_ref().map(|place| place.session.desk().linked(task));
        known.filter(|id| !id.is_empty()).or_else(linked).filter(|id| !id.is_empty())
    }

    /// After a cut: asks what became of a run. The answer begins with the whole task.
    pub fn resume(&mut self, task: TaskId, run: u32) -> Vec<String> {
        let Some(theirs) = self.theirs(task).filter(|_| self.upcall(task, run).is_some()) else { return Vec::new() };
        if let Some(upcall) = self.upcalls.0.get_mut(&task) {
            upcall.resumed = true;
        }
        self.subscribe(task, run, theirs).into_iter().collect()
    }

    fn subscribe(&self, task: TaskId, run: u32, id: String) -> Option<String> {
        let request = SubscribeToTaskRequest { id, ..SubscribeToTaskRequest::default() };
        let id = request_id(&task.to_string(), run, 'f');
        self.request(&id, &Request::SubscribeToTask(request), BTreeMap::new())
    }

    /// What an agent answers. That it has a run at all counts as having taken it.
    pub async fn upcall_result(&mut self, id: &str, result: &str) {
        let Some((task, run, what)) = read_id(id) else { return };
        let frame = self.frame_of(what, result);
        let Some(upcall) = self.upcall(task, run) else { return };
        if what == 's' && upcall.follows {
            return;
        }
        upcall.follows |= what == 'f';
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
    fn frame_of(&self, what: char, result: &str) -> Result<StreamResponse, String> {
        if result == "null" {
            return Err("it is null, and no Task, Message or update".into());
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
        read.map_err(|refusal| refusal.message)
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
        let Some((task, run, what)) = read_id(id) else { return };
        let shown: String = error.message.chars().take(2_000).collect();
        let Some(upcall) = self.upcall(task, run) else { return };
        let (resumed, theirs) = (upcall.resumed, upcall.relay.task().to_owned());
        match what {
            'c' => return self.goes_on(task, Some(&format!("{shown} ({})", error.code))),
            's' if upcall.follows => return,
            'f' | 'g' if resumed && error.code == NO_TASK => return self.lost(task, run).await,
            // Nothing to follow: it may have ended, which the task itself says.
            'f' if resumed => {
                let request = GetTaskRequest { id: theirs, ..GetTaskRequest::default() };
                let id = request_id(&task.to_string(), run, 'g');
                let text = self.request(&id, &Request::GetTask(request), BTreeMap::new());
                return text.into_iter().for_each(|text| self.say(text));
            }
            // It goes on by itself under the first request, or is held until the grace time is over.
            'g' => return,
            _ => {}
        }
        self.tell(task, run, vec![failed(format!("The agent refused: {shown} ({}).", error.code))]).await;
        self.upcalls.0.remove(&task);
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
        let Some((task, run, what)) = read_id(id).filter(|(_, _, what)| *what != 'c') else { return };
        if self.upcalls.has_ended(task, run) {
            return;
        }
        let Some(upcall) = self.upcall(task, run) else { return };
        if upcall.relay.has_ended() {
            self.upcalls.0.remove(&task);
            return;
        }
        if what == 's' && upcall.follows {
            return;
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

    /// A request of this connection, or of an earlier one whose run the agent still has.
    fn upcall(&mut self, task: TaskId, run: u32) -> Option<&mut Upcall> {
        let desk = self.place.as_ref()?.session.desk();
        let work = desk.work_of(task).filter(|work| work.run == run)?;
        let linked = desk.linked(task);
        let fresh = || {
            let mut upcall = Upcall::new(&work);
            upcall.relay.knows(&linked);
            upcall
        };
        let upcall = self.upcalls.0.entry(task).or_insert_with(fresh);
        if upcall.run != run {
            *upcall = fresh();
        }
        Some(upcall)
    }
}
