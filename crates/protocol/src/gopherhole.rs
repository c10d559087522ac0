//! GopherHole's dialect, as its published clients speak it: bare tasks, flat parts, a status whose message is a text.

mod part;
mod push;
mod report;
mod request;
mod task;
#[cfg(test)]
mod tests;

pub use part::{payload, read_message};
pub use push::{push_config, push_configs};
pub use report::reports;
pub use request::{Asked, OWN_METHODS, Search, is_own_method, read};
pub use task::{Parties, page, sent, shown_state, states_of, task};

use crate::a2a::model::Task;

/// Messages in this dialect have no ids of their own. Those the hub gives them begin with this, and by it a task is known
/// to have been begun in the dialect.
const MESSAGE_ID: &str = "gph-";

/// Whether a task was begun in this dialect. Asked of its whole history.
pub fn speaks_of(task: &Task) -> bool {
    task.history.first().is_some_and(|message| message.message_id.starts_with(MESSAGE_ID))
}

pub fn message_id(random: &str) -> String {
    format!("{MESSAGE_ID}{random}")
}
