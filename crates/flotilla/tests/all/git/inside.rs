//! Repositories inside a repository, what git is told not to show, and trees that hold what is nowhere else.

use super::evidence::{Repository, git_in};
use flotilla_worker::evidence::Evidence;
use flotilla_worker::evidence::snapshot::Snapshot;
use flotilla_worker::evidence::worktree::{Ending, Outcome, Worktree};
use std::path::Path;

const ALLOWED: &str = "-c protocol.file.allow=always";

/// A repository with a submodule at `sub`, which has the file `b.txt`, and the one it comes from.
pub fn with_submodule() -> (Repository, Repository) {
    let (outer, source) = (Repository::new(), Repository::new());
    outer.git(&format!("{ALLOWED} submodule --quiet add {} sub", source.folder.path().display()));
    outer.write(".gitignore", "out/\n");
    outer.commit("submodule");
    (outer, source)
}

fn author(folder: &Path) {
    git_in(folder, "config user.email a@b.example");
    git_in(folder, "config user.name A");
}

#[tokio::test]
async fn changes_inside_submodules_are_seen_and_a_repository_with_them_is_not_clean() {
    let (outer, _source) = with_submodule();
    let before = Snapshot::before(&outer.asked()).await.unwrap();
    assert_eq!(before.repo_state().clean, Some(true));
    assert_eq!(outer.since(&before).await.files_changed, [""; 0]);
    outer.write("sub/b.txt", "b\nmore\n");
    outer.write("sub/new.txt", "n\n");
    let seen = outer.since(&before).await;
    assert_eq!(seen.files_changed, ["sub/b.txt", "sub/new.txt"]);
    assert_eq!((seen.uncommitted.len(), seen.diff.insertions, seen.unseen.len()), (2, 2, 0));
    let state = outer.now().await.repo_state();
    assert_eq!((state.clean, state.dirty_files), (Some(false), Some(2)));

    author(&outer.path("sub"));
    git_in(&outer.path("sub"), "add --all");
    git_in(&outer.path("sub"), "commit -q -m inside");
    std::fs::remove_file(outer.path(".gitmodules")).unwrap();
    let seen = outer.since(&before).await;
    assert_eq!(seen.files_changed, [".gitmodules", "sub", "sub/b.txt", "sub/new.txt"], "listed or not");
    assert_eq!(seen.commits[0].subject, "inside");
}

#[tokio::test]
async fn a_repository_that_came_is_told_by_its_files_and_one_of_somebody_else_is_not_read() {
    let (outer, other) = (Repository::new(), Repository::new());
    let before = Snapshot::before(&outer.asked()).await.unwrap();
    outer.write("in/z.txt", "z\n");
    git_in(&outer.path("in"), "init -q .");
    author(&outer.path("in"));
    git_in(&outer.path("in"), "add --all");
    git_in(&outer.path("in"), "commit -q -m z");
    outer.write("far/x.txt", "x\n");
    outer.write("far/.git", &format!("gitdir: {}/.git\n", other.folder.path().display()));
    let seen = outer.since(&before).await;
    assert_eq!(seen.files_changed.iter().filter(|file| !file.starts_with("far")).collect::<Vec<_>>(), ["in/z.txt"]);
    assert!(!seen.files_changed.iter().any(|file| file.contains("a.txt")), "{:?}", seen.files_changed);
    assert_eq!(seen.unseen, ["far"]);
}

#[tokio::test]
async fn what_git_is_told_not_to_look_at_is_told() {
    let repository = Repository::new();
    repository.write(".gitignore", "out/\n");
    repository.commit("ignore");
    let before = Snapshot::before(&repository.asked()).await.unwrap();
    repository.git("update-index --assume-unchanged a.txt");
    repository.git("update-index --skip-worktree b.txt");
    repository.write("a.txt", "hidden\n");
    repository.write("out/report", "r\n");
    let seen = repository.since(&before).await;
    assert_eq!((seen.hidden.as_slice(), seen.ignores_changed), (&["a.txt".to_owned(), "b.txt".into()][..], false));
    assert_eq!(seen.ignored, ["out/"]);
    repository.write(".git/info/exclude", "secret\n");
    repository.write("secret", "s\n");
    let seen = repository.since(&before).await;
    assert!(seen.ignores_changed && seen.ignored.contains(&"secret".to_owned()), "{seen:?}");
}

#[tokio::test]
async fn evidence_of_another_repository_is_no_evidence() {
    let (repository, other) = (Repository::new(), Repository::new());
    let before = Snapshot::before(&repository.asked()).await.unwrap();
    std::fs::rename(repository.path(".git"), repository.path("was")).unwrap();
    repository.write(".git", &format!("gitdir: {}/.git\n", other.folder.path().display()));
    let problem = Evidence::since(&before, &repository.asked()).await.unwrap_err();
    assert!(problem.to_string().contains("another repository"), "{problem}");
}

struct Trees {
    repository: Repository,
    root: tempfile::TempDir,
}

impl Trees {
    fn of(repository: Repository) -> Self {
        Self { repository, root: tempfile::tempdir().unwrap() }
    }

    async fn open(&self, task: &str) -> Worktree {
        Worktree::open(&self.repository.asked(), self.root.path(), task).await.unwrap()
    }

    /// The reason why a tree is still there after it was to be merged.
    async fn stays(&self, tree: Worktree) -> String {
        let (head, folder) = (self.repository.now().await.head, tree.folder.clone());
        let Outcome::Kept { reason, .. } = tree.close(Ending::Merge).await.unwrap() else { panic!("it is kept") };
        assert!(folder.is_dir() && self.repository.now().await.head == head, "nothing is merged");
        reason.unwrap()
    }
}

#[tokio::test]
async fn a_tree_in_which_another_repository_has_work_is_kept_and_not_merged() {
    let (outer, _source) = with_submodule();
    let trees = Trees::of(outer);
    let update = format!("{ALLOWED} submodule --quiet update --init");
    let untouched = trees.open("0").await;
    git_in(&untouched.folder, &update);
    assert_eq!(untouched.close(Ending::Merge).await.unwrap(), Outcome::Unchanged, "it can be fetched again");

    let dirty = trees.open("1").await;
    git_in(&dirty.folder, &update);
    std::fs::write(dirty.folder.join("sub/b.txt"), "work\n").unwrap();
    assert!(trees.stays(dirty).await.ends_with(": sub"));

    let committed = trees.open("2").await;
    git_in(&committed.folder, &update);
    author(&committed.folder.join("sub"));
    git_in(&committed.folder.join("sub"), "commit -q --allow-empty -m work");
    assert!(trees.stays(committed).await.ends_with(": sub"));

    let nested = trees.open("3").await;
    std::fs::create_dir(nested.folder.join("in")).unwrap();
    git_in(&nested.folder.join("in"), "init -q .");
    author(&nested.folder.join("in"));
    git_in(&nested.folder.join("in"), "commit -q --allow-empty -m z");
    assert!(trees.stays(nested.clone()).await.ends_with(": in"));
    git_in(&nested.folder, "-c advice.addEmbeddedRepo=false add in");
    git_in(&nested.folder, "commit -q -m link");
    assert!(trees.stays(nested).await.ends_with(": in"), "also if the run committed that it is there");
}

#[tokio::test]
async fn a_tree_with_files_or_commits_that_git_does_not_show_is_not_removed() {
    let repository = Repository::new();
    repository.write(".gitignore", "out/\n");
    repository.commit("ignore");
    let trees = Trees::of(repository);
    let ignored = trees.open("1").await;
    std::fs::create_dir(ignored.folder.join("out")).unwrap();
    std::fs::write(ignored.folder.join("out/report"), "r\n").unwrap();
    assert!(trees.stays(ignored.clone()).await.contains("out/"));
    std::fs::write(ignored.folder.join("a.txt"), "work\n").unwrap();
    let (folder, mut again) = (ignored.folder.clone(), ignored.clone());
    let merged = ignored.close(Ending::Merge).await.unwrap();
    assert!(matches!(&merged, Outcome::Merged { reason: Some(_), folder: Some(left), .. } if *left == folder));
    assert_eq!(std::fs::read_to_string(trees.repository.path("a.txt")).unwrap(), "work\n");
    again.is_swept = true;
    assert!(matches!(again.close(Ending::Merge).await.unwrap(), Outcome::Merged { folder: None, .. }));
    assert!(!folder.exists(), "where its owner says that ignored files may go");

    let marked = trees.open("2").await;
    git_in(&marked.folder, "update-index --skip-worktree a.txt");
    std::fs::write(marked.folder.join("a.txt"), "hidden\n").unwrap();
    assert!(trees.stays(marked).await.contains("a.txt"));

    let detached = trees.open("3").await;
    git_in(&detached.folder, "checkout -q --detach");
    git_in(&detached.folder, "commit -q --allow-empty -m aside");
    git_in(&detached.folder, "checkout -q flotilla/3");
    assert!(trees.stays(detached).await.contains("commits"));
}

#[tokio::test]
async fn trees_that_are_closed_at_once_are_merged_one_after_the_other() {
    let trees = Trees::of(Repository::new());
    let (one, other, third) = tokio::join!(trees.open("1"), trees.open("2"), trees.open("3"));
    for (tree, file) in [(&one, "a.txt"), (&other, "a.txt"), (&third, "c.txt")] {
        std::fs::write(tree.folder.join(file), tree.branch.as_str()).unwrap();
    }
    let close = |tree: Worktree| async move { tree.close(Ending::Merge).await.unwrap() };
    let (one, other, third) = tokio::join!(close(one), close(other), close(third));
    let merged = [&one, &other, &third].map(|outcome| matches!(outcome, Outcome::Merged { .. }));
    assert_eq!((merged.iter().filter(|merged| **merged).count(), merged[2]), (2, true), "{one:?} {other:?} {third:?}");
    assert!(trees.repository.now().await.dirty.is_empty(), "nothing is taken back by half");
}

#[tokio::test]
async fn a_tree_that_leads_to_another_repository_is_neither_committed_nor_merged() {
    let other = Repository::new();
    let trees = Trees::of(Repository::new());
    let tree = trees.open("1").await;
    std::fs::write(tree.folder.join(".git"), format!("gitdir: {}/.git\n", other.folder.path().display())).unwrap();
    std::fs::write(tree.folder.join("a.txt"), "work\n").unwrap();
    let before = other.now().await.head;
    let (again, folder) = (tree.clone(), tree.folder.clone());
    let problem = tree.close(Ending::Merge).await.unwrap_err();
    assert!(problem.to_string().contains("leads elsewhere"), "{problem}");
    assert!(again.close(Ending::Keep).await.is_err() && folder.is_dir());
    let next = Worktree::open(&trees.repository.asked(), trees.root.path(), "1").await;
    assert!(next.is_err(), "the next turn does not work in it either");
    assert_eq!(other.now().await.head, before);
}
