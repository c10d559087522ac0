//! What a run did to a repository, seen by git before and after, not told by the agent (docs/probes.md).

pub mod claims;
pub mod git;
mod programs;
pub mod site;
pub mod snapshot;
pub mod witness;
pub mod worktree;

use flotilla_protocol::block::Block;
use flotilla_protocol::wire::Json;
use git::{Git, Trouble, pieces};
use serde::Serialize;
use snapshot::Snapshot;
use std::collections::BTreeSet;
use std::path::Path;

/// Files and commits that are named; all are counted.
const NAMED: usize = 1000;
/// New files up to this size have their lines counted.
const COUNTED: u64 = 4 * 1024 * 1024;

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
    /// All files that differ from before, committed or not, from the repository's root.
    pub files_changed: Vec<String>,
    pub files: usize,
    /// Those of them that are not committed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uncommitted: Vec<String>,
    /// New commits on local branches, the newest first.
    pub commits: Vec<Commit>,
    pub commit_count: usize,
    pub diff: Diff,
    /// Commits that were there before are no longer in the branch: it was reset or rebased.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rewritten: bool,
    /// Other runs were at work in the repository meanwhile: some of this may be theirs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Commit {
    pub id: String,
    pub subject: String,
}

/// How much changed in the files that did, against the commit the run started from.
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
        let after = Snapshot::take(git).await?;
        let mut changed = committed(before, &after, git).await?;
        let touched: Vec<&String> = both(before, &after).filter(|file| differs(before, &after, file)).collect();
        changed.extend(touched.into_iter().cloned());
        let uncommitted = changed.iter().filter(|file| after.dirty.contains_key(*file)).take(NAMED).cloned();
        let uncommitted = uncommitted.collect();
        let (commits, commit_count) = commits(before, &after, git).await?;
        let diff = measure(before, &after, &changed, git).await?;
        let rewritten = match (&before.head, &after.head) {
            (Some(old), Some(new)) if before.branch == after.branch && old != new => {
                !git.is(&["merge-base", "--is-ancestor", old, new]).await?
            }
            _ => false,
        };
        Ok(Self {
            branch_before: before.branch.clone().filter(|_| before.branch != after.branch),
            branch: after.branch,
            head: after.head,
            files: changed.len(),
            files_changed: changed.into_iter().take(NAMED).collect(),
            uncommitted,
            commits,
            commit_count,
            diff,
            rewritten,
            shared: false,
        })
    }

    /// For the owner's log.
    pub fn block(&self) -> Option<Block> {
        let mut value = serde_json::to_value(self).ok()?;
        value.as_object_mut()?.insert("type".into(), "evidence".into());
        Block::new(Json::new(value.to_string()).ok()?).ok()
    }
}

fn both<'a>(before: &'a Snapshot, after: &'a Snapshot) -> impl Iterator<Item = &'a String> {
    before.dirty.keys().chain(after.dirty.keys())
}

/// One that was put back to what is committed has changed too.
fn differs(before: &Snapshot, after: &Snapshot, file: &str) -> bool {
    before.dirty.get(file) != after.dirty.get(file)
}

/// Files that differ between the commits of before and of after, on whatever local branch.
async fn committed(before: &Snapshot, after: &Snapshot, git: &Git) -> Result<BTreeSet<String>, Trouble> {
    let base = base(before, git).await?;
    let mut pairs = BTreeSet::new();
    pairs.extend(after.head.iter().map(|head| (base.clone(), head.clone())));
    for (name, id) in after.heads() {
        pairs.insert((before.refs.get(name).unwrap_or(&base).clone(), id.clone()));
    }
    let mut files = BTreeSet::new();
    for (old, new) in pairs.iter().filter(|(old, new)| old != new) {
        let names = ["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-relative", old, new];
        files.extend(pieces(&git.ask(&names).await?));
    }
    Ok(files)
}

/// The commit the run started from; before the first one, the tree that holds nothing.
async fn base(before: &Snapshot, git: &Git) -> Result<String, Trouble> {
    match &before.head {
        Some(head) => Ok(head.clone()),
        None => git.line(&["hash-object", "-t", "tree", "/dev/null"]).await,
    }
}

async fn commits(before: &Snapshot, after: &Snapshot, git: &Git) -> Result<(Vec<Commit>, usize), Trouble> {
    let old: BTreeSet<&String> = before.refs.values().chain(&before.head).collect();
    let heads = after.heads().map(|(_, id)| id);
    let new: BTreeSet<&String> = heads.chain(&after.head).filter(|id| !old.contains(id)).collect();
    if new.is_empty() {
        return Ok((Vec::new(), 0));
    }
    let mut arguments = vec!["log", "--no-show-signature", "-z", "--format=%H %s"];
    arguments.extend(new.iter().map(|id| id.as_str()));
    arguments.push("--not");
    arguments.extend(old.iter().map(|id| id.as_str()));
    let printed = git.ask(&arguments).await?;
    let commit = |piece: String| {
        let (id, subject) = piece.split_once(' ').unwrap_or((&piece, ""));
        Commit { id: id.to_owned(), subject: subject.to_owned() }
    };
    let all: Vec<Commit> = pieces(&printed).map(commit).collect();
    let count = all.len();
    Ok((all.into_iter().take(NAMED).collect(), count))
}

/// Lines put in and taken out of the files that changed. Files that git does not know yet are read.
async fn measure(before: &Snapshot, after: &Snapshot, files: &BTreeSet<String>, git: &Git) -> Result<Diff, Trouble> {
    let mut diff = Diff::default();
    if files.is_empty() {
        return Ok(diff);
    }
    let base = base(before, git).await?;
    let flags = ["diff", "--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-relative"];
    let printed = git.ask(&[&flags[..], &["--ignore-submodules=dirty", &base]].concat()).await?;
    let mut known = BTreeSet::new();
    for piece in pieces(&printed) {
        let mut fields = piece.splitn(3, '\t');
        let (Some(added), Some(removed), Some(file)) = (fields.next(), fields.next(), fields.next()) else { continue };
        known.insert(file.to_owned());
        if !files.contains(file) {
            continue;
        }
        match (added.parse::<u64>(), removed.parse::<u64>()) {
            (Ok(added), Ok(removed)) => {
                diff.insertions += added;
                diff.deletions += removed;
            }
            _ => diff.binary_files += 1,
        }
    }
    for file in files.iter().filter(|file| after.dirty.contains_key(*file) && !known.contains(*file)) {
        match lines(&after.root.join(file)) {
            Some(lines) => diff.insertions += lines,
            None => diff.binary_files += 1,
        }
    }
    Ok(diff)
}

fn lines(file: &Path) -> Option<u64> {
    let facts = std::fs::symlink_metadata(file).ok()?;
    if !facts.is_file() || facts.len() > COUNTED {
        return None;
    }
    let text = std::fs::read(file).ok()?;
    if text.contains(&0) {
        return None;
    }
    let unended = !text.is_empty() && !text.ends_with(b"\n");
    Some(text.iter().filter(|byte| **byte == b'\n').count() as u64 + u64::from(unended))
}
