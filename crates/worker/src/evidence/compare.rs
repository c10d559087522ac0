//! Two moments of a repository side by side: files, commits and lines that differ, also in the repositories inside it.

use super::git::{Git, Trouble, pieces};
use super::snapshot::Snapshot;
use super::{Commit, Diff};
use std::collections::BTreeSet;
use std::path::Path;
use std::pin::Pin;

/// New files up to this size have their lines counted.
const COUNTED: u64 = 4 * 1024 * 1024;

/// What differs, all of it.
#[derive(Debug, Default)]
pub struct Differences {
    pub files: BTreeSet<String>,
    pub uncommitted: BTreeSet<String>,
    pub commits: Vec<Commit>,
    pub diff: Diff,
    /// Repositories inside that could not be looked at.
    pub unseen: BTreeSet<String>,
}

impl Differences {
    /// Takes in what differs in a repository at this place.
    fn add(&mut self, place: &str, inner: Self) {
        let below = |path: String| format!("{place}/{path}");
        self.files.extend(inner.files.into_iter().map(below));
        self.uncommitted.extend(inner.uncommitted.into_iter().map(below));
        self.unseen.extend(inner.unseen.into_iter().map(below));
        self.commits.extend(inner.commits);
        self.diff.insertions += inner.diff.insertions;
        self.diff.deletions += inner.diff.deletions;
        self.diff.binary_files += inner.diff.binary_files;
    }
}

type Comparing<'a> = Pin<Box<dyn Future<Output = Result<Differences, Trouble>> + Send + 'a>>;

/// `git` is asked at the root of the repository that `after` shows.
pub fn compare<'a>(before: &'a Snapshot, after: &'a Snapshot, git: &'a Git) -> Comparing<'a> {
    Box::pin(async move {
        let mut files = committed(before, after, git).await?;
        let touched = both(before, after).filter(|file| differs(before, after, file));
        // A repository that git does not know is told of by what is in it.
        let is_repository = |file: &str| file.strip_suffix('/').is_some_and(|place| after.inner.contains_key(place));
        files.extend(touched.filter(|file| !is_repository(file)).cloned());
        let uncommitted = files.iter().filter(|file| after.dirty.contains_key(*file)).cloned().collect();
        let commits = commits(before, after, git).await?;
        let diff = measure(before, after, &files, git).await?;
        let unseen = after.unseen.clone();
        let mut seen = Differences { files, uncommitted, commits, diff, unseen };
        for (place, now) in &after.inner {
            let own = git.at(&now.root);
            let then = match before.inner.get(place) {
                Some(then) => then.clone(),
                None => beginning(before, place, now, git).await?,
            };
            if then == *now {
                continue;
            }
            match compare(&then, now, &own).await {
                Ok(inner) => seen.add(place, inner),
                Err(_) => drop(seen.unseen.insert(place.clone())),
            }
        }
        Ok(seen)
    })
}

/// What a repository inside that was not there before would have been: a submodule at the commit that its parent names, or
/// one in which nothing was.
async fn beginning(before: &Snapshot, place: &str, now: &Snapshot, git: &Git) -> Result<Snapshot, Trouble> {
    let mut then = Snapshot { root: now.root.clone(), ..Snapshot::default() };
    then.head = before.link(place, git).await?;
    if then.head.is_some() {
        // Branches came with it, but for the one that it stands on.
        then.refs = now.refs.clone();
        then.refs.retain(|_, id| Some(&*id) != now.head.as_ref());
    }
    Ok(then)
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

async fn commits(before: &Snapshot, after: &Snapshot, git: &Git) -> Result<Vec<Commit>, Trouble> {
    let old: BTreeSet<&String> = before.refs.values().chain(&before.head).collect();
    let heads = after.heads().map(|(_, id)| id);
    let new: BTreeSet<&String> = heads.chain(&after.head).filter(|id| !old.contains(id)).collect();
    if new.is_empty() {
        return Ok(Vec::new());
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
    Ok(pieces(&printed).map(commit).collect())
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
