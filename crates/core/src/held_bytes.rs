//! Bytes the hub holds for requests it reads and answers nobody has taken yet. Each caller has a share, and all of them
//! together have a bound, so that no caller fills the hub's memory.

use crate::access::network;
use crate::ids::PrincipalId;
use crate::limits::{Limit, Limits};
use crate::map::IdMap;
use bytes::Bytes;
use flotilla_protocol::a2a::error::Refusal;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use std::time::Duration;

/// Requests without a key have this part of a caller's share, for each address.
const KEYLESS_PART: usize = 4;
/// Writers that wait for room go on when this part of a share is free again, so that not every byte wakes all of them.
const FREE_PART: usize = 8;
/// A share holds at least so many of the largest bodies.
const BODIES: usize = 4;
/// A caller has room for this part of a share whatever all others hold.
const RESERVED_PART: usize = 256;
/// When a refused request may find room.
const AGAIN: Duration = Duration::from_secs(1);
/// So many wakers are kept; beyond that all are woken to look again.
const MOST_WAITING: usize = 10_000;

/// Who the bytes are held for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Account {
    Caller(PrincipalId),
    /// Events that were read for a caller's streams and are not written yet. Apart from what is written, which makes room
    /// here: else each would wait for the other.
    Streams(PrincipalId),
    /// Requests that show no valid key, from one network.
    Keyless(Option<IpAddr>),
}

impl Account {
    pub fn keyless(from: Option<IpAddr>) -> Self {
        Self::Keyless(from.map(network))
    }
}

#[derive(Default)]
pub struct HeldBytes {
    sums: Mutex<Sums>,
}

#[derive(Default)]
struct Sums {
    per_caller: usize,
    most: usize,
    each: IdMap<Account, usize>,
    all: usize,
    /// Writers that wait until there is room.
    waiting: Vec<Waker>,
}

impl Sums {
    fn share(&self, account: Account) -> usize {
        match account {
            Account::Caller(_) | Account::Streams(_) => self.per_caller,
            Account::Keyless(_) => self.per_caller / KEYLESS_PART,
        }
    }

    /// What a caller may hold although the bound of all is reached.
    fn reserved(&self, account: Account) -> usize {
        match account {
            Account::Caller(_) => self.per_caller / RESERVED_PART,
            Account::Streams(_) | Account::Keyless(_) => 0,
        }
    }

    fn held_by(&self, account: Account) -> usize {
        self.each.get(&account).copied().unwrap_or_default()
    }

    fn add(&mut self, account: Account, bytes: usize) {
        *self.each.entry(account).or_default() += bytes;
        self.all += bytes;
    }

    fn remove(&mut self, account: Account, bytes: usize) {
        self.all -= bytes;
        if let Some(held) = self.each.get_mut(&account) {
            *held -= bytes;
            if *held == 0 {
                self.each.remove(&account);
            }
        }
    }
}

impl HeldBytes {
    pub fn new(limits: &Limits) -> Arc<Self> {
        let budget = Arc::<Self>::default();
        budget.set_limits(limits);
        budget
    }

    pub fn set_limits(&self, limits: &Limits) {
        let mut sums = self.sums();
        // The largest request has room beside its message and its answer, whatever is configured.
        sums.per_caller = limits.held_bytes_per_caller.max(limits.body.saturating_mul(BODIES));
        sums.most = limits.held_bytes.max(sums.per_caller);
    }

    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().expect("no panic while holding the sums")
    }

    /// Holds nothing yet.
    pub fn open(self: &Arc<Self>, account: Account) -> Held {
        Held { budget: Arc::clone(self), account, bytes: 0 }
    }

    /// How many bytes are held, for all callers.
    pub fn all(&self) -> usize {
        self.sums().all
    }

    /// Whether there is room for more; if not, the waker is woken when there is.
    pub fn has_room(&self, account: Account, waker: &Waker) -> bool {
        let mut sums = self.sums();
        let held = sums.held_by(account);
        if held < sums.share(account) && (sums.all < sums.most || held < sums.reserved(account)) {
            return true;
        }
        if !sums.waiting.iter().any(|known| known.will_wake(waker)) {
            sums.waiting.push(waker.clone());
        }
        // Those of writers that are gone are among them.
        if sums.waiting.len() > MOST_WAITING {
            std::mem::take(&mut sums.waiting).into_iter().for_each(Waker::wake);
        }
        false
    }
}

/// Bytes held for one request. Dropped, they are free again.
pub struct Held {
    budget: Arc<HeldBytes>,
    account: Account,
    bytes: usize,
}

impl Held {
    pub fn account(&self) -> Account {
        self.account
    }

    pub fn budget(&self) -> &Arc<HeldBytes> {
        &self.budget
    }

    /// Moves to the caller whose key the request shows.
    pub fn move_to(&mut self, account: Account) -> Result<(), Refusal> {
        if account == self.account {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.bytes);
        self.budget.sums().remove(self.account, bytes);
        self.account = account;
        self.grow(bytes)
    }

    /// Holds more, or refuses. One request alone may be larger than the share, as far as other limits let it.
    pub fn grow(&mut self, more: usize) -> Result<(), Refusal> {
        let mut sums = self.budget.sums();
        let (share, most) = (sums.share(self.account), sums.most);
        let (by_others_of_it, by_all_others) = (sums.held_by(self.account) - self.bytes, sums.all - self.bytes);
        let wanted = self.bytes + more;
        if by_others_of_it > 0 && by_others_of_it + wanted > share {
            return Err(full_share(share));
        }
        let is_reserved = by_others_of_it + wanted <= sums.reserved(self.account);
        if by_all_others > 0 && by_all_others + wanted > most && !is_reserved {
            return Err(full_hub(most));
        }
        sums.add(self.account, more);
        self.bytes = wanted;
        Ok(())
    }

    /// Holds more whatever there is: for what exists already and only waits to be written.
    pub fn grow_anyway(&mut self, more: usize) {
        self.budget.sums().add(self.account, more);
        self.bytes += more;
    }

    pub fn release(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.budget.free(self.account, bytes);
    }

    /// The same bytes, held until the last copy of them is dropped.
    pub fn keep(&self, bytes: Bytes) -> Bytes {
        let mut held = self.budget.open(self.account);
        held.grow_anyway(bytes.len());
        Bytes::from_owner(Kept { bytes, _held: held })
    }
}

impl HeldBytes {
    fn free(&self, account: Account, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let mut sums = self.sums();
        sums.remove(account, bytes);
        if sums.waiting.is_empty() {
            return;
        }
        let is_free = |held: usize, most: usize| held <= most - most / FREE_PART;
        let held = sums.held_by(account);
        let is_hub_free = is_free(sums.all, sums.most) || held < sums.reserved(account);
        if is_free(held, sums.share(account)) && is_hub_free {
            let waiting = std::mem::take(&mut sums.waiting);
            drop(sums);
            waiting.into_iter().for_each(Waker::wake);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}

struct Kept {
    bytes: Bytes,
    _held: Held,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn full_share(most: usize) -> Refusal {
    let text = format!(
        "Your requests, the messages agents work on, and the answers you have not read hold as many bytes as they may \
         ({most}). Read the answers, send fewer large messages at once, and try again."
    );
    Limit::HeldBytesPerCaller.refuse(most, text).retry_after(AGAIN)
}

fn full_hub(most: usize) -> Refusal {
    let text =
        format!("The hub holds as many bytes of requests and answers as it may ({most}). Try again in a moment.");
    Limit::HeldBytes.refuse(most, text).retry_after(AGAIN)
}

#[cfg(test)]
mod tests {
    use super::{Account, HeldBytes, RESERVED_PART};
    use crate::ids::PrincipalId;
    use crate::limits::{Limits, limit_of};
    use bytes::Bytes;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    const ONE: Account = Account::Caller(PrincipalId(1));
    const TWO: Account = Account::Caller(PrincipalId(2));
    const THREE: Account = Account::Caller(PrincipalId(3));

    fn budget() -> Arc<HeldBytes> {
        HeldBytes::new(&Limits { body: 1, held_bytes_per_caller: 100, held_bytes: 150, ..Limits::default() })
    }

    #[test]
    fn a_caller_who_holds_little_has_room_whatever_others_hold() {
        let most = 100 * RESERVED_PART;
        let limits = Limits { body: 1, held_bytes_per_caller: most, held_bytes: most, ..Limits::default() };
        let budget = HeldBytes::new(&limits);
        let (mut all, mut little) = (budget.open(ONE), budget.open(TWO));
        assert!(all.grow(most).is_ok() && little.grow(100).is_ok());
        assert!(budget.has_room(THREE, Waker::noop()) && !budget.has_room(TWO, Waker::noop()));
        assert_eq!(limit_of(&little.grow(1).unwrap_err()), Some("held_bytes"));
        assert!(budget.open(Account::Keyless(None)).grow(1).is_err());
    }

    #[test]
    fn the_largest_body_always_has_room() {
        let limits = Limits { body: 100, held_bytes_per_caller: 100, held_bytes: 150, ..Limits::default() };
        let budget = HeldBytes::new(&limits);
        let (mut body, mut message) = (budget.open(ONE), budget.open(ONE));
        assert!(body.grow(100).is_ok() && message.grow(100).is_ok());
    }

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_caller_has_its_share_and_all_have_their_bound() {
        let budget = budget();
        let (mut first, mut second) = (budget.open(ONE), budget.open(ONE));
        assert!(first.grow(60).is_ok() && second.grow(40).is_ok());
        assert_eq!(limit_of(&second.grow(1).unwrap_err()), Some("held_bytes_per_caller"));
        let mut other = budget.open(TWO);
        assert!(other.grow(50).is_ok());
        assert_eq!(limit_of(&budget.open(THREE).grow(1).unwrap_err()), Some("held_bytes"));
        drop(first);
        assert!(second.grow(60).is_ok());
        drop((second, other));
        assert_eq!(budget.all(), 0);
    }

    #[test]
    fn one_request_alone_may_be_larger_than_the_share() {
        let budget = budget();
        let mut large = budget.open(ONE);
        assert!(large.grow(50).is_ok() && large.grow(5_000).is_ok());
        assert!(budget.open(ONE).grow(1).is_err());
    }

    #[test]
    fn a_request_that_shows_a_key_is_held_for_its_caller() {
        let budget = budget();
        let mut request = budget.open(Account::Keyless(None));
        assert!(request.grow(20).is_ok());
        assert!(request.move_to(ONE).is_ok());
        let mut next = budget.open(Account::Keyless(None));
        assert!(next.grow(25).is_ok(), "what moved away does not count there");
        assert!(budget.open(Account::Keyless(None)).grow(1).is_err(), "a quarter of a caller's share");
    }

    #[test]
    fn requests_without_a_key_from_one_ipv6_network_share() {
        let account = |address: &str| Account::keyless(Some(address.parse().unwrap()));
        assert_eq!(account("2001:db8::1"), account("2001:db8::ffff:1"));
        assert_ne!(account("2001:db8::1"), account("2001:db8:0:1::1"));
        assert_ne!(account("10.0.0.1"), account("10.0.0.2"));
    }

    #[test]
    fn an_answer_is_held_until_its_last_copy_is_gone() {
        let budget = budget();
        let answer = budget.open(ONE).keep(Bytes::from_static(b"answer"));
        let mut copy = answer.clone();
        drop((answer, copy.split_to(3)));
        assert_eq!((budget.all(), copy.as_ref()), (6, b"wer".as_slice()));
        drop(copy);
        assert_eq!(budget.all(), 0);
    }

    #[test]
    fn a_writer_without_room_is_woken_when_an_eighth_is_free() {
        let (budget, count) = (budget(), Arc::new(Count::default()));
        let waker = Waker::from(Arc::clone(&count));
        let (mut most, mut little) = (budget.open(ONE), budget.open(ONE));
        assert!(budget.has_room(ONE, &waker));
        assert!(most.grow(95).is_ok() && little.grow(5).is_ok());
        assert!(!budget.has_room(ONE, &waker) && !budget.has_room(ONE, &waker));
        assert!(budget.has_room(TWO, &waker), "others have room");
        drop(little);
        assert_eq!(count.0.load(Ordering::SeqCst), 0);
        drop(most);
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
    }
}
