//! Who spoke the dialect last: some of its requests do not say so themselves.

use flotilla_core::caller::Caller;
use flotilla_core::ids::PrincipalId;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};

/// More than these are forgotten all at once; whoever speaks it says so again with the next message.
const KEPT: usize = 100_000;

#[derive(Default)]
pub struct Speakers(Mutex<HashSet<PrincipalId>>);

impl Speakers {
    fn all(&self) -> MutexGuard<'_, HashSet<PrincipalId>> {
        self.0.lock().expect("no panic while holding the speakers")
    }

    pub fn know(&self, caller: &Caller) -> bool {
        self.all().contains(&caller.principal)
    }

    pub fn remember(&self, caller: &Caller) {
        if caller.is_anonymous() {
            return;
        }
        let mut all = self.all();
        if all.len() >= KEPT {
            all.clear();
        }
        all.insert(caller.principal);
    }

    /// They have sent a message in another.
    pub fn forget(&self, caller: &Caller) {
        self.all().remove(&caller.principal);
    }
}
