//! `flotilla fleet`: the workers of a hub, how they are, and letting one take nothing new.

use super::args::{ClientArgs, HubArgs};
use super::deliveries::hub;
use super::failure::Failure;
use super::output::{Text, compact, document, line};
use super::session::Session;
use super::watch::Pastime;
use clap::{Args, Subcommand};
use flotilla_outbound::client::error::ClientError;
use flotilla_outbound::hub::Hub;
use serde_json::Value;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct FleetArgs {
    #[command(subcommand)]
    command: Option<FleetCommand>,
    /// Go on, and show each worker whenever something about it changes
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    hub: HubArgs,
    /// The key of the workers' owner. Others on this machine can see it in the
    /// process list: better set FLOTILLA_KEY
    #[arg(long, value_name = "TOKEN", global = true, help_heading = "Credentials")]
    bearer: Option<String>,
    /// The same, under another name: better set FLOTILLA_KEY
    #[arg(long, value_name = "KEY", global = true, help_heading = "Credentials")]
    api_key: Option<String>,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    /// Show all there is to know of one worker.
    Show {
        /// The worker's name
        worker: String,
    },
    /// Let a worker end what it has and take nothing new.
    Drain {
        /// The worker's name
        worker: String,
    },
    /// Let a drained worker take work again.
    Undrain {
        /// The worker's name
        worker: String,
    },
    /// End the pause that a worker's usage limit put its account under.
    Resume {
        /// The worker's name
        worker: String,
    },
}

impl FleetArgs {
    pub fn client(&self) -> ClientArgs {
        ClientArgs { bearer: self.bearer.clone(), api_key: self.api_key.clone(), ..self.hub.client() }
    }

    pub async fn run(self, session: &Session) -> Result<(), Failure> {
        let hub = hub(session);
        let told = match &self.command {
            None if self.watch => watch(session, &hub).await,
            None => hub.workers(None).await.and_then(|json| list(session, &json)),
            Some(FleetCommand::Show { worker }) => {
                hub.workers(Some(worker)).await.and_then(|json| show(session, &json))
            }
            Some(FleetCommand::Drain { worker }) => hub.drain(worker, true).await.and_then(|json| show(session, &json)),
            Some(FleetCommand::Undrain { worker }) => {
                hub.drain(worker, false).await.and_then(|json| show(session, &json))
            }
            Some(FleetCommand::Resume { worker }) => {
                hub.resume_worker(worker).await.and_then(|json| show(session, &json))
            }
        };
        told.map_err(|error| {
            let hint = "workers are for their owner: set FLOTILLA_KEY to the owner's key, --hub to the hub";
            Failure::from(error).hint(hint)
        })
    }
}

fn list(session: &Session, json: &str) -> Result<(), ClientError> {
    if session.is_json() {
        document(json);
        return Ok(());
    }
    let page: Value = serde_json::from_str(json).map_err(ClientError::malformed)?;
    let workers = page["workers"].as_array().cloned().unwrap_or_default();
    if workers.is_empty() {
        line("No worker has announced itself. docs/fleet.md says how one does.");
    }
    for worker in &workers {
        line(&one_line(worker));
    }
    Ok(())
}

async fn watch(session: &Session, hub: &Hub) -> Result<(), ClientError> {
    session.watch.waits_for(Pastime::Workers);
    let mut events = hub.follow_workers().await?;
    while let Some(event) = events.next().await? {
        if session.is_json() {
            compact(&event.data);
            continue;
        }
        let worker: Value = serde_json::from_str(&event.data).map_err(ClientError::malformed)?;
        line(&one_line(&worker));
    }
    Err(ClientError::Broken("the hub closed the stream of workers".into()))
}

fn text<'a>(worker: &'a Value, name: &str) -> &'a str {
    worker[name].as_str().unwrap_or_default()
}

/// `NAME  HEALTH  active/places  model  why`.
fn one_line(worker: &Value) -> String {
    let why = match (&worker["paused"], &worker["broke"], text(worker, "reason")) {
        (Value::Object(paused), _, _) | (_, Value::Object(paused), _) => {
            format!("paused until {}: {}", word(paused.get("until")), word(paused.get("reason")))
        }
        (_, _, reason) => reason.to_owned(),
    };
    let load = format!("{}/{}", worker["active"], worker["places"]);
    let (name, health, model) = (text(worker, "name"), text(worker, "health"), text(worker, "model"));
    let shown = format!("{name:<20} {health:<10} {load:<7} {model} {why}");
    // One worker is one line, whatever it says of itself.
    super::output::escape_controls(&shown.trim_end().replace(['\n', '\r'], " "))
}

fn word(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

fn show(session: &Session, json: &str) -> Result<(), ClientError> {
    if session.is_json() {
        document(json);
        return Ok(());
    }
    let worker: Value = serde_json::from_str(json).map_err(ClientError::malformed)?;
    let mut shown = Text::default();
    let fields = [
        ("Worker", "name"),
        ("Health", "health"),
        ("Reason", "reason"),
        ("Model", "model"),
        ("Tier", "modelTier"),
        ("Account", "account"),
        ("Announced", "announcedAt"),
        ("Heard of", "heardAt"),
        ("Lease until", "leaseUntil"),
        ("Last success", "lastSuccess"),
        ("Last failure", "lastFailure"),
    ];
    for (label, name) in fields {
        shown.field(label, text(&worker, name));
    }
    for paused in [&worker["paused"], &worker["broke"]].into_iter().filter_map(Value::as_object) {
        shown.field("Paused until", &format!("{} ({})", word(paused.get("until")), word(paused.get("reason"))));
    }
    shown.field("Active", &format!("{} of {}", worker["active"], worker["places"]));
    for (label, value) in [
        ("Labels", &worker["labels"]),
        ("Skills", &worker["skills"]),
        ("Tools", &worker["announce"]["capabilities"]["tools"]),
    ] {
        shown.field(label, &joined(value));
    }
    if worker["unconfirmed"] == true {
        let note = "it connected anew; until it announces itself, its MCP servers count as unknown";
        shown.field("Note", note);
    }
    for (server, health) in worker["announce"]["mcp_health"].as_object().into_iter().flatten() {
        let status = health.as_str().or_else(|| health["status"].as_str()).unwrap_or("unknown");
        let detail = health["detail"].as_str().map(|detail| format!(" ({detail})")).unwrap_or_default();
        shown.field("MCP server", &format!("{server} {status}{detail}"));
    }
    shown.print();
    Ok(())
}

fn joined(list: &Value) -> String {
    let words = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    words.collect::<Vec<_>>().join(", ")
}
