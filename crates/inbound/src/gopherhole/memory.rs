//! Who sent a message in the dialect last, and by which program: some of its requests do not say so themselves.

use flotilla_core::caller::Caller;
use flotilla_core::ids::PrincipalId;
use http::HeaderMap;
use http::header::USER_AGENT;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// More than these are forgotten all at once; whoever speaks it says so again with the next message.
const KEPT: usize = 100_000;

/// The program a request comes from, as far as that can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// One on the socket, which says nothing of itself there.
    Socket,
    /// What it calls itself, hashed: two programs may share a key.
    Named(u64),
}

impl Program {
    pub fn of(headers: &HeaderMap) -> Self {
        let mut hasher = DefaultHasher::new();
        headers.get(USER_AGENT).map(http::HeaderValue::as_bytes).hash(&mut hasher);
        Self::Named(hasher.finish())
    }

    /// Whether they may be one. Clients on the socket call over HTTP while it is cut.
    fn may_be(self, other: Self) -> bool {
        self == other || self == Self::Socket || other == Self::Socket
    }
}

#[derive(Default)]
pub struct Speakers {
    /// Whether there was ever one: most hubs have none, and each message asks.
    any: AtomicBool,
    last: Mutex<HashMap<PrincipalId, Program>>,
}

impl Speakers {
    fn last(&self) -> MutexGuard<'_, HashMap<PrincipalId, Program>> {
        self.last.lock().expect("no panic while holding the speakers")
    }

    /// Whether the last message of a caller was in the dialect, and by this program.
    pub fn know(&self, caller: &Caller, program: Program) -> bool {
        self.last().get(&caller.principal).is_some_and(|last| last.may_be(program))
    }

    /// They have sent a message in it, and it was taken.
    pub fn remember(&self, caller: &Caller, program: Program) {
        if caller.is_anonymous() {
            return;
        }
        self.any.store(true, Ordering::Relaxed);
        let mut last = self.last();
        if last.len() >= KEPT {
            last.clear();
        }
        last.insert(caller.principal, program);
    }

    /// They have sent a message in another, whatever the binding.
    pub fn forget(&self, caller: &Caller) {
        if self.any.load(Ordering::Relaxed) {
            self.last().remove(&caller.principal);
        }
    }
}
