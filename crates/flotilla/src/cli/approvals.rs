//! `flotilla approvals`: what agents ask their owners leave for, and the answers.

use super::args::ClientArgs;
use super::failure::Failure;
use super::output::{Text, document};
use super::owner::{self, Listing, OwnerArgs};
use super::session::Session;
use clap::{Args, Subcommand};
use flotilla_outbound::client::error::ClientError;
use serde_json::{Value, json};

#[derive(Debug, Args)]
pub struct ApprovalsArgs {
    #[command(subcommand)]
    command: ApprovalsCommand,
    #[command(flatten)]
    owner: OwnerArgs,
}

#[derive(Debug, Subcommand)]
enum ApprovalsCommand {
    /// List what is asked, the newest first.
    List {
        /// Only those in this state: open, allowed, denied, expired, withdrawn;
        /// all of them with "all"
        #[arg(long, default_value = "open")]
        state: String,
        /// Only those of this task
        #[arg(long, value_name = "ID")]
        task: Option<String>,
        /// Only those of this agent of the hub
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
    },
    /// Show one with all that is known of it.
    Show {
        /// The approval's id
        id: String,
    },
    /// Say yes.
    Allow {
        /// The approval's id
        id: String,
        /// A word to the agent
        #[arg(long, default_value = "")]
        note: String,
        /// Use the tool with this instead (JSON)
        #[arg(long, value_name = "JSON")]
        input: Option<String>,
        /// Allow this tool for the rest of the task
        #[arg(long)]
        always: bool,
    },
    /// Say no.
    Deny {
        /// The approval's id
        id: String,
        /// A word to the agent
        #[arg(long, default_value = "")]
        note: String,
        /// Deny this tool for the rest of the task
        #[arg(long)]
        always: bool,
    },
}

const LISTING: Listing = Listing { path: "/api/approvals", name: "approvals", next: ("nextBefore", "before") };

impl ApprovalsArgs {
    pub fn client(&self) -> ClientArgs {
        self.owner.client()
    }

    pub async fn run(self, session: &Session) -> Result<(), Failure> {
        let hub = owner::hub(session);
        let told = match self.command {
            ApprovalsCommand::List { state, task, agent } => {
                let state = Some(state).filter(|state| state != "all");
                let filter = [("state", &state), ("task", &task), ("agent", &agent)];
                let filter = filter.map(|(name, value)| (name, value.as_deref()));
                LISTING
                    .print(session, &hub, &filter, |text, approval| {
                        fields(text, approval);
                    })
                    .await
            }
            ApprovalsCommand::Show { id } => hub.approval(&id).await.and_then(|json| show(session, &json)),
            ApprovalsCommand::Allow { id, note, input, always } => {
                let mut answer = json!({"decision": "allow", "note": note, "always": always});
                if let Some(input) = input {
                    answer["input"] = serde_json::from_str(&input)
                        .map_err(|error| Failure::usage(format!("--input is not JSON: {error}")))?;
                }
                hub.answer_approval(&id, &answer).await.and_then(|json| show(session, &json))
            }
            ApprovalsCommand::Deny { id, note, always } => {
                let answer = json!({"decision": "deny", "note": note, "always": always});
                hub.answer_approval(&id, &answer).await.and_then(|json| show(session, &json))
            }
        };
        told.map_err(owner::failure)
    }
}

fn show(session: &Session, json: &str) -> Result<(), ClientError> {
    if session.is_json() {
        document(json);
        return Ok(());
    }
    let approval: Value = serde_json::from_str(json).map_err(ClientError::malformed)?;
    fields(&mut Text::default(), &approval).print();
    Ok(())
}

fn fields<'a>(text: &'a mut Text, approval: &Value) -> &'a mut Text {
    let word = |name: &str| approval[name].as_str().unwrap_or_default();
    let json = |value: &Value| if value.is_null() { String::new() } else { value.to_string() };
    text.field("Approval", word("id")).field("State", word("state")).field("Agent", word("agent"));
    text.field("Task", word("taskId")).field("Tool", word("tool")).field("Input", &json(&approval["input"]));
    text.field("Asks", word("text")).field("Asked at", word("createdAt"));
    let answer = &approval["answer"];
    if answer.is_null() {
        return text.field("Expires at", word("expiresAt"));
    }
    let word = |name: &str| answer[name].as_str().unwrap_or_default();
    text.field("Answered by", word("by")).field("Answered at", word("at")).field("Note", word("note"));
    let always = if answer["always"] == true { "for the whole task" } else { "" };
    text.field("Instead", &json(&answer["input"])).field("Holds", always)
}
