//! `flotilla send` and `flotilla task`: a first client, over HTTP+JSON.

use super::block_on;
use super::pretty::pretty;
use anyhow::Result;
use clap::{Args, Subcommand};
use flotilla_outbound::client::{Client, ListOptions};
use flotilla_protocol::a2a::model::{Message, Part, Role};
use flotilla_protocol::a2a::request::{SendMessageConfiguration, SendMessageRequest};
use std::io::Write as _;

/// Where the hub is and who is asking.
#[derive(Debug, Args)]
pub struct Target {
    /// The hub's address
    #[arg(long, env = "FLOTILLA_URL", default_value = "http://127.0.0.1:7420")]
    url: String,
    /// Your key
    #[arg(long, env = "FLOTILLA_KEY", hide_env_values = true)]
    key: Option<String>,
    /// The agent [default: the hub's default agent]
    #[arg(long)]
    agent: Option<String>,
}

impl Target {
    fn client(&self) -> Result<Client> {
        Ok(Client::new(&self.url, self.agent.as_deref(), self.key.as_deref())?)
    }
}

#[derive(Debug, Args)]
pub struct Send {
    /// What to say
    text: String,
    #[command(flatten)]
    target: Target,
    /// Print each event as it comes, one JSON object a line
    #[arg(long)]
    stream: bool,
    /// Do not wait: print the task as soon as it exists
    #[arg(long, conflicts_with = "stream")]
    r#async: bool,
    /// Go on with this task
    #[arg(long, value_name = "ID")]
    task_id: Option<String>,
    /// Stay in this context
    #[arg(long, value_name = "ID")]
    context_id: Option<String>,
}

impl Send {
    pub fn run(self) -> Result<()> {
        let client = self.target.client()?;
        let message = Message {
            message_id: uuid::Uuid::new_v4().to_string(),
            role: Role::User,
            parts: vec![Part::text(self.text)],
            task_id: self.task_id.unwrap_or_default(),
            context_id: self.context_id.unwrap_or_default(),
            ..Message::default()
        };
        let configuration = SendMessageConfiguration { return_immediately: self.r#async, ..Default::default() };
        let request = SendMessageRequest {
            message: Some(message),
            configuration: Some(configuration),
            ..SendMessageRequest::default()
        };
        block_on(async {
            if self.stream {
                client.send_streaming(&request, print_line).await?;
            } else {
                let sent = client.send(&request).await?;
                print_pretty(&sent)?;
                warn_of_failure(&sent);
            }
            Ok(())
        })
    }
}

#[derive(Debug, Subcommand)]
pub enum TaskCommand {
    /// Show a task.
    Get {
        id: String,
        /// At most so many of the latest messages
        #[arg(long, value_name = "N")]
        history: Option<u32>,
        #[command(flatten)]
        target: Target,
    },
    /// List your tasks, newest first.
    List {
        #[arg(long, value_name = "ID")]
        context_id: Option<String>,
        /// For example TASK_STATE_WORKING
        #[arg(long, value_name = "STATE")]
        status: Option<String>,
        #[arg(long, value_name = "N")]
        page_size: Option<u32>,
        #[arg(long, value_name = "TOKEN")]
        page_token: Option<String>,
        #[command(flatten)]
        target: Target,
    },
    /// Cancel a task.
    Cancel {
        id: String,
        #[command(flatten)]
        target: Target,
    },
    /// Follow a task until it ends, one JSON object a line.
    Subscribe {
        id: String,
        /// Go on after this event id
        #[arg(long, value_name = "EVENT")]
        after: Option<String>,
        #[command(flatten)]
        target: Target,
    },
    /// Show everything that happened in a task of an agent you own.
    Log {
        id: String,
        #[command(flatten)]
        target: Target,
    },
}

impl TaskCommand {
    pub fn run(self) -> Result<()> {
        block_on(async {
            match self {
                Self::Get { id, history, target } => print_pretty(&target.client()?.get(&id, history).await?),
                Self::List { context_id, status, page_size, page_token, target } => {
                    let options = ListOptions { context_id, status, page_size, page_token };
                    print_pretty(&target.client()?.list(&options).await?)
                }
                Self::Cancel { id, target } => print_pretty(&target.client()?.cancel(&id).await?),
                Self::Subscribe { id, after, target } => {
                    Ok(target.client()?.subscribe(&id, after.as_deref(), print_line).await?)
                }
                Self::Log { id, target } => print_pretty(&target.client()?.log(&id).await?),
            }
        })
    }
}

/// A reader that closed its end has seen enough: that is no error.
fn print_line(line: &str) -> bool {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).is_ok()
}

fn print_pretty(json: &str) -> Result<()> {
    print_line(&pretty(json));
    Ok(())
}

/// The command did its work; that the task did not do its own is worth a word.
fn warn_of_failure(sent: &str) {
    let sent: serde_json::Value = serde_json::from_str(sent).unwrap_or_default();
    let state = sent["task"]["status"]["state"].as_str().unwrap_or_default();
    if ["TASK_STATE_FAILED", "TASK_STATE_REJECTED", "TASK_STATE_CANCELED"].contains(&state) {
        eprintln!("flotilla: the task ended as {state}");
    }
}
