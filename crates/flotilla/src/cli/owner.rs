//! What commands for the owner of agents have in common: the hub, their key, lists, and what to do when it says no.

use super::args::{ClientArgs, HubArgs};
use super::deliveries;
use super::failure::Failure;
use super::output::{Text, document};
use super::session::Session;
use clap::Args;
use flotilla_outbound::client::error::{ClientError, Code};
use flotilla_outbound::hub::Hub;
use flotilla_protocol::a2a::error::Reason;
use serde_json::{Value, json};

#[derive(Debug, Clone, Args)]
pub struct OwnerArgs {
    #[command(flatten)]
    hub: HubArgs,
    /// Your key of the hub. Others on this machine can see it in the process
    /// list: better set FLOTILLA_KEY
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

/// What to do where it is something else for one command than for another.
pub struct Hints {
    /// Without a key, or with one that may not.
    pub key: &'static str,
    /// What is asked for is not there.
    pub missing: &'static str,
}

const OWNERS: Hints = Hints {
    key: "this is for the owner of the agent: set FLOTILLA_KEY to the owner's key",
    missing: "only what is of agents that your key's owner owns is there for you",
};

impl Hints {
    pub fn failure(&self, error: ClientError) -> Failure {
        let hint = match &error {
            ClientError::CredentialsMissing { .. } | ClientError::AuthFailed { .. } => Some(self.key),
            ClientError::Unreachable { .. } | ClientError::Unconnected { .. } | ClientError::Broken(_) => {
                Some("check that the hub runs (flotilla serve), and that --hub is its address")
            }
            error if error.is(Reason::MethodNotFound) => Some("--hub must be the address of a hub"),
            ClientError::Refused { code: Some(Code::Number(404)), .. } => Some(self.missing),
            _ => None,
        };
        match hint {
            Some(hint) => Failure::from(error).hint(hint),
            None => error.into(),
        }
    }
}

pub fn failure(error: ClientError) -> Failure {
    OWNERS.failure(error)
}

/// A list of the hub's: where it is, what it is called there, and how the next page is named and asked for.
pub struct Listing {
    pub path: &'static str,
    pub name: &'static str,
    pub next: (&'static str, &'static str),
}

impl Listing {
    /// All pages, one after the other, printed with `fields` of each.
    pub async fn print(
        &self,
        session: &Session,
        hub: &Hub,
        filter: &[(&str, Option<&str>)],
        fields: impl Fn(&mut Text, &Value),
    ) -> Result<(), ClientError> {
        let (mut all, mut token) = (Vec::<Value>::new(), None::<String>);
        loop {
            let asked = filter.iter().copied().chain([(self.next.1, token.as_deref())]);
            let query: Vec<(&str, &str)> = asked.filter_map(|(name, value)| Some((name, value?))).collect();
            let page = hub.show(self.path, &query).await?;
            let mut page: Value = serde_json::from_str(&page).map_err(ClientError::malformed)?;
            all.extend(page[self.name].as_array_mut().map(std::mem::take).unwrap_or_default());
            token = page[self.next.0].as_str().map(str::to_owned);
            if token.is_none() {
                break;
            }
        }
        if session.is_json() {
            document(&json!({ self.name: all }).to_string());
            return Ok(());
        }
        let mut text = Text::default();
        for one in &all {
            fields(&mut text, one);
            text.gap();
        }
        text.field("Total", &all.len().to_string()).print();
        Ok(())
    }
}
