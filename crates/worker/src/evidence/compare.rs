//! Two moments of a repository side by side: files, commits and lines that differ, also in the repositories inside it.

use super::git::{Git, Trouble, pieces};
use super::snapshot::Snapshot;
use super::{Commit, Diff};
use std::collections::{BTreeMap, BTreeSet};
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
    /// Local branches that hold all of these commits, by their short names.
    pub branches: BTreeSet<String>,
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
        let made = Made::between(before, after, git).await?;
        let mut files = made.files(git).await?;
        let touched = both(before, after).filter(|file| differs(before, after, file));
        // A repository that git does not know is told of by what is in it.
        let is_repository = |file: &str| file.strip_suffix('/').is_some_and(|place| after.inner.contains_key(place));
        files.extend(touched.filter(|file| !is_repository(file)).cloned());
        let uncommitted = files.iter().filter(|file| after.dirty.contains_key(*file)).cloned().collect();
        let commits = commits(before, after, git).await?;
        let branches = if commits.is_empty() { BTreeSet::new() } else { made.branches() };
        let diff = made.measure(after, &files, git).await?;
        let unseen = after.unseen.clone();
        let mut seen = Differences { files, uncommitted, commits, branches, diff, unseen };
        for (place, now) in &after.inner {
            let own = git.at(&now.root);
            let mut then = match before.inner.get(place) {
                Some(then) => then.clone(),
                None => beginning(before, place, now, git).await?,
            };
            // Another working tree of the same repository: what was committed in it was told above.
            if now.common == after.common {
                (then.head, then.branch, then.refs) = (now.head.clone(), now.branch.clone(), now.refs.clone());
            }
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

/// What a run committed: by the name of a branch, or of what else leads to commits, where it began and what it came to.
struct Made {
    /// Only where these differ.
    grown: BTreeMap<String, (String, String)>,
    /// The ends of it that no other of them holds.
    outermost: BTreeSet<String>,
}

impl Made {
    async fn between(before: &Snapshot, after: &Snapshot, git: &Git) -> Result<Self, Trouble> {
        let (old, mut grown): (BTreeMap<&str, &String>, _) = (before.tips().collect(), BTreeMap::new());
        for (name, id) in after.tips() {
            let from = match old.get(name) {
                Some(from) => (*from).clone(),
                None => fork(before, id, git).await?,
            };
            if from != *id {
                grown.insert(name.to_owned(), (from, id.clone()));
            }
        }
        let mut outermost: BTreeSet<String> = grown.values().map(|(_, to)| to.clone()).collect();
        if outermost.len() > 1 {
            let mut arguments = vec!["merge-base", "--independent"];
            arguments.extend(outermost.iter().map(String::as_str));
            let printed = git.ask(&arguments).await?;
            outermost = String::from_utf8_lossy(&printed).lines().map(str::to_owned).collect();
        }
        Ok(Self { grown, outermost })
    }

    fn pairs(&self) -> BTreeSet<&(String, String)> {
        self.grown.values().collect()
    }

    async fn files(&self, git: &Git) -> Result<BTreeSet<String>, Trouble> {
        let mut files = BTreeSet::new();
        for (from, to) in self.pairs() {
            let names = ["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-relative", from, to];
            files.extend(pieces(&git.ask(&names).await?));
        }
        Ok(files)
    }

    /// Branches that hold all of it.
    fn branches(&self) -> BTreeSet<String> {
        let all = self.outermost.iter().next().filter(|_| self.outermost.len() == 1);
        let holds = self.grown.iter().filter(|(_, (_, to))| Some(to) == all);
        holds.filter_map(|(name, _)| name.strip_prefix("refs/heads/").map(str::to_owned)).collect()
    }

    /// Lines put in and taken out, in commits and in the working tree.
    async fn measure(&self, after: &Snapshot, files: &BTreeSet<String>, git: &Git) -> Result<Diff, Trouble> {
        let mut diff = Diff::default();
        if files.is_empty() {
            return Ok(diff);
        }
        let checked_out = after.branch.as_ref().map_or("HEAD".to_owned(), |branch| format!("refs/heads/{branch}"));
        let here = self.grown.get(&checked_out).filter(|(_, to)| self.outermost.contains(to));
        let from = match here.map(|(from, _)| from).or(after.head.as_ref()) {
            Some(from) => from.clone(),
            None => nothing(git).await?,
        };
        let known = diff.add(&[&from], files, git).await?;
        let mut counted: BTreeSet<&String> = here.map(|(_, to)| to).into_iter().collect();
        for (from, to) in self.pairs() {
            if self.outermost.contains(to) && counted.insert(to) {
                diff.add(&[from, to], files, git).await?;
            }
        }
        // Files that git does not know yet are read.
        for file in files.iter().filter(|file| after.dirty.contains_key(*file) && !known.contains(*file)) {
            match lines(&after.root.join(file)) {
                Some(lines) => diff.insertions += lines,
                None => diff.binary_files += 1,
            }
        }
        Ok(diff)
    }
}

/// The commit that what is new here grew from: the nearest one that was there before.
async fn fork(before: &Snapshot, id: &str, git: &Git) -> Result<String, Trouble> {
    let old: BTreeSet<&String> = before.refs.values().chain(&before.head).collect();
    if old.iter().any(|old| *old == id) {
        return Ok(id.to_owned());
    }
    let mut arguments = vec!["merge-base", id];
    arguments.extend(old.iter().map(|old| old.as_str()));
    match git.line(&arguments).await {
        Ok(fork) if !old.is_empty() => Ok(fork),
        // It has nothing in common with what was there.
        _ => match &before.head {
            Some(head) => Ok(head.clone()),
            None => nothing(git).await,
        },
    }
}

/// The tree that holds nothing.
async fn nothing(git: &Git) -> Result<String, Trouble> {
    git.line(&["hash-object", "-t", "tree", "/dev/null"]).await
}

async fn commits(before: &Snapshot, after: &Snapshot, git: &Git) -> Result<Vec<Commit>, Trouble> {
    let old: BTreeSet<&String> = before.refs.values().chain(&before.head).collect();
    let new: BTreeSet<&String> = after.tips().map(|(_, id)| id).filter(|id| !old.contains(id)).collect();
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

impl Diff {
    /// Counts the lines of these files between two commits, or one and the working tree; the files that git knows there.
    async fn add(
        &mut self,
        sides: &[&String],
        files: &BTreeSet<String>,
        git: &Git,
    ) -> Result<BTreeSet<String>, Trouble> {
        let flags = ["diff", "--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-relative"];
        let mut arguments = [&flags[..], &["--ignore-submodules=dirty"]].concat();
        arguments.extend(sides.iter().map(|side| side.as_str()));
        let mut known = BTreeSet::new();
        for piece in pieces(&git.ask(&arguments).await?) {
            let mut fields = piece.splitn(3, '\t');
            let (Some(added), Some(removed), Some(file)) = (fields.next(), fields.next(), fields.next()) else {
                continue;
            };
            known.insert(file.to_owned());
            if !files.contains(file) {
                continue;
            }
            match (added.parse::<u64>(), removed.parse::<u64>()) {
                (Ok(added), Ok(removed)) => {
                    self.insertions += added;
                    self.deletions += removed;
                }
                _ => self.binary_files += 1,
            }
        }
        Ok(known)
    }
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
