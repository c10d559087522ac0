//! The key that stands for `hub.auth_token` (`A2A_AUTH_TOKEN`): kept as a hash, and ended when the token is gone.

use crate::clock::SystemClock;
use crate::config::Config;
use anyhow::{Result, bail};
use flotilla_core::ids::{PrincipalId, WorkspaceId};
use flotilla_core::key::{DEFAULT_WORKSPACE, FullName, KeyRecord, Principal, sha256};
use flotilla_core::keyring;
use flotilla_core::ports::{Clock as _, Store};
use flotilla_core::rights::Rights;
use std::sync::Arc;

/// The name of the key, and of whom it stands for.
pub const NAME: &str = "a2a-auth-token";

/// The store's key is the token, or there is none.
pub async fn ensure(store: &Arc<dyn Store>, config: &Config) -> Result<()> {
    let wanted = config.hub.auth_token.as_ref().map(|token| sha256(token.0.as_bytes()));
    let (now, keys) = (SystemClock.now(), store.keys().await?);
    let ours = |key: &&KeyRecord| key.name.workspace == DEFAULT_WORKSPACE && is_ours(&key.name.name);
    let live = keys.iter().filter(ours).filter(|key| key.is_live(now));
    for key in live.filter(|key| Some(key.hash) != wanted) {
        store.revoke_key(key.name.clone(), now).await?;
        tracing::info!(key = %key.name, "the key of an earlier hub.auth_token was revoked");
    }
    let Some(hash) = wanted else { return Ok(()) };
    match keys.iter().find(|key| key.hash == hash) {
        Some(known) if ours(&known) && known.is_live(now) => Ok(()),
        Some(_) => bail!(
            "hub.auth_token (A2A_AUTH_TOKEN) is a key that has ended or is somebody else's; set another token, or none"
        ),
        None => add(store, hash, &keys).await,
    }
}

fn is_ours(name: &str) -> bool {
    let rest = name.strip_prefix(NAME);
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('-').is_some_and(|n| n.parse::<u32>().is_ok()))
}

async fn add(store: &Arc<dyn Store>, hash: [u8; 32], earlier: &[KeyRecord]) -> Result<()> {
    let first = KeyRecord {
        name: FullName::new(DEFAULT_WORKSPACE, NAME),
        hash,
        // The store knows who this is.
        principal: Principal { id: PrincipalId(0), workspace: WorkspaceId(0), name: NAME.into() },
        rights: Rights::CALLER,
        agents: None,
        created_at: SystemClock.now(),
        expires_at: None,
        revoked_at: None,
        replaces: None,
    };
    let taken = earlier.iter().any(|known| known.name == first.name);
    let name = if taken { keyring::next_name(earlier, &first) } else { first.name.clone() };
    if !store.add_key(KeyRecord { name, ..first }).await? {
        bail!("the key of hub.auth_token could not be stored: one of its value exists already");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_ours;

    #[test]
    fn only_numbered_names_are_ours() {
        assert!(is_ours("a2a-auth-token") && is_ours("a2a-auth-token-2"));
        assert!(!is_ours("a2a-auth-token-of-bob") && !is_ours("a2a") && !is_ours("a2a-auth-token-"));
    }
}
