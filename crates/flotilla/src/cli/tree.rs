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
    pub fn id(&self) -> &str {
        &self.id
    }

    pub async fn run(self, session: &Session) -> Result<(), Failure> {
        only_the_hub("task tree", &session.args)?;
        let json = owner::hub(session).tree(&self.id).await.map_err(owner::failure)?;
        if session.is_json() {
            document(&json);
            return Ok(());
        }
        let answer: Value = serde_json::from_str(&json).map_err(ClientError::malformed)?;
        let mut text = Text::default();
        let mut level = 0;
        for ancestor in answer["ancestors"].as_array().into_iter().flatten() {
            above(&mut text, ancestor, &answer["hubId"], level);
            level += 1;
        }
        below(&mut text, &answer["task"], level);
        text.print();
        if answer["more"] == true {
            say("There is more than is shown; ask for the tree of a task below.");
        }
        Ok(())
    }
}

/// A task that the one that was asked for is part of. One of another hub, or of somebody else, is known by its name only.
fn above(text: &mut Text, ancestor: &Value, here: &Value, level: usize) {
    let elsewhere = ancestor["hub"].as_str().filter(|hub| *here != **hub);
    let task = ancestor["task"].as_str().unwrap_or("(not told)");
    fields(text, level, task, ancestor);
    text.field(&indented(level, "Hub"), elsewhere.unwrap_or_default());
}

fn indented(level: usize, label: &str) -> String {
    format!("{}{label}", "  ".repeat(level))
}

/// What is known of a task, further in for each level.
fn fields(text: &mut Text, level: usize, id: &str, task: &Value) {
    text.field(&indented(level, "Task"), id);
    let known = [
        ("Context", "contextId"),
        ("Agent", "agent"),
        ("State", "state"),
        ("Provenance", "provenance"),
        ("Deadline", "deadline"),
    ];
    for (label, name) in known {
        text.field(&indented(level, label), task[name].as_str().unwrap_or_default());
    }
}

/// A task, and below it those that are part of it.
fn below(text: &mut Text, task: &Value, level: usize) {
    fields(text, level, task["taskId"].as_str().unwrap_or_default(), task);
    for child in task["children"].as_array().into_iter().flatten() {
        below(text, child, level + 1);
    }
}
