//! A turn that only shows whether an agent works.

use super::Hub;
use super::send::SendOptions;
use crate::caller::Caller;
use crate::error::Error;
use crate::registry::Agent;
use crate::rights::Rights;
use flotilla_protocol::a2a::model::{Message, Part, Role};
use flotilla_protocol::a2a::request::{SendMessageConfiguration, SendMessageRequest};
use std::sync::Arc;

impl Hub {
    /// Sends an agent a small message of its owner's. It is a task like any other: in the log, in the ledger of what was
    /// used, and under the owner's budgets.
    pub async fn probe_turn(self: &Arc<Self>, agent: &Arc<Agent>, id: String, text: String) -> Result<(), Error> {
        let caller = Caller {
            principal: agent.owner,
            workspace: agent.workspace,
            name: "probe".into(),
            stands_for: "probe".into(),
            rights: Rights::CALLER,
            agents: None,
            key: None,
            agent: None,
        };
        let parts = vec![Part::text(text)];
        let message = Message { message_id: id, role: Role::User, parts, ..Message::default() };
        let configuration =
            SendMessageConfiguration { return_immediately: true, ..SendMessageConfiguration::default() };
        let request = SendMessageRequest {
            message: Some(message),
            configuration: Some(configuration),
            ..SendMessageRequest::default()
        };
        self.send(&caller, agent, Box::new(request), SendOptions::default()).await?;
        Ok(())
    }
}
