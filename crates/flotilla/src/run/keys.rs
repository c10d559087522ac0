//! The owner's key: made at the first start, or preset.

use crate::clock::SystemClock;
use crate::config::Config;
use anyhow::{Result, anyhow, bail};
use flotilla_core::ids::{PrincipalId, WorkspaceId};
use flotilla_core::key::{FullName, KeyRecord, OWNER, Principal, is_key, sha256};
use flotilla_core::keyring;
use flotilla_core::ports::{Clock as _, Store};
use flotilla_core::rights::Rights;
use std::sync::Arc;

const PRESET: &str = "FLOTILLA_OWNER_KEY";

/// The key that environment or configuration preset.
pub fn preset(config: &Config) -> Result<Option<String>> {
    let environment = std::env::var(PRESET).ok().filter(|key| !key.is_empty());
    let key = environment.or_else(|| config.hub.owner_key.as_ref().map(|secret| secret.0.clone()));
    if key.as_deref().is_some_and(|key| !is_key(key)) {
        bail!(
            "the preset owner key ({PRESET}, or hub.owner_key) must be 'flk_' and 64 hex digits: echo flk_$(openssl \
             rand -hex 32)"
        );
    }
    Ok(key)
}

/// Makes sure there is an owner's key. Returns it if it was made just now: the only time it can be shown.
pub async fn ensure_owner(store: &Arc<dyn Store>, config: &Config) -> Result<Option<String>> {
    let preset = preset(config)?;
    let (now, keys) = (SystemClock.now(), store.keys().await?);
    let owners: Vec<&KeyRecord> = keys.iter().filter(|key| key.is_owners()).collect();
    let live = || owners.iter().filter(|key| key.is_live(now));
    match preset {
        Some(key) => {
            let hash = sha256(key.as_bytes());
            if live().any(|owner| owner.hash == hash) {
                return Ok(None);
            }
            if keys.iter().any(|known| known.hash == hash) {
                bail!(
                    "the preset owner key ({PRESET} or hub.owner_key) is one that has ended or is somebody else's; preset \
                     a new one, or none to go on with the keys there are"
                );
            }
            // A preset replaces all that stands for the owner, keys without admin too: this is also the way back in
            // when one was lost, and whoever found it must not go on.
            for key in keys.iter().filter(|key| key.principal.id == PrincipalId::OWNER && key.is_live(now)) {
                store.revoke_key(key.name.clone(), now).await?;
            }
            add(store, &key, &keys).await?;
            Ok(None)
        }
        None if live().next().is_some() => Ok(None),
        None => {
            let key = keyring::generate()?;
            add(store, &key, &keys).await?;
            Ok(Some(key))
        }
    }
}

/// A key that nobody has seen is of no use to anybody, and would keep the next start from making one. A hub whose output
/// nobody reads works all the same where there is a key already.
pub async fn not_shown(store: &Arc<dyn Store>, error: std::io::Error) -> anyhow::Error {
    let revoked = store.revoke_key(FullName::owner(), SystemClock.now()).await;
    if let Err(fault) = revoked {
        tracing::error!(%fault, "a key that was not shown is not revoked");
    }
    anyhow!(
        "the owner's key cannot be shown, standard output is not to be written to ({error}); give it somewhere to go, or \
         preset a key with {PRESET}"
    )
}

async fn add(store: &Arc<dyn Store>, key: &str, earlier: &[KeyRecord]) -> Result<()> {
    let first = KeyRecord {
        name: FullName::owner(),
        hash: sha256(key.as_bytes()),
        principal: Principal { id: PrincipalId::OWNER, workspace: WorkspaceId::DEFAULT, name: OWNER.into() },
        rights: Rights::ALL,
        agents: None,
        created_at: SystemClock.now(),
        expires_at: None,
        revoked_at: None,
        replaces: None,
    };
    let taken = earlier.iter().any(|known| known.name == first.name);
    let name = if taken { keyring::next_name(earlier, &first) } else { first.name.clone() };
    if !store.add_key(KeyRecord { name, ..first }).await? {
        bail!("the owner's key could not be stored: a key of its value exists already");
    }
    Ok(())
}
