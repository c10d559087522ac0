//! What a run did to a repository, seen by git before and after, not told by the agent (docs/probes.md).

pub mod claims;
mod compare;
pub mod git;
pub mod hidden;
mod inner;
mod loss;
mod place;
mod scrub;
pub mod site;
pub mod snapshot;
mod tracked;
pub mod witness;
pub mod worktree;

use compare::{Differences, compare};
use flotilla_protocol::block::Block;
use flotilla_protocol::wire::Json;
use git::{Git, Trouble};
use serde::Serialize;
use snapshot::Snapshot;

/// Files and commits that are named; all are counted.
const NAMED: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Evidence {
    /// The branch after the run; absent if none is checked out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The branch before it, if it was another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// All files that differ from before, committed or not, from the repository's root; also those of submodules.
    pub files_changed: Vec<String>,
    pub files: usize,
    /// Those of them that are not committed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uncommitted: Vec<String>,
    /// New commits on local branches, the newest first.
    pub commits: Vec<Commit>,
    pub commit_count: usize,
    /// Local branches that hold all of them, whatever is checked out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<String>,
    pub diff: Diff,
    /// Commits that were there before are no longer in the branch: it was reset or rebased.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rewritten: bool,
    /// Other runs were at work in the repository meanwhile: some of this may be theirs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Files that were marked so that git does not look for changes in them, or that it calls unchanged and are not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// Files and folders that came and that git ignores.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// What git ignores was changed where no commit shows it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignores_changed: bool,
    /// Repositories inside this one that cannot be looked at any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Commit {
    pub id: String,
    pub subject: String,
}

/// How much changed in the files that did: in what was committed on any branch, and in the working tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Diff {
    pub insertions: u64,
    pub deletions: u64,
    /// Files whose lines cannot be counted.
    pub binary_files: u64,
}

impl Evidence {
    /// Compares the repository with what it was.
    pub async fn since(before: &Snapshot, git: &Git) -> Result<Self, Trouble> {
        let after = Snapshot::since(before, git).await?;
        let Differences { files, uncommitted, commits, branches, diff, unseen } = compare(before, &after, git).await?;
        let rewritten = match (&before.head, &after.head) {
            (Some(old), Some(new)) if before.branch == after.branch && old != new => {
                !git.is(&["merge-base", "--is-ancestor", old, new]).await?
            }
            _ => false,
        };
        let mut seen = Self {
            branch_before: before.branch.clone().filter(|_| before.branch != after.branch),
            branch: after.branch.clone(),
            head: after.head.clone(),
            files: files.len(),
            files_changed: named(files),
            uncommitted: named(uncommitted),
            commit_count: commits.len(),
            commits: named(commits),
            branches: named(branches),
            diff,
            rewritten,
            unseen: named(unseen.difference(&before.unseen).cloned()),
            ..Self::default()
        };
        let whole = &after;
        if let (Some(before), Some(after)) = (&before.hidden, &after.hidden) {
            let mut hidden = after.tracked.belied(&before.tracked, whole, git).await?;
            hidden.extend(after.marked.difference(&before.marked).cloned());
            seen.hidden = named(hidden);
            seen.ignored = named(after.ignored.difference(&before.ignored).cloned());
            seen.ignores_changed = after.has_other_rules(before);
        }
        Ok(seen)
    }

    /// For the owner's log.
    pub fn block(&self) -> Option<Block> {
        let mut value = serde_json::to_value(self).ok()?;
        value.as_object_mut()?.insert("type".into(), "evidence".into());
        Block::new(Json::new(value.to_string()).ok()?).ok()
    }
}

fn named<T>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    all.into_iter().take(NAMED).collect()
}
