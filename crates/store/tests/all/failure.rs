//! Failure: what cannot be written is as if it had never been tried, and its neighbours do not suffer.

use crate::author::{AGENT, Author, CALLER, id_at, keep, outcomes, queue};
use crate::home::Home;
use crate::random::Random;
use crate::send::{dedupe, first};
use flotilla_core::caller::Scope;
use flotilla_core::ports::{ListFilter, Sent};

pub async fn a_failed_commit_takes_nothing_with_it(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(3);
    for round in 0..10 {
        let mut task = keep(&store, id_at(round, &mut random), "say! work", round).await;
        let before = Author::new(id_at(round, &mut random)).draft("say!", round).unwrap();
        let after = Author::new(id_at(round, &mut random)).draft("say!", round).unwrap();
        let used = dedupe(&mut random);
        let spoiled = task.draft("done", round).unwrap().with_key(used).spoiled();
        let told = queue(&store, [before.clone(), spoiled, after.clone()]);
        assert_eq!(outcomes(told).await, ["kept", "failed", "kept"]);
        assert_eq!(store.head(Scope::Admin, task.id()).await.unwrap().as_ref(), Some(&task.head));
        assert_eq!(store.sent(used.key).await.unwrap(), None);
        for kept in [before, after] {
            let record = store.record(Scope::Admin, kept.head.id).await.unwrap().unwrap();
            assert_eq!(record.changes, [kept.change]);
        }
        task.keep(&store, "done", round).await;
        let filter = ListFilter { limit: 1, ..ListFilter::default() };
        let total = store.list(CALLER, AGENT, filter).await.unwrap().total;
        assert_eq!(total, 3 * (round as u64 + 1));
    }
}

pub async fn a_failed_send_was_not_made(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(4);
    for round in 0..10 {
        let used = dedupe(&mut random);
        let good = first(&mut random, round, used);
        let sent = Sent { task: good.head.id, hash: used.hash };
        let failed = first(&mut random, round, used).spoiled();
        let late = first(&mut random, round, used);
        assert_eq!(outcomes(queue(&store, [failed, good, late])).await, ["failed", "kept", "duplicate"]);
        assert_eq!(store.sent(used.key).await.unwrap(), Some(sent));
    }
}
