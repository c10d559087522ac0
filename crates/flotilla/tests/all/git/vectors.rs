//! Whatever a run writes into a repository, git starts nothing of it when it is looked at, opened, merged or announced.

use super::evidence::{Repository, hold};
use super::inside::with_submodule;
use flotilla_worker::evidence::Evidence;
use flotilla_worker::evidence::snapshot::Snapshot;
use flotilla_worker::evidence::worktree::{Ending, Outcome, Worktree};
use flotilla_worker::probe::{Servers, Subject};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Settings whose value is a program, each by itself enough to have git start it somewhere. `filter`, `merge` and `diff` name
/// `x`, which all files have as their attribute.
const PROGRAMS: [&str; 58] = [
    "alias.add",
    "alias.diff",
    "alias.status",
    "browser.x.cmd",
    "browser.x.path",
    "core.alternateRefsCommand",
    "core.askPass",
    "core.editor",
    "core.fsmonitor",
    "core.gitProxy",
    "core.pager",
    "core.sshCommand",
    "credential.helper",
    "credential.https://x.example.helper",
    "diff.external",
    "diff.tool",
    "diff.x.command",
    "diff.x.textconv",
    "difftool.x.cmd",
    "filter.x.clean",
    "filter.x.smudge",
    "gc.recentObjectsHook",
    "gpg.openpgp.program",
    "gpg.program",
    "gpg.ssh.defaultKeyCommand",
    "gpg.ssh.program",
    "gpg.x509.program",
    "gui.x",
    "guitool.x.cmd",
    "help.browser",
    "imap.tunnel",
    "instaweb.httpd",
    "interactive.diffFilter",
    "man.x.cmd",
    "man.x.path",
    "merge.tool",
    "merge.x.driver",
    "mergetool.x.cmd",
    "mergetool.x.path",
    "pager.diff",
    "pager.log",
    "pager.status",
    "remote.origin.receivepack",
    "remote.origin.uploadpack",
    "remote.origin.vcs",
    "sendemail.sendmailCmd",
    "sendemail.smtpServer",
    "sendemail.toCmd",
    "sequence.editor",
    "submodule.x.update",
    "tar.x.command",
    "trailer.x.cmd",
    "trailer.x.command",
    "uploadpack.packObjectsHook",
    "url.ext::x.insteadOf",
    "versionsort.x",
    "web.browser",
    "what.git.learns.next",
];

/// Hooks that any of the calls would have git start.
const HOOKS: &str = "applypatch-msg commit-msg fsmonitor-watchman post-applypatch post-checkout post-commit post-index-change \
    post-merge post-rewrite pre-auto-gc pre-applypatch pre-commit pre-merge-commit pre-push pre-rebase prepare-commit-msg \
    push-to-checkout reference-transaction";

/// A commit that says that it is signed.
const SIGNED: &str = "echo more >> a.txt; git add a.txt; printf 'tree %s\\nparent %s\\nauthor A <a@b.example> 0 +0000\\n\
    committer A <a@b.example> 0 +0000\\ngpgsig -----BEGIN %s SIGNATURE-----\\n \\n AAAA\\n -----END %s SIGNATURE-----\\n\\nm\\n' \
    $(git write-tree) $(git rev-parse HEAD) \"$KIND\" \"$KIND\" > $DIR/signed; \
    git reset -q --hard $(git hash-object -t commit -w $DIR/signed)";

/// What one run leaves: in the repository, and in the tree of a task. `$EVIL/NAME` is a program that must never be started.
struct Vector {
    name: &'static str,
    here: &'static str,
    tree: &'static str,
}

const WORK: &str = "echo more >> a.txt";

const fn here(name: &'static str, here: &'static str) -> Vector {
    Vector { name, here, tree: WORK }
}

/// What takes more than one setting, or files.
const VECTORS: [Vector; 27] = [
    here("a merge that is signed", "git config gpg.program $EVIL/gpg; git config branch.main.mergeOptions --gpg-sign"),
    here("signed as a setting", "git config gpg.program $EVIL/gpg; git config commit.gpgSign true"),
    here(
        "signed by ssh",
        "git config gpg.format ssh; git config gpg.ssh.program $EVIL/ssh-keygen; touch $DIR/key; \
        git config user.signingKey $DIR/key; git config branch.main.mergeOptions -S",
    ),
    here(
        "a key asked for",
        "git config gpg.format ssh; git config gpg.ssh.defaultKeyCommand $EVIL/key; \
        git config branch.main.mergeOptions --gpg-sign",
    ),
    here(
        "signed by x509",
        "git config gpg.format x509; git config gpg.x509.program $EVIL/smime; git config branch.main.mergeOptions -S",
    ),
    Vector {
        name: "a merge that is verified",
        here: "git config gpg.program $EVIL/gpg; git config branch.main.mergeOptions --verify-signatures",
        tree: SIGNED,
    },
    Vector {
        name: "verified as a setting",
        here: "git config gpg.openpgp.program $EVIL/gpg; git config merge.verifySignatures true",
        tree: SIGNED,
    },
    Vector {
        name: "a log that verifies",
        here: "git config gpg.program $EVIL/gpg; git config log.showSignature true; git config format.pretty '%G?'",
        tree: SIGNED,
    },
    here(
        "a merge that takes nothing over",
        "git config branch.main.mergeOptions '-s ours'; git config pull.twohead ours",
    ),
    here("a merge that is not committed", "git config branch.main.mergeOptions '--no-commit --squash'"),
    here("a filter", "git config filter.x.clean $EVIL/clean; git config filter.x.required true"),
    here("a filter that stays", "git config filter.x.process $EVIL/process; git config filter.x.required true"),
    here("smudge", "git config filter.x.smudge $EVIL/smudge"),
    here(
        "a filter by core.attributesFile",
        "git config core.attributesFile $DIR/rules; git config filter.x.clean $EVIL/clean",
    ),
    here(
        "settings that are included",
        "git config -f .git/more filter.x.clean $EVIL/clean; git config include.path more; git config -f .git/more gpg.x y",
    ),
    here(
        "settings of one tree",
        "git config extensions.worktreeConfig true; git config --worktree filter.x.clean $EVIL/clean; \
        git config --worktree core.fsmonitor $EVIL/fsmonitor",
    ),
    Vector {
        name: "settings of the other tree",
        here: "git config extensions.worktreeConfig true",
        tree: "git config extensions.worktreeConfig true; git config --worktree filter.x.clean $EVIL/clean; git config --worktree core.fsmonitor $EVIL/fsmonitor; \
            echo more >> a.txt",
    },
    here("hooks", "mkdir -p .git/hooks; for hook in $HOOKS; do cp $EVIL/hook .git/hooks/$hook; done"),
    here(
        "core.hooksPath",
        "mkdir $DIR/h; for hook in $HOOKS; do cp $EVIL/hook $DIR/h/$hook; done; git config core.hooksPath $DIR/h",
    ),
    here(
        "hooks as settings",
        "git config hook.x.command $EVIL/hook; for hook in $HOOKS; do git config --add hook.x.event $hook; done",
    ),
    here(
        "work in the background",
        "git config gc.auto 1; git config maintenance.auto true; git config gc.autoDetach false; \
        git config gc.recentObjectsHook $EVIL/hook; git config maintenance.strategy incremental; cp $EVIL/hook .git/hooks/pre-auto-gc",
    ),
    here(
        "refs of a borrowed store",
        "git init -q --bare $DIR/other; echo $DIR/other/objects > .git/objects/info/alternates; \
        git config core.alternateRefsCommand $EVIL/refs",
    ),
    here(
        "what was decided before",
        "git config rerere.enabled true; mkdir .git/rr-cache; git config rerere.autoUpdate true",
    ),
    here(
        "colors and columns",
        "git config color.ui always; git config column.ui always; git config core.quotePath true; \
        git config status.short true; git config status.branch false; git config status.relativePaths false; \
        git config status.showUntrackedFiles no; git config diff.noprefix true; git config diff.relative true; \
        git config diff.orderFile $DIR/rules; git config diff.renames copies; git config status.renames copies",
    ),
    here(
        "a file by its old times",
        "git config core.trustctime false; git config core.checkStat minimal; \
        git config core.untrackedCache true; git config feature.manyFiles true; git config core.splitIndex true",
    ),
    here(
        "what is ignored inside",
        "git config diff.ignoreSubmodules all; git config status.submoduleSummary true; \
        git config diff.submodule log; git config submodule.recurse true",
    ),
    here(
        "a store that lacks something",
        "git config core.repositoryformatversion 1; git config extensions.partialClone evil; \
        git config remote.evil.promisor true; git config protocol.allow always; git config remote.evil.url ext::$EVIL/ext; \
        git config remote.evil.uploadpack $EVIL/uploadpack; git config remote.evil.vcs ext; git config fetch.negotiationAlgorithm noop",
    ),
];

/// A repository that a run has in hand.
struct Scene {
    dir: TempDir,
    repository: Repository,
}

impl Scene {
    fn of(repository: Repository) -> Self {
        let scene = Self { dir: tempfile::tempdir().unwrap(), repository };
        std::fs::create_dir(scene.path("evil")).unwrap();
        for name in "gpg ssh-keygen key smime clean process smudge fsmonitor hook refs ext uploadpack".split(' ') {
            scene.evil(name);
        }
        std::fs::write(scene.path("rules"), "* filter=x merge=x diff=x\n").unwrap();
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Makes a program that tells of its start.
    fn evil(&self, name: &str) -> PathBuf {
        let program = self.path("evil").join(name);
        std::fs::write(&program, format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", self.path("ran").display()))
            .unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    /// What the run does, and nobody but itself.
    fn run(&self, folder: &Path, script: &str) {
        let mut command = Command::new("sh");
        command.args(["-ec", script]).current_dir(folder).env("EVIL", self.path("evil")).env("DIR", self.dir.path());
        command.env("HOOKS", HOOKS).env("KIND", "PGP").env("GIT_CONFIG_GLOBAL", "/dev/null");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        // Its own calls may have started them.
        let _ = std::fs::remove_file(self.path("ran"));
    }

    /// As for an agent whose folder is not the repository's root.
    async fn open(&self, task: &str) -> Worktree {
        let folder = self.repository.path("below");
        std::fs::create_dir_all(&folder).unwrap();
        Worktree::open(&self.repository.asked().at(&folder), &self.path("trees"), task).await.unwrap()
    }

    /// Looks, opens, merges and announces after a run; how the tree ended that was there meanwhile, and the one after it.
    async fn look(&self, here: &str, in_tree: &str) -> [Outcome; 2] {
        let (before, folder) =
            (Snapshot::before(&self.repository.asked()).await.unwrap(), self.repository.folder.path());
        let first = self.open("1").await;
        self.run(&first.folder, in_tree);
        self.run(folder, &format!("{here}\ntest -e .git/info/attributes || cp $DIR/rules .git/info/attributes"));
        self.repository.write("b.txt", "other\n");
        let seen = Evidence::since(&before, &self.repository.asked()).await.unwrap();
        assert!(seen.files_changed.contains(&"b.txt".to_owned()), "{seen:?}");
        // As it was, but git has to look to know that.
        self.repository.write("b.txt", "b\n");
        let subject = Subject { folder: folder.to_owned(), servers: Servers::default(), apart: false };
        let announced = subject.repository(&hold().reaper).await.unwrap();
        assert_eq!((announced.branch.as_deref(), announced.dirty_files), (Some("main"), Some(0)));
        let first = first.close(Ending::Merge).await.unwrap();
        let second = self.open("2").await;
        std::fs::write(second.folder.join("new.txt"), "n\n").unwrap();
        [first, second.close(Ending::Merge).await.unwrap()]
    }

    fn started(&self) -> String {
        std::fs::read_to_string(self.path("ran")).unwrap_or_default()
    }
}

fn is_merged(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Merged { .. })
}

#[tokio::test]
async fn no_setting_of_a_run_that_names_a_program_starts_it() {
    let scene = Scene::of(Repository::new());
    let setting =
        |name: &&str| format!("git config '{name}' '{}'\n", scene.evil(&name.replace([':', '/'], "-")).display());
    let settings: String = PROGRAMS.iter().map(setting).collect();
    let ended = scene.look(&settings, WORK).await;
    assert_eq!(scene.started(), "");
    assert!(ended.iter().all(is_merged), "{ended:?}");
}

/// Each row by itself; all that fail are told.
async fn each(vectors: &[Vector]) {
    let mut failed = Vec::new();
    for vector in vectors {
        let scene = Scene::of(Repository::new());
        let ended = scene.look(vector.here, vector.tree).await;
        let (started, work) = (scene.started(), std::fs::read_to_string(scene.repository.path("a.txt")).unwrap());
        if !started.is_empty() || !ended.iter().all(is_merged) || work != "1\n2\n3\nmore\n" {
            failed.push(format!("{}: started {started:?}, ended {ended:?}, work {work:?}", vector.name));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[tokio::test]
async fn nothing_that_a_run_writes_into_a_repository_starts_a_program() {
    each(&VECTORS[..14]).await;
}

#[tokio::test]
async fn nor_does_what_it_writes_beside_them() {
    each(&VECTORS[14..]).await;
}

#[tokio::test]
async fn a_file_that_wants_a_driver_of_a_runs_is_in_conflict() {
    for driver in ["git config merge.x.driver", "git config merge.default x; git config merge.x.driver"] {
        let scene = Scene::of(Repository::new());
        let both = format!("{driver} $EVIL/hook; sed -i s/1/one/ a.txt; git commit -q -a -m ours");
        let [first, second] = scene.look(&both, WORK).await;
        assert!(matches!(&first, Outcome::Kept { conflicts, .. } if *conflicts == ["a.txt"]), "{first:?}");
        assert_eq!((scene.started(), is_merged(&second)), (String::new(), true));
    }
}

#[tokio::test]
async fn settings_that_cannot_be_put_aside_are_refused_by_their_names() {
    for (setting, name) in [
        ("includeIf.onbranch:main.path more", "includeif.onbranch:main.path"),
        ("core.worktree /tmp", "core.worktree"),
        ("core.bare true", "core.bare"),
    ] {
        let repository = Repository::new();
        let before = repository.now().await;
        repository.git(&format!("config {setting}"));
        let refused = Evidence::since(&before, &repository.asked()).await.unwrap_err().to_string();
        assert!(refused.contains(name) && refused.contains("remove it"), "{refused}");
    }
}

/// What a run leaves in a repository inside, by that one's own settings, and in a file that it has touched there.
const INSIDE: [(&str, &str); 4] = [
    ("a filter", "git config filter.x.clean $EVIL/clean; git config filter.x.required true"),
    ("a filter that stays", "git config filter.x.process $EVIL/process"),
    ("a monitor", "git config core.fsmonitor $EVIL/fsmonitor"),
    ("hooks", "mkdir -p $GIT/hooks; for hook in $HOOKS; do cp $EVIL/hook $GIT/hooks/$hook; done"),
];
const TOUCHED: &str = "mkdir -p $GIT/info; cp $DIR/rules $GIT/info/attributes; touch -d '2020-01-01 10:00:00' b.txt";

#[tokio::test]
async fn nothing_is_started_by_the_settings_of_a_repository_inside() {
    for (name, script) in INSIDE {
        let (outer, _source) = with_submodule();
        let scene = Scene::of(outer);
        let plant = format!("cd sub; GIT=$(git rev-parse --absolute-git-dir); {script}; {TOUCHED}; cd ..");
        // The superproject's list of them may say that it wants to know everything.
        let told = "git config -f .gitmodules submodule.sub.ignore none";
        let update = "git -c protocol.file.allow=always submodule --quiet update --init";
        let tree = format!("{update}; {plant}; {told}; {WORK}");
        let ended = scene.look(&plant, &tree).await;
        assert_eq!(scene.started(), "", "{name}");
        assert!(ended.iter().all(is_merged), "{name}: {ended:?}");
    }
}

#[tokio::test]
async fn what_a_repository_inside_stands_at_is_merged_though_it_is_not_asked() {
    let (outer, source) = with_submodule();
    source.write("b.txt", "b\nmore\n");
    source.commit("more");
    let scene = Scene::of(outer);
    let allowed = "git -c protocol.file.allow=always";
    let plant = format!("cd sub; GIT=$(git rev-parse --absolute-git-dir); {}; {TOUCHED}; cd ..", INSIDE[0].1);
    let tree = format!("{allowed} submodule --quiet update --init --remote; {plant}; {WORK}");
    let ended = scene.look("true", &tree).await;
    assert_eq!(scene.started(), "");
    assert!(matches!(ended[0], Outcome::Merged { .. }), "{ended:?}");
    let link = scene.repository.asked().line(&["rev-parse", "HEAD:sub"]).await.unwrap();
    assert_eq!(Some(link), source.now().await.head);
}
