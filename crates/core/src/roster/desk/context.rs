//! Runs by their context: agents of some dialects answer with nothing but that, and several of their runs may be in one.

use super::{Desk, Entry};
use crate::ids::TaskId;

/// Callers choose the names of their contexts: runs of several of them are in this one, and any may be meant.
#[derive(Debug, PartialEq, Eq)]
pub struct Several;

impl Desk {
    /// The agent looks at a run: what it is told to be the context. Where others are in the same one, that is the task's
    /// own id, so that the answer is for no other.
    pub fn context_shown(&self, task: TaskId) -> Option<String> {
        let mut state = self.state();
        let context = state.runs.get(&task)?.work.context_id.clone();
        if state.runs.iter().any(|(other, entry)| *other != task && entry.work.context_id == context) {
            return Some(task.to_string());
        }
        state.runs.get_mut(&task)?.named = true;
        Some(context)
    }

    /// The run that is meant by a context: the one the agent was told is there alone, or else the oldest of a caller's.
    pub fn in_context(&self, context: &str) -> Result<Option<(TaskId, u32)>, Several> {
        let state = self.state();
        let own = TaskId::parse(context).and_then(|task| Some((task, state.runs.get(&task)?)));
        let here = state.runs.iter().filter(|(_, entry)| entry.work.context_id == context);
        let mut here: Vec<(TaskId, &Entry)> = here.map(|(task, entry)| (*task, entry)).collect();
        if let Some((task, entry)) = own {
            return if here.is_empty() { Ok(Some((task, entry.run))) } else { Err(Several) };
        }
        // What it was not sent yet it does not answer.
        if here.iter().any(|(_, entry)| entry.attempt > 0) {
            here.retain(|(_, entry)| entry.attempt > 0);
        }
        let Some((task, meant)) = here.iter().min_by_key(|(_, entry)| (!entry.named, entry.place)) else {
            return Ok(None);
        };
        if !meant.named && here.iter().any(|(_, entry)| entry.work.caller != meant.work.caller) {
            return Err(Several);
        }
        Ok(Some((*task, meant.run)))
    }
}
