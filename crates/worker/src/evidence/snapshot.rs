//! A repository at one moment: where it stands, and which files differ from its last commit.

use super::git::{Git, Trouble, pieces};
use super::hidden::Hidden;
use super::inner;
use super::place::Place;
use super::worktree::OWN;
use flotilla_protocol::fleet::announce::RepoState;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Files of a git folder that git reads whatever it is asked.
const READ: [&str; 8] =
    ["HEAD", "config", "config.worktree", "index", "info/exclude", "info/attributes", "packed-refs", "shallow"];

/// What the names of working trees begin with among those that lead to commits.
const TREES: &str = "worktrees/";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    pub root: PathBuf,
    /// Where its git folder is, and the one it shares with other working trees.
    pub own: PathBuf,
    pub common: PathBuf,
    /// None before the first commit.
    pub head: Option<String>,
    /// None if no branch is checked out.
    pub branch: Option<String>,
    /// Commits that are here and not upstream, and the other way round; none without an upstream.
    pub ahead_behind: Option<(u32, u32)>,
    /// Local branches and those of remotes, by their full names, and working trees that are on no branch.
    pub refs: BTreeMap<String, String>,
    /// Files that are not as committed, also those git does not know yet, but none it is told to ignore.
    pub dirty: BTreeMap<String, Print>,
    /// Repositories inside it that are checked out, by their place: submodules, and those that git does not know.
    pub inner: BTreeMap<String, Snapshot>,
    /// Those that were not looked at: too many, too deep, or of somebody else.
    pub unseen: BTreeSet<String>,
    /// Where one may be.
    pub(super) places: BTreeSet<String>,
    /// What git does not show; none where nobody asked.
    pub hidden: Option<Hidden>,
}

/// What tells a file from itself after a change. No content: a folder may hold much that is not committed. The time is
/// that of the inode, which a program cannot set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Print {
    exists: bool,
    inode: u64,
    size: u64,
    mode: u32,
    changed: (i64, i64),
}

impl Print {
    /// Whether it is a plain file.
    pub(super) fn is_file(&self) -> bool {
        self.exists && self.mode & 0o170_000 == 0o100_000
    }

    pub(super) fn of(file: &Path) -> Self {
        let Ok(facts) = std::fs::symlink_metadata(file) else { return Self::default() };
        Self {
            exists: true,
            inode: facts.ino(),
            size: facts.size(),
            mode: facts.mode(),
            changed: (facts.ctime(), facts.ctime_nsec()),
        }
    }
}

impl Snapshot {
    pub async fn take(git: &Git) -> Result<Self, Trouble> {
        let mut taken = Self::alone(git).await?;
        inner::look(&mut taken, git, None).await?;
        Ok(taken)
    }

    /// The same before a run, with what git is told not to show.
    pub async fn before(git: &Git) -> Result<Self, Trouble> {
        let mut taken = Self::take(git).await?;
        taken.hidden = Hidden::take(&taken, git).await.ok();
        Ok(taken)
    }

    /// As much as an earlier one of the same place told, also of repositories that are listed nowhere any more.
    pub async fn since(before: &Self, git: &Git) -> Result<Self, Trouble> {
        before.answers()?;
        let mut taken = Self::alone(git).await?;
        // What a run can write to may lead to a repository of somebody else's.
        if (&taken.root, &taken.own, &taken.common) != (&before.root, &before.own, &before.common) {
            return Err(Trouble::Failed("its '.git' leads to another repository than before the run".into()));
        }
        inner::look(&mut taken, git, Some(before)).await?;
        if before.hidden.is_some() {
            // What could be told before and cannot any more, the run made so.
            taken.hidden = Some(Hidden::take(&taken, git).await?);
        }
        Ok(taken)
    }

    /// The same of another working tree of it, without what git does not show.
    pub async fn beside(before: &Self, git: &Git) -> Result<Self, Trouble> {
        let mut taken = Self::alone(git).await?;
        inner::look(&mut taken, git, Some(before)).await?;
        Ok(taken)
    }

    /// Whether git would read to the end what it reads first. A run may put a pipe there, for which it would wait.
    pub(super) fn answers(&self) -> Result<(), Trouble> {
        let files = [&self.own, &self.common].into_iter().flat_map(|folder| READ.map(|name| folder.join(name)));
        let is_nothing = |file: &Path| std::fs::canonicalize(file).is_ok_and(|file| file == Path::new("/dev/null"));
        let is_odd = |file: &PathBuf| {
            let kind = std::fs::metadata(file).map(|facts| facts.file_type());
            kind.is_ok_and(|kind| kind.is_fifo() || (kind.is_char_device() && !is_nothing(file)))
        };
        match files.into_iter().find(is_odd) {
            Some(file) => Err(Trouble::Failed(format!("{} is no file: remove it", file.display()))),
            None => Ok(()),
        }
    }

    /// Without the repositories inside it.
    pub(super) async fn alone(git: &Git) -> Result<Self, Trouble> {
        let status = ["status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=all"];
        let status = [&status[..], &["--ignore-submodules=dirty"]].concat();
        let names = ["for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/remotes"];
        let Place { root, own, common } = git.place()?;
        // A run waits for this, so all is asked at once.
        let (files, names) = tokio::try_join!(git.ask(&status), git.ask(&names))?;
        let mut taken = Self { root, own, common, ..Self::default() };
        for piece in pieces(&files) {
            taken.note(&piece);
        }
        let lines = String::from_utf8_lossy(&names);
        let refs = lines.lines().filter_map(|line| line.split_once(' '));
        taken.refs = refs.map(|(id, name)| (name.to_owned(), id.to_owned())).collect();
        taken.refs.extend(detached(&taken.common));
        Ok(taken)
    }

    /// Local branches with their commits, without those that other tasks have for their own trees.
    pub fn heads(&self) -> impl Iterator<Item = (&String, &String)> {
        let is_others = |name: &str| name.starts_with(OWN) && self.branch.as_deref() != Some(name);
        let is_meant = move |name: &str| name.strip_prefix("refs/heads/").is_some_and(|name| !is_others(name));
        self.refs.iter().filter(move |(name, _)| is_meant(name))
    }

    /// The commits that a run may have added to, each by the name of what leads to it.
    pub(super) fn tips(&self) -> impl Iterator<Item = (&str, &String)> {
        let trees = self.refs.iter().filter(|(name, _)| name.starts_with(TREES));
        let own = self.head.as_ref().filter(|_| self.branch.is_none()).map(|head| ("HEAD", head));
        self.heads().chain(trees).map(|(name, id)| (name.as_str(), id)).chain(own)
    }

    /// One piece of git's status: what is said of the branch, or a file.
    fn note(&mut self, piece: &str) {
        if let Some(said) = piece.strip_prefix("# ") {
            match said.split_once(' ') {
                Some(("branch.oid", id)) if !id.starts_with('(') => self.head = Some(id.to_owned()),
                Some(("branch.head", name)) if !name.starts_with('(') => self.branch = Some(name.to_owned()),
                Some(("branch.ab", counts)) => self.ahead_behind = ahead_behind(counts),
                _ => {}
            }
            return;
        }
        // Of a submodule, git says so; a repository that it does not know is a folder to it.
        let is_submodule =
            piece.starts_with(['1', 'u']) && piece.split(' ').nth(2).is_some_and(|of| of.starts_with('S'));
        let is_folder = piece.starts_with('?') && piece.ends_with('/');
        let fields = match piece.as_bytes().first() {
            Some(b'1') => 9,
            Some(b'u') => 11,
            Some(b'?') => 2,
            _ => return,
        };
        if let Some(path) = piece.splitn(fields, ' ').nth(fields - 1) {
            if is_submodule || is_folder {
                self.places.insert(path.trim_end_matches('/').to_owned());
            }
            self.dirty.insert(path.to_owned(), Print::of(&self.root.join(path)));
        }
    }

    /// How many files are not as committed, here and in the repositories inside.
    pub fn dirty_files(&self) -> usize {
        self.dirty.len() + self.inner.values().map(Self::dirty_files).sum::<usize>()
    }

    /// The commit of the repository at a place, as the last commit has it; none if it has none there.
    pub(super) async fn link(&self, place: &str, git: &Git) -> Result<Option<String>, Trouble> {
        let Some(head) = &self.head else { return Ok(None) };
        let entry = git.at(&self.root).line(&["ls-tree", head, "--", place]).await?;
        let link = entry.strip_prefix("160000 commit ").and_then(|rest| rest.split(['\t', ' ']).next());
        Ok(link.map(str::to_owned))
    }

    /// Repositories inside that git knows by the commit they stand at, and that are checked out.
    pub(super) async fn linked(&self, git: &Git) -> Result<Vec<String>, Trouble> {
        let printed = git.at(&self.root).ask(&["ls-files", "--stage", "-z"]).await?;
        let is_there = |place: &String| std::fs::symlink_metadata(self.root.join(place).join(".git")).is_ok();
        let link = |entry: String| Some(entry.strip_prefix("160000 ")?.split_once('\t')?.1.to_owned());
        Ok(pieces(&printed).filter_map(link).filter(is_there).collect())
    }

    /// As a worker announces it.
    pub fn repo_state(&self) -> RepoState {
        RepoState {
            branch: self.branch.clone(),
            clean: Some(self.dirty_files() == 0),
            head: self.head.clone(),
            dirty_files: u32::try_from(self.dirty_files()).ok(),
            ahead: self.ahead_behind.map(|(ahead, _)| ahead),
            behind: self.ahead_behind.map(|(_, behind)| behind),
            ..RepoState::default()
        }
    }
}

/// Commits that other working trees of a repository have checked out without a branch.
fn detached(common: &Path) -> Vec<(String, String)> {
    let trees = std::fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    let one = |tree: std::fs::DirEntry| {
        let file = tree.path().join("HEAD");
        std::fs::symlink_metadata(&file).ok().filter(|facts| facts.is_file() && facts.len() < 256)?;
        let id = std::fs::read_to_string(&file).ok()?.trim().to_owned();
        let is_id = id.len() >= 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| (format!("{TREES}{}", tree.file_name().to_string_lossy()), id))
    };
    trees.filter_map(one).collect()
}

fn ahead_behind(counts: &str) -> Option<(u32, u32)> {
    let (ahead, behind) = counts.split_once(' ')?;
    Some((ahead.trim_start_matches('+').parse().ok()?, behind.trim_start_matches('-').parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::Snapshot;

    #[test]
    fn status_is_read_whatever_the_files_are_called() {
        let mut taken = Snapshot::default();
        for piece in [
            "# branch.oid 0123abc",
            "# branch.head main",
            "# branch.upstream origin/main",
            "# branch.ab +2 -3",
            "# something.new of later",
            "1 .M N... 100644 100644 100644 aaaa bbbb with space.txt",
            "u UU N... 100644 100644 100644 100644 aaaa bbbb cccc both\nlines.txt",
            "? new ä.txt",
            "! ignored",
        ] {
            taken.note(piece);
        }
        let files: Vec<&str> = taken.dirty.keys().map(String::as_str).collect();
        assert_eq!(files, ["both\nlines.txt", "new ä.txt", "with space.txt"]);
        let state = taken.repo_state();
        assert_eq!((state.branch.as_deref(), state.head.as_deref()), (Some("main"), Some("0123abc")));
        assert_eq!((state.clean, state.dirty_files), (Some(false), Some(3)));
        assert_eq!((state.ahead, state.behind), (Some(2), Some(3)));
    }

    #[test]
    fn before_the_first_commit_and_beside_all_branches_there_is_no_name() {
        let mut taken = Snapshot::default();
        taken.note("# branch.oid (initial)");
        taken.note("# branch.head (detached)");
        assert_eq!((taken.head, taken.branch), (None, None));
    }
}
