//! Sends that were made before: known by their key, and given the same task again.

use super::Hub;
use super::send::InLog;
use crate::caller::Caller;
use crate::error::{Error, Fault};
use crate::key::sha256;
use crate::ports::{Dedupe, Sent};
use crate::registry::{Agent, DedupeBy};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::model::Message;
use std::sync::Arc;

impl Hub {
    pub(super) async fn sent_before(&self, dedupe: Option<Dedupe>) -> Result<Option<Sent>, Fault> {
        match dedupe {
            Some(dedupe) => self.store.sent(dedupe.key).await,
            None => Ok(None),
        }
    }

    /// What is refused now may have been sent before, and needs nothing then.
    pub(super) async fn again_or(
        self: &Arc<Self>,
        caller: &Caller,
        agent: &Agent,
        dedupe: Option<Dedupe>,
        refusal: Refusal,
    ) -> Result<InLog, Error> {
        match self.sent_before(dedupe).await? {
            Some(sent) => self.attach(caller, agent, sent, dedupe).await,
            None => Err(refusal.into()),
        }
    }

    /// The same send again gets the same task; another text under the same key is a conflict.
    pub(super) async fn attach(
        self: &Arc<Self>,
        caller: &Caller,
        agent: &Agent,
        sent: Sent,
        dedupe: Option<Dedupe>,
    ) -> Result<InLog, Error> {
        self.meters.duplicates.increment(1);
        if dedupe.is_none_or(|dedupe| dedupe.hash != sent.hash) {
            let text = "A different message, or the same for another webhook, was already sent under this id. Give each new message a fresh messageId \
                        (or Idempotency-Key); repeat one only with the same content.";
            return Err(Refusal::new(Reason::IdempotencyConflict, text).into());
        }
        let found = self.find(caller.with_agent(agent.id), sent.task).await?;
        let live = found.ok_or_else(|| no_longer_kept(&sent.task.to_string()))?;
        Ok(InLog { live, dedupe, after: 0, repeated: true })
    }
}

fn no_longer_kept(id: &str) -> Refusal {
    let text = "This message was sent before, and what came of it is no longer kept. Give it a fresh messageId to send it \
                again.";
    Refusal::new(Reason::TaskNotFound, text).fact("taskId", id)
}

/// The key and hash of a send, if it is one to recognise again.
pub fn dedupe(
    caller: &Caller,
    agent: &Agent,
    message: &Message,
    webhook: Option<&str>,
    header: Option<&str>,
) -> Option<Dedupe> {
    let (kind, id) = match (header, agent.dedupe) {
        (Some(header), _) => ("header", header),
        (None, DedupeBy::MessageId) if !caller.is_anonymous() => ("message", message.message_id.as_str()),
        _ => return None,
    };
    // Lengths keep the fields apart: no two different tuples give the same bytes.
    let mut key = Vec::with_capacity(128);
    key.extend_from_slice(&caller.principal.0.to_be_bytes());
    key.extend_from_slice(&agent.id.0.to_be_bytes());
    for field in [kind, message.task_id.as_str(), id] {
        key.extend_from_slice(&(field.len() as u64).to_be_bytes());
        key.extend_from_slice(field.as_bytes());
    }
    let content = (message.role.name(), &message.parts, &message.metadata, &message.context_id);
    let mut content = serde_json::to_vec(&content).unwrap_or_default();
    // A webhook that was asked for must not be passed over in silence.
    content.extend_from_slice(webhook.unwrap_or_default().as_bytes());
    Some(Dedupe { key: sha256(&key), hash: sha256(&content) })
}
