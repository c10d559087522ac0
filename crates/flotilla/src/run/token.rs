//! The key that stands for `hub.auth_token` (`A2A_AUTH_TOKEN`): kept as a hash, ended when the token is gone, and good again when it is back.

use crate::clock::SystemClock;
use crate::config::Config;
use crate::run::keys;
use anyhow::{Result, bail};
use flotilla_core::ids::{PrincipalId, WorkspaceId};
use flotilla_core::key::{DEFAULT_WORKSPACE, FullName, KeyRecord, Principal, sha256};
use flotilla_core::keyring;
use flotilla_core::ports::{Clock as _, Digest, Store};
use flotilla_core::rights::Rights;
use flotilla_protocol::time::Millis;
use std::sync::Arc;

/// The name of the key, and of whom it stands for.
pub const NAME: &str = "a2a-auth-token";

/// What becomes of the keys with the token as it is set now. It is decided before the hub changes anything, so that a
/// start that is refused leaves all keys as they were.
pub struct Plan {
    ended: Vec<FullName>,
    wanted: Wanted,
}

/// What is to be done for the token that is set.
enum Wanted {
    Nothing,
    Restore(FullName),
    Add(Digest),
}

/// The store's key is to be the token, or there is to be none.
pub async fn plan(store: &Arc<dyn Store>, config: &Config) -> Result<Plan> {
    let preset = keys::preset(config)?.map(|key| sha256(key.as_bytes()));
    let token = config.hub.auth_token.as_ref().map(|token| sha256(token.0.as_bytes()));
    Plan::of(token, preset, &store.keys().await?, SystemClock.now())
}

impl Plan {
    fn of(token: Option<Digest>, owners: Option<Digest>, keys: &[KeyRecord], now: Millis) -> Result<Self> {
        let ended = keys.iter().filter(|key| is_ours(key) && key.is_live(now) && Some(key.hash) != token);
        let ended = ended.map(|key| key.name.clone()).collect();
        let known = keys.iter().find(|key| Some(key.hash) == token);
        let wanted = match (token, known) {
            (None, _) => Wanted::Nothing,
            (Some(_), Some(known)) if is_ours(known) && known.is_live(now) && known.expires_at.is_none() => {
                Wanted::Nothing
            }
            (Some(_), Some(known)) if is_ours(known) => Wanted::Restore(known.name.clone()),
            (Some(hash), None) if owners != Some(hash) => Wanted::Add(hash),
            _ => bail!("hub.auth_token (A2A_AUTH_TOKEN) is somebody else's key; set another token, or none"),
        };
        Ok(Self { ended, wanted })
    }

    /// What was set before ends last: whatever fails on the way, one of the two is good.
    pub async fn carry_out(self, store: &Arc<dyn Store>) -> Result<()> {
        match self.wanted {
            Wanted::Nothing => {}
            Wanted::Restore(name) => {
                store.restore_key(name.clone()).await?;
                tracing::info!(key = %name, "the key of an earlier hub.auth_token is good again");
            }
            Wanted::Add(hash) => add(store, hash, &store.keys().await?).await?,
        }
        for name in self.ended {
            store.revoke_key(name.clone(), SystemClock.now()).await?;
            tracing::info!(key = %name, "the key of an earlier hub.auth_token was revoked");
        }
        Ok(())
    }
}

/// Whether it was made for a token: somebody else's key may have such a name too.
fn is_ours(key: &KeyRecord) -> bool {
    key.name.workspace == DEFAULT_WORKSPACE && key.principal.name == NAME && is_numbered(&key.name.name)
}

fn is_numbered(name: &str) -> bool {
    let rest = name.strip_prefix(NAME);
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('-').is_some_and(|n| n.parse::<u32>().is_ok()))
}

async fn add(store: &Arc<dyn Store>, hash: Digest, earlier: &[KeyRecord]) -> Result<()> {
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
    use super::is_numbered;

    #[test]
    fn only_numbered_names_are_ours() {
        assert!(is_numbered("a2a-auth-token") && is_numbered("a2a-auth-token-2"));
        assert!(!is_numbered("a2a-auth-token-of-bob") && !is_numbered("a2a") && !is_numbered("a2a-auth-token-"));
    }
}
