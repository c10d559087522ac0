//! Where usage is added up: with each commit that tells of some, and kept when its task is not.

use super::Later;
use crate::caller::Scope;
use crate::ids::{TaskId, WorkspaceId};
use crate::usage::{By, Sum, UsageFilter};
use flotilla_protocol::usage::Usage;

/// The part of the store that keeps the ledger. Commits write it; nothing else does. It is the owner's: a caller's scope
/// sees nothing of it.
pub trait UsageStore: Send + Sync + 'static {
    /// What a task and all those it is the parent of have used.
    fn usage_below(&self, task: TaskId) -> Later<Usage>;
    /// The name of a workspace; empty if there is none.
    fn workspace_name(&self, id: WorkspaceId) -> Later<String>;
    fn usage(&self, scope: Scope, by: By, filter: UsageFilter) -> Later<Vec<Sum>>;
}
