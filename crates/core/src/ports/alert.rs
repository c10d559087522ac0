//! What the core needs kept of alerts: that people have yet to be told.

use super::Later;
use crate::ids::TaskId;
use flotilla_protocol::time::Millis;

/// So many alerts wait for their notifiers at most; the oldest go.
pub const MOST_OWED: usize = 1_000;

/// An alert that has not come to all of its notifiers yet. Ids grow with time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owed {
    pub id: TaskId,
    pub at: Millis,
    /// The task it is about.
    pub task: TaskId,
    /// What notifiers are told, as JSON.
    pub body: String,
}

/// The part of the store that keeps them.
pub trait AlertStore: Send + Sync + 'static {
    /// Keeps one; beyond [`MOST_OWED`] the oldest is forgotten.
    fn owe(&self, owed: Owed) -> Later<()>;
    /// All that are kept, the oldest first.
    fn owed(&self) -> Later<Vec<Owed>>;
    /// There is nobody left to tell.
    fn forget_owed(&self, id: TaskId) -> Later<()>;
}
