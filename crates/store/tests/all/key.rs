//! Keys and agents: found by hash, named once, and never forgotten who they stand for.

use crate::home::Home;
use crate::random::Random;
use flotilla_core::fleet::Kept;
use flotilla_core::ids::{AgentId, PrincipalId, TaskId, WorkspaceId};
use flotilla_core::key::{FullName, KeyRecord, Principal};
use flotilla_core::ports::{Lease, MOST_OWED, Owed};
use flotilla_core::registry::{Added, Registration, Visibility};
use flotilla_core::rights::{Right, Rights};
use flotilla_protocol::a2a::profile::Profile;
use flotilla_protocol::time::Millis;

/// A key that stands for somebody of its own name.
pub fn key(name: &str, random: &mut Random) -> KeyRecord {
    let name = full(name);
    KeyRecord {
        principal: Principal { id: PrincipalId(0), workspace: WorkspaceId(0), name: name.name.clone() },
        name,
        hash: random.digest(),
        rights: Rights::CALLER,
        agents: None,
        created_at: Millis(5),
        expires_at: None,
        revoked_at: None,
        replaces: None,
    }
}

fn full(name: &str) -> FullName {
    FullName::parse(name).unwrap()
}

pub async fn keys_are_found_by_hash_and_revoked_by_name(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(1);
    let owner = KeyRecord { rights: Rights::ALL, ..key("owner", &mut random) };
    let limited = KeyRecord {
        agents: Some(vec!["echo".into(), "a\"b".into()]),
        rights: Rights::of([Right::TasksRead]),
        expires_at: Some(Millis(77)),
        ..key("limited", &mut random)
    };
    for added in [&owner, &limited] {
        assert!(store.add_key((*added).clone()).await.unwrap());
    }
    let found = store.key(owner.hash).await.unwrap().unwrap();
    let principal = Principal { id: PrincipalId::OWNER, workspace: WorkspaceId::DEFAULT, name: "owner".into() };
    assert_eq!(found, KeyRecord { principal, ..owner.clone() });
    let found = store.key(limited.hash).await.unwrap().unwrap();
    assert!(![PrincipalId::OWNER, PrincipalId::ANONYMOUS].contains(&found.principal.id));
    assert_eq!(found, KeyRecord { principal: found.principal.clone(), ..limited.clone() });
    assert_eq!(store.key(random.digest()).await.unwrap(), None);

    assert!(store.revoke_key(full("limited"), Millis(9)).await.unwrap());
    assert!(!store.revoke_key(full("limited"), Millis(10)).await.unwrap());
    assert!(!store.revoke_key(full("nobody"), Millis(10)).await.unwrap());
    assert!(!store.revoke_key(full("elsewhere/owner"), Millis(10)).await.unwrap());
    let revoked = store.key(limited.hash).await.unwrap().unwrap();
    assert_eq!(revoked.revoked_at, Some(Millis(9)));
    assert!(store.restore_key(full("limited")).await.unwrap());
    assert!(!store.restore_key(full("elsewhere/limited")).await.unwrap());
    let restored = store.key(limited.hash).await.unwrap().unwrap();
    assert_eq!((restored.revoked_at, restored.expires_at), (None, None));
    assert_eq!((restored.rights, restored.agents), (limited.rights, limited.agents));
    let names: Vec<String> = store.keys().await.unwrap().into_iter().map(|key| key.name.to_string()).collect();
    assert_eq!(names, ["limited", "owner"]);
}

pub async fn names_are_taken_once(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(2);
    let first = key("one", &mut random);
    assert!(store.add_key(first.clone()).await.unwrap());
    assert!(!store.add_key(key("one", &mut random)).await.unwrap());
    assert!(!store.add_key(KeyRecord { rights: Rights::ALL, ..key("one", &mut random) }).await.unwrap());
    // The same key under another name: refused, and that name stays free.
    assert!(!store.add_key(KeyRecord { hash: first.hash, ..key("two", &mut random) }).await.unwrap());
    assert!(store.add_key(key("two", &mut random)).await.unwrap());
    let keys = store.keys().await.unwrap();
    assert_eq!(keys.len(), 2);
    assert_ne!(keys[0].principal, keys[1].principal);
    // No key stands for those who have none.
    assert!(!store.add_key(key("anonymous", &mut random)).await.unwrap());
    // A revoked name is not handed to somebody else.
    assert!(store.revoke_key(full("one"), Millis(9)).await.unwrap());
    assert!(!store.add_key(key("one", &mut random)).await.unwrap());
}

pub async fn a_name_is_somebody_else_in_another_workspace(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(3);
    for name in ["one", "team/one", "other/one"] {
        assert!(store.add_key(key(name, &mut random)).await.unwrap(), "{name}");
        assert!(!store.add_key(key(name, &mut random)).await.unwrap(), "{name}");
    }
    let keys = store.keys().await.unwrap();
    assert_eq!(keys.iter().map(|key| key.name.to_string()).collect::<Vec<_>>(), ["one", "other/one", "team/one"]);
    for (index, one) in keys.iter().enumerate() {
        for two in &keys[index + 1..] {
            assert_ne!(one.principal.id, two.principal.id);
            assert_ne!(one.principal.workspace, two.principal.workspace);
        }
        assert_eq!(store.principal(one.name.clone()).await.unwrap(), one.principal, "known already");
    }
    assert_eq!(keys[0].principal.workspace, WorkspaceId::DEFAULT);
    // Somebody without a key yet, and then with one.
    let later = store.principal(full("team/later")).await.unwrap();
    assert_eq!(later.workspace, keys[2].principal.workspace);
    let added = KeyRecord { principal: later.clone(), ..key("team/laptop", &mut random) };
    assert!(store.add_key(added.clone()).await.unwrap());
    assert_eq!(store.key(added.hash).await.unwrap().unwrap().principal, later);
}

pub async fn a_key_is_replaced_all_at_once(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(4);
    let old = key("team/one", &mut random);
    assert!(store.add_key(old.clone()).await.unwrap());
    let new = KeyRecord { name: full("team/one-2"), replaces: Some("one".into()), ..key("team/one", &mut random) };
    let replace = |name: &str, key: &KeyRecord| store.replace_key(full(name), Millis(50), key.clone());
    assert!(!replace("one", &new).await.unwrap(), "not that one");
    assert!(!replace("team/one", &KeyRecord { name: full("team/one"), ..new.clone() }).await.unwrap(), "a taken name");
    assert_eq!(store.key(old.hash).await.unwrap().unwrap().expires_at, None, "nothing was done");
    assert!(replace("team/one", &new).await.unwrap());
    let (was, is) = (store.key(old.hash).await.unwrap().unwrap(), store.key(new.hash).await.unwrap().unwrap());
    assert_eq!((was.expires_at, is.expires_at), (Some(Millis(50)), None));
    assert_eq!((was.principal, Some("one")), (is.principal, is.replaces.as_deref()));
    assert!(store.revoke_key(full("team/one"), Millis(9)).await.unwrap());
    let third = KeyRecord { name: full("team/one-3"), ..key("team/one", &mut random) };
    assert!(!replace("team/one", &third).await.unwrap(), "revoked");
}

pub async fn every_change_of_keys_has_its_revision(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(5);
    let mut seen = vec![store.keys_revision().await.unwrap()];
    assert_ne!(seen[0], 0);
    let new = KeyRecord { name: full("one-2"), ..key("one", &mut random) };
    assert!(store.add_key(key("one", &mut random)).await.unwrap());
    seen.push(store.keys_revision().await.unwrap());
    assert!(store.replace_key(full("one"), Millis(50), new).await.unwrap());
    seen.push(store.keys_revision().await.unwrap());
    assert!(store.revoke_key(full("one"), Millis(9)).await.unwrap());
    seen.push(store.keys_revision().await.unwrap());
    assert!(store.restore_key(full("one")).await.unwrap());
    seen.push(store.keys_revision().await.unwrap());
    assert!(seen.is_sorted_by(|before, after| before < after), "{seen:?}");
    assert_eq!(store.keys_revision().await.unwrap(), seen[4]);
}

pub async fn agents_keep_their_numbers(home: &impl Home) {
    let store = home.open();
    let echo = store.agent("echo", PrincipalId::OWNER).await.unwrap();
    let other = store.agent("other", PrincipalId::OWNER).await.unwrap();
    assert_ne!(echo, other);
    assert_eq!(store.agent("echo", PrincipalId(9)).await.unwrap(), echo);
    assert_eq!(store.agent("other", PrincipalId::OWNER).await.unwrap(), other);
    store.ping().await.unwrap();
}

pub async fn agents_that_registered_are_there_with_what_they_last_said(home: &impl Home) {
    let store = home.open();
    let owner = store.principal(full("team/one")).await.unwrap();
    let said = |name: &str, description: &str, at: i64| Registration {
        name: name.into(),
        owner: owner.id,
        workspace: owner.workspace,
        visibility: Visibility::Workspace,
        profile: Profile { description: description.into(), ..Profile::default() },
        at: Millis(at),
    };
    assert_eq!(store.registrations().await.unwrap(), []);
    let two = store.register(said("two", "the second", 1), false).await.unwrap().unwrap();
    let one = store.register(said("one", "the first", 2), false).await.unwrap().unwrap();
    assert_ne!(one, two);
    assert_eq!(store.register(said("two", "another word", 3), false).await.unwrap(), Some(two), "it keeps its number");
    assert_eq!(store.agent("one", owner.id).await.unwrap(), one);
    let expected = [(one, said("one", "the first", 2)), (two, said("two", "another word", 3))];
    assert_eq!(store.registrations().await.unwrap(), expected, "by name");
    assert!(store.remove_agent(one).await.unwrap());
    let other = store.principal(full("team/two")).await.unwrap();
    let taken = || Registration { owner: other.id, ..said("one", "not the first", 4) };
    assert_eq!(store.register(taken(), false).await.unwrap(), None, "the name stays its owner's");
    assert_eq!(store.registrations().await.unwrap().len(), 1);
    assert_eq!(store.register(taken(), true).await.unwrap(), Some(one));
}

pub async fn agents_that_were_added_stay_until_they_are_removed(home: &impl Home) {
    let store = home.open();
    let owner = store.principal(full("team/one")).await.unwrap();
    let other = store.principal(full("team/two")).await.unwrap();
    let added = |name: &str, settings: &str, changed: i64| Added {
        name: name.into(),
        owner: owner.id,
        workspace: owner.workspace,
        settings: settings.into(),
        at: Millis(1),
        changed_at: Millis(changed),
    };
    assert_eq!(store.added().await.unwrap(), []);
    let far = store.keep_added(added("far", "{}", 1), false).await.unwrap().unwrap();
    let again = store.keep_added(added("far", r#"{"url":"https://h"}"#, 2), false).await.unwrap();
    assert_eq!(again, Some(far), "it keeps its number");
    let expected = [(far, added("far", r#"{"url":"https://h"}"#, 2))];
    assert_eq!(store.added().await.unwrap(), expected);
    for (name, place) in [("far", Some("https://h")), ("set", Some("https://i")), ("far", Some("https://j"))] {
        store.keep_proven(name, place).await.unwrap();
    }
    let mut proven = store.proven().await.unwrap();
    proven.sort();
    assert_eq!(proven, [("far".to_owned(), "https://j".to_owned()), ("set".to_owned(), "https://i".to_owned())]);
    let (lease, none) = (Lease { seconds: 90, over: true }, None);
    for (kept, expected) in [(Some(lease), vec![(far, lease)]), (none, vec![]), (Some(lease), vec![(far, lease)])] {
        store.keep_lease(far, kept).await.unwrap();
        assert_eq!(store.leases().await.unwrap(), expected);
    }
    assert!(store.remove_agent(far).await.unwrap());
    assert_eq!(store.leases().await.unwrap(), [], "and so does its lease");
    assert!(!store.remove_agent(far).await.unwrap());
    assert_eq!(store.added().await.unwrap(), []);
    assert_eq!(store.proven().await.unwrap().len(), 1, "what was known of its card goes with it");
    store.keep_proven("set", None).await.unwrap();
    assert_eq!(store.proven().await.unwrap(), []);
    let theirs = Added { owner: other.id, ..added("far", "{}", 3) };
    assert_eq!(store.keep_added(theirs.clone(), false).await.unwrap(), None, "the name stays its owner's");
    assert_eq!(store.keep_added(theirs.clone(), true).await.unwrap(), Some(far));
    assert_eq!(store.added().await.unwrap(), [(far, theirs)]);
    store.keep_lease(far, Some(lease)).await.unwrap();
    let own = Registration {
        name: "far".into(),
        owner: other.id,
        workspace: other.workspace,
        visibility: Visibility::Private,
        profile: Profile::default(),
        at: Millis(4),
    };
    assert_eq!(store.register(own, false).await.unwrap(), Some(far));
    let left = (store.added().await.unwrap(), store.leases().await.unwrap());
    assert_eq!(left, (vec![], vec![]), "one that registers itself takes the place of one that was added");
}

pub async fn workers_are_there_with_what_they_last_announced(home: &impl Home) {
    let store = home.open();
    let kept = |agent: i64, announce: &str, draining: bool| Kept {
        agent: AgentId(agent),
        announce: announce.into(),
        at: Millis(agent),
        draining,
        standing: format!("{{\"failures\":{agent}}}"),
    };
    assert_eq!(store.workers().await.unwrap(), []);
    store.keep_worker(kept(2, "{}", false)).await.unwrap();
    store.keep_worker(kept(1, "{}", false)).await.unwrap();
    store.keep_worker(kept(2, r#"{"epoch":2}"#, true)).await.unwrap();
    assert_eq!(store.workers().await.unwrap(), [kept(1, "{}", false), kept(2, r#"{"epoch":2}"#, true)]);
}

pub async fn alerts_are_owed_until_they_are_told(home: &impl Home) {
    let store = home.open();
    let ids: Vec<TaskId> = (0..=MOST_OWED).map(|_| TaskId::fresh()).collect();
    let owed = |id: TaskId| Owed { id, at: Millis(7), task: ids[0], body: format!("{{\"id\":\"{id}\"}}") };
    assert_eq!(store.owed().await.unwrap(), []);
    for id in ids.iter().take(3) {
        store.owe(owed(*id)).await.unwrap();
    }
    store.forget_owed(ids[1]).await.unwrap();
    store.forget_owed(ids[1]).await.unwrap();
    assert_eq!(store.owed().await.unwrap(), [owed(ids[0]), owed(ids[2])]);
    for id in &ids {
        store.owe(owed(*id)).await.unwrap();
    }
    let kept: Vec<TaskId> = store.owed().await.unwrap().into_iter().map(|owed| owed.id).collect();
    assert_eq!(kept, ids[1..], "the oldest goes");
}
