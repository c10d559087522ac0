//! The one place where a credential becomes a caller, and where a caller's leave ends.

use crate::caller::Caller;
use crate::error::{Error, Fault};
use crate::key::{KeyRecord, is_key, same, sha256};
use crate::limits::Limit;
use crate::map::IdMap;
use crate::ports::{Clock, Digest, Store};
use crate::rate::{Pace, Rate};
use arc_swap::ArcSwap;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::time::Millis;
use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::sync::{Mutex, watch};

/// How often the store is asked whether keys have changed: the longest a key that another process revoked is still
/// good here.
pub const RECHECK: Duration = Duration::from_secs(1);

/// A key that is in use.
struct Known {
    caller: Caller,
    hash: Digest,
    expires_at: Option<Millis>,
}

/// All keys in use, as of a revision of the store's: a request that shows one of them asks no store.
#[derive(Default)]
struct Table {
    revision: u64,
    /// Found by their first bytes, then compared whole.
    keys: IdMap<u64, Known>,
}

fn place(hash: &Digest) -> u64 {
    hash[..8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl Table {
    fn of(revision: u64, records: Vec<KeyRecord>) -> Self {
        let live = records.into_iter().filter(|record| record.revoked_at.is_none());
        let keys = live.map(|record| (place(&record.hash), Known::of(record)));
        Self { revision, keys: keys.collect() }
    }

    fn find(&self, hash: &Digest, clock: &dyn Clock) -> Option<&Known> {
        let known = self.keys.get(&place(hash)).filter(|known| same(&known.hash, hash))?;
        known.expires_at.is_none_or(|end| clock.now() < end).then_some(known)
    }
}

impl Known {
    fn of(record: KeyRecord) -> Self {
        let caller = Caller {
            principal: record.principal.id,
            workspace: record.principal.workspace,
            name: record.name.to_string().into(),
            stands_for: record.principal.name.into(),
            rights: record.rights,
            agents: record.agents.map(Into::into),
            key: Some(record.hash),
            agent: None,
        };
        Self { caller, hash: record.hash, expires_at: record.expires_at }
    }
}

/// What a request shows of itself. It cannot be printed, because it holds the key.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    pub key: Option<&'a str>,
    /// Where it comes from, if that is known. It never says who is asking.
    pub from: Option<IpAddr>,
    /// The wrong keys that may come from one address in a minute.
    pub most_wrong: u32,
}

/// The part of an address that a client cannot choose: of IPv6, anybody has a whole network.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from(u128::from(address) & (u128::MAX << 64))),
        address => address,
    }
}

/// Which keys were good from which address: those go on while others there must wait.
#[derive(Default)]
struct Familiar(RwLock<HashSet<(IpAddr, u64)>>);

impl Familiar {
    /// More than these are forgotten all at once; who is known well comes again.
    const KEPT: usize = 100_000;

    fn knows(&self, from: IpAddr, hash: &Digest) -> bool {
        self.0.read().expect("no panic while holding what is familiar").contains(&(from, place(hash)))
    }

    fn remember(&self, from: IpAddr, hash: &Digest) {
        if self.knows(from, hash) {
            return;
        }
        let mut known = self.0.write().expect("no panic while holding what is familiar");
        if known.len() >= Self::KEPT {
            known.clear();
        }
        known.insert((from, place(hash)));
    }
}

pub struct Access {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    allow_anonymous: bool,
    table: ArcSwap<Table>,
    /// One refresh at a time, so that an older table never takes the place of a newer one.
    refreshing: Mutex<()>,
    /// The revision of the table, for those who must know when it changes.
    revision: watch::Sender<u64>,
    /// Wrong keys, by where they came from.
    wrong: Rate<IpAddr>,
    familiar: Familiar,
}

impl Access {
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, allow_anonymous: bool) -> Arc<Self> {
        let (table, refreshing, revision) = (ArcSwap::default(), Mutex::default(), watch::Sender::new(0));
        let (wrong, familiar) = (Rate::default(), Familiar::default());
        Arc::new(Self { store, clock, allow_anonymous, table, refreshing, revision, wrong, familiar })
    }

    /// A wrong key is refused even where anonymous callers are let in: a typo must not change who one is.
    pub async fn caller(&self, shown: Shown<'_>) -> Result<Caller, Error> {
        let Some(key) = shown.key else {
            return if self.allow_anonymous { Ok(Caller::anonymous()) } else { Err(missing().into()) };
        };
        let hash = sha256(key.as_bytes());
        let Some(from) = shown.from.map(network) else {
            return self.look(key, &hash).await?.ok_or_else(|| wrong().into());
        };
        // Whoever tries keys must wait, also with a right one: else the answer would tell which one it is.
        let pace = Pace { most: shown.most_wrong, per: Duration::from_secs(60) };
        if let Err(wait) = self.wrong.check(from, pace)
            && !self.familiar.knows(from, &hash)
        {
            return Err(damped(shown.most_wrong, wait).into());
        }
        let Some(caller) = self.look(key, &hash).await? else {
            // Refused already, or the last one that is not.
            let _ = self.wrong.take(from, pace);
            return Err(wrong().into());
        };
        self.familiar.remember(from, &hash);
        Ok(caller)
    }

    /// Whose key it is, if it is in use.
    async fn look(&self, key: &str, hash: &Digest) -> Result<Option<Caller>, Error> {
        if let Some(known) = self.table.load().find(hash, &*self.clock) {
            return Ok(Some(known.caller.clone()));
        }
        Box::pin(self.look_closely(key, hash)).await
    }

    /// It may have been made a moment ago, by another process.
    async fn look_closely(&self, key: &str, hash: &Digest) -> Result<Option<Caller>, Error> {
        if is_key(key)
            && let Some(record) = self.store.key(*hash).await?
            && same(&record.hash, hash)
            && record.is_live(self.clock.now())
        {
            self.refresh().await?;
            return Ok(Some(Known::of(record).caller));
        }
        Ok(None)
    }

    /// Takes the keys as they are now, if they have changed.
    pub async fn refresh(&self) -> Result<(), Fault> {
        let _alone = self.refreshing.lock().await;
        // Asked for first: what changes after it is taken the next time.
        let revision = self.store.keys_revision().await?;
        if revision == self.table.load().revision {
            return Ok(());
        }
        let records = self.store.keys().await?;
        self.table.store(Arc::new(Table::of(revision, records)));
        self.revision.send_replace(revision);
        Ok(())
    }

    /// What a caller's stream or wait goes on with.
    pub fn leave(self: &Arc<Self>, caller: &Caller) -> Leave {
        let revision = self.revision.subscribe();
        Leave { access: Arc::clone(self), key: caller.key, revision }
    }
}

/// A caller's permission to go on, for as long as the key is good.
pub struct Leave {
    access: Arc<Access>,
    key: Option<Digest>,
    revision: watch::Receiver<u64>,
}

impl Leave {
    /// Refuses once the key is revoked or has expired.
    pub fn check(&self) -> Result<(), Refusal> {
        let Some(key) = &self.key else { return Ok(()) };
        self.access.table.load().find(key, &*self.access.clock).map(|_| ()).ok_or_else(wrong)
    }

    /// Waits until it has ended, and says why.
    pub async fn ended(&mut self) -> Refusal {
        loop {
            self.revision.borrow_and_update();
            if let Err(refusal) = self.check() {
                return refusal;
            }
            let left = self.left();
            tokio::select! {
                changed = self.revision.changed() => if changed.is_err() { std::future::pending::<()>().await },
                () = tokio::time::sleep(left.unwrap_or_default()), if left.is_some() => {}
            }
        }
    }

    /// How long the key is still good, if it has an end.
    fn left(&self) -> Option<Duration> {
        let (table, clock) = (self.access.table.load(), &*self.access.clock);
        let end = table.find(self.key.as_ref()?, clock)?.expires_at?;
        Some(Duration::from_millis(u64::try_from(end.0 - clock.now().0).unwrap_or(0)))
    }
}

fn missing() -> Refusal {
    let text = "A key is required: send it as 'Authorization: Bearer flk_…' or 'X-API-Key: flk_…'. \
                The hub's owner creates one with 'flotilla keys create NAME'.";
    Refusal::new(Reason::Unauthenticated, text)
}

fn wrong() -> Refusal {
    let text = "The key is not valid here: it is mistyped, revoked, expired or of another hub.";
    Refusal::new(Reason::Unauthenticated, text)
}

fn damped(most: u32, wait: Duration) -> Refusal {
    let text = format!(
        "Too many wrong keys came from your address (more than {most} a minute). Wait, and send the right one; keys that \
         worked from there before work meanwhile."
    );
    Limit::WrongKeysPerAddress.refuse(most, text).retry_after(wait)
}
