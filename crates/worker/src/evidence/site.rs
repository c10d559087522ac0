//! Where a run works, and what is looked at around it: the folder itself or a tree of the task's own.

use super::Evidence;
use super::claims::Ground;
use super::git::{Git, Hold, Trouble};
use super::snapshot::Snapshot;
use super::witness::{Sight, Witness, without_result};
use super::worktree::{Ending, Worktree};
use crate::agent::Outbox;
use crate::supervise::Limits;
use flotilla_protocol::block::Block;
use flotilla_protocol::wire::Json;
use flotilla_protocol::work::{Assignment, Report};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long git may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between being asked to end and being ended.
const GRACE: Duration = Duration::from_secs(2);

/// What an agent's owner wants of git.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Look before and after, and tell what changed.
    pub evidence: bool,
    /// A tree for each task below this folder, and what becomes of it.
    pub worktrees: Option<(PathBuf, Ending)>,
    /// Files that git ignores go with such a tree.
    pub is_swept: bool,
}

pub struct Site {
    pub folder: PathBuf,
    git: Git,
    /// With where in it the run works. None if nobody wants to know, or there is no repository.
    before: Option<Result<(Snapshot, Ground), Trouble>>,
    tree: Option<(Worktree, Ending)>,
    presence: Option<Presence>,
    witness: Arc<Witness>,
}

impl Plan {
    /// Git is held to what the run is held to, below a reaper like it.
    pub async fn open(
        &self,
        folder: &Path,
        assignment: &Assignment,
        reaper: &Path,
        limits: Limits,
    ) -> Result<Site, String> {
        let mark = format!("{}.{}", assignment.task_id, assignment.run);
        let hold = Hold { reaper: reaper.to_owned(), mark, limits, grace: GRACE, patience: PATIENCE };
        let witness = Arc::new(Witness::new(&assignment.message));
        let presence = repository(folder).map(Presence::enter);
        let (git, folder) = (Git::new(folder, hold), folder.to_owned());
        let mut site = Site { folder, git, before: None, tree: None, presence, witness };
        if let Some((root, ending)) = &self.worktrees {
            let opened = Worktree::open(&site.git, root, &assignment.task_id).await;
            let mut tree = opened.map_err(|problem| format!("there is no working tree for the task: {problem}"))?;
            tree.is_swept = self.is_swept;
            site.folder = tree.inside(&site.folder).map_err(|error| format!("the task's working tree: {error}"))?;
            site.git = tree.git().clone();
            site.tree = Some((tree, *ending));
        }
        if self.evidence && site.presence.is_some() {
            site.before = match Snapshot::before(&site.git).await {
                Err(Trouble::NoRepository) => None,
                taken => Some(taken.map(|taken| {
                    let ground = Ground::new(&taken.root, &site.folder);
                    (taken, ground)
                })),
            };
        }
        Ok(site)
    }
}

impl Site {
    /// The same way to the hub; what goes there is read along.
    pub fn listen(&self, outbox: &Outbox) -> Outbox {
        outbox.heard_by(&self.witness)
    }

    /// Whether something is looked at after the run, so that its end can only be told then.
    pub fn is_watched(&self) -> bool {
        self.before.is_some() || self.tree.is_some()
    }

    /// The reports that end a run: what was seen and what holds of the agent's claims, then its last word.
    pub async fn end(self, last: Report, is_done: bool) -> Vec<Report> {
        self.witness.hear(&last);
        let mut reports = self.close(is_done).await;
        let is_result = |report: &Report| matches!(report, Report::Artifact { .. });
        let told = reports.iter().any(is_result);
        reports.push(if told { without_result(last) } else { last });
        reports
    }

    /// What was seen, for the owner's log, and the result the agent told, as far as it holds. Trouble on the way is told
    /// too: the work itself is over. What a run made that did not come to its end is never merged.
    pub async fn close(self, is_done: bool) -> Vec<Report> {
        let (mut blocks, mut sight) = (Vec::new(), None);
        if let Some(before) = &self.before {
            let looked = match before {
                Ok((before, ground)) => {
                    // What cannot be looked at any more was made so by the run, and is no way to be believed.
                    sight = Some(Sight::Lost);
                    Evidence::since(before, &self.git).await.map(|evidence| (evidence, ground.clone()))
                }
                Err(problem) => Err(problem.clone()),
            };
            match looked {
                Ok((mut evidence, ground)) => {
                    evidence.shared = self.presence.as_ref().is_some_and(|presence| !presence.was_alone());
                    blocks.extend(evidence.block());
                    sight = Some(Sight::Seen(Box::new(evidence), ground));
                }
                Err(problem) => blocks.push(Block::text(&format!("what changed cannot be told: {problem}"))),
            }
        }
        if let Some((tree, ending)) = self.tree {
            let folder = tree.folder.clone();
            blocks.extend(match tree.close(if is_done { ending } else { Ending::Keep }).await {
                Ok(outcome) => serde_json::to_value(outcome).ok().and_then(block),
                Err(problem) => {
                    let folder = folder.display();
                    Some(Block::text(&format!("the working tree at {folder} was left as it is: {problem}")))
                }
            });
        }
        let note = (!blocks.is_empty()).then_some(Report::Note { blocks });
        note.into_iter().chain(self.witness.settle(sight.as_ref(), is_done)).collect()
    }
}

fn block(mut value: Value) -> Option<Block> {
    value["type"] = "worktree".into();
    Block::new(Json::new(value.to_string()).ok()?).ok()
}

/// The root of the repository a folder is in, found without asking git.
fn repository(folder: &Path) -> Option<PathBuf> {
    let folder = std::fs::canonicalize(folder).ok()?;
    folder.ancestors().find(|above| above.join(".git").exists()).map(Path::to_owned)
}

/// A run at work in a repository. What changes there while others are too may be theirs.
struct Presence {
    root: PathBuf,
    /// How many runs had begun there with this one.
    begun: u64,
    alone: bool,
}

#[derive(Default)]
struct AtWork {
    now: usize,
    begun: u64,
}

static AT_WORK: Mutex<BTreeMap<PathBuf, AtWork>> = Mutex::new(BTreeMap::new());

fn at_work() -> MutexGuard<'static, BTreeMap<PathBuf, AtWork>> {
    AT_WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Presence {
    fn enter(root: PathBuf) -> Self {
        let mut all = at_work();
        let there = all.entry(root.clone()).or_default();
        there.now += 1;
        there.begun += 1;
        Self { root, begun: there.begun, alone: there.now == 1 }
    }

    fn was_alone(&self) -> bool {
        self.alone && at_work().get(&self.root).is_some_and(|there| there.begun == self.begun)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let mut all = at_work();
        if let Some(there) = all.get_mut(&self.root) {
            there.now -= 1;
            if there.now == 0 {
                all.remove(&self.root);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Presence;

    #[test]
    fn a_run_knows_whether_others_were_there_meanwhile() {
        let root = || std::path::PathBuf::from("/some/repository");
        let first = Presence::enter(root());
        assert!(first.was_alone());
        let second = Presence::enter(root());
        assert!(!second.was_alone());
        drop(second);
        assert!(!first.was_alone(), "another came and went");
        drop(first);
        assert!(Presence::enter(root()).was_alone());
    }
}
