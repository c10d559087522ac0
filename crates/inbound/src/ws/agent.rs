//! The connection of an agent: runs go out in the manner it asked for, and what it says of them becomes reports.

use super::connection::{Connection, Manner};
use super::upcall::Upcall;
use crate::app::App;
use flotilla_core::ids::TaskId;
use flotilla_core::registry::Agent;
use flotilla_core::roster::{Delivery, Session, Unheard};
use flotilla_protocol::a2a::model::Message;
use flotilla_protocol::a2a::request::{Request, SendMessageConfiguration, SendMessageRequest};
use flotilla_protocol::channel;
use flotilla_protocol::hub_frame::{self, worker::RunFrame};
use flotilla_protocol::relay::Relay;
use flotilla_protocol::v03::{self, V03};
use flotilla_protocol::work::{Assignment, Report};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Who is connected as an agent.
pub struct Place {
    pub agent: Arc<Agent>,
    pub session: Session,
    /// Whether it goes on where it was cut off.
    pub resumed: bool,
}

/// What a request of the hub's is about, as its id says it.
pub(super) struct Asked {
    pub task: TaskId,
    pub run: u32,
    /// A letter for what is asked.
    pub what: char,
    /// Tells questions of one kind from one another; empty where there is only one.
    pub mark: String,
}

impl Asked {
    pub fn id(task: TaskId, run: u32, what: char, mark: &str) -> String {
        format!("{task}.{run}.{what}{mark}")
    }

    pub fn read(id: &str) -> Option<Self> {
        let id: String = serde_json::from_str(id).ok()?;
        let (rest, named) = id.rsplit_once('.')?;
        let (task, run) = rest.rsplit_once('.')?;
        let what = named.chars().next()?;
        let mark = named.get(what.len_utf8()..)?.to_owned();
        Some(Self { task: TaskId::parse(task)?, run: run.parse().ok()?, what, mark })
    }
}

pub(super) fn relay(work: &Assignment) -> Relay {
    Relay::new(work.trail.upstream.clone(), work.trail.said.iter().cloned())
}

impl Connection {
    /// A run, as the agent wants to be told of it.
    pub fn delivery(&mut self, delivery: &Delivery) -> Vec<String> {
        let Delivery { task, attempt, work } = delivery;
        match self.manner {
            Manner::Frames | Manner::GopherHole => return vec![hub_frame::delivery(work, *attempt)],
            Manner::Worker => return vec![RunFrame::of(work, *attempt).frame()],
            Manner::V10 | Manner::V03 => {}
        }
        self.upcalls.0.insert(*task, Upcall::new(work));
        let streams = self.place.as_ref().is_some_and(|place| place.agent.capabilities.streaming);
        let request = send_request(work);
        let request = if streams { Request::SendStreamingMessage(request) } else { Request::SendMessage(request) };
        let service = service(work, *attempt);
        self.request(&Asked::id(*task, work.run, 's', ""), &request, service).into_iter().collect()
    }

    /// A request in the version the agent speaks.
    pub(super) fn request(
        &self,
        id: &str,
        request: &Request,
        mut service: BTreeMap<&'static str, String>,
    ) -> Option<String> {
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
            Request::GetTask(request) => serde_json::to_value(request),
            _ => Ok(Value::Null),
        };
        channel::request(id, method.name(), &params.ok()?, &service)
    }

    pub(super) async fn tell(&mut self, task: TaskId, run: u32, reports: Vec<Report>) {
        let Some(place) = &self.place else { return };
        if reports.is_empty() {
            let _ = place.session.taken(task, Some(run));
        } else {
            let Err(Unheard(reports)) = place.session.report(task, Some(run), reports).await else { return };
            // What comes of a run that is over changes nothing. But what it used counts.
            if let Err(error) = self.app.hub.told_late(&place.agent, task, Some(run), &reports).await {
                tracing::error!(%task, %error, "what a run used that was ended is not booked");
            }
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
