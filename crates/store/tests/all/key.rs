//! Keys and agents: found by hash, named once, and never forgotten who they stand for.

use crate::home::Home;
use crate::random::Random;
use flotilla_core::access::KeyRecord;
use flotilla_core::ids::PrincipalId;
use flotilla_protocol::time::Millis;

pub fn key(name: &str, random: &mut Random) -> KeyRecord {
    KeyRecord {
        name: name.into(),
        hash: random.digest(),
        principal: PrincipalId(0),
        admin: false,
        agents: None,
        created_at: Millis(5),
        revoked_at: None,
    }
}

pub async fn keys_are_found_by_hash_and_revoked_by_name(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(1);
    let owner = KeyRecord { admin: true, ..key("owner", &mut random) };
    let limited = KeyRecord { agents: Some(vec!["echo".into(), "a\"b".into()]), ..key("limited", &mut random) };
    for added in [&owner, &limited] {
        assert!(store.add_key((*added).clone()).await.unwrap());
    }
    let found = store.key(owner.hash).await.unwrap().unwrap();
    assert_eq!(found, KeyRecord { principal: PrincipalId::OWNER, ..owner.clone() });
    let found = store.key(limited.hash).await.unwrap().unwrap();
    assert!(![PrincipalId::OWNER, PrincipalId::ANONYMOUS].contains(&found.principal));
    assert_eq!(found, KeyRecord { principal: found.principal, ..limited.clone() });
    assert_eq!(store.key(random.digest()).await.unwrap(), None);

    assert!(store.revoke_key("limited", Millis(9)).await.unwrap());
    assert!(!store.revoke_key("limited", Millis(10)).await.unwrap());
    assert!(!store.revoke_key("nobody", Millis(10)).await.unwrap());
    let revoked = store.key(limited.hash).await.unwrap().unwrap();
    assert_eq!(revoked.revoked_at, Some(Millis(9)));
    let names: Vec<String> = store.keys().await.unwrap().into_iter().map(|key| key.name).collect();
    assert_eq!(names, ["limited", "owner"]);
}

pub async fn names_are_taken_once(home: &impl Home) {
    let store = home.open();
    let mut random = Random::new(2);
    let first = key("one", &mut random);
    assert!(store.add_key(first.clone()).await.unwrap());
    assert!(!store.add_key(key("one", &mut random)).await.unwrap());
    assert!(!store.add_key(KeyRecord { admin: true, ..key("one", &mut random) }).await.unwrap());
    // The same key under another name: refused, and that name stays free.
    assert!(!store.add_key(KeyRecord { hash: first.hash, ..key("two", &mut random) }).await.unwrap());
    assert!(store.add_key(key("two", &mut random)).await.unwrap());
    let keys = store.keys().await.unwrap();
    assert_eq!(keys.len(), 2);
    assert_ne!(keys[0].principal, keys[1].principal);
    // Nobody can take the name of those who are always there.
    assert!(!store.add_key(key("anonymous", &mut random)).await.unwrap());
    // A revoked name is not handed to somebody else.
    assert!(store.revoke_key("one", Millis(9)).await.unwrap());
    assert!(!store.add_key(key("one", &mut random)).await.unwrap());
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
