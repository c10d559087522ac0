//! The connection of an agent: runs go out in the manner it asked for, and what it says of them becomes reports.

use super::connection::{Connection, Manner};
use crate::app::App;
use flotilla_core::ids::TaskId;
use flotilla_core::registry::Agent;
use flotilla_core::roster::{Delivery, Session};
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::model::{Message, StreamResponse, TaskState};
use flotilla_protocol::a2a::request::{
    CancelTaskRequest, Request, SendMessageConfiguration, SendMessageRequest, SubscribeToTaskRequest,
};
use flotilla_protocol::channel::{self, Failure};
use flotilla_protocol::hub_frame::{self, worker::RunFrame};
use flotilla_protocol::relay::Relay;
use flotilla_protocol::v03::{self, V03};
use flotilla_protocol::work::{Assignment, Contents, Report};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Who is connected as an agent.
pub struct Place {
    pub agent: Arc<Agent>,
    pub session: Session,
    /// Whether it goes on where it was cut off.
    pub resumed: bool,
}

/// Requests the hub has made of an agent, by the task they are about.
#[derive(Default)]
pub struct Upcalls(HashMap<TaskId, Upcall>);

struct Upcall {
    run: u32,
    relay: Relay,
    /// It was asked to say more after its answer ended too early.
    followed: bool,
}

/// The id of a request: the task, the run, and a letter for what is asked.
fn request_id(task: &str, run: u32, what: char) -> String {
    format!("{task}.{run}.{what}")
}

fn read_id(id: &str) -> Option<(TaskId, u32, char)> {
    let id: String = serde_json::from_str(id).ok()?;
    let (rest, what) = id.rsplit_once('.')?;
    let (task, run) = rest.rsplit_once('.')?;
    Some((TaskId::parse(task)?, run.parse().ok()?, what.chars().next()?))
}

fn relay(work: &Assignment) -> Relay {
    Relay::new(work.trail.upstream.clone(), work.trail.said.iter().cloned())
}

impl Connection {
    /// A run, as the agent wants to be told of it.
    pub fn delivery(&mut self, delivery: &Delivery) -> Vec<String> {
        let Delivery { task, attempt, work } = delivery;
        match self.manner {
            Manner::Frames => return vec![hub_frame::delivery(work, *attempt)],
            Manner::Worker => return vec![RunFrame::of(work, *attempt).frame()],
            Manner::V10 | Manner::V03 => {}
        }
        self.upcalls.0.insert(*task, Upcall { run: work.run, relay: relay(work), followed: false });
        let streams = self.place.as_ref().is_some_and(|place| place.agent.capabilities.streaming);
        let request = send_request(work);
        let request = if streams { Request::SendStreamingMessage(request) } else { Request::SendMessage(request) };
        let service = service(work, *attempt);
        self.request(&request_id(&work.task_id, work.run, 's'), &request, service).into_iter().collect()
    }

    /// A request in the version the agent speaks.
    fn request(&self, id: &str, request: &Request, mut service: BTreeMap<&'static str, String>) -> Option<String> {
        let method = request.method();
        if self.manner == Manner::V03 {
            service.insert("A2A-Version", "0.3".into());
            return channel::request(id, v03::method::name(method), &V03(request), &service);
        }
        service.insert("A2A-Version", "1.0".into());
        let params = match request {
            Request::SendMessage(request) | Request::SendStreamingMessage(request) => serde_json::to_value(request),
            Request::SubscribeToTask(request) => serde_json::to_value(request),
            Request::CancelTask(request) => serde_json::to_value(request),
            _ => Ok(Value::Null),
        };
        channel::request(id, method.name(), &params.ok()?, &service)
    }

    /// The run is over for the hub.
    pub fn stop(&mut self, task: TaskId, run: u32, work: &Assignment) -> Vec<String> {
        if matches!(self.manner, Manner::Frames | Manner::Worker) {
            return vec![hub_frame::cancel(&work.task_id, run)];
        }
        let known = self.upcalls.0.remove(&task);
        let id = known.map(|upcall| upcall.relay.task().to_owned()).filter(|id| !id.is_empty());
        let Some(id) = id.or_else(|| Some(work.trail.upstream.task.clone()).filter(|id| !id.is_empty())) else {
            // The agent has not named its task, so there is only its answer to do without.
            return vec![channel::cancel_stream(&request_id(&work.task_id, run, 's'))];
        };
        let request = Request::CancelTask(CancelTaskRequest { id, ..CancelTaskRequest::default() });
        let cancel = self.request(&request_id(&work.task_id, run, 'c'), &request, BTreeMap::new());
        cancel.into_iter().collect()
    }

    /// What an agent answers. That it has a run at all counts as having taken it.
    pub async fn upcall_result(&mut self, id: &str, result: &str) {
        let Some((task, run, what)) = read_id(id).filter(|(_, _, what)| *what != 'c') else { return };
        let json = match self.manner {
            Manner::V03 => v03::answer::upgraded(Method::SendStreamingMessage, result),
            _ => Ok(result.to_owned()),
        };
        let frame = json.and_then(|json| serde_json::from_str::<StreamResponse>(&json));
        let Some(upcall) = self.upcall(task, run) else { return };
        let reports = match frame {
            Ok(frame) => upcall.relay.reports(frame),
            Err(error) => {
                let text = format!("The agent's answer could not be read: {error}.");
                vec![Report::Status { state: TaskState::Failed, contents: Some(Contents::text(text)), metadata: None }]
            }
        };
        let ended = upcall.relay.has_ended();
        self.tell(task, run, reports).await;
        let streams = self.place.as_ref().is_some_and(|place| place.agent.capabilities.streaming);
        // An answer that is no stream says all there is for now.
        if !ended && what == 's' && !streams {
            self.upcall_ended(id).await;
        }
        if ended {
            self.upcalls.0.remove(&task);
        }
    }

    pub async fn upcall_failed(&mut self, id: &str, error: &Failure) {
        let Some((task, run, _)) = read_id(id).filter(|(_, _, what)| *what != 'c') else { return };
        if self.upcall(task, run).is_none() {
            return;
        }
        let shown: String = error.message.chars().take(2_000).collect();
        let contents = Some(Contents::text(format!("The agent refused: {shown} ({}).", error.code)));
        self.tell(task, run, vec![Report::Status { state: TaskState::Failed, contents, metadata: None }]).await;
        self.upcalls.0.remove(&task);
    }

    /// An answer that ended before the task did is followed by a question for the rest, once.
    pub async fn upcall_ended(&mut self, id: &str) {
        let Some((task, run, _)) = read_id(id).filter(|(_, _, what)| *what != 'c') else { return };
        let Some(upcall) = self.upcall(task, run) else { return };
        if upcall.relay.has_ended() {
            self.upcalls.0.remove(&task);
            return;
        }
        let theirs = upcall.relay.task().to_owned();
        if upcall.followed || theirs.is_empty() {
            let text = "The agent's answer ended before its task did.";
            let contents = Some(Contents::text(text));
            self.tell(task, run, vec![Report::Status { state: TaskState::Failed, contents, metadata: None }]).await;
            self.upcalls.0.remove(&task);
            return;
        }
        upcall.followed = true;
        let request = SubscribeToTaskRequest { id: theirs, ..SubscribeToTaskRequest::default() };
        let id = request_id(&task.to_string(), run, 'f');
        if let Some(text) = self.request(&id, &Request::SubscribeToTask(request), BTreeMap::new()) {
            self.say(text);
        }
    }

    /// A request of this connection, or of an earlier one whose run the agent still has.
    fn upcall(&mut self, task: TaskId, run: u32) -> Option<&mut Upcall> {
        let work = self.place.as_ref()?.session.desk().work_of(task).filter(|work| work.run == run)?;
        let fresh = || Upcall { run, relay: relay(&work), followed: false };
        let upcall = self.upcalls.0.entry(task).or_insert_with(fresh);
        if upcall.run != run {
            *upcall = fresh();
        }
        Some(upcall)
    }

    async fn tell(&mut self, task: TaskId, run: u32, reports: Vec<Report>) {
        let Some(place) = &self.place else { return };
        // What comes of a run that is over changes nothing.
        if reports.is_empty() {
            let _ = place.session.taken(task, Some(run));
        } else {
            let _ = place.session.report(task, Some(run), reports).await;
        }
    }
}

/// The message under the ids its agent knows; the hub's own are beside it.
fn send_request(work: &Assignment) -> SendMessageRequest {
    let mut message: Message = (*work.message).clone();
    let upstream = &work.trail.upstream;
    message.task_id.clone_from(&upstream.task);
    message.context_id = if upstream.context.is_empty() { work.context_id.clone() } else { upstream.context.clone() };
    let accepted_output_modes = work.accepted_output_modes.clone();
    let configuration = SendMessageConfiguration { accepted_output_modes, ..SendMessageConfiguration::default() };
    let onward = work.lineage.onward();
    message.metadata = onward.message_metadata(message.metadata.as_ref());
    let metadata = Some(onward.request_metadata(work.metadata.as_ref()));
    SendMessageRequest {
        message: Some(message),
        configuration: Some(configuration),
        metadata,
        ..SendMessageRequest::default()
    }
}

/// What goes beside a request: the run it is about, and the trace it belongs to.
fn service(work: &Assignment, attempt: u32) -> BTreeMap<&'static str, String> {
    let mut service: BTreeMap<&'static str, String> = work.lineage.onward().headers.into_iter().collect();
    service.insert("Flotilla-Task", work.task_id.clone());
    service.insert("Flotilla-Run", work.run.to_string());
    service.insert("Flotilla-Attempt", attempt.to_string());
    service.insert("Flotilla-From", work.from.clone());
    service
}

impl App {
    /// What cards say has changed.
    pub fn cards_changed(&self) {
        self.replace_settings((*self.settings()).clone());
    }
}
