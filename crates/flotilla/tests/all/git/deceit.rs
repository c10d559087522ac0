//! Runs that change a repository so that git would not see what they did.

use super::evidence::{Repository, git_in};
use flotilla_worker::evidence::Evidence;
use flotilla_worker::evidence::snapshot::Snapshot;
use flotilla_worker::evidence::worktree::{Ending, Outcome, Worktree};
use std::path::Path;
use std::process::Command;

fn sh(folder: &Path, script: &str) {
    let output = Command::new("sh").args(["-ec", script]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A change of the same length, at the time of the file as it was; in another second of the file system's clock, which goes
/// behind that of `date`, as git counts no smaller times.
const SAME_TIME: &str = "touch -d '2020-01-01 10:00:00' a.txt; git status >/dev/null; git config core.trustctime false; \
    git config core.checkStat minimal; git config core.untrackedCache true; \
    p=$(mktemp); while touch $p; [ $(stat -c %Z $p) = $(stat -c %Z a.txt) ]; do sleep 0.02; done; rm $p; \
    printf '4\\n5\\n6\\n' > a.txt; touch -d '2020-01-01 10:00:00' a.txt";

/// Another commit in the place of the last one.
const REPLACED: &str = "echo other > a.txt; git add a.txt; \
    git replace HEAD $(git -c user.name=A -c user.email=a@b.example commit-tree $(git write-tree) -m first)";

#[tokio::test]
async fn a_change_that_git_was_told_to_overlook_is_seen() {
    for script in [SAME_TIME, REPLACED] {
        let repository = Repository::new();
        let before = repository.now().await;
        sh(repository.folder.path(), script);
        assert_eq!(repository.since(&before).await.files_changed, ["a.txt"], "{script}");

        let (repository, trees) = (Repository::new(), tempfile::tempdir().unwrap());
        let tree = Worktree::open(&repository.asked(), trees.path(), "t").await.unwrap();
        sh(&tree.folder, script);
        let Outcome::Kept { folder, .. } = tree.close(Ending::Keep).await.unwrap() else { panic!("it is kept") };
        assert!(folder.join("a.txt").is_file(), "{script}");
    }
}

/// Git itself takes in another content than the file has, under settings that are gone at the end. The file is older
/// than git's index, as git reads again what is as young as that.
const FILTERED: &str = "d=$(git rev-parse --git-common-dir); mkdir -p $d/info; cp a.txt $d/as-it-was; \
    echo 'a.txt filter=x' > $d/info/attributes; git config filter.x.clean \"cat > /dev/null; cat $d/as-it-was\"; \
    echo evil > a.txt; touch -d '2020-01-01 10:00:00' a.txt; git add a.txt; \
    git config --unset filter.x.clean; rm $d/info/attributes; test -z \"$(git status --short)\"";
const CONVERTED: &str = "git config core.autocrlf input; sed -i 's/$/\\r/' a.txt; \
    touch -d '2020-01-01 10:00:00' a.txt; git add a.txt; \
    git config --unset core.autocrlf; test -z \"$(git status --short)\"";

#[tokio::test]
async fn a_file_that_git_calls_unchanged_and_is_not_is_told_and_kept() {
    for script in [FILTERED, CONVERTED] {
        let repository = Repository::new();
        let before = Snapshot::before(&repository.asked()).await.unwrap();
        sh(repository.folder.path(), "cp a.txt c; cat c > a.txt; rm c; touch b.txt");
        assert!(repository.since(&before).await.hidden.is_empty(), "what was only touched is as it was");
        sh(repository.folder.path(), script);
        assert_eq!(repository.since(&before).await.hidden, ["a.txt"], "{script}");

        let (repository, trees) = (Repository::new(), tempfile::tempdir().unwrap());
        let open = async || Worktree::open(&repository.asked(), trees.path(), "t").await.unwrap();
        let tree = open().await;
        sh(&tree.folder, script);
        for tree in [tree, open().await] {
            let Outcome::Kept { reason, .. } = tree.close(Ending::Keep).await.unwrap() else { panic!("it is kept") };
            assert_eq!(reason.as_deref(), Some("git calls files in it unchanged that are not: a.txt"), "{script}");
        }
    }
}

#[tokio::test]
async fn a_tree_whose_settings_were_changed_is_kept() {
    let (repository, trees) = (Repository::new(), tempfile::tempdir().unwrap());
    let tree = Worktree::open(&repository.asked(), trees.path(), "t").await.unwrap();
    sh(&tree.folder, "chmod +x a.txt; git config core.fileMode false");
    let Outcome::Kept { reason, .. } = tree.close(Ending::Keep).await.unwrap() else { panic!("it is kept") };
    assert!(reason.is_some_and(|reason| reason.contains("overlooks")));
}

#[tokio::test]
async fn settings_that_have_git_overlook_something_are_told() {
    for setting in ["core.excludesFile /dev/null", "core.fileMode false"] {
        let repository = Repository::new();
        let before = Snapshot::before(&repository.asked()).await.unwrap();
        assert!(!repository.since(&before).await.ignores_changed);
        git_in(repository.folder.path(), &format!("config {setting}"));
        assert!(repository.since(&before).await.ignores_changed, "{setting}");
    }
    let repository = Repository::new();
    let list = repository.path(".git/list");
    repository.git(&format!("config core.excludesFile {}", list.display()));
    let before = Snapshot::before(&repository.asked()).await.unwrap();
    std::fs::write(&list, "*.new\n").unwrap();
    assert!(repository.since(&before).await.ignores_changed, "also if only the file was changed");
}

#[tokio::test]
async fn what_git_would_wait_for_is_told_and_not_waited_for() {
    let (repository, trees) = (Repository::new(), tempfile::tempdir().unwrap());
    let before = repository.now().await;
    let tree = Worktree::open(&repository.asked(), trees.path(), "t").await.unwrap();
    sh(repository.folder.path(), "rm -f .git/info/exclude; mkdir -p .git/info; mkfifo .git/info/exclude");
    let problem = Evidence::since(&before, &repository.asked()).await.unwrap_err();
    assert!(problem.to_string().contains("info/exclude is no file"), "{problem}");
    let problem = tree.close(Ending::Merge).await.unwrap_err();
    assert!(problem.to_string().contains("info/exclude is no file"), "{problem}");
}
