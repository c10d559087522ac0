//! Programs run under the reaper: whatever becomes of the worker, nothing of them survives.

use flotilla_testkit::until;
use flotilla_worker::reaper::tree;
use flotilla_worker::supervise::{Exit, Launch, Limits, Running, Streams};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const MARK: &str = flotilla_worker::reaper::MARK;

fn launch(mark: &str, script: &str) -> Launch {
    Launch {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        folder: std::env::temp_dir(),
        mark: format!("{mark}-{}", std::process::id()),
        grace: Duration::from_millis(300),
        limits: Limits::default(),
    }
}

fn start(launch: &Launch) -> (Running, Streams) {
    launch.start(Path::new(env!("CARGO_BIN_EXE_flotilla"))).expect("the program starts")
}

fn alive(launch: &Launch) -> usize {
    tree::marked(MARK, |mark| mark == launch.mark).len()
}

fn none_left(launch: &Launch) {
    until("nothing of the run is left", || (alive(launch) == 0).then_some(()));
}

async fn all(mut from: impl tokio::io::AsyncRead + Unpin) -> String {
    let mut text = String::new();
    from.read_to_string(&mut text).await.expect("text");
    text
}

/// Waits for a line the script prints when it is ready.
async fn ready(streams: &mut Streams) {
    let mut line = [0; 6];
    streams.stdout.read_exact(&mut line).await.expect("a word");
    assert_eq!(&line, b"ready\n");
}

#[tokio::test]
async fn a_program_is_spoken_to_and_its_end_is_told() {
    let launch = launch("talk", "read line; echo got $line; echo $HOME$SECRET >&2; exit 7");
    let (mut running, streams) = start(&launch);
    let Streams { mut stdin, stdout, stderr } = streams;
    stdin.write_all(b"hello\n").await.unwrap();
    let (out, err) = tokio::join!(all(stdout), all(stderr));
    assert_eq!((out.as_str(), err.as_str()), ("got hello\n", "\n"), "no environment but what was given");
    assert_eq!(running.ended().await, Exit::Code(7));
    none_left(&launch);
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_so() {
    let mut launch = launch("none", "");
    launch.program = "/no/such/program".into();
    let (mut running, streams) = start(&launch);
    let told = all(streams.stderr).await;
    assert!(told.contains("/no/such/program cannot be started"), "{told}");
    assert_eq!(running.ended().await, Exit::NotStarted);
}

#[tokio::test]
async fn what_a_program_leaves_behind_goes_with_it() {
    let launch = launch("left", "setsid sleep 600 & (setsid sh -c 'trap \"\" TERM HUP; sleep 600' &) ; exit 0");
    let (mut running, streams) = start(&launch);
    assert_eq!(running.ended().await, Exit::Code(0));
    drop(streams);
    assert_eq!(alive(&launch), 0, "all is gone when the end is told");
}

#[tokio::test]
async fn a_worker_that_dies_takes_everything_with_it() {
    let script =
        "trap '' TERM HUP; setsid sh -c 'trap \"\" TERM; setsid sleep 600 & sleep 600' & echo ready; sleep 600";
    let launch = launch("dies", script);
    let (running, mut streams) = start(&launch);
    ready(&mut streams).await;
    until("the whole tree is there", || (alive(&launch) >= 4).then_some(()));
    // The pipe closes as it does when the process that holds it is killed.
    drop(running);
    none_left(&launch);
}

#[tokio::test]
async fn stopping_is_asked_for_first_and_done_then() {
    let polite = launch("polite", "trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done");
    let (mut running, mut streams) = start(&polite);
    ready(&mut streams).await;
    assert_eq!(running.stop().await, Exit::Code(9));
    none_left(&polite);

    let stubborn = launch("stubborn", "trap '' TERM; echo ready; while :; do sleep 0.01; done");
    let (mut running, mut streams) = start(&stubborn);
    ready(&mut streams).await;
    let asked = Instant::now();
    assert_eq!(running.stop().await, Exit::Signal(9));
    assert!(asked.elapsed() >= stubborn.grace, "it had its grace");
    none_left(&stubborn);
}

#[tokio::test]
async fn killing_does_not_wait() {
    let mut stubborn = launch("killed", "trap '' TERM; echo ready; sleep 600");
    stubborn.grace = Duration::from_secs(60);
    let (mut running, mut streams) = start(&stubborn);
    ready(&mut streams).await;
    assert_eq!(running.kill().await, Exit::Signal(9));
    none_left(&stubborn);
}

#[test]
fn a_worker_that_is_gone_before_the_program_starts_leaves_nothing_waiting() {
    let (pipe, worker) = std::io::pipe().expect("a pipe");
    drop(worker);
    let mut reaper = std::process::Command::new(env!("CARGO_BIN_EXE_flotilla"))
        .args(["reap", "--grace-ms", "1", "--", "/bin/sleep", "600"])
        .env(flotilla_worker::reaper::PIPE, "0")
        .stdin(pipe)
        .spawn()
        .expect("the reaper starts");
    until("the reaper has ended", || reaper.try_wait().expect("a child"));
}
