//! What stands in the configuration of an agent about git: what is looked at around a run, and where it works.

use anyhow::{Context, Result, bail};
use flotilla_worker::evidence::site::Plan;
use flotilla_worker::evidence::worktree::Ending;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What git is asked around a run; see docs/probes.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GitConfig {
    /// Whether a repository the agent works in is looked at before and after (the default): what changed is told to the
    /// owner, and what the agent claims is held against it.
    pub evidence: bool,
    /// Whether each task has a working tree of its own: `shared` (default) or `per-task`.
    pub worktree: WorktreeConfig,
    /// What becomes of a task's own tree: it is kept (`keep`, the default), or merged and removed (`merge`).
    pub afterwards: AfterwardsConfig,
    /// Whether files that git ignores keep a task's own tree from being removed (`keep`, the default), or go with it
    /// (`remove`).
    pub ignored: IgnoredConfig,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorktreeConfig {
    #[default]
    Shared,
    PerTask,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AfterwardsConfig {
    #[default]
    Keep,
    Merge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IgnoredConfig {
    #[default]
    Keep,
    Remove,
}

impl Default for GitConfig {
    fn default() -> Self {
        let (worktree, afterwards) = (WorktreeConfig::default(), AfterwardsConfig::default());
        Self { evidence: true, worktree, afterwards, ignored: IgnoredConfig::default() }
    }
}

impl GitConfig {
    pub(super) fn check(self) -> Result<()> {
        if self.worktree == WorktreeConfig::Shared && self.afterwards == AfterwardsConfig::Merge {
            bail!("git.afterwards: only a tree of a task's own is merged; say 'worktree: per-task'");
        }
        if self.worktree == WorktreeConfig::Shared && self.ignored == IgnoredConfig::Remove {
            bail!("git.ignored: only a tree of a task's own is removed; say 'worktree: per-task'");
        }
        Ok(())
    }

    /// Trees are below the agent's own folder, or, if nothing is kept, in the machine's for temporary files.
    pub(super) fn plan(self, state: Option<&Path>) -> Plan {
        let ending = match self.afterwards {
            AfterwardsConfig::Keep => Ending::Keep,
            AfterwardsConfig::Merge => Ending::Merge,
        };
        let own = self.worktree == WorktreeConfig::PerTask;
        let root = own.then(|| own_folder(state)).and_then(Result::ok);
        let worktrees = root.map(|root| (root.join("trees"), ending));
        Plan { evidence: self.evidence, worktrees, is_swept: self.ignored == IgnoredConfig::Remove }
    }
}

/// An agent's own folder; if nothing is kept, one among the machine's temporary files.
pub(super) fn own_folder(state: Option<&Path>) -> Result<PathBuf> {
    let temporary = || std::env::temp_dir().join(format!("flotilla-{}", std::process::id()));
    std::path::absolute(state.map_or_else(temporary, Path::to_owned)).context("the agent's own folder")
}
