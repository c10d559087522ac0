//! Making, replacing and revoking keys: the same for the command line and the hub's own API.

use crate::error::{Error, Fault};
use crate::ids::{PrincipalId, WorkspaceId};
use crate::key::{FullName, KeyRecord, OWNER, Principal, key_from, sha256};
use crate::ports::Store;
use crate::registry::check_name;
use crate::rights::Rights;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::time::Millis;
use std::time::Duration;

/// What a key is to be.
#[derive(Debug, Clone)]
pub struct Order {
    pub name: FullName,
    /// Whom it stands for, in its workspace; somebody of its own name if absent.
    pub principal: Option<String>,
    pub rights: Rights,
    pub agents: Option<Vec<String>>,
    pub expires_at: Option<Millis>,
}

/// A key that was just made: the only time it can be shown.
pub struct Made {
    pub secret: String,
    pub record: KeyRecord,
    /// What else is to be done.
    pub note: Option<&'static str>,
}

/// No key ends later: the last year that can be written (9999-01-01).
const LAST: Millis = Millis(253_370_764_800_000);

/// A key of the hub's owner ends; the hub itself may hold on to it.
fn on_end(key: &KeyRecord) -> Option<&'static str> {
    key.is_owners().then_some(
        "It was a key of the hub's owner. If it is preset (hub.owner_key or FLOTILLA_OWNER_KEY), preset another or none: \
         the hub does not start again with a preset key that has ended.",
    )
}

fn check_end(now: Millis, end: Option<Millis>) -> Result<(), Refusal> {
    match end {
        Some(end) if end <= now => Err(Refusal::invalid("expiresAt", "must be in the future")),
        Some(end) if end > LAST => {
            Err(Refusal::invalid("expiresAt", "must be before the year 9999; leave it out for a key without an end"))
        }
        _ => Ok(()),
    }
}

fn check_agents(rights: Rights, agents: Option<&[String]>) -> Result<(), Refusal> {
    match agents {
        Some([]) => Err(Refusal::invalid("agents", "must name at least one agent; leave it out for all of them")),
        Some(_) if rights.is_admin() => {
            let text =
                "cannot limit a key with the scope admin, which sees every agent; leave out the agents or the scope";
            Err(Refusal::invalid("agents", text))
        }
        _ => Ok(()),
    }
}

pub fn generate() -> Result<String, Fault> {
    let mut bits = [0u8; 32];
    getrandom::fill(&mut bits).map_err(|error| Fault::new(format!("random numbers: {error}")))?;
    Ok(key_from(&bits))
}

pub async fn create(store: &dyn Store, now: Millis, order: Order) -> Result<Made, Error> {
    let principal = order.principal.unwrap_or_else(|| order.name.name.clone());
    check_name(&principal)
        .map_err(|problem| Refusal::invalid("principal", problem.replace("an agent's", "a principal's")))?;
    if FullName::new(&order.name.workspace, &principal).is_anonymous() {
        return Err(Refusal::invalid("principal", "'anonymous' is everyone without a key; choose another").into());
    }
    if base(&order.name.name) == OWNER && order.name.workspace == FullName::owner().workspace {
        return Err(
            Refusal::invalid("name", "'owner' is kept for the keys the hub itself makes; choose another").into()
        );
    }
    if order.rights.is_empty() {
        return Err(Refusal::invalid("scopes", "must name at least one scope").into());
    }
    check_agents(order.rights, order.agents.as_deref())?;
    check_end(now, order.expires_at)?;
    let secret = generate()?;
    let record = KeyRecord {
        name: order.name,
        hash: sha256(secret.as_bytes()),
        // The store knows who this is.
        principal: Principal { id: PrincipalId(0), workspace: WorkspaceId(0), name: principal },
        rights: order.rights,
        agents: order.agents,
        created_at: now,
        expires_at: order.expires_at,
        revoked_at: None,
        replaces: None,
    };
    if !store.add_key(record.clone()).await? {
        let text = format!("There is or was a key '{}' already; choose another name.", record.name);
        return Err(Refusal::new(Reason::AlreadyExists, text).into());
    }
    Ok(Made { secret, record, note: None })
}

/// Makes a key that may do the same as an old one, which goes on working for the overlap. It lives as long as the old
/// one was to live, if no end is given.
pub async fn rotate(
    store: &dyn Store,
    now: Millis,
    name: &FullName,
    overlap: Duration,
    expires_at: Option<Millis>,
) -> Result<Made, Error> {
    check_end(now, expires_at)?;
    let keys = store.keys().await?;
    let old = keys.iter().find(|key| key.name == *name && key.is_live(now)).ok_or_else(|| no_key(name))?;
    if let Some(successor) = successor(&keys, old) {
        return Err(replaced(old, successor, now).into());
    }
    let lifetime = old.expires_at.map(|end| Millis(now.0 + (end.0 - old.created_at.0)).min(LAST));
    let secret = generate()?;
    let record = KeyRecord {
        name: next_name(&keys, old),
        hash: sha256(secret.as_bytes()),
        created_at: now,
        expires_at: expires_at.or(lifetime),
        replaces: Some(old.name.name.clone()),
        ..old.clone()
    };
    let overlap = i64::try_from(overlap.as_millis()).unwrap_or(i64::MAX / 2);
    let until = Millis(now.0.saturating_add(overlap)).min(LAST);
    let until = old.expires_at.map_or(until, |end| end.min(until));
    if !store.replace_key(name.clone(), until, record.clone()).await? {
        return Err(no_key(name).into());
    }
    Ok(Made { secret, record, note: on_end(old) })
}

/// The key that took a key's place, or the place of the one that did, and so on.
fn successor<'a>(keys: &'a [KeyRecord], old: &KeyRecord) -> Option<&'a KeyRecord> {
    let after = |old: &KeyRecord| {
        let is_next = |key: &&KeyRecord| key.replaces.as_ref() == Some(&old.name.name);
        keys.iter().filter(|key| key.name.workspace == old.name.workspace).find(is_next)
    };
    // Each was made after the one before it.
    std::iter::successors(after(old), |key| after(key).filter(|next| next.created_at >= key.created_at))
        .take(keys.len())
        .last()
}

/// A key that is in its overlap has no lifetime of its own to hand on.
fn replaced(old: &KeyRecord, successor: &KeyRecord, now: Millis) -> Refusal {
    let (old, next) = (&old.name, &successor.name);
    let todo = match successor.is_live(now) {
        true => format!("rotate '{next}'"),
        false => format!("'{next}' has ended, so make another with 'flotilla keys create NAME --principal …'"),
    };
    Refusal::new(Reason::AlreadyExists, format!("The key '{old}' was replaced by '{next}' already; {todo}."))
}

/// A name without the number at its end.
fn base(name: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.rsplit_once('-').filter(|(_, number)| is_number(number)).map_or(name, |(base, _)| base)
}

/// The first free name of the form NAME-2, NAME-3, …; of a key that was made so, by the name it began with.
pub fn next_name(keys: &[KeyRecord], old: &KeyRecord) -> FullName {
    let name = old.name.name.as_str();
    let base = if old.replaces.is_some() { base(name) } else { name };
    let named = |number: usize| FullName::new(&old.name.workspace, &format!("{base}-{number}"));
    let mut candidates = (2..).map(named);
    candidates.find(|name| keys.iter().all(|key| key.name != *name)).unwrap_or_else(|| old.name.clone())
}

/// Returns what else is to be done.
pub async fn revoke(store: &dyn Store, now: Millis, name: &FullName) -> Result<Option<&'static str>, Error> {
    let keys = store.keys().await?;
    if !store.revoke_key(name.clone(), now).await? {
        return Err(no_key(name).into());
    }
    Ok(keys.iter().find(|key| key.name == *name).and_then(on_end))
}

fn no_key(name: &FullName) -> Refusal {
    let text = format!("There is no key '{name}' in use. 'flotilla keys list' and GET /api/keys show those there are.");
    Refusal::new(Reason::NotFound, text)
}
