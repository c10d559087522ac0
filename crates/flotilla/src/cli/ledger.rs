//! `flotilla usage`: what agents used, by task, agent, context, workspace or day.

use super::args::ClientArgs;
use super::failure::Failure;
use super::output::{Text, document};
use super::owner::{self, OwnerArgs};
use super::session::Session;
use clap::Args;
use flotilla_outbound::client::error::ClientError;
use serde_json::Value;

#[derive(Debug, Args)]
pub struct UsageArgs {
    /// What to add up by: task, agent, context, workspace or day
    #[arg(long, default_value = "agent")]
    by: String,
    /// Only from this day on (UTC), such as 2026-01-31
    #[arg(long, value_name = "DAY")]
    since: Option<String>,
    /// Only up to this day
    #[arg(long, value_name = "DAY")]
    until: Option<String>,
    /// Only what this task used
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Only what this agent of the hub used
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only what was used in this context
    #[arg(long, value_name = "ID")]
    context: Option<String>,
    #[command(flatten)]
    owner: OwnerArgs,
}

/// The figures, as they are called in answers and to people.
const FIGURES: [(&str, &str); 6] = [
    ("Input", "inputTokens"),
    ("Output", "outputTokens"),
    ("Cache read", "cacheReadTokens"),
    ("Cache write", "cacheWriteTokens"),
    ("Tokens", "totalTokens"),
    ("Cost (USD)", "costUsd"),
];

impl UsageArgs {
    pub fn client(&self) -> ClientArgs {
        self.owner.client()
    }

    pub async fn run(self, session: &Session) -> Result<(), Failure> {
        let Self { by, since, until, task, agent, context, .. } = &self;
        let given = [("since", since), ("until", until), ("task", task), ("agent", agent), ("context", context)];
        let given = given.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
        let query: Vec<(&str, &str)> = [("by", by.as_str())].into_iter().chain(given).collect();
        let json = owner::hub(session).show("/api/usage", &query).await.map_err(owner::failure)?;
        if session.is_json() {
            document(&json);
            return Ok(());
        }
        let answer: Value = serde_json::from_str(&json).map_err(ClientError::malformed)?;
        let mut text = Text::default();
        for sum in answer["usage"].as_array().into_iter().flatten() {
            text.field(&capital(by), sum["key"].as_str().unwrap_or_default());
            text.field("Tasks", &sum["tasks"].to_string());
            figures(&mut text, sum);
            text.gap();
        }
        text.field("All", "");
        figures(&mut text, &answer["total"]);
        if answer["more"] == true {
            text.field("Note", "there is more; narrow it down with --since, --agent or --task");
        }
        text.print();
        Ok(())
    }
}

fn figures(text: &mut Text, sum: &Value) {
    for (shown, name) in FIGURES {
        let value = &sum[name];
        let incomplete = sum["incomplete"].as_array().is_some_and(|names| names.iter().any(|gap| gap == name));
        let known = match value {
            Value::Null => "unknown".to_owned(),
            value if incomplete => format!("{value} or more: not all of it was told"),
            value => value.to_string(),
        };
        text.field(shown, &known);
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
