//! Sends that were made before: known by their key, and given the same task again.

use super::Hub;
use super::send::InLog;
use crate::caller::Caller;
use crate::error::{Error, Fault};
use crate::key::sha256;
use crate::ports::{Dedupe, Sent};
use crate::registry::{Agent, DedupeBy};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::model::{Message, Part};
use serde_json::Value;
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

/// What makes a message the same again. JSON of its own counts by what it says, not by how it is written: a client may
/// write it another way the second time, or come over another binding.
fn content(message: &Message) -> Vec<u8> {
    let has_json = |part: &Part| part.data.0.is_some() || part.metadata.is_some();
    let metadata = message.metadata.as_ref().filter(|metadata| metadata.0.text() != "{}");
    let content = (message.role.name(), &message.parts, metadata, &message.context_id);
    let written = serde_json::to_vec(&content).unwrap_or_default();
    if metadata.is_none() && !message.parts.iter().any(has_json) {
        return written;
    }
    serde_json::from_slice::<Value>(&written).map_or(written, |read| read.to_string().into_bytes())
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
    let mut content = content(message);
    // A webhook that was asked for must not be passed over in silence.
    content.extend_from_slice(webhook.unwrap_or_default().as_bytes());
    Some(Dedupe { key: sha256(&key), hash: sha256(&content) })
}

#[cfg(test)]
mod tests {
    use super::content;
    use flotilla_protocol::a2a::model::Message;

    fn of(members: &str) -> Vec<u8> {
        let text = format!(r#"{{"messageId":"m","role":"ROLE_USER",{members}}}"#);
        content(&serde_json::from_str::<Message>(&text).expect("a message"))
    }

    #[test]
    fn a_message_is_the_same_however_its_json_is_written() {
        let plain = of(r#""parts":[{"text":"x"}]"#);
        assert_eq!(plain, of(r#""parts":[{"text":"x"}],"metadata":{}"#));
        assert_ne!(plain, of(r#""parts":[{"text":"x"}],"metadata":{"a":1}"#));
        let data = of(r#""parts":[{"data":{"a":1,"b":[2]}}],"metadata":{"x":1}"#);
        assert_eq!(data, of(r#""parts":[{"data":{ "b":[ 2 ], "a":1}}],"metadata":{"x": 1}"#));
        assert_ne!(data, of(r#""parts":[{"data":{"a":1,"b":[3]}}],"metadata":{"x":1}"#));
        assert_ne!(data, of(r#""parts":[{"data":{"a":"1","b":[2]}}],"metadata":{"x":1}"#));
    }
}
