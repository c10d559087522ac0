//! `flotilla push`: where the hub's webhooks stand, and what its owner can do about one.

use super::args::{ClientArgs, HubArgs, from_one};
use super::failure::Failure;
use super::output::{Text, document};
use super::session::{Session, hub_key};
use super::settings::Setting;
use clap::{Args, Subcommand};
use flotilla_outbound::client::error::{ClientError, Code};
use flotilla_outbound::hub::Hub;
use flotilla_protocol::a2a::error::Reason;
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Args)]
pub struct PushArgs {
    #[command(subcommand)]
    command: PushCommand,
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

#[derive(Debug, Subcommand)]
enum PushCommand {
    /// List deliveries, the newest first.
    List {
        /// Only those in this state: active, done, parked, disabled or deleted
        #[arg(long)]
        state: Option<String>,
        /// Only those of this task
        #[arg(long, value_name = "ID")]
        task: Option<String>,
        /// Only those of this agent of the hub
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
    },
    /// Show one delivery with every attempt.
    Show {
        /// The delivery's id
        id: String,
    },
    /// Try a delivery again now, also one that is parked or disabled.
    Redeliver {
        /// The delivery's id
        id: String,
        /// Deliver again from this event on [default: where it stands]
        #[arg(long, value_name = "N", value_parser = from_one)]
        from: Option<u64>,
    },
    /// Deliver nothing more until it is redelivered, whatever its caller does.
    Disable {
        /// The delivery's id
        id: String,
    },
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Page {
    deliveries: Vec<Value>,
    next_before: Option<String>,
}

/// The hub these commands are about, with its owner's key.
pub fn hub(session: &Session) -> Hub {
    let key = session.sources.value(Setting::Bearer, session.args.bearer.clone());
    let key = key.or_else(|| session.sources.value(Setting::ApiKey, session.args.api_key.clone())).or_else(hub_key);
    Hub::new(session.net.clone(), &session.hub_url(), key)
}

impl PushArgs {
    pub fn client(&self) -> ClientArgs {
        ClientArgs { bearer: self.bearer.clone(), api_key: self.api_key.clone(), ..self.hub.client() }
    }

    pub async fn run(self, session: &Session) -> Result<(), Failure> {
        let hub = hub(session);
        let told = match &self.command {
            PushCommand::List { state, task, agent } => {
                let filter = [("state", state), ("task", task), ("agent", agent)];
                list(session, &hub, filter.map(|(name, value)| (name, value.as_deref()))).await
            }
            PushCommand::Show { id } => hub.delivery(id).await.and_then(|json| show(session, &json)),
            PushCommand::Redeliver { id, from } => hub.redeliver(id, *from).await.and_then(|json| show(session, &json)),
            PushCommand::Disable { id } => hub.disable_delivery(id).await.and_then(|json| show(session, &json)),
        };
        told.map_err(|error| match next_step(&error) {
            Some(hint) => Failure::from(error).hint(hint),
            None => error.into(),
        })
    }
}

/// What to do where it is something else here than elsewhere.
fn next_step(error: &ClientError) -> Option<&'static str> {
    match error {
        ClientError::CredentialsMissing { .. } | ClientError::AuthFailed { .. } => {
            Some("deliveries are for the owner of the agent: set FLOTILLA_KEY to the owner's key")
        }
        ClientError::Unreachable { .. } | ClientError::Unconnected { .. } | ClientError::Broken(_) => {
            Some("check that the hub runs (flotilla serve), and that --hub is its address")
        }
        error if error.is(Reason::MethodNotFound) => Some("--hub must be the address of a hub"),
        ClientError::Refused { code: Some(Code::Number(404)), .. } => {
            Some("flotilla push list shows all there are for you: those of agents that your key's owner owns")
        }
        error if error.is(Reason::UnsupportedOperation) => {
            Some("--from 1 delivers all of it again, --from N from event N on")
        }
        _ => None,
    }
}

/// All pages, one after the other.
async fn list(session: &Session, hub: &Hub, filter: [(&str, Option<&str>); 3]) -> Result<(), ClientError> {
    let mut all = Vec::new();
    let mut before: Option<String> = None;
    loop {
        let asked = filter.into_iter().chain([("before", before.as_deref())]);
        let query: Vec<(&str, &str)> = asked.filter_map(|(name, value)| Some((name, value?))).collect();
        let text = hub.deliveries(&query).await?;
        let page: Page = serde_json::from_str(&text).map_err(ClientError::malformed)?;
        all.extend(page.deliveries);
        before = page.next_before;
        if before.is_none() {
            break;
        }
    }
    if session.is_json() {
        document(&serde_json::json!({ "deliveries": all }).to_string());
        return Ok(());
    }
    let mut text = Text::default();
    for delivery in &all {
        fields(&mut text, delivery).gap();
    }
    text.field("Total", &all.len().to_string()).print();
    Ok(())
}

fn show(session: &Session, json: &str) -> Result<(), ClientError> {
    if session.is_json() {
        document(json);
        return Ok(());
    }
    let delivery: Value = serde_json::from_str(json).map_err(ClientError::malformed)?;
    let mut text = Text::default();
    fields(&mut text, &delivery);
    for attempt in delivery["attempts"].as_array().into_iter().flatten() {
        let word = |name: &str| attempt[name].as_str().unwrap_or_default();
        let came = match (attempt["status"].as_u64(), word("reason")) {
            (Some(status), "") => format!("HTTP {status}"),
            (_, reason) => reason.to_owned(),
        };
        let next = attempt["nextAttemptAt"].as_str().map(|at| format!(", again {at}")).unwrap_or_default();
        let line = format!(
            "{} {} {} {} ms {came}{next}",
            attempt["number"],
            word("at"),
            word("webhookId"),
            attempt["durationMs"]
        );
        text.field("Attempt", &line);
    }
    text.print();
    Ok(())
}

fn fields<'a>(text: &'a mut Text, delivery: &Value) -> &'a mut Text {
    let word = |name: &str| delivery[name].as_str().unwrap_or_default();
    text.field("Delivery", word("id")).field("State", word("state")).field("Task", word("taskId"));
    text.field("Push config", word("configId")).field("URL", word("url"));
    text.field("Delivered up to event", &delivery["cursor"].to_string());
    text.field("Attempts", &delivery["attemptCount"].to_string());
    text.field("Next attempt", word("nextAttemptAt")).field("Reason", word("reason"))
}
