//! `flotilla dispatch`: work for a worker, under a contract.

use super::args::{ClientArgs, HubArgs};
use super::asking::{Asking, Pace};
use super::deliveries::hub;
use super::failure::Failure;
use super::follow;
use super::output::{Text, document};
use super::render::Detail;
use super::session::{Session, quoted};
use clap::Args;
use flotilla_outbound::client::error::ClientError;
use flotilla_protocol::a2a::model::{Task, TaskState};
use flotilla_protocol::fleet::HANDSHAKE;
use flotilla_protocol::lineage::find_member;
use flotilla_protocol::time::Millis;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// The exit status of work that was waited for and is not done.
const NOT_DONE: u8 = 6;

#[derive(Debug, Args)]
pub struct Dispatch {
    /// What is to be done
    brief: String,
    /// Who is to do it: any, label:L, skill:S, or a worker's name
    #[arg(long, value_name = "WHO", default_value = "any")]
    to: String,
    /// low, normal, high or urgent
    #[arg(long, value_name = "PRIORITY", value_parser = ["low", "normal", "high", "urgent"], hide_possible_values = true)]
    priority: Option<String>,
    /// Not to be begun after this time, such as 2026-05-31T21:00:00Z
    #[arg(long, value_name = "TIME")]
    deadline: Option<String>,
    /// A ceiling on all tokens
    #[arg(long, value_name = "N")]
    token_budget: Option<u64>,
    /// A ceiling on what it costs, in US dollars
    #[arg(long, value_name = "USD")]
    max_cost: Option<f64>,
    /// Stop the work when a ceiling is reached; without it that is only told
    #[arg(long)]
    hard: bool,
    /// An MCP server the worker must have, healthy (may be repeated)
    #[arg(long, value_name = "NAME")]
    require_mcp: Vec<String>,
    /// A tool the worker must have, such as terminal or file (may be repeated)
    #[arg(long, value_name = "TOOL")]
    require: Vec<String>,
    /// A label the worker must have (may be repeated)
    #[arg(long, value_name = "LABEL")]
    require_label: Vec<String>,
    /// The least context window that will do, in tokens
    #[arg(long, value_name = "N")]
    context_window: Option<u64>,
    /// The least tier of model that will do
    #[arg(long, value_name = "TIER")]
    tier: Option<String>,
    /// The work changes files, so it wants a clean tree
    #[arg(long)]
    write: bool,
    /// How to reply: prose, structured or json
    #[arg(long, value_name = "FORM", value_parser = ["prose", "structured", "json"], hide_possible_values = true)]
    reply_schema: Option<String>,
    /// A file with the JSON Schema a json reply must be valid against
    #[arg(long, value_name = "FILE")]
    json_schema: Option<PathBuf>,
    /// What to do while no worker can take it, in this order: reroute, queue,
    /// alert; an empty text for nothing
    #[arg(long, value_name = "STEPS")]
    on_blocked: Option<String>,
    /// Your own id for the work, repeated in its result
    #[arg(long, value_name = "ID")]
    task_id: Option<String>,
    /// The context the work belongs to: whoever worked in it before is preferred
    #[arg(long, value_name = "ID")]
    context: Option<String>,
    /// Wait until the work is done, or the worker asks for something; the exit
    /// status is 6 if it is not done
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    hub: HubArgs,
    /// A key of the hub. Others on this machine can see it in the process list:
    /// better set FLOTILLA_KEY
    #[arg(long, value_name = "TOKEN", help_heading = "Credentials")]
    bearer: Option<String>,
    /// The same, under another name: better set FLOTILLA_KEY
    #[arg(long, value_name = "KEY", help_heading = "Credentials")]
    api_key: Option<String>,
}

#[derive(Deserialize)]
struct Given {
    agent: String,
    task: Box<serde_json::value::RawValue>,
}

impl Dispatch {
    pub fn client(&self) -> ClientArgs {
        ClientArgs { bearer: self.bearer.clone(), api_key: self.api_key.clone(), ..self.hub.client() }
    }

    /// The words of the hub's own messages name the fields, so a slip is told by the hub.
    fn json(&self) -> Result<Value, Failure> {
        let mut task = Map::new();
        let mut put = |name: &str, value: Option<Value>| value.map(|value| task.insert(name.to_owned(), value));
        put("task_id", self.task_id.clone().map(Value::from));
        put("priority", self.priority.clone().map(Value::from));
        put("token_budget", self.token_budget.map(Value::from));
        let ceiling = json!({"max_total_tokens": self.token_budget, "max_cost_usd": self.max_cost, "hard": self.hard});
        put("budget", (self.hard || self.max_cost.is_some()).then_some(ceiling));
        put("reply_schema", self.reply_schema.clone().map(Value::from));
        if let Some(path) = &self.json_schema {
            let wrong = |problem: String| Failure::usage(format!("--json-schema {}: {problem}", path.display()));
            let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
            put("json_schema", Some(serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?));
        }
        let mut requirements = json!({"required_mcp": self.require_mcp, "required_capabilities": self.require,
            "labels": self.require_label, "context_window": self.context_window});
        if let Some(tier) = &self.tier {
            requirements["model_tier"] = tier.clone().into();
        }
        if self.write {
            requirements["write"] = true.into();
        }
        let mut dispatch = json!({"type": "TASK_DISPATCH", "protocol_version": "2.0", "task": task,
            "requirements": requirements, "to": self.to, "brief": self.brief});
        if let Some(deadline) = &self.deadline {
            let at = Millis::parse(deadline).map_err(|problem| Failure::usage(format!("--deadline: {problem}")))?;
            dispatch["deadline"] = at.to_string().into();
        }
        if let Some(context) = &self.context {
            dispatch["contextId"] = context.as_str().into();
        }
        if let Some(steps) = &self.on_blocked {
            let steps: Vec<&str> = steps.split(',').map(str::trim).filter(|step| !step.is_empty()).collect();
            dispatch["on_blocked"] = steps.into();
        }
        Ok(dispatch)
    }

    pub async fn run(self, session: &Session) -> Result<(), Failure> {
        let json = hub(session).dispatch(self.json()?.to_string()).await?;
        let given: Given = serde_json::from_str(&json).map_err(ClientError::malformed)?;
        let task: Task = serde_json::from_str(given.task.get()).map_err(ClientError::malformed)?;
        if !self.wait {
            return show(session, &given.agent, &task, given.task.get());
        }
        session.watch.saw_task(&task.id, None);
        let asking = Session::new(ClientArgs { agent: Some(given.agent.clone()), ..self.client() })?;
        let client = asking.client().await?;
        let pace = Pace::of(&asking, None)?;
        let done = Asking::new(&client, &task.id, None, pace).until_the_end(&asking).await?;
        let state = done.value.status.state;
        show(session, &given.agent, &done.value, &done.json)?;
        follow::warn_of_state(state);
        // A script has to know whether it may go on.
        if state == TaskState::Completed { Ok(()) } else { Err(Failure::silent(NOT_DONE)) }
    }
}

fn show(session: &Session, agent: &str, task: &Task, json: &str) -> Result<(), Failure> {
    if session.is_json() {
        document(json);
        return Ok(());
    }
    let mut text = Text::default();
    text.task(task, Detail { verbose: session.verbose, history: session.verbose });
    text.field("Result", standing(task).as_deref().unwrap_or_default());
    let words = format!("task get {} --agent {} --wait", quoted(&task.id), quoted(agent));
    text.field("Follow", &session.command(&words));
    text.field("Why", &session.command(&format!("task why {}", quoted(&task.id)))).print();
    Ok(())
}

/// Whether its result is accepted, or only reported; none before there is one.
fn standing(task: &Task) -> Option<String> {
    let artifacts = task.artifacts.iter().flatten().rev();
    let told = artifacts.filter_map(|artifact| find_member(artifact.metadata.as_ref()?, HANDSHAKE)).next()?;
    let told: Value = serde_json::from_str(told.text()).ok()?;
    let standing = told["standing"].as_str()?;
    let is_failed = |check: &&Value| check["ok"] == false;
    let failed = told["checks"].as_array().into_iter().flatten().filter(is_failed);
    let failed: Vec<&str> = failed.filter_map(|check| check["name"].as_str()).collect();
    Some(if failed.is_empty() { standing.to_owned() } else { format!("{standing} (not met: {})", failed.join(", ")) })
}
