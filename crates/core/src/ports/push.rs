//! What push needs from outside: a place for hooks, and a courier that carries webhooks.

use super::Later;
use crate::caller::Scope;
use crate::ids::{HookId, TaskId};
use crate::push::{Attempt, Came, Hook, HookChange, HookFilter, Settled, Target};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::push::PushOptions;
use flotilla_protocol::a2a::request::PushConfig;
use flotilla_protocol::a2a::version::Version;
use flotilla_protocol::lineage::Trace;
use flotilla_protocol::time::Millis;
use std::future::Future;
use std::pin::Pin;

/// Where a hook's task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// There is no such task: its first commit was never made, or retention took it.
    Gone,
    At(u64),
}

/// The part of the store that keeps hooks. Each call is durable when it is answered; calls made together share a flush.
pub trait HookStore: Send + Sync + 'static {
    /// Adds a hook, or takes its target and options into the one of the same name, also if that is deleted
    /// (`Hook::renewed`). None if the task has `most` of them already, or too many that are deleted.
    fn add_hook(&self, hook: Hook, most: usize) -> Later<Option<Hook>>;
    /// The hooks of a task that are not deleted, oldest first.
    fn hooks(&self, scope: Scope, task: TaskId) -> Later<Vec<Hook>>;
    /// Removes one by its name with all that is known of it; says which one that was.
    fn remove_hook(&self, scope: Scope, task: TaskId, id: &str) -> Later<Option<HookId>>;
    fn settle_hook(&self, settled: Settled) -> Later<()>;
    /// Active hooks by id, from after one of them.
    fn active_hooks(&self, after: Option<HookId>, limit: usize) -> Later<Vec<(Hook, Standing)>>;
    fn hook(&self, scope: Scope, id: HookId) -> Later<Option<Hook>>;
    /// The newest first.
    fn hook_page(&self, scope: Scope, filter: HookFilter) -> Later<Vec<Hook>>;
    /// The latest attempts of a hook, newest first.
    fn attempts(&self, scope: Scope, id: HookId, limit: usize) -> Later<Vec<Attempt>>;
    /// Changes a hook from outside; the hook after it.
    fn change_hook(&self, scope: Scope, id: HookId, change: HookChange) -> Later<Option<Hook>>;
}

/// A webhook on its way.
#[derive(Debug, Clone)]
pub struct Parcel {
    /// The same for every attempt at one delivery.
    pub id: String,
    pub at: Millis,
    pub target: Target,
    pub options: PushOptions,
    pub version: Version,
    /// The trace of the task it tells of.
    pub trace: Trace,
    pub body: Vec<u8>,
}

/// Carries webhooks, and says beforehand where none can be carried.
pub trait Courier: Send + Sync + 'static {
    /// Checks where a config leads and what it would send, and seals its secrets.
    fn accept(&self, config: PushConfig, options: PushOptions) -> Accepting;
    /// Makes one attempt, within a time-out of its own.
    fn carry(&self, parcel: Parcel) -> Pin<Box<dyn Future<Output = Came> + Send>>;
    /// Whether a target's secrets need another key than the hub has.
    fn is_locked(&self, target: &Target) -> bool;
}

/// The target of a config, or why there cannot be one.
pub type Accepting = Pin<Box<dyn Future<Output = Result<Target, Refusal>> + Send>>;
