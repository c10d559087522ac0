//! Access over every kind of store: what a key costs, and how soon a change of the keys is known.

use crate::home::Home;
use flotilla_core::access::{Access, Shown};
use flotilla_core::error::Error;
use flotilla_core::key::FullName;
use flotilla_core::keyring::{self, Order};
use flotilla_core::ports::{Clock, Store};
use flotilla_core::rights::Rights;
use flotilla_protocol::time::Millis;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// A clock that stands still until it is set.
struct Standing(AtomicI64);

impl Clock for Standing {
    fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::Relaxed))
    }
}

fn start(home: &impl Home) -> (Arc<dyn Store>, Arc<Standing>, Arc<Access>) {
    let (store, clock) = (home.open(), Arc::new(Standing(AtomicI64::new(1_000))));
    let access = Access::new(Arc::clone(&store), Arc::clone(&clock) as Arc<dyn Clock>, false);
    (store, clock, access)
}

async fn made(store: &Arc<dyn Store>, name: &str, expires_at: Option<Millis>) -> String {
    let name = FullName::parse(name).unwrap();
    let order = Order { name, principal: None, rights: Rights::CALLER, agents: None, expires_at };
    keyring::create(&**store, Millis(1_000), order).await.map_err(|error| error.to_string()).unwrap().secret
}

fn shown(key: &str) -> Shown<'_> {
    Shown { key: Some(key), from: None, most_wrong: 1 }
}

fn is_refused(asked: &Result<flotilla_core::caller::Caller, Error>) -> bool {
    matches!(asked, Err(Error::Refused(_)))
}

pub async fn a_key_is_known_until_it_is_revoked_or_expires(home: &impl Home) {
    let (store, clock, access) = start(home);
    let (lasting, short) = (made(&store, "lasting", None).await, made(&store, "short", Some(Millis(2_000))).await);
    let caller = access.caller(shown(&lasting)).await.unwrap();
    assert_eq!((&*caller.name, caller.rights), ("lasting", Rights::CALLER));
    let (leave, brief) = (access.leave(&caller), access.leave(&access.caller(shown(&short)).await.unwrap()));
    assert!(leave.check().is_ok() && brief.check().is_ok());
    clock.0.store(2_000, Ordering::Relaxed);
    assert!(is_refused(&access.caller(shown(&short)).await) && brief.check().is_err(), "expired");
    // Another process revokes: it is noticed when the store is looked at, and then at once by who waits.
    let mut waiting = access.leave(&caller);
    let ended = tokio::spawn(async move { waiting.ended().await });
    keyring::revoke(&*store, Millis(3_000), &FullName::parse("lasting").unwrap()).await.unwrap();
    assert!(leave.check().is_ok(), "not noticed yet");
    access.refresh().await.unwrap();
    assert!(leave.check().is_err() && is_refused(&access.caller(shown(&lasting)).await));
    tokio::time::timeout(Duration::from_secs(5), ended).await.expect("told at once").unwrap();
}

pub async fn a_key_in_use_costs_microseconds(home: &impl Home) {
    // Few at a time, so that a round is over before this machine turns to something else.
    const REQUESTS: u32 = 200;
    let (store, _, access) = start(home);
    let keys = [made(&store, "one", None).await, made(&store, "two", None).await];
    let mut fastest = Duration::MAX;
    for _ in 0..100 {
        let started = Instant::now();
        for turn in 0..REQUESTS {
            access.caller(shown(&keys[turn as usize % 2])).await.unwrap();
        }
        fastest = fastest.min(started.elapsed() / REQUESTS);
    }
    println!("a key costs {fastest:?} per request");
    assert!(fastest < Duration::from_micros(15), "{fastest:?}");
}
