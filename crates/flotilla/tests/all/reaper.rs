//! Programs run under the reaper: whatever becomes of the worker, nothing of them survives.

mod crowd;

use flotilla_testkit::{scratch, until};
use flotilla_worker::reaper::tree;
use flotilla_worker::supervise::{Excess, Exit, Launch, Limits, Running, Streams};
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

/// Kills the reaper of a run, as a kernel without memory might.
fn kill_reaper(launch: &Launch) {
    let marked = tree::marked(MARK, |mark| mark == launch.mark);
    let reaper = marked.iter().find(|process| process.is_reaper()).expect("a reaper");
    let killed = std::process::Command::new("kill").args(["-9", &reaper.pid.to_string()]).status();
    assert!(killed.expect("kill").success());
}

#[tokio::test]
async fn a_reaper_that_is_killed_takes_everything_with_it() {
    // One child stays, one leaves its session, one forks away, and the last is marked by nothing any more.
    let script = "trap '' TERM HUP; setsid sleep 611 & (setsid sh -c 'trap \"\" TERM; sleep 612 & sleep 613' &); \
                  (env -i setsid sh -c 'echo $$; exec sleep 614' > stray &) ; (env -i sleep 615 & echo $! > plain) ; \
                  until [ -s stray ]; do sleep 0.01; done; echo ready; sleep 616";
    let folder = scratch();
    let mut launch = launch("oom", script);
    launch.folder = folder.path().to_owned();
    // Another run goes on meanwhile, and is left alone.
    let other = self::launch("other", "echo ready; read line; exit 4");
    let (mut living, mut others) = start(&other);
    ready(&mut others).await;
    let (mut running, mut streams) = start(&launch);
    ready(&mut streams).await;
    until("the whole tree is there", || (alive(&launch) >= 5).then_some(()));
    let pid = |file: &str| std::fs::read_to_string(folder.path().join(file)).unwrap().trim().parse::<u32>().unwrap();
    let unmarked = [tree::find(pid("stray")).expect("a stray"), tree::find(pid("plain")).expect("another")];
    kill_reaper(&launch);
    assert_eq!(running.ended().await, Exit::Unknown);
    assert_eq!(alive(&launch), 0, "all is gone when the end is told");
    for process in unmarked {
        assert_eq!(tree::find(process.pid), None, "also what nothing marks");
    }
    assert!(all(streams.stdout).await.is_empty(), "its streams have ended");
    assert_eq!(alive(&other), 2, "a reaper and its program");
    others.stdin.write_all(b"go\n").await.unwrap();
    assert_eq!(living.ended().await, Exit::Code(4));
}

#[tokio::test]
async fn a_program_is_given_its_three_streams_and_no_other_descriptor() {
    // As if this process had been started with something open: what it has open now is not closed on exec by itself.
    let (_reader, writer) = std::io::pipe().expect("a pipe");
    rustix::io::fcntl_setfd(&writer, rustix::io::FdFlags::empty()).expect("a descriptor that is handed on");
    let launch = launch("descriptors", "ls -1 /proc/self/fd | tr '\n' ' '; env | cut -d= -f1 | sort | tr '\n' ' '");
    let (mut running, streams) = start(&launch);
    let told = all(streams.stdout).await;
    // The third is the folder that ls reads.
    assert_eq!(told, "0 1 2 3 FLOTILLA_RUN PATH PWD ");
    assert_eq!(running.ended().await, Exit::Code(0));
}

#[tokio::test]
async fn a_run_is_held_to_its_memory_and_time_with_all_it_starts() {
    // Each is within the limit; together they are not.
    let hold = "(head -c 50000000 /dev/zero | tail -c 50000000 | sleep 600) &";
    let limits = Limits { memory: Some(120_000_000), ..Limits::default() };
    let hungry = Launch { limits, ..launch("memory", &format!("{hold} {hold} {hold} {hold} wait")) };
    let (mut running, _streams) = start(&hungry);
    assert_eq!(running.ended().await, Exit::TooMuch(Excess::Memory(120_000_000)));
    assert!(running.meter().used().memory > 120_000_000);
    none_left(&hungry);

    let turn = "(while :; do :; done) &";
    let limits = Limits { processor: Some(Duration::from_secs(2)), ..Limits::default() };
    let busy = Launch { limits, ..launch("time", &format!("{turn} {turn} {turn} {turn} wait")) };
    let (mut running, _streams) = start(&busy);
    assert_eq!(running.ended().await, Exit::TooMuch(Excess::Processor(Duration::from_secs(2))));
    none_left(&busy);
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
