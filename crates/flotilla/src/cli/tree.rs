//! `flotilla task tree`: what a task is part of, and what is part of it.

use super::failure::Failure;
use super::log::only_the_hub;
use super::output::{Text, document, say};
use super::owner;
use super::session::Session;
use clap::Args;
use flotilla_outbound::client::error::ClientError;
use serde_json::Value;

#[derive(Debug, Args)]
pub struct Tree {
    /// The task's id
    id: String,
}

impl Tree {
    pub async fn run(self, session: &Session) -> Result<(), Failure> {
        only_the_hub("task tree", &session.args)?;
        let json = owner::hub(session).tree(&self.id).await.map_err(owner::failure)?;
        if session.is_json() {
            document(&json);
            return Ok(());
        }
        let answer: Value = serde_json::from_str(&json).map_err(ClientError::malformed)?;
        for ancestor in answer["ancestors"].as_array().into_iter().flatten() {
            let word = |name: &str| ancestor[name].as_str().unwrap_or_default();
            say(&format!("part of {} of agent {} on hub {}", word("task"), word("agent"), word("hub")));
        }
        let mut text = Text::default();
        lines(&mut text, &answer["task"], 0);
        text.print();
        if answer["more"] == true {
            say("There is more than is shown; ask for the tree of a task below.");
        }
        Ok(())
    }
}

/// One line for each task, further in for each level.
fn lines(text: &mut Text, task: &Value, level: usize) {
    let word = |name: &str| task[name].as_str().unwrap_or_default();
    let label = format!("{}{}", "  ".repeat(level), word("taskId"));
    text.field(&label, &format!("{} {} {}", word("agent"), word("state"), word("provenance")));
    for child in task["children"].as_array().into_iter().flatten() {
        lines(text, child, level + 1);
    }
}
