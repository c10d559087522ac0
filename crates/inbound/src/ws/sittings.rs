//! Sittings: for how long the id of a peer's frame means the same message. Many peers number their frames from one on
//! each connection; others send again what was not acknowledged before a cut.

use flotilla_core::ids::PrincipalId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// One of a caller's: from its first connection until it says good-bye on the last, over all cuts between.
/// A start of the hub ends all: it cannot know who said good-bye before.
struct Sitting {
    /// Goes before the ids, and is like no other: messages are kept under it for long.
    name: Arc<str>,
    open: usize,
}

impl Default for Sitting {
    fn default() -> Self {
        Self { name: format!("{}.", uuid::Uuid::new_v4().simple()).into(), open: 0 }
    }
}

#[derive(Default)]
pub struct Sittings(Mutex<HashMap<PrincipalId, Sitting>>);

impl Sittings {
    fn all(&self) -> MutexGuard<'_, HashMap<PrincipalId, Sitting>> {
        self.0.lock().expect("no panic while holding the sittings")
    }

    pub fn join(self: &Arc<Self>, principal: PrincipalId) -> Seated {
        self.all().entry(principal).or_default().open += 1;
        Seated { sittings: Arc::clone(self), principal, said_good_bye: false }
    }

    pub fn name(&self, principal: PrincipalId) -> Arc<str> {
        Arc::clone(&self.all().entry(principal).or_default().name)
    }

    /// Begins another, unless somebody has since it was this one.
    pub fn renew(&self, principal: PrincipalId, this: &str) {
        let mut all = self.all();
        let sitting = all.entry(principal).or_default();
        if *sitting.name == *this {
            sitting.name = Sitting::default().name;
        }
    }
}

/// A connection that takes part, as long as it is open.
pub struct Seated {
    sittings: Arc<Sittings>,
    principal: PrincipalId,
    /// It ends because its peer wants it to, who has nothing to send again.
    pub said_good_bye: bool,
}

impl Drop for Seated {
    fn drop(&mut self) {
        let mut all = self.sittings.all();
        let Some(sitting) = all.get_mut(&self.principal) else { return };
        sitting.open = sitting.open.saturating_sub(1);
        if sitting.open == 0 && self.said_good_bye {
            all.remove(&self.principal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Sittings;
    use flotilla_core::ids::PrincipalId;
    use std::sync::Arc;

    #[test]
    fn a_sitting_goes_on_over_cuts_and_ends_with_the_last_good_bye() {
        let (sittings, me) = (Arc::new(Sittings::default()), PrincipalId(1));
        let (cut, mut other) = (sittings.join(me), sittings.join(me));
        let first = sittings.name(me);
        drop(cut);
        other.said_good_bye = true;
        let next = sittings.join(me);
        drop(other);
        assert_eq!(sittings.name(me), first, "one is still there");
        drop(next);
        let mut last = sittings.join(me);
        assert_eq!(sittings.name(me), first, "all were cut");
        last.said_good_bye = true;
        drop(last);
        let name = sittings.name(me);
        assert_ne!(name, first);
        sittings.renew(me, &first);
        assert_eq!(sittings.name(me), name, "that one was over already");
        sittings.renew(me, &name);
        assert_ne!(sittings.name(me), name);
        assert_ne!(Sittings::default().name(me), Sittings::default().name(me), "of two starts of the hub");
    }
}
