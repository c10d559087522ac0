//! Frames of the hub's own, as a peer sends them.

use super::connection::{Connection, Manner, say};
use crate::gopherhole;
use flotilla_core::error::Error;
use flotilla_core::fleet::Via;
use flotilla_core::ids::TaskId;
use flotilla_core::rights::Right;
use flotilla_core::roster::Unheard;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::profile::Profile;
use flotilla_protocol::approval::{self, Asking};
use flotilla_protocol::fleet::Announce;
use flotilla_protocol::hub_frame::refused::RefusedResult;
use flotilla_protocol::hub_frame::worker::Probe;
use flotilla_protocol::hub_frame::{self, Ack, FrameId, Said, Sending, TaskResponse};
use flotilla_protocol::wire::Json;
use flotilla_protocol::work::Report;
use serde::Deserialize;
use std::sync::Arc;

/// What of a frame a refusal can be told apart by.
#[derive(Deserialize, Default)]
struct About {
    #[serde(default)]
    id: Option<FrameId>,
}

impl Connection {
    pub async fn hub_frame(&mut self, kind: &str, bytes: &[u8]) {
        let about: About = serde_json::from_slice(bytes).unwrap_or_default();
        let taken = match Said::parse(kind, bytes) {
            Ok(said) => self.said(said, about.id.as_ref()).await,
            Err(refusal) => Err(refusal.into()),
        };
        if let Err(error) = taken {
            let refusal = self.app.refusal(error);
            if !self.refuse_report(bytes, &refusal).await {
                self.note_refused(bytes, &refusal).await;
                self.say(hub_frame::error(&refusal, about.id.as_ref()));
            }
        }
    }

    /// A result that cannot be taken is noted on its run: without it, what follows would be another result.
    pub(super) async fn note_refused(&self, bytes: &[u8], refusal: &Refusal) {
        let (Some(refused), Some(place)) = (RefusedResult::read(bytes), &self.place) else { return };
        let (Some(task), Some(note)) = (TaskId::parse(&refused.task_id), refused.note(refusal)) else { return };
        // Of a run that is over, or another's, there is nothing to note.
        let _ = place.session.report(task, refused.run, vec![note]).await;
    }

    async fn said(&mut self, said: Said, id: Option<&FrameId>) -> Result<(), Error> {
        match said {
            Said::Ping => self.say(hub_frame::simple("pong")),
            Said::Pong => {}
            Said::Ack(Ack { task_id, run, more }) => {
                // Of a run that is over, or never was, there is nothing to take.
                let Some(task) = TaskId::parse(&task_id) else {
                    self.place()?;
                    self.not_theirs(&task_id, run);
                    return Ok(());
                };
                if let (true, Some(run)) = (more, run) {
                    self.place()?.session.takes_more(task, run);
                }
                let session = &self.place()?.session;
                // A worker may have a Message to answer with.
                let taken = match self.manner {
                    Manner::Frames | Manner::GopherHole => session.acknowledge(task, run).await,
                    _ => session.taken(task, run),
                };
                if taken.is_err() {
                    self.not_theirs(&task_id, run);
                }
            }
            Said::Message(sending) => self.send(*sending)?,
            Said::UpdateCard(card) => self.update_card(&card).await?,
            Said::Announce(announce) => self.announce(*announce).await?,
            Said::TaskResponse(response) => self.respond(&response, id).await?,
            Said::Report(told) => self.told(*told).await?,
            Said::Gone(gone) => self.gone(gone).await?,
            Said::Drain => self.place()?.session.drain(),
            Said::Probe(Probe { message_id, text }) => {
                self.app.hub.count_request(self.caller.principal)?;
                let agent = Arc::clone(&self.place()?.agent);
                self.app.hub.probe_turn(&agent, message_id, text).await?;
            }
            Said::ApprovalRequest(asking) => self.ask(*asking)?,
        }
        Ok(())
    }

    pub(super) fn place(&self) -> Result<&super::agent::Place, Refusal> {
        self.place.as_ref().ok_or_else(|| {
            let text = "This connection is no agent's. Connect with a key that has the scope agents:connect.";
            Refusal::new(Reason::PermissionDenied, text)
        })
    }

    async fn update_card(&mut self, card: &Json) -> Result<(), Error> {
        self.app.hub.count_request(self.caller.principal)?;
        let profile = Profile::read(card)?;
        let agent = Arc::clone(&self.place()?.agent);
        if self.app.hub.describe(&self.caller, &agent, profile).await? {
            self.app.cards_changed();
        }
        if let (Some(place), Some(agent)) = (&mut self.place, self.app.hub.registry().by_name(&agent.name)) {
            place.agent = Arc::clone(agent);
        }
        self.say(hub_frame::simple("card_updated"));
        Ok(())
    }

    /// What the agent of this connection is and has now, whatever it calls itself there.
    async fn announce(&mut self, announce: Announce) -> Result<(), Error> {
        self.app.hub.count_request(self.caller.principal)?;
        let place = self.place()?;
        let (agent, via) = (Arc::clone(&place.agent), Via::Socket(place.session.line()));
        let announced = self.app.hub.announce_worker(&agent, announce, via).await?;
        let left = announced.lease_until.0.saturating_sub(self.app.now().0) / 1000;
        let lease = u64::try_from(left).unwrap_or(0);
        self.say(hub_frame::announced(announced.taken, announced.epoch, announced.version, lease));
        Ok(())
    }

    /// What an agent says of a run. It is acknowledged when it is kept; one that is told again is only acknowledged.
    async fn respond(&mut self, response: &TaskResponse, id: Option<&FrameId>) -> Result<(), Error> {
        let place = self.place()?;
        let no_task = || Refusal::no_task(&response.task_id);
        let task = TaskId::parse(&response.task_id).ok_or_else(no_task)?;
        let desk = Arc::clone(place.session.desk());
        let current = desk.work_of(task).filter(|work| response.run.is_none_or(|run| run == work.run));
        if current.is_none() {
            let last = self.app.hub.last_run(&place.agent, task).await?.ok_or_else(no_task)?;
            gopherhole::check_run(response, last)?;
            // The agent's, and over: an answer that comes late or again changes nothing. But what it used counts.
            if let Ok(mut reports) = flotilla_protocol::gopherhole::reports(response, |_, _| false) {
                let known = id.and_then(FrameId::text);
                reports.extend(known.map(|id| Report::Received { number: 0, id }));
                self.app.hub.told_late(&place.agent, task, response.run, &reports).await?;
            }
            self.say(over(id, &response.task_id));
            return Ok(());
        }
        let mut reports = gopherhole::reports(&desk, task, response)?;
        if let Some(id) = id.and_then(FrameId::text) {
            if desk.knows_report(task, &id) {
                // It waits behind the one it repeats, which may not be on the disk yet.
                reports.clear();
            } else {
                // Kept with it, so that it is known after a restart too.
                reports.push(Report::Received { number: 0, id });
            }
        }
        let kept = match self.place()?.session.report(task, response.run, reports).await {
            Ok(kept) => kept,
            // It came to its end just now.
            Err(Unheard(reports)) => {
                let agent = Arc::clone(&self.place()?.agent);
                self.app.hub.told_late(&agent, task, response.run, &reports).await?;
                self.say(over(id, &response.task_id));
                return Ok(());
            }
        };
        if let Some(id) = id {
            let (id, task, outgoing) = (id.to_owned(), response.task_id.clone(), self.outgoing.clone());
            tokio::spawn(async move {
                let frame = match kept.await {
                    Ok(true) => hub_frame::ack(Some(&id), &task, None),
                    _ => over(Some(&id), &task),
                };
                say(&outgoing, frame).await;
            });
        }
        Ok(())
    }

    /// A question to the agent's owner about a run it has. The answer comes when there is one; after a cut it is asked
    /// again, under the same id.
    fn ask(&mut self, asking: Asking) -> Result<(), Error> {
        let place = self.place()?;
        let no_task = || Refusal::no_task(&asking.task_id);
        let task = TaskId::parse(&asking.task_id).ok_or_else(no_task)?;
        let work = place.session.desk().work_of(task);
        let run = work.filter(|work| asking.run.is_none_or(|run| run == work.run)).ok_or_else(no_task)?.run;
        // That it asks about a run shows that it has it.
        let _ = place.session.taken(task, Some(run));
        let (app, outgoing, task_id) = (Arc::clone(&self.app), self.outgoing.clone(), asking.task_id.clone());
        let request = asking.request();
        tokio::spawn(async move {
            let id = request.id.clone();
            let answer = tokio::select! {
                answer = app.hub.ask(task, run, request) => answer,
                () = outgoing.closed() => return,
            };
            let frame = match answer {
                Ok(decision) => approval::decision_frame(&id, &task_id, &decision),
                Err(error) => hub_frame::error(&app.refusal(error), Some(&FrameId::Text(id))),
            };
            say(&outgoing, frame).await;
        });
        Ok(())
    }

    /// A message to another agent. It is acknowledged with its task once that is kept.
    fn send(&mut self, sending: Sending) -> Result<(), Error> {
        let (app, caller, outgoing) = (Arc::clone(&self.app), self.caller.clone(), self.outgoing.clone());
        app.hub.count_request(caller.principal)?;
        tokio::spawn(async move {
            let id = sending.id.clone();
            let sent = match gopherhole::send_frame(&app, &caller, sending).await {
                Ok(sent) => sent,
                Err(error) => return say(&outgoing, hub_frame::error(&app.refusal(error), id.as_ref())).await,
            };
            let mark = sent.repeated.then_some("duplicate");
            say(&outgoing, hub_frame::ack(id.as_ref(), &sent.task.id, mark)).await;
            // A task that has ended has no more news, and the acknowledgement does not say so.
            if sent.task.status.state.is_terminal() && caller.rights.has(Right::TasksRead) {
                say(&outgoing, hub_frame::task_update(&sent.shown)).await;
            }
            drop(sent.news);
        });
        Ok(())
    }
}

/// The run is over: what was said of it changed nothing.
fn over(id: Option<&FrameId>, task: &str) -> String {
    hub_frame::ack(id, task, Some("over"))
}
