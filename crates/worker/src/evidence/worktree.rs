//! A working tree of its own for each task, on a branch of its own; merged or kept when the run is over.

use super::git::{Git, Trouble, pieces};
use super::hidden::Hidden;
use super::inner;
use super::loss;
use super::snapshot::Snapshot;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OwnedMutexGuard;

/// What the branches of tasks begin with.
pub const OWN: &str = "flotilla/";

/// What becomes of a task's branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It stays, with its folder, for somebody to look at.
    Keep,
    /// It is merged into the branch it came from, and goes.
    Merge,
}

/// A task's own copy of a repository.
#[derive(Debug, Clone)]
pub struct Worktree {
    base: Git,
    own: Git,
    pub folder: PathBuf,
    pub branch: String,
    /// Where the repository stood when the copy was made, or was taken up again.
    start: Snapshot,
    /// What git does not show, from the start.
    hidden: Hidden,
    /// Whether files that git ignores may go with it.
    pub is_swept: bool,
}

/// What became of it, in words for the owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "worktree", rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing was changed, so nothing is left of it.
    Unchanged,
    Merged {
        commit: String,
        /// Where it is still, and why.
        #[serde(skip_serializing_if = "Option::is_none")]
        folder: Option<PathBuf>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Kept {
        branch: String,
        folder: PathBuf,
        /// Why it was not merged, where that was asked for, or not removed, where nothing that git sees was changed.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Files that both sides changed.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        conflicts: Vec<String>,
    },
}

/// By repository: trees of it are closed one after the other, or one would take back half of what another merges.
static CLOSING: Mutex<BTreeMap<PathBuf, Arc<tokio::sync::Mutex<()>>>> = Mutex::new(BTreeMap::new());

async fn alone_in(repository: &Path) -> OwnedMutexGuard<()> {
    let turn = {
        let mut all = CLOSING.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(repository.to_owned()).or_default())
    };
    turn.lock_owned().await
}

impl Worktree {
    /// Makes the copy of a task below `root`; one that was kept from an earlier turn is taken up again.
    pub async fn open(base: &Git, root: &Path, task: &str) -> Result<Self, Trouble> {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() || "-_".contains(letter) { letter } else { '-' };
        let name: String = task.chars().map(plain).collect();
        let (folder, branch) = (root.join(&name), format!("{OWN}{name}"));
        let start = Snapshot::take(base).await?;
        let own = base.at(&folder);
        let (base, hidden) = (base.clone(), Hidden::default());
        let mut opened = Self { base, own, folder, branch, start, hidden, is_swept: false };
        if std::fs::symlink_metadata(opened.folder.join(".git")).is_ok() {
            opened.is_itself().await?;
            // Whatever an earlier turn hid counts as hidden by this one.
            return Ok(opened);
        }
        if opened.start.head.is_none() {
            return Err(Trouble::Failed(
                "a repository without a commit has no working tree to give: commit first".into(),
            ));
        }
        std::fs::create_dir_all(root)
            .map_err(|error| Trouble::Failed(format!("no folder for working trees at {}: {error}", root.display())))?;
        let path = opened.folder.to_string_lossy().into_owned();
        let linked = opened.start.common.join("worktrees");
        let made = std::fs::create_dir_all(&linked);
        made.map_err(|error| Trouble::Failed(format!("no working tree at {}: {error}", linked.display())))?;
        opened.base.ask(&["worktree", "prune"]).await?;
        // A branch whose tree is gone may have commits all the same.
        let known = format!("refs/heads/{}", opened.branch);
        match opened.base.is(&["show-ref", "--verify", "--quiet", &known]).await? {
            true => opened.base.ask(&["worktree", "add", &path, &opened.branch]).await?,
            false => opened.base.ask(&["worktree", "add", "-b", &opened.branch, &path, "HEAD"]).await?,
        };
        opened.lead_home()?;
        opened.hidden = Hidden::take(&Snapshot::beside(&opened.start, &opened.own).await?, &opened.own).await?;
        Ok(opened)
    }

    /// Has the new tree lead to the repository itself, and not to what git was given in its place while it was made.
    fn lead_home(&self) -> Result<(), Trouble> {
        let file = self.folder.join(".git");
        let led = std::fs::read_to_string(&file).and_then(|text| {
            let name = Path::new(text.trim_end()).file_name().unwrap_or_default();
            let own = self.start.common.join("worktrees").join(name);
            std::fs::write(&file, format!("gitdir: {}\n", own.display()))
        });
        led.map_err(|error| Trouble::Failed(format!("the new working tree: {}: {error}", file.display())))
    }

    /// A run can write to the file that says whose tree it is: nothing is committed to a repository of somebody else's.
    async fn is_itself(&self) -> Result<(), Trouble> {
        let (base, own) = tokio::try_join!(Snapshot::alone(&self.base), Snapshot::alone(&self.own))?;
        let is_same = base.root == self.start.root && base.own == self.start.own && base.common == self.start.common;
        let is_there = std::fs::canonicalize(&self.folder).is_ok_and(|folder| folder == own.root);
        let is_ours = own.common == base.common && own.own.parent() == Some(base.common.join("worktrees").as_path());
        // The way back is what tells one tree of a repository from another.
        let back = std::fs::read_to_string(own.own.join("gitdir")).unwrap_or_default();
        let back = std::fs::canonicalize(own.own.join(back.trim_end()));
        let leads_back = back.is_ok_and(|back| back == own.root.join(".git"));
        match is_same && is_there && is_ours && leads_back {
            true => Ok(()),
            false => Err(Trouble::Failed(
                "its '.git' or the repository's leads elsewhere than it did; look at both before you use them".into(),
            )),
        }
    }

    /// The place in it that stands for a folder of the repository.
    pub fn inside(&self, folder: &Path) -> std::io::Result<PathBuf> {
        let folder = std::fs::canonicalize(folder)?;
        let within = self.folder.join(folder.strip_prefix(&self.start.root).unwrap_or(Path::new("")));
        // A folder in which nothing is committed is not in the tree.
        std::fs::create_dir_all(&within).map(|()| within)
    }

    /// Git, in this working tree.
    pub fn git(&self) -> &Git {
        &self.own
    }

    pub async fn close(self, ending: Ending) -> Result<Outcome, Trouble> {
        let _alone = alone_in(&self.start.common).await;
        self.start.answers()?;
        self.is_itself().await?;
        let end = Snapshot::beside(&self.start, &self.own).await?;
        let inside = loss::inside(&end, &self.start, &self.own).await?;
        if inside.is_none() && end.dirty_files() == 0 && end.head == self.start.head {
            return match self.besides(&end).await? {
                None => self.remove().await.map(|()| Outcome::Unchanged),
                reason => Ok(self.kept(reason, Vec::new())),
            };
        }
        if ending == Ending::Keep || inside.is_some() {
            return Ok(self.kept(inside, Vec::new()));
        }
        if end.branch.is_some() && end.branch == self.start.branch {
            return Ok(self.kept(Some("it is on the repository's own branch now".into()), Vec::new()));
        }
        if !end.dirty.is_empty() {
            self.commit(&end).await?;
        }
        let now = Snapshot::take(&self.base).await?;
        if now.branch.is_none() || now.branch != self.start.branch {
            return Ok(self.kept(Some("the repository is on another branch now".into()), Vec::new()));
        }
        if !now.dirty.is_empty() {
            return Ok(self.kept(Some("the repository has changes that are not committed".into()), Vec::new()));
        }
        self.merge(&end).await
    }

    /// What would be lost with it, beside what git sees.
    async fn besides(&self, end: &Snapshot) -> Result<Option<String>, Trouble> {
        loss::besides(end, &self.start, &self.hidden, self.is_swept, &self.own).await
    }

    async fn merge(self, end: &Snapshot) -> Result<Outcome, Trouble> {
        let head = self.own.line(&["rev-parse", "HEAD"]).await?;
        let title = format!("Merge {}", self.branch);
        let who = self.author().await?;
        let who: Vec<&str> = who.iter().map(String::as_str).collect();
        // Before it merges, git puts aside what is not committed, and has a look at submodules for that.
        let submodules = inner::listed(&self.start.root, &self.base.at(&self.start.root)).await?;
        let base = self.base.letting_alone(submodules.into_iter().map(|(name, _)| name));
        let merged =
            base.ask(&[&who[..], &["merge", "--no-ff", "--no-edit", "--no-stat", "-m", &title, &head]].concat()).await;
        if let Err(problem) = merged {
            let names = ["diff", "--name-only", "--diff-filter=U", "-z", "--no-relative", "--ignore-submodules=dirty"];
            let conflicts: Vec<String> = pieces(&base.ask(&names).await?).collect();
            // A merge that never began cannot be taken back, and need not be.
            let _ = base.ask(&["merge", "--abort"]).await;
            let reason =
                if conflicts.is_empty() { problem.to_string() } else { "both sides changed the same lines".into() };
            return Ok(self.kept(Some(reason), conflicts));
        }
        let commit = self.base.line(&["rev-parse", "HEAD"]).await?;
        match self.besides(end).await? {
            None => {
                self.remove().await?;
                Ok(Outcome::Merged { commit, folder: None, reason: None })
            }
            reason => Ok(Outcome::Merged { commit, folder: Some(self.folder), reason }),
        }
    }

    async fn commit(&self, end: &Snapshot) -> Result<(), Trouble> {
        // Git would ask a repository inside whether it has changes, by that one's own settings. What it stands at is known.
        let linked = end.linked(&self.own).await?;
        let besides: Vec<String> = linked.iter().map(|place| format!(":(top,literal,exclude){place}")).collect();
        let besides = besides.iter().map(String::as_str);
        self.own.ask(&["add", "--all", "--", ":(top)"].into_iter().chain(besides).collect::<Vec<_>>()).await?;
        for place in &linked {
            if let Some(head) = end.inner.get(place).and_then(|inner| inner.head.as_ref()) {
                self.own.ask(&["update-index", "--cacheinfo", &format!("160000,{head},{place}")]).await?;
            }
        }
        let title = format!("Work of {}", self.branch);
        let who = self.author().await?;
        let who: Vec<&str> = who.iter().map(String::as_str).collect();
        self.own.ask(&[&who[..], &["commit", "--quiet", "-m", &title]].concat()).await.map(|_| ())
    }

    /// A repository that knows its author keeps him.
    async fn author(&self) -> Result<Vec<String>, Trouble> {
        if self.base.is(&["config", "user.email"]).await? {
            return Ok(Vec::new());
        }
        let settings = ["user.name=flotilla", "user.email=flotilla@localhost"];
        Ok(settings.iter().flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()]).collect())
    }

    async fn remove(&self) -> Result<(), Trouble> {
        let path = self.folder.to_string_lossy().into_owned();
        self.base.ask(&["worktree", "remove", "--force", &path]).await?;
        self.base.ask(&["branch", "--delete", "--force", &self.branch]).await?;
        Ok(())
    }

    fn kept(self, reason: Option<String>, conflicts: Vec<String>) -> Outcome {
        Outcome::Kept { branch: self.branch, folder: self.folder, reason, conflicts }
    }
}
