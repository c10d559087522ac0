//! Keys: how they look, how they are hashed, and what is kept of them.

use crate::ids::{PrincipalId, WorkspaceId};
use crate::ports::Digest;
use crate::registry::check_name;
use crate::rights::Rights;
use flotilla_protocol::time::Millis;
use sha2::{Digest as _, Sha256};
use std::fmt;

const PREFIX: &str = "flk_";
/// The workspace of those who are not said to be elsewhere.
pub const DEFAULT_WORKSPACE: &str = "default";
/// The principals that are always there.
pub const OWNER: &str = "owner";
pub const ANONYMOUS: &str = "anonymous";

pub fn sha256(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

/// Whether two digests are the same, in a time that does not tell where they differ.
pub fn same(a: &Digest, b: &Digest) -> bool {
    std::hint::black_box(a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b))) == 0
}

/// Whether text has the shape of a key: the prefix and 64 hex digits (256 bits).
pub fn is_key(text: &str) -> bool {
    text.strip_prefix(PREFIX).is_some_and(|digits| digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Turns 256 random bits into a key.
pub fn key_from(bits: &[u8; 32]) -> String {
    let digits: String = bits.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{PREFIX}{digits}")
}

/// The name of a key or a principal within its workspace: `team/alice`, or `alice` in the default one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FullName {
    pub workspace: String,
    pub name: String,
}

impl FullName {
    pub fn new(workspace: &str, name: &str) -> Self {
        Self { workspace: workspace.to_owned(), name: name.to_owned() }
    }

    /// Reads `[WORKSPACE/]NAME`; what it names need not be there.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (workspace, name) = text.split_once('/').unwrap_or((DEFAULT_WORKSPACE, text));
        for (part, of) in [(workspace, "a workspace's"), (name, "a key's or principal's")] {
            // The rules of an agent's name: they are shown in the same places.
            check_name(part).map_err(|problem| problem.replace("an agent's", of))?;
        }
        Ok(Self::new(workspace, name))
    }

    pub fn owner() -> Self {
        Self::new(DEFAULT_WORKSPACE, OWNER)
    }

    /// Everyone without a key; no key can stand for them.
    pub fn is_anonymous(&self) -> bool {
        *self == Self::new(DEFAULT_WORKSPACE, ANONYMOUS)
    }
}

impl fmt::Display for FullName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.workspace.as_str() {
            DEFAULT_WORKSPACE => f.write_str(&self.name),
            workspace => write!(f, "{workspace}/{}", self.name),
        }
    }
}

/// Who keys stand for, and who owns agents and tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub id: PrincipalId,
    pub workspace: WorkspaceId,
    pub name: String,
}

/// A key as it is stored: never the key itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    pub name: FullName,
    pub hash: Digest,
    /// Whom it stands for, in the same workspace; several keys may stand for one.
    pub principal: Principal,
    pub rights: Rights,
    /// The only agents it may be used with; none means all its principal sees.
    pub agents: Option<Vec<String>>,
    pub created_at: Millis,
    pub expires_at: Option<Millis>,
    pub revoked_at: Option<Millis>,
    /// The key it was made to take the place of.
    pub replaces: Option<String>,
}

impl KeyRecord {
    pub fn is_live(&self, now: Millis) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }

    /// Whether it is the key of whoever owns the hub.
    pub fn is_owners(&self) -> bool {
        self.principal.id == PrincipalId::OWNER && self.rights.is_admin()
    }
}

#[cfg(test)]
mod tests {
    use super::{FullName, is_key, key_from, same};

    #[test]
    fn names_are_read_and_written() {
        for (text, workspace, name) in [("alice", "default", "alice"), ("team/alice", "team", "alice")] {
            let full = FullName::parse(text).unwrap();
            assert_eq!((full.workspace.as_str(), full.name.as_str()), (workspace, name));
            assert_eq!(full.to_string(), text);
        }
        assert_eq!(FullName::parse("default/alice"), FullName::parse("alice"));
        for wrong in ["", "/a", "a/", "a/b/c", "no spaces", "team/a:b"] {
            assert!(FullName::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn keys_have_their_shape_and_digests_are_compared_whole() {
        assert!(is_key(&key_from(&[7; 32])) && !is_key("flk_7"));
        let mut other = [1; 32];
        assert!(same(&[1; 32], &other));
        other[31] = 0;
        assert!(!same(&[1; 32], &other));
    }
}
