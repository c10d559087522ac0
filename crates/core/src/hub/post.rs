//! Sending without a wait: the task as it is once the message is in its log, and whether it was there before.

use super::Hub;
use super::read::wanted;
use super::send::{Outcome, SendOptions, Wait};
use crate::caller::Caller;
use crate::error::Error;
use crate::registry::Agent;
use crate::task::Command;
use flotilla_protocol::a2a::request::SendMessageRequest;
use std::sync::Arc;

pub struct Posted {
    pub outcome: Outcome,
    /// The extensions an agent elsewhere activated.
    pub activated: Vec<String>,
    /// The same was sent before: nothing was done now.
    pub repeated: bool,
}

impl Hub {
    /// SendMessage for whoever asks to be answered at once.
    pub async fn post(
        self: &Arc<Self>,
        caller: &Caller,
        agent: &Arc<Agent>,
        request: Box<SendMessageRequest>,
        options: SendOptions,
    ) -> Result<Posted, Error> {
        let want = wanted(&request);
        let sent = Box::pin(self.put(caller, agent, request, options, Wait::None)).await?;
        Box::pin(self.change(&sent.live, || Command::Open)).await?;
        let (outcome, activated) = self.outcome(&sent.live, want).await?;
        Ok(Posted { outcome, activated, repeated: sent.repeated })
    }
}
