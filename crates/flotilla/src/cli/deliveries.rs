//! `flotilla push`: where the hub's webhooks stand, and what its owner can do about one.

use super::args::{ClientArgs, from_one};
use super::failure::Failure;
use super::output::{Text, document};
use super::owner::{Hints, Listing, OwnerArgs};
use super::session::{Session, hub_key};
use super::settings::Setting;
use clap::{Args, Subcommand};
use flotilla_outbound::client::error::ClientError;
use flotilla_outbound::hub::Hub;
use flotilla_protocol::a2a::error::Reason;
use serde_json::Value;

#[derive(Debug, Args)]
pub struct PushArgs {
    #[command(subcommand)]
    command: PushCommand,
    #[command(flatten)]
    owner: OwnerArgs,
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

const LISTING: Listing = Listing { path: "/api/deliveries", name: "deliveries", next: ("nextBefore", "before") };

const HINTS: Hints = Hints {
    key: "deliveries are for the owner of the agent: set FLOTILLA_KEY to the owner's key",
    missing: "flotilla push list shows all there are for you: those of agents that your key's owner owns",
};

/// The hub these commands are about, with its owner's key.
pub fn hub(session: &Session) -> Hub {
    let key = session.sources.value(Setting::Bearer, session.args.bearer.clone());
    let key = key.or_else(|| session.sources.value(Setting::ApiKey, session.args.api_key.clone())).or_else(hub_key);
    Hub::new(session.net.clone(), &session.hub_url(), key)
}

impl PushArgs {
    pub fn client(&self) -> ClientArgs {
        self.owner.client()
    }

    pub async fn run(self, session: &Session) -> Result<(), Failure> {
        let hub = hub(session);
        let told = match &self.command {
            PushCommand::List { state, task, agent } => {
                let filter = [("state", state), ("task", task), ("agent", agent)];
                let filter = filter.map(|(name, value)| (name, value.as_deref()));
                LISTING
                    .print(session, &hub, &filter, |text, delivery| {
                        fields(text, delivery);
                    })
                    .await
            }
            PushCommand::Show { id } => hub.delivery(id).await.and_then(|json| show(session, &json)),
            PushCommand::Redeliver { id, from } => hub.redeliver(id, *from).await.and_then(|json| show(session, &json)),
            PushCommand::Disable { id } => hub.disable_delivery(id).await.and_then(|json| show(session, &json)),
        };
        told.map_err(|error| match error.is(Reason::UnsupportedOperation) {
            true => Failure::from(error).hint("--from 1 delivers all of it again, --from N from event N on"),
            false => HINTS.failure(error),
        })
    }
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
