//! Sends: a key is taken once, as long as it is remembered.

use crate::author::{Author, Draft, id_at, keep, outcomes, queue};
use crate::home::Home;
use crate::random::Random;
use crate::sweep::sweep_all;
use flotilla_core::caller::Scope;
use flotilla_core::ports::{Dedupe, NotCommitted, Retention, Sent, Store};
use flotilla_protocol::time::Millis;
use std::sync::Arc;

pub fn dedupe(random: &mut Random) -> Dedupe {
    Dedupe { key: random.digest(), hash: random.digest() }
}

/// The first message of a new task, under a key.
pub fn first(random: &mut Random, at: i64, dedupe: Dedupe) -> Draft {
    Author::new(id_at(at, random)).draft("say", at).unwrap().with_key(dedupe)
}

pub async fn a_key_is_sent_once(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(1);
    assert_eq!(store.sent(random.digest()).await.unwrap(), None);
    for round in 0..10 {
        let used = dedupe(&mut random);
        let drafts: Vec<Draft> = (0..5).map(|_| first(&mut random, round, used)).collect();
        let winner = Sent { task: drafts[0].head.id, hash: used.hash };
        // Together, and one after the other, also with other words under the same key.
        let mut told = queue(&store, drafts.clone());
        assert!(told.remove(0).await.unwrap().is_ok());
        let other = Dedupe { hash: random.digest(), ..used };
        told.extend(queue(&store, [first(&mut random, round, other)]));
        for told in told {
            match told.await.unwrap() {
                Err(NotCommitted::Duplicate(sent)) => assert_eq!(sent, winner),
                other => panic!("not a duplicate: {other:?}"),
            }
        }
        assert_eq!(store.sent(used.key).await.unwrap(), Some(winner));
        for late in &drafts[1..] {
            assert_eq!(store.head(Scope::Admin, late.head.id).await.unwrap(), None);
        }
        // A key that differs in its last byte only is another key.
        let mut near = used;
        near.key[31] ^= 1;
        assert_eq!(store.sent(near.key).await.unwrap(), None);
    }
}

pub async fn a_stale_send_was_not_made(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(2);
    for round in 0..10 {
        let used = dedupe(&mut random);
        let task = keep(&store, id_at(round, &mut random), "say! work ask", round).await;
        let winner = task.draft("say", round).unwrap();
        let stale = task.draft("say", round).unwrap().with_key(used);
        let good = first(&mut random, round, used);
        let sent = Sent { task: good.head.id, hash: used.hash };
        let late = first(&mut random, round, used);
        let told = queue(&store, [winner, stale, good, late]);
        assert_eq!(outcomes(told).await, ["kept", "stale", "kept", "duplicate"]);
        assert_eq!(store.sent(used.key).await.unwrap(), Some(sent));
    }
}

async fn send_some(store: &Arc<dyn Store>, random: &mut Random, count: i64) -> Vec<Dedupe> {
    let keys: Vec<Dedupe> = (0..count).map(|_| dedupe(random)).collect();
    let drafts: Vec<Draft> = keys.iter().zip(1..).map(|(key, at)| first(random, at, *key)).collect();
    assert!(outcomes(queue(store, drafts)).await.iter().all(|outcome| *outcome == "kept"));
    keys
}

/// Only the last `kept` keys are remembered, and the others can be used again.
async fn only_the_last(store: &Arc<dyn Store>, random: &mut Random, keys: &[Dedupe], kept: usize) {
    for (index, used) in keys.iter().enumerate() {
        let known = index >= keys.len() - kept;
        assert_eq!(store.sent(used.key).await.unwrap().is_some(), known, "send {index}");
    }
    let drafts: Vec<Draft> = keys.iter().map(|key| first(random, 9_000, *key)).collect();
    for (index, outcome) in outcomes(queue(store, drafts)).await.into_iter().enumerate() {
        let expected = if index >= keys.len() - kept { "duplicate" } else { "kept" };
        assert_eq!(outcome, expected, "send {index}");
    }
}

pub async fn sends_are_forgotten_by_age(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(3);
    let keys = send_some(&store, &mut random, 2_500).await;
    let retention = Retention { dedupe_before: Some(Millis(2_101)), ..Retention::default() };
    let swept = sweep_all(&store, retention).await;
    assert_eq!((swept.sends, swept.tasks), (2_100, 0));
    only_the_last(&store, &mut random, &keys, 400).await;
}

pub async fn sends_are_forgotten_by_number(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(4);
    let keys = send_some(&store, &mut random, 2_500).await;
    let retention = Retention { dedupe_max: Some(400), ..Retention::default() };
    assert_eq!(sweep_all(&store, retention).await.sends, 2_100);
    only_the_last(&store, &mut random, &keys, 400).await;
    // Those just used again are the newest: the bound holds for them too.
    assert_eq!(sweep_all(&store, retention).await.sends, 2_100);
    let newest = &keys[1_700..2_100];
    for used in newest {
        assert!(store.sent(used.key).await.unwrap().is_some());
    }
}
