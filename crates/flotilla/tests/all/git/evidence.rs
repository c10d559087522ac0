//! What git sees of a run, in real repositories; and working trees of a task's own.

use flotilla_worker::evidence::git::{Git, Hold, Trouble};
use flotilla_worker::evidence::snapshot::Snapshot;
use flotilla_worker::evidence::worktree::{Ending, Outcome, Worktree};
use flotilla_worker::evidence::{Diff, Evidence};
use flotilla_worker::supervise::Limits;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

pub struct Repository {
    pub folder: TempDir,
}

impl Repository {
    pub fn empty() -> Self {
        let made = Self { folder: tempfile::tempdir().unwrap() };
        made.git("init -q -b main .");
        made.git("config user.email a@b.example");
        made.git("config user.name A");
        made
    }

    /// With `a.txt` (three lines) and `b.txt` committed.
    pub fn new() -> Self {
        let made = Self::empty();
        made.write("a.txt", "1\n2\n3\n");
        made.write("b.txt", "b\n");
        made.commit("first");
        made
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    pub fn git(&self, words: &str) {
        git_in(self.folder.path(), words);
    }

    pub fn commit(&self, subject: &str) {
        self.git("add --all");
        self.git(&format!("commit -q -m {subject}"));
    }

    pub fn write(&self, file: &str, text: &str) {
        std::fs::create_dir_all(self.path(file).parent().unwrap()).unwrap();
        std::fs::write(self.path(file), text).unwrap();
    }

    pub fn asked(&self) -> Git {
        Git::new(self.folder.path(), hold())
    }

    pub async fn now(&self) -> Snapshot {
        Snapshot::take(&self.asked()).await.unwrap()
    }

    pub async fn since(&self, before: &Snapshot) -> Evidence {
        Evidence::since(before, &self.asked()).await.unwrap()
    }
}

pub fn hold() -> Hold {
    Hold {
        reaper: env!("CARGO_BIN_EXE_flotilla").into(),
        mark: format!("git-{}", std::process::id()),
        limits: Limits::default(),
        grace: Duration::from_secs(2),
        patience: Duration::from_secs(60),
    }
}

pub fn git_in(folder: &Path, words: &str) {
    let mut command = Command::new("git");
    command.args(words.split(' ')).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {words}: {}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn a_repository_is_announced_as_it_is() {
    let repository = Repository::new();
    let state = repository.now().await.repo_state();
    assert_eq!((state.branch.as_deref(), state.clean, state.dirty_files), (Some("main"), Some(true), Some(0)));
    assert_eq!((state.ahead, state.behind), (None, None), "there is no upstream");
    assert_eq!(state.head.map(|head| head.len()), Some(40));

    let copy = tempfile::tempdir().unwrap();
    let from = repository.folder.path().display().to_string();
    git_in(copy.path(), &format!("clone -q {from} ."));
    git_in(copy.path(), "-c user.email=a@b.example -c user.name=A commit -q --allow-empty -m more");
    std::fs::write(copy.path().join("new file"), "x").unwrap();
    std::fs::create_dir(copy.path().join("below")).unwrap();
    // Asked from a folder below, the whole repository answers.
    let git = Git::new(&copy.path().join("below"), hold());
    let state = Snapshot::take(&git).await.unwrap().repo_state();
    assert_eq!((state.ahead, state.behind, state.clean), (Some(1), Some(0), Some(false)));
    assert_eq!(state.dirty_files, Some(1));
}

#[tokio::test]
async fn a_folder_without_a_repository_is_no_fault_and_one_that_is_not_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let git = Git::new(folder.path(), hold());
    assert_eq!(Snapshot::take(&git).await, Err(Trouble::NoRepository));
    let gone = git.at(&folder.path().join("gone"));
    assert!(matches!(Snapshot::take(&gone).await, Err(Trouble::Failed(problem)) if problem.contains("gone")));
}

#[tokio::test]
async fn changes_are_seen_committed_or_not_and_what_was_dirty_before_is_not_blamed_on_the_run() {
    let repository = Repository::new();
    repository.write("b.txt", "dirty before\n");
    repository.write("old notes.txt", "before\n");
    let before = repository.now().await;
    assert_eq!(repository.since(&before).await.files_changed, [""; 0], "nothing happened yet");

    repository.write("src/new.rs", "one\ntwo\n");
    repository.git("add src/new.rs");
    repository.git("commit -q -m made");
    repository.write("a.txt", "1\nzwei\n3\n");
    repository.write("untracked.txt", "x\ny");
    let seen = repository.since(&before).await;
    assert_eq!(seen.files_changed, ["a.txt", "src/new.rs", "untracked.txt"]);
    assert_eq!((seen.uncommitted.as_slice(), seen.files), (&["a.txt".to_owned(), "untracked.txt".into()][..], 3));
    let subjects: Vec<&str> = seen.commits.iter().map(|commit| commit.subject.as_str()).collect();
    assert_eq!((subjects.as_slice(), seen.commit_count, seen.rewritten), (&["made"][..], 1, false));
    assert_eq!(seen.diff, Diff { insertions: 5, deletions: 1, binary_files: 0 });
    assert_eq!((seen.branch.as_deref(), seen.branch_before), (Some("main"), None));

    // What was dirty before and is changed again, or put back, counts.
    repository.write("old notes.txt", "after, and longer\n");
    repository.git("checkout -q -- b.txt");
    let files = repository.since(&before).await.files_changed;
    assert_eq!(files, ["a.txt", "b.txt", "old notes.txt", "src/new.rs", "untracked.txt"]);
}

#[tokio::test]
async fn other_branches_resets_and_first_commits_are_seen() {
    let repository = Repository::new();
    let before = repository.now().await;
    repository.git("checkout -q -b side");
    repository.write("side.txt", "s\n");
    repository.commit("side");
    let there = repository.since(&before).await;
    assert_eq!((there.branch.as_deref(), there.branch_before.as_deref()), (Some("side"), Some("main")));
    repository.git("checkout -q main");
    let back = repository.since(&before).await;
    assert_eq!((back.files_changed.as_slice(), back.commit_count), (&["side.txt".to_owned()][..], 1));
    assert_eq!(
        (back.diff, back.branches),
        (Diff { insertions: 1, deletions: 0, binary_files: 0 }, vec!["side".into()])
    );

    let before = repository.now().await;
    repository.git("commit -q --amend -m other");
    assert!(repository.since(&before).await.rewritten);

    let fresh = Repository::empty();
    let before = fresh.now().await;
    fresh.write("a.bin", "a\0b");
    fresh.commit("first");
    let seen = fresh.since(&before).await;
    assert_eq!((seen.files_changed.as_slice(), seen.commit_count), (&["a.bin".to_owned()][..], 1));
    assert_eq!(seen.diff, Diff { insertions: 0, deletions: 0, binary_files: 1 });
}

#[tokio::test]
async fn what_was_made_elsewhere_counts_once_and_what_was_there_before_does_not() {
    let repository = Repository::new();
    repository.git("checkout -q -b develop");
    repository.write("develop.txt", "d\n");
    repository.commit("develop");
    repository.git("checkout -q main");
    let before = repository.now().await;
    let line = |lines: u64| Diff { insertions: lines, deletions: 0, binary_files: 0 };

    // From another branch than the one that is checked out; merged, so that two branches lead to it.
    repository.git("checkout -q -b feat develop");
    assert_eq!(repository.since(&before).await.files_changed, [""; 0], "nothing was made yet");
    repository.write("feat.txt", "1\n2\n");
    repository.commit("feat");
    let seen = repository.since(&before).await;
    assert_eq!((seen.files_changed.as_slice(), seen.diff), (&["feat.txt".to_owned()][..], line(2)));
    repository.git("checkout -q -b more");
    repository.write("more.txt", "3\n");
    repository.commit("more");
    repository.git("checkout -q main");
    repository.write("a.txt", "1\n2\n3\n4\n");
    let seen = repository.since(&before).await;
    assert_eq!(seen.files_changed, ["a.txt", "feat.txt", "more.txt"]);
    assert_eq!((seen.diff, seen.commit_count, seen.branches.as_slice()), (line(4), 2, &["more".to_owned()][..]));

    // In another working tree, on a branch or on none, beside this one or inside it.
    for (place, how, branches) in [("side", "-b side", &["side".to_owned()][..]), ("trees/on-none", "--detach", &[])] {
        let repository = Repository::new();
        let trees = tempfile::tempdir().unwrap();
        let tree = if branches.is_empty() { repository.path(place) } else { trees.path().join(place) };
        let before = repository.now().await;
        repository.git(&format!("worktree add -q {how} {}", tree.display()));
        std::fs::write(tree.join("b.txt"), "b\nc\n").unwrap();
        git_in(&tree, "commit -q -a -m side");
        let seen = repository.since(&before).await;
        assert_eq!((seen.files_changed.as_slice(), seen.diff), (&["b.txt".to_owned()][..], line(1)), "{place}");
        assert_eq!((seen.commit_count, seen.branches.as_slice()), (1, branches), "{place}");
    }
}

#[tokio::test]
async fn a_repository_cannot_make_git_run_its_programs() {
    let repository = Repository::new();
    let hook = "#!/bin/sh\ntouch \"$(git rev-parse --show-toplevel)/ran\"\n";
    for name in ["post-checkout", "pre-commit", "post-merge", "fsmonitor"] {
        repository.write(&format!(".git/hooks/{name}"), hook);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(repository.path(&format!(".git/hooks/{name}")), mode).unwrap();
    }
    repository.git("config core.fsmonitor .git/hooks/fsmonitor");
    repository.git("config diff.external .git/hooks/fsmonitor");
    for name in ["filter.x.clean", "filter.x.smudge", "filter.y.process", "merge.x.driver"] {
        let program = repository.path(".git/hooks/fsmonitor");
        repository.git(&format!("config {name} {}", program.display()));
    }
    repository.git("config filter.x.required true");
    repository.write(".git/info/attributes", "a.txt filter=x merge=x\nb.txt filter=y\n");
    let before = repository.now().await;
    let trees = tempfile::tempdir().unwrap();
    let tree = Worktree::open(&repository.asked(), trees.path(), "t").await.unwrap();
    std::fs::write(tree.folder.join("a.txt"), "changed\n").unwrap();
    assert!(matches!(tree.close(Ending::Merge).await.unwrap(), Outcome::Merged { .. }));
    assert_eq!(repository.since(&before).await.files_changed, ["a.txt"]);
    assert!(!repository.path("ran").exists());

    // Where both sides changed a file that wants a driver of the repository's, somebody has to look.
    let tree = Worktree::open(&repository.asked(), trees.path(), "u").await.unwrap();
    std::fs::write(tree.folder.join("a.txt"), "theirs\n").unwrap();
    repository.write("b.txt", "meanwhile\n");
    repository.write("a.txt", "ours\n");
    git_in(
        repository.folder.path(),
        "-c core.hooksPath=/dev/null -c core.fsmonitor=false -c filter.x.clean= \
        -c filter.x.required=false -c filter.y.process= commit -q -a -m ours",
    );
    assert!(
        matches!(tree.close(Ending::Merge).await.unwrap(), Outcome::Kept { conflicts, .. } if conflicts == ["a.txt"])
    );
    assert!(!repository.path("ran").exists() && !trees.path().join("u/ran").exists());

    repository.git("config includeIf.onbranch:flotilla/**.path evil");
    let refused = Snapshot::take(&repository.asked()).await.unwrap_err();
    assert!(refused.to_string().contains("includeif.onbranch"), "{refused}");
}

#[tokio::test]
async fn objects_that_are_missing_are_fetched_by_no_program() {
    let repository = Repository::new();
    let before = repository.now().await;
    let ran = repository.path("ran");
    repository.write("fetch.sh", &format!("#!/bin/sh\ntouch {}\n", ran.display()));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(repository.path("fetch.sh"), mode).unwrap();
    let program = repository.path("fetch.sh");
    for setting in [
        "core.repositoryformatversion 1",
        "extensions.partialClone evil",
        "remote.evil.promisor true",
        "protocol.ext.allow always",
        &format!("remote.evil.url ext::{}", program.display()),
    ] {
        repository.git(&format!("config {setting}"));
    }
    let object = repository.asked().line(&["rev-parse", "HEAD:a.txt"]).await.unwrap();
    std::fs::remove_file(repository.path(&format!(".git/objects/{}/{}", &object[..2], &object[2..]))).unwrap();
    repository.write("a.txt", "changed\n");
    let _ = Evidence::since(&before, &repository.asked()).await;
    assert!(!ran.exists());
}

#[tokio::test]
async fn a_task_works_in_a_tree_of_its_own_until_it_is_merged() {
    let repository = Repository::new();
    let trees = tempfile::tempdir().unwrap();
    let open = |task: &'static str| {
        let git = repository.asked();
        let root = trees.path().to_owned();
        async move { Worktree::open(&git, &root, task).await.unwrap() }
    };
    let tree = open("task/1").await;
    assert_eq!((tree.branch.as_str(), tree.folder.is_dir()), ("flotilla/task-1", true));
    std::fs::write(tree.folder.join("a.txt"), "1\n2\n3\n4\n").unwrap();
    assert_eq!(std::fs::read_to_string(repository.path("a.txt")).unwrap(), "1\n2\n3\n");
    let folder = tree.folder.clone();
    assert!(matches!(tree.close(Ending::Merge).await.unwrap(), Outcome::Merged { .. }));
    assert_eq!(std::fs::read_to_string(repository.path("a.txt")).unwrap(), "1\n2\n3\n4\n");
    assert!(!folder.exists(), "what was merged is not kept");

    let untouched = open("2").await;
    assert_eq!(untouched.close(Ending::Keep).await.unwrap(), Outcome::Unchanged);

    let kept = open("3").await;
    std::fs::write(kept.folder.join("new.txt"), "n\n").unwrap();
    let Outcome::Kept { branch, folder, reason: None, .. } = kept.close(Ending::Keep).await.unwrap() else {
        panic!("it is kept")
    };
    assert_eq!((branch.as_str(), folder.join("new.txt").is_file()), ("flotilla/3", true));
    // The next turn of the task goes on in it.
    let again = open("3").await;
    assert_eq!((again.folder.join("new.txt").is_file(), again.folder.clone()), (true, folder));
}

#[tokio::test]
async fn conflicts_and_a_dirty_repository_keep_the_tree_and_say_why() {
    let repository = Repository::new();
    let trees = tempfile::tempdir().unwrap();
    let tree = Worktree::open(&repository.asked(), trees.path(), "t").await.unwrap();
    std::fs::write(tree.folder.join("a.txt"), "theirs\n").unwrap();
    repository.write("a.txt", "ours\n");
    let Outcome::Kept { reason: Some(reason), .. } = tree.clone().close(Ending::Merge).await.unwrap() else {
        panic!("a dirty repository is not merged into")
    };
    assert!(reason.contains("not committed"), "{reason}");
    repository.commit("ours");
    let Outcome::Kept { conflicts, folder, reason, .. } = tree.close(Ending::Merge).await.unwrap() else {
        panic!("a conflict is kept")
    };
    assert_eq!((conflicts.as_slice(), folder.is_dir()), (&["a.txt".to_owned()][..], true));
    assert!(reason.is_some_and(|reason| reason.contains("both sides")));
    assert_eq!(std::fs::read_to_string(repository.path("a.txt")).unwrap(), "ours\n");
    assert!(repository.now().await.dirty.is_empty(), "no half of a merge is left");
}
