//! Workspaces, principals and keys in memory.

use flotilla_core::ids::{PrincipalId, WorkspaceId};
use flotilla_core::key::{ANONYMOUS, DEFAULT_WORKSPACE, FullName, KeyRecord, OWNER, Principal};
use flotilla_protocol::time::Millis;

/// Numbers are places: the first workspace is the default one, the first two principals are always there.
pub struct Keyring {
    workspaces: Vec<String>,
    principals: Vec<FullName>,
    /// By age, then by name.
    pub keys: Vec<KeyRecord>,
    /// How often the keys were changed.
    pub revision: u64,
}

impl Default for Keyring {
    fn default() -> Self {
        let principals = [OWNER, ANONYMOUS].map(|name| FullName::new(DEFAULT_WORKSPACE, name)).into();
        Self { workspaces: vec![DEFAULT_WORKSPACE.to_owned()], principals, keys: Vec::new(), revision: 0 }
    }
}

/// The number of something, which is added if it is not there.
fn number<T: PartialEq + Clone>(all: &mut Vec<T>, one: &T) -> i64 {
    let known = all.iter().position(|known| known == one);
    let index = known.unwrap_or_else(|| {
        all.push(one.clone());
        all.len() - 1
    });
    index as i64 + 1
}

impl Keyring {
    pub fn principal(&mut self, name: &FullName) -> Principal {
        let workspace = WorkspaceId(number(&mut self.workspaces, &name.workspace));
        let id = PrincipalId(number(&mut self.principals, name));
        Principal { id, workspace, name: name.name.clone() }
    }

    pub fn workspace_name(&self, id: WorkspaceId) -> String {
        let index = usize::try_from(id.0 - 1).ok();
        index.and_then(|index| self.workspaces.get(index)).cloned().unwrap_or_default()
    }

    /// The name of the workspace a principal belongs to.
    pub fn workspace_of(&self, principal: PrincipalId) -> String {
        let index = usize::try_from(principal.0 - 1).ok();
        index.and_then(|index| self.principals.get(index)).map(|name| name.workspace.clone()).unwrap_or_default()
    }

    pub fn add(&mut self, mut key: KeyRecord) -> bool {
        let whose = FullName::new(&key.name.workspace, &key.principal.name);
        let taken = self.keys.iter().any(|known| known.name == key.name || known.hash == key.hash);
        if taken || whose.is_anonymous() {
            return false;
        }
        key.principal = self.principal(&whose);
        self.keys.push(key);
        self.keys.sort_by(|a, b| (a.created_at, &a.name).cmp(&(b.created_at, &b.name)));
        self.revision += 1;
        true
    }

    pub fn replace(&mut self, old: &FullName, until: Millis, key: KeyRecord) -> bool {
        if self.live(old).is_none() || !self.add(key) {
            return false;
        }
        self.live(old).map(|old| old.expires_at = Some(until)).is_some()
    }

    pub fn revoke(&mut self, name: &FullName, at: Millis) -> bool {
        let revoked = self.live(name).map(|key| key.revoked_at = Some(at)).is_some();
        self.revision += u64::from(revoked);
        revoked
    }

    pub fn restore(&mut self, name: &FullName) -> bool {
        let Some(key) = self.keys.iter_mut().find(|key| key.name == *name) else { return false };
        (key.revoked_at, key.expires_at) = (None, None);
        self.revision += 1;
        true
    }

    fn live(&mut self, name: &FullName) -> Option<&mut KeyRecord> {
        self.keys.iter_mut().find(|key| key.name == *name && key.revoked_at.is_none())
    }
}
