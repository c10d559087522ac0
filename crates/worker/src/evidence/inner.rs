//! Repositories inside a repository: its submodules, and those that git does not know as such. Each is asked by itself,
//! with its own settings put aside like any other's.

use super::git::{Git, Trouble, pieces};
use super::snapshot::Snapshot;
use std::collections::BTreeSet;
use std::path::{Component, Path};
use std::pin::Pin;

/// How many are looked at in all, and how deep they may lie in each other.
const MOST: usize = 64;
const DEEPEST: usize = 4;

/// Looks at those inside, also at the places where `before` had some, or that were committed since.
pub async fn look(taken: &mut Snapshot, git: &Git, before: Option<&Snapshot>) -> Result<(), Trouble> {
    let mut left = MOST;
    if let Some(before) = before {
        let known = before.inner.keys().chain(&before.unseen).cloned().collect::<Vec<_>>();
        taken.places.extend(known);
        taken.places.extend(linked_since(before, taken, git).await?);
    }
    below(taken, &git.at(&taken.root.clone()), &mut left, DEEPEST).await
}

type Looking<'a> = Pin<Box<dyn Future<Output = Result<(), Trouble>> + Send + 'a>>;

fn below<'a>(taken: &'a mut Snapshot, git: &'a Git, left: &'a mut usize, depth: usize) -> Looking<'a> {
    Box::pin(async move {
        taken.places.extend(listed(&taken.root, git).await?.into_iter().map(|(_, place)| place));
        for place in std::mem::take(&mut taken.places) {
            let folder = taken.root.join(&place);
            // One that is not checked out holds nothing.
            if std::fs::symlink_metadata(folder.join(".git")).is_err() {
                continue;
            }
            if depth == 0 || *left == 0 || !is_plain(&taken.root, &place) {
                taken.unseen.insert(place);
                continue;
            }
            *left -= 1;
            let own = git.at(&folder);
            match Snapshot::alone(&own).await {
                Ok(mut inner) if belongs(&inner, taken, &folder) => {
                    below(&mut inner, &own, left, depth - 1).await?;
                    taken.inner.insert(place, inner);
                }
                _ => drop(taken.unseen.insert(place)),
            }
        }
        Ok(())
    })
}

/// A run writes what is read here: nothing leads out of the repository.
fn is_plain(root: &Path, place: &str) -> bool {
    let inside = Path::new(place).components().all(|part| matches!(part, Component::Normal(_)));
    inside && std::fs::canonicalize(root.join(place)).is_ok_and(|real| real == root.join(place))
}

/// What is asked in a folder may answer for another one, whose files are nobody's business here.
fn belongs(inner: &Snapshot, outer: &Snapshot, folder: &Path) -> bool {
    let here = |path: &Path| path.starts_with(&outer.root) || path.starts_with(&outer.common);
    inner.root == folder && here(&inner.own) && here(&inner.common)
}

/// The names of submodules and their places, as the repository lists them.
pub async fn listed(root: &Path, git: &Git) -> Result<Vec<(String, String)>, Trouble> {
    let file = root.join(".gitmodules");
    if !std::fs::symlink_metadata(&file).is_ok_and(|facts| facts.is_file()) {
        return Ok(Vec::new());
    }
    let wanted = ["config", "--file", ".gitmodules", "-z", "--get-regexp", r"^submodule\..*\.path$"];
    // A list that cannot be read lists nothing: what was there before is known anyway.
    let printed = git.ask(&wanted).await.unwrap_or_default();
    let named = |entry: String| {
        let (setting, place) = entry.split_once('\n')?;
        Some((setting.strip_prefix("submodule.")?.strip_suffix(".path")?.to_owned(), place.to_owned()))
    };
    Ok(pieces(&printed).filter_map(named).collect())
}

/// Places where commits since then have put a repository.
async fn linked_since(before: &Snapshot, taken: &Snapshot, git: &Git) -> Result<BTreeSet<String>, Trouble> {
    let (Some(old), Some(new)) = (&before.head, &taken.head) else { return Ok(BTreeSet::new()) };
    if old == new {
        return Ok(BTreeSet::new());
    }
    let raw = ["diff", "--raw", "-z", "--no-renames", "--no-ext-diff", "--no-relative", old, new];
    let printed = git.ask(&raw).await?;
    let all: Vec<String> = pieces(&printed).collect();
    let is_link = |facts: &str| facts.split(' ').nth(1) == Some("160000");
    Ok(all.chunks_exact(2).filter(|pair| is_link(&pair[0])).map(|pair| pair[1].clone()).collect())
}
