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
        lines(&mut text, &answer["task"], level);
        text.print();
        if answer["more"] == true {
            say("There is more than is shown; ask for the tree of a task below.");
        }
        Ok(())
    }
}

/// A task that the one that was asked for is part of. One of another hub, or of somebody else, is known by its name only.
fn above(text: &mut Text, ancestor: &Value, here: &Value, level: usize) {
    let task = ancestor["task"].as_str().unwrap_or("(task not told)");
    let elsewhere = ancestor["hub"].as_str().filter(|hub| *here != **hub).map(|hub| format!(" on hub {hub}"));
    text.field(&indented(level, task), &format!("{}{}", standing(ancestor), elsewhere.unwrap_or_default()));
}

fn indented(level: usize, id: &str) -> String {
    format!("{}{id}", "  ".repeat(level))
}

/// `agent state provenance, deadline TIME`, as far as it is known.
fn standing(task: &Value) -> String {
    let words = ["agent", "state", "provenance"].into_iter().filter_map(|name| task[name].as_str());
    let deadline = task["deadline"].as_str().map(|at| format!(", deadline {at}"));
    format!("{}{}", words.collect::<Vec<_>>().join(" "), deadline.unwrap_or_default())
}

/// One line for each task, further in for each level.
fn lines(text: &mut Text, task: &Value, level: usize) {
    text.field(&indented(level, task["taskId"].as_str().unwrap_or_default()), &standing(task));
    for child in task["children"].as_array().into_iter().flatten() {
        lines(text, child, level + 1);
    }
}
