//! What git starts with its owner's consent is below a reaper like the run, and ends when the call does.

use super::evidence::{Repository, hold};
use flotilla_testkit::{scratch, until};
use flotilla_worker::evidence::git::{Git, Hold};
use flotilla_worker::reaper::{MARK, tree};
use flotilla_worker::supervise::Limits;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// Tells what it is held to; and starts what outlives it, if it is to.
const CLEAN: &str = r#"#!/bin/sh
{ echo "$FLOTILLA_RUN $(ulimit -d) $(ulimit -t)"; p=$PPID
while [ "$p" -gt 1 ]; do tr '\0' ' ' < /proc/$p/cmdline; echo; p=$(cut -d' ' -f4 /proc/$p/stat); done; } > "$HOME/seen"
if [ -e "$HOME/slow" ]; then setsid sleep 600 & (trap '' TERM; sleep 600); fi
cat
"#;

/// Says to the test that it was started by itself.
const AGAIN: &str = "FLOTILLA_TEST_AGAIN";

#[tokio::test]
async fn what_the_owner_has_git_start_is_held_as_the_run_is() {
    // Git reads the owner's settings in the home that this process has.
    let Some(home) = std::env::var_os(AGAIN).and_then(|_| std::env::var_os("HOME")).map(PathBuf::from) else {
        return again();
    };
    let repository = Repository::new();
    repository.write(".git/info/attributes", "a.txt filter=own\n");
    let limits = Limits { memory: Some(4 << 30), processor: Some(Duration::from_secs(7)), ..Limits::default() };
    let git = |patience: Duration| Git::new(repository.folder.path(), Hold { limits, patience, ..hold() });
    let (long, short) = (git(Duration::from_secs(60)), git(Duration::from_secs(1)));
    let hash = ["hash-object", "a.txt"];
    long.ask(&hash).await.unwrap();
    let seen = std::fs::read_to_string(home.join("seen")).unwrap();
    assert!(seen.starts_with(&format!("{} {} 7\n", hold().mark, 4 << 20)), "{seen}");
    let above: Vec<&str> = seen.lines().skip(1).collect();
    assert!(above.iter().any(|line| line.contains(" reap ")), "{seen}");

    let left = || tree::marked(MARK, |mark| mark == hold().mark).len();
    std::fs::write(home.join("slow"), "").unwrap();
    let asked = Instant::now();
    let problem = short.ask(&hash).await.unwrap_err();
    assert!(problem.to_string().contains("no answer within 1 s"), "{problem}");
    assert!(asked.elapsed() < Duration::from_secs(30));
    assert_eq!(left(), 0, "every process has ended when the call fails");

    std::fs::remove_file(home.join("seen")).unwrap();
    let asking = tokio::spawn(async move { long.ask(&hash).await.map(drop) });
    tokio::task::spawn_blocking({
        let seen = home.join("seen");
        move || until("it is started", || seen.exists().then_some(()))
    })
    .await
    .unwrap();
    assert!(left() > 0, "it is under way");
    asking.abort();
    tokio::task::spawn_blocking(move || {
        until("nothing is left", || (tree::marked(MARK, |mark| mark == hold().mark).is_empty()).then_some(()))
    })
    .await
    .unwrap();
}

/// Starts the test anew, in a home with settings.
fn again() {
    let home = scratch();
    let path = |name: &str| home.path().join(name);
    std::fs::write(path("clean"), CLEAN).unwrap();
    std::fs::write(path(".gitconfig"), format!("[filter \"own\"]\n\tclean = sh {}\n", path("clean").display()))
        .unwrap();
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "git::held::what_the_owner_has_git_start_is_held_as_the_run_is", "--nocapture"]);
    let output = again.env("HOME", home.path()).env(AGAIN, "1").output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
}
