//! Reads of whole tasks take turns: what they bring is in memory before anybody can count it.

use crate::ids::PrincipalId;
use crate::map::IdMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Tasks that are read at once for all callers.
const ALL: usize = 8;
/// And for one of them: readers of the store are left for the others.
const EACH: usize = 2;
/// What a page of tasks counts for.
const PAGE: u32 = 2;
/// Callers known before those that read nothing are forgotten.
const MANY: usize = 1024;

pub struct Turns {
    all: Arc<Semaphore>,
    each: Mutex<IdMap<Option<PrincipalId>, Weak<Semaphore>>>,
}

/// Dropped when what was read is taken.
pub struct Turn {
    _all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

impl Default for Turns {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(ALL)), each: Mutex::default() }
    }
}

impl Turns {
    /// Waits until the caller may read a task; none is the hub itself.
    pub async fn task(&self, principal: Option<PrincipalId>) -> Turn {
        self.wait(principal, 1).await
    }

    pub async fn page(&self, principal: PrincipalId) -> Turn {
        self.wait(Some(principal), PAGE).await
    }

    async fn wait(&self, principal: Option<PrincipalId>, weight: u32) -> Turn {
        // The caller's own line comes first: many requests of one caller are one in the line of all.
        let _own = self.own(principal).acquire_many_owned(weight).await.expect("no semaphore is closed");
        let _all = Arc::clone(&self.all).acquire_many_owned(weight).await.expect("no semaphore is closed");
        Turn { _all, _own }
    }

    fn own(&self, principal: Option<PrincipalId>) -> Arc<Semaphore> {
        let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = each.get(&principal).and_then(Weak::upgrade) {
            return own;
        }
        if each.len() >= MANY {
            each.retain(|_, own| own.strong_count() > 0);
        }
        let own = Arc::new(Semaphore::new(EACH));
        each.insert(principal, Arc::downgrade(&own));
        own
    }
}

#[cfg(test)]
mod tests {
    use super::{EACH, Turns};
    use crate::ids::PrincipalId;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn is_next(future: impl Future) -> bool {
        matches!(pin!(future).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(_))
    }

    #[tokio::test]
    async fn a_caller_who_reads_much_leaves_turns_to_others() {
        let turns = Turns::default();
        let (one, two, three) = (PrincipalId(1), PrincipalId(2), PrincipalId(3));
        let mut taken = Vec::new();
        for _ in 0..EACH {
            taken.push(turns.task(Some(one)).await);
        }
        assert!(!is_next(turns.task(Some(one))) && is_next(turns.task(Some(two))));
        taken.push(turns.page(two).await);
        assert!(!is_next(turns.task(Some(two))));
        taken.push(turns.page(three).await);
        assert!(is_next(turns.page(PrincipalId(4))));
        taken.push(turns.task(None).await);
        taken.push(turns.task(None).await);
        assert!(!is_next(turns.task(Some(PrincipalId(4)))), "all turns are taken");
        taken.clear();
        assert!(is_next(turns.page(one)));
    }
}
