//! The one place where a credential becomes a caller, and where a caller's leave ends.

use crate::caller::Caller;
use crate::error::{Error, Fault};
use crate::key::{KeyRecord, is_key, same, sha256};
use crate::ports::{Clock, Digest, Store};
use arc_swap::ArcSwap;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::time::Millis;
use std::collections::HashMap;
use std::sync::Arc;
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
    keys: HashMap<u64, Known>,
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

    fn find(&self, hash: &Digest, now: Millis) -> Option<&Known> {
        let known = self.keys.get(&place(hash)).filter(|known| same(&known.hash, hash))?;
        known.expires_at.is_none_or(|end| now < end).then_some(known)
    }
}

impl Known {
    fn of(record: KeyRecord) -> Self {
        let caller = Caller {
            principal: record.principal.id,
            workspace: record.principal.workspace,
            name: record.name.to_string().into(),
            rights: record.rights,
            agents: record.agents.map(Into::into),
            key: Some(record.hash),
        };
        Self { caller, hash: record.hash, expires_at: record.expires_at }
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
}

impl Access {
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, allow_anonymous: bool) -> Arc<Self> {
        let (table, refreshing, revision) = (ArcSwap::default(), Mutex::default(), watch::Sender::new(0));
        Arc::new(Self { store, clock, allow_anonymous, table, refreshing, revision })
    }

    /// A wrong key is refused even where anonymous callers are let in: a typo must not change who one is.
    pub async fn caller(&self, presented: Option<&str>) -> Result<Caller, Error> {
        let Some(key) = presented else {
            return if self.allow_anonymous { Ok(Caller::anonymous()) } else { Err(missing().into()) };
        };
        if !is_key(key) {
            return Err(wrong().into());
        }
        let hash = sha256(key.as_bytes());
        if let Some(known) = self.table.load().find(&hash, self.clock.now()) {
            return Ok(known.caller.clone());
        }
        // It may have been made a moment ago, by another process.
        let now = self.clock.now();
        match self.store.key(hash).await?.filter(|record| same(&record.hash, &hash) && record.is_live(now)) {
            Some(record) => {
                self.refresh().await?;
                Ok(Known::of(record).caller)
            }
            None => Err(wrong().into()),
        }
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
        let now = self.access.clock.now();
        self.access.table.load().find(key, now).map(|_| ()).ok_or_else(wrong)
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
        let table = self.access.table.load();
        let now = self.access.clock.now();
        let end = table.find(self.key.as_ref()?, now)?.expires_at?;
        Some(Duration::from_millis(u64::try_from(end.0 - now.0).unwrap_or(0)))
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
