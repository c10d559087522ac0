//! What a working tree holds and nothing else does: with it, the tree is not removed.

use super::git::{Git, Trouble};
use super::hidden::Hidden;
use super::snapshot::Snapshot;
use std::collections::BTreeSet;
use std::pin::Pin;

/// Places that are named; more are counted.
const NAMED: usize = 5;

/// Why what the tree holds cannot be committed or merged without losing some of it; none if it can. A commit holds of a
/// repository inside no more than a number.
pub async fn inside(end: &Snapshot, start: &Snapshot, git: &Git) -> Result<Option<String>, Trouble> {
    let unknown =
        end.dirty.keys().filter_map(|file| file.strip_suffix('/')).chain(end.unseen.iter().map(String::as_str));
    let mut places: BTreeSet<String> = unknown.map(str::to_owned).collect();
    only_there(end, start, git, "", &mut places).await?;
    let reason = |places| format!("repositories inside it hold what is nowhere else: {}", told(places));
    Ok((!places.is_empty()).then(|| reason(&places)))
}

type Looking<'a> = Pin<Box<dyn Future<Output = Result<(), Trouble>> + Send + 'a>>;

/// Adds the places of those that are not as their parent has them, or have commits that no remote has.
fn only_there<'a>(
    end: &'a Snapshot,
    start: &'a Snapshot,
    git: &'a Git,
    above: &'a str,
    places: &'a mut BTreeSet<String>,
) -> Looking<'a> {
    Box::pin(async move {
        let nothing = Snapshot::default();
        for (place, inner) in &end.inner {
            let (own, path) = (git.at(&inner.root), format!("{above}{place}"));
            // The repository the tree was made of has this one.
            let known = start.link(place, git).await?;
            let mut wanted = vec!["rev-list", "-n", "1", "--all"];
            wanted.extend(inner.head.as_deref());
            wanted.extend(["--not", "--remotes"]);
            wanted.extend(known.as_deref());
            let has_commits = inner.head.is_some() && !own.ask(&wanted).await.is_ok_and(|found| found.is_empty());
            if has_commits || !inner.dirty.is_empty() || !inner.unseen.is_empty() {
                places.insert(path.clone());
            }
            only_there(inner, &nothing, git, &format!("{path}/"), places).await?;
        }
        Ok(())
    })
}

/// What would go with the tree though all that git sees is safe elsewhere; none if nothing would.
pub async fn besides(
    end: &Snapshot,
    start: &Snapshot,
    before: &Hidden,
    is_swept: bool,
    git: &Git,
) -> Result<Option<String>, Trouble> {
    let hidden = Hidden::take(end, git).await?;
    let mut reasons = Vec::new();
    if !is_swept && !hidden.ignored.is_empty() {
        reasons.push(format!("files that git ignores are only there: {}", told(&hidden.ignored)));
    }
    let marked: BTreeSet<String> = hidden.marked.difference(&before.marked).cloned().collect();
    if !marked.is_empty() {
        reasons.push(format!("git was told not to look at files in it: {}", told(&marked)));
    }
    let belied = hidden.tracked.belied(&before.tracked, end, git).await?;
    if !belied.is_empty() {
        reasons.push(format!("git calls files in it unchanged that are not: {}", told(&belied)));
    }
    if hidden.has_other_rules(before) {
        reasons.push("settings by which git overlooks files or changes are not as they were".to_owned());
    }
    if has_left_commits(end, start, git).await? {
        reasons.push("commits that are on no branch were made in it".to_owned());
    }
    Ok((!reasons.is_empty()).then(|| reasons.join("; ")))
}

/// Commits that only the tree's own record leads to.
async fn has_left_commits(end: &Snapshot, start: &Snapshot, git: &Git) -> Result<bool, Trouble> {
    let record = std::fs::read(end.own.join("logs/HEAD")).unwrap_or_default();
    let record = String::from_utf8_lossy(&record).into_owned();
    let is_id = |id: &&str| id.len() >= 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let ids: BTreeSet<&str> = record.lines().filter_map(|line| line.split(' ').nth(1)).filter(is_id).collect();
    if ids.is_empty() {
        return Ok(false);
    }
    let mut wanted = vec!["rev-list", "-n", "1", "--ignore-missing"];
    wanted.extend(ids.iter().take(1_000));
    wanted.extend(["--not", "--branches", "--tags", "--remotes"]);
    wanted.extend(start.head.as_deref());
    Ok(!git.ask(&wanted).await?.is_empty())
}

fn told(places: &BTreeSet<String>) -> String {
    let named: Vec<&str> = places.iter().take(NAMED).map(String::as_str).collect();
    let more = places.len() - named.len();
    if more == 0 { named.join(", ") } else { format!("{} and {more} more", named.join(", ")) }
}
