//! Keys: how they look, how they are hashed, and who they stand for.

use crate::caller::Caller;
use crate::error::{Error, Fault};
use crate::ids::PrincipalId;
use crate::ports::{Clock, Digest, Store};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::time::Millis;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

pub const KEY_PREFIX: &str = "flk_";
/// How long a key's record is believed before the store is asked again: the longest a revoked key can still be used.
const RECHECK: i64 = 1_000;
/// Entries beyond this are dropped and asked for anew.
const CACHE: usize = 10_000;

/// A key as it is stored: never the key itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    pub name: String,
    pub hash: Digest,
    pub principal: PrincipalId,
    pub admin: bool,
    pub agents: Option<Vec<String>>,
    pub created_at: Millis,
    pub revoked_at: Option<Millis>,
}

pub fn sha256(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

/// Whether text has the shape of a key: the prefix and 64 hex digits (256 bits).
pub fn is_key(text: &str) -> bool {
    text.strip_prefix(KEY_PREFIX)
        .is_some_and(|digits| digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Turns 256 random bits into a key.
pub fn key_from(bits: &[u8; 32]) -> String {
    let digits: String = bits.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{KEY_PREFIX}{digits}")
}

/// The one place where a credential becomes a caller.
pub struct Access {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    allow_anonymous: bool,
    known: Mutex<HashMap<Digest, (Millis, Caller)>>,
}

impl Access {
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, allow_anonymous: bool) -> Self {
        Self { store, clock, allow_anonymous, known: Mutex::default() }
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
        let now = self.clock.now();
        if let Some(caller) = self.recent(&hash, now) {
            return Ok(caller);
        }
        match self.look_up(hash).await? {
            Some(caller) => {
                self.remember(hash, now, caller.clone());
                Ok(caller)
            }
            None => {
                self.forget(&hash);
                Err(wrong().into())
            }
        }
    }

    /// The caller, if the key was looked up lately. Of many requests that find it stale, one asks the store.
    fn recent(&self, hash: &Digest, now: Millis) -> Option<Caller> {
        let mut known = self.known.lock().expect("no panic while holding the key cache");
        let (asked, caller) = known.get_mut(hash)?;
        if now.0 - asked.0 < RECHECK && now >= *asked {
            return Some(caller.clone());
        }
        *asked = now;
        None
    }

    fn forget(&self, hash: &Digest) {
        self.known.lock().expect("no panic while holding the key cache").remove(hash);
    }

    fn remember(&self, hash: Digest, now: Millis, caller: Caller) {
        let mut known = self.known.lock().expect("no panic while holding the key cache");
        if known.len() >= CACHE {
            known.clear();
        }
        known.insert(hash, (now, caller));
    }

    async fn look_up(&self, hash: Digest) -> Result<Option<Caller>, Fault> {
        let record = self.store.key(hash).await?.filter(|record| record.revoked_at.is_none());
        Ok(record.map(|record| Caller {
            principal: record.principal,
            name: record.name.as_str().into(),
            admin: record.admin,
            agents: record.agents.map(Into::into),
        }))
    }
}

fn missing() -> Refusal {
    let text = "A key is required: send it as 'Authorization: Bearer flk_…' or 'X-API-Key: flk_…'. \
                The hub's owner creates one with 'flotilla keys create NAME'.";
    Refusal::new(Reason::Unauthenticated, text)
}

fn wrong() -> Refusal {
    let text = "The key is not valid here: it is mistyped, revoked or of another hub.";
    Refusal::new(Reason::Unauthenticated, text)
}
