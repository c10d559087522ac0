//! Finds the repository of a folder. Every git call gets its place by GIT_DIR and GIT_WORK_TREE, so git searches for nothing.

use super::git::Trouble;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The working tree.
    pub root: PathBuf,
    /// The working tree's own git folder, and the one it shares with other working trees.
    pub own: PathBuf,
    pub common: PathBuf,
}

impl Place {
    /// Goes up from a folder, as git does: a file `.git` says where the git folder is, and what is no git folder is passed by.
    pub fn find(folder: &Path) -> Result<Self, Trouble> {
        let failed = |error: std::io::Error| Trouble::Failed(format!("git in {}: {error}", folder.display()));
        let folder = std::fs::canonicalize(folder).map_err(failed)?;
        let device = std::fs::metadata(&folder).map_err(failed)?.dev();
        for above in folder.ancestors() {
            // Another disk begins here, and git goes no further.
            if !std::fs::metadata(above).is_ok_and(|facts| facts.dev() == device) {
                break;
            }
            let link = above.join(".git");
            let Ok(facts) = std::fs::metadata(&link) else { continue };
            let own = match facts.is_file() {
                true => above.join(said(&link, "gitdir:").ok_or(Trouble::NoRepository)?),
                false => link,
            };
            match Self::of(above, &own) {
                Some(place) => return Ok(place),
                None if facts.is_file() => return Err(Trouble::NoRepository),
                None => {}
            }
        }
        Err(Trouble::NoRepository)
    }

    fn of(root: &Path, own: &Path) -> Option<Self> {
        let own = std::fs::canonicalize(own).ok()?;
        let shared = own.join("commondir");
        let common = match std::fs::symlink_metadata(&shared) {
            Ok(_) => std::fs::canonicalize(own.join(said(&shared, "")?)).ok()?,
            Err(_) => own.clone(),
        };
        let is_there = std::fs::symlink_metadata(own.join("HEAD")).is_ok()
            && ["objects", "refs"].iter().all(|name| common.join(name).is_dir());
        is_there.then(|| Self { root: root.to_owned(), own, common })
    }

    /// Whether it is one more working tree of a repository.
    pub fn is_linked(&self) -> bool {
        self.own != self.common
    }
}

/// The path in a small file of git's. What is no plain file says nothing: a run may put a pipe there.
fn said(file: &Path, before: &str) -> Option<PathBuf> {
    let facts = std::fs::metadata(file).ok()?;
    let text = (facts.is_file() && facts.len() < 64 * 1024).then(|| std::fs::read_to_string(file))?.ok()?;
    let path = text.strip_prefix(before)?.trim_start_matches(' ').trim_end_matches(['\n', '\r']);
    (!path.is_empty()).then(|| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::{Place, Trouble};
    use std::fs::{create_dir_all, write};

    #[test]
    fn a_repository_is_found_from_below_and_what_is_none_is_passed_by() {
        let place = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(place.path()).unwrap();
        assert_eq!(Place::find(&root), Err(Trouble::NoRepository));
        for folder in [".git/objects", ".git/refs", ".git/worktrees/one", "tree/below", "in/.git"] {
            create_dir_all(root.join(folder)).unwrap();
        }
        write(root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let whole = Place { root: root.clone(), own: root.join(".git"), common: root.join(".git") };
        assert_eq!(Place::find(&root.join("in")), Ok(whole.clone()));

        write(root.join("tree/.git"), "gitdir: ../.git/worktrees/one\n").unwrap();
        assert_eq!(Place::find(&root.join("tree/below")), Err(Trouble::NoRepository), "it leads to no git folder");
        write(root.join(".git/worktrees/one/HEAD"), "ref: refs/heads/one\n").unwrap();
        write(root.join(".git/worktrees/one/commondir"), "../..\n").unwrap();
        let tree = Place { root: root.join("tree"), own: root.join(".git/worktrees/one"), common: root.join(".git") };
        assert_eq!(Place::find(&root.join("tree/below")), Ok(tree.clone()));
        assert!(tree.is_linked() && !whole.is_linked());
        assert!(matches!(Place::find(&root.join("gone")), Err(Trouble::Failed(_))));
    }
}
