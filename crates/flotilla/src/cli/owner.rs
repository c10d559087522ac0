//! What commands for the owner of agents have in common: the hub, its owner's key, and what to do when it says no.

use super::args::{ClientArgs, HubArgs};
use super::deliveries;
use super::failure::Failure;
use super::session::Session;
use clap::Args;
use flotilla_outbound::client::error::{ClientError, Code};
use flotilla_outbound::hub::Hub;
use flotilla_protocol::a2a::error::Reason;

#[derive(Debug, Clone, Args)]
pub struct OwnerArgs {
    #[command(flatten)]
    hub: HubArgs,
    /// The key of the agent's owner. Others on this machine can see it in the
    /// process list: better set FLOTILLA_KEY
    #[arg(long, value_name = "TOKEN", global = true, help_heading = "Credentials")]
    bearer: Option<String>,
    /// The same, under another name: better set FLOTILLA_KEY
    #[arg(long, value_name = "KEY", global = true, help_heading = "Credentials")]
    api_key: Option<String>,
}

impl OwnerArgs {
    pub fn client(&self) -> ClientArgs {
        ClientArgs { bearer: self.bearer.clone(), api_key: self.api_key.clone(), ..self.hub.client() }
    }
}

pub fn hub(session: &Session) -> Hub {
    deliveries::hub(session)
}

/// A failure with what to do where it is something else here than elsewhere.
pub fn failure(error: ClientError) -> Failure {
    let hint = match &error {
        ClientError::CredentialsMissing { .. } | ClientError::AuthFailed { .. } => {
            Some("this is for the owner of the agent: set FLOTILLA_KEY to the owner's key")
        }
        ClientError::Unreachable { .. } | ClientError::Unconnected { .. } | ClientError::Broken(_) => {
            Some("check that the hub runs (flotilla serve), and that --hub is its address")
        }
        error if error.is(Reason::MethodNotFound) => Some("--hub must be the address of a hub"),
        ClientError::Refused { code: Some(Code::Number(404)), .. } => {
            Some("only what is of agents that your key's owner owns is there for you")
        }
        _ => None,
    };
    match hint {
        Some(hint) => Failure::from(error).hint(hint),
        None => error.into(),
    }
}
