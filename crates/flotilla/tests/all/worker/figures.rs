//! The figures of docs/worker.md. Each test prints its own; a release build is what they are told of:
//! `cargo test --release -p flotilla --test all worker::figures -- --nocapture --test-threads=1`.

use super::{agent, attached, config, hub, made_of};
use crate::cast::{id, state};
use flotilla_testkit::{Client, until};
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const TURNS: usize = 100;
const RUNS: usize = 50;

/// A development build does everything many times slower, and tests run beside each other.
const SLACK: u32 = if cfg!(debug_assertions) { 20 } else { 1 };

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// What the program takes without anybody around it.
fn alone() -> Duration {
    let began = Instant::now();
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("cat");
    child.stdin.take().expect("its input").write_all(b"hello").expect("it reads");
    let mut said = String::new();
    child.stdout.take().expect("its output").read_to_string(&mut said).expect("text");
    assert!(child.wait().expect("its end").success() && said == "hello");
    began.elapsed()
}

fn turn(client: &Client, number: usize) -> Duration {
    let began = Instant::now();
    let task = client.say(&format!("m{number}"), "hello");
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
    began.elapsed()
}

#[test]
fn a_turn_through_a_worker_takes_little_more_than_its_program() {
    let hub = hub("");
    let _worker = attached(&hub, &config("", &[("cat", "text", "exec cat")]));
    let client = agent(&hub, "cat");
    turn(&client, TURNS);
    let own = median((0..TURNS).map(|_| alone()).collect());
    let whole = median((0..TURNS).map(|number| turn(&client, number)).collect());
    let above = whole.saturating_sub(own);
    println!("overhead of a turn: {above:?} (p50 of {TURNS} turns {whole:?}, of the program alone {own:?})");
    assert!(above < SLACK * Duration::from_millis(20), "{above:?}");
}

#[test]
fn fifty_runs_at_once_cost_a_worker_less_than_a_megabyte_each() {
    let hub = hub("");
    let worker = attached(&hub, &config("max_concurrent: 64", &[("hold", "text", "echo ready; exec sleep 600")]));
    let client = agent(&hub, "hold");
    let start = |number: usize| id(&client.start(&format!("m{number}"), "x")).to_owned();
    let is_ready = |task: &String| made_of(&client.task(task)).contains("ready").then_some(());
    // What the first run needs, all others share.
    let first = start(RUNS);
    until("the first run", || is_ready(&first));
    let before = worker.memory();
    let tasks: Vec<String> = (0..RUNS).map(start).collect();
    for task in &tasks {
        until("all are at work", || is_ready(task));
    }
    let each = worker.memory().saturating_sub(before) / RUNS as u64;
    println!("memory of a worker for each of {RUNS} runs at once: {} KiB", each / 1024);
    assert!(each < 1024 * 1024, "{each} bytes each");
}
