//! The owner's key: made at the first start, or preset.

use crate::clock::SystemClock;
use crate::config::Config;
use anyhow::{Result, bail};
use flotilla_core::access::{KeyRecord, is_key, key_from, sha256};
use flotilla_core::ids::PrincipalId;
use flotilla_core::ports::{Clock as _, Store};
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
    let keys = store.keys().await?;
    let mut owners = keys.iter().filter(|key| key.admin && key.revoked_at.is_none());
    match preset {
        Some(key) => {
            let hash = sha256(key.as_bytes());
            if owners.any(|owner| owner.hash == hash) {
                return Ok(None);
            }
            // A preset replaces the owner's key: this is also the way back in when the first one was lost.
            for name in keys.iter().filter(|key| key.admin && key.revoked_at.is_none()).map(|key| &key.name) {
                store.revoke_key(name, SystemClock.now()).await?;
            }
            add(store, &key, keys.iter().filter(|key| key.admin).count()).await?;
            Ok(None)
        }
        None if owners.next().is_some() => Ok(None),
        None => {
            let key = generate()?;
            add(store, &key, keys.iter().filter(|key| key.admin).count()).await?;
            Ok(Some(key))
        }
    }
}

pub fn generate() -> Result<String> {
    let mut bits = [0u8; 32];
    getrandom::fill(&mut bits).map_err(|error| anyhow::anyhow!("random numbers: {error}"))?;
    Ok(key_from(&bits))
}

async fn add(store: &Arc<dyn Store>, key: &str, earlier: usize) -> Result<()> {
    let name = if earlier == 0 { "owner".to_owned() } else { format!("owner-{}", earlier + 1) };
    let record = KeyRecord {
        name,
        hash: sha256(key.as_bytes()),
        principal: PrincipalId::OWNER,
        admin: true,
        agents: None,
        created_at: SystemClock.now(),
        revoked_at: None,
    };
    if !store.add_key(record).await? {
        bail!("the owner's key could not be stored: a key of its name or value exists already");
    }
    Ok(())
}
