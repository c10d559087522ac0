//! Where usage is added up: with each commit that tells of some, and kept when its task is not.

use super::Later;
use crate::caller::Scope;
use crate::usage::{By, Sum, UsageFilter};

/// The part of the store that keeps the ledger. Commits write it; nothing else does. It is the owner's: a caller's scope
/// sees nothing of it.
pub trait UsageStore: Send + Sync + 'static {
    fn usage(&self, scope: Scope, by: By, filter: UsageFilter) -> Later<Vec<Sum>>;
}
