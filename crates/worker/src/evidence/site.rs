//! Where a run works, and what is looked at around it: the folder itself or a tree of the task's own.

use super::Evidence;
use super::git::{Git, Trouble};
use super::snapshot::Snapshot;
use super::worktree::{Ending, Worktree};
use flotilla_protocol::block::Block;
use flotilla_protocol::wire::Json;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long git may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What an agent's owner wants of git.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Look before and after, and tell what changed.
    pub evidence: bool,
    /// A tree for each task below this folder, and what becomes of it.
    pub worktrees: Option<(PathBuf, Ending)>,
}

pub struct Site {
    pub folder: PathBuf,
    git: Git,
    before: Option<Snapshot>,
    tree: Option<(Worktree, Ending)>,
}

impl Plan {
    pub async fn open(&self, folder: &Path, task: &str) -> Result<Site, String> {
        let mut site = Site { folder: folder.to_owned(), git: Git::new(folder, PATIENCE), before: None, tree: None };
        if let Some((root, ending)) = &self.worktrees {
            let opened = Worktree::open(&site.git, root, task).await;
            let tree = opened.map_err(|problem| format!("there is no working tree for the task: {problem}"))?;
            (site.git, site.folder) = (tree.git().clone(), tree.folder.clone());
            site.tree = Some((tree, *ending));
        }
        if self.evidence {
            site.before = match Snapshot::take(&site.git).await {
                Ok(before) => Some(before),
                Err(Trouble::NoRepository) => None,
                Err(problem) => return Err(format!("the repository cannot be looked at: {problem}")),
            };
        }
        Ok(site)
    }
}

impl Site {
    /// What was seen, for the owner's log. Trouble on the way is told there too: the work itself is over. What a run made
    /// that did not come to its end is never merged.
    pub async fn close(self, is_done: bool) -> Vec<Block> {
        let mut seen = Vec::new();
        if let Some(before) = &self.before {
            seen.push(match Evidence::since(before, &self.git).await {
                Ok(evidence) => evidence.block(),
                Err(problem) => Some(Block::text(&format!("what changed cannot be told: {problem}"))),
            });
        }
        if let Some((tree, ending)) = self.tree {
            let folder = tree.folder.clone();
            seen.push(match tree.close(if is_done { ending } else { Ending::Keep }).await {
                Ok(outcome) => serde_json::to_value(outcome).ok().and_then(block),
                Err(problem) => {
                    let folder = folder.display();
                    Some(Block::text(&format!("the working tree at {folder} was left as it is: {problem}")))
                }
            });
        }
        seen.into_iter().flatten().collect()
    }
}

fn block(mut value: Value) -> Option<Block> {
    value["type"] = "worktree".into();
    Block::new(Json::new(value.to_string()).ok()?).ok()
}
