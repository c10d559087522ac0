//! The hub's memory at default limits, whatever one key does, and another caller's answers meanwhile.

mod answers;
mod bodies;
mod logs;
mod sockets;

use flotilla_testkit::hostile::{Bystander, most_resident};
use flotilla_testkit::{Binding, HubProcess, Setup};
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// What the hub stays under at default limits, in MiB.
const MOST: usize = 1024;
/// What another caller waits at most, 99 times of 100.
const WAIT: Duration = Duration::from_secs(1);

const CONFIG: &str = r#"
agents:
  echo: {kind: echo}
  hold:
    kind: script
    script:
      otherwise: [working, {delay: 1h}]
  chatty:
    kind: script
    script:
      otherwise:
        - working
        - artifact: {id: stream, name: stream, chunks: {count: "{text}", text: "x"}}
        - completed
"#;

/// A hub at default limits. `FLOTILLA_MEMORY_TEST_PROGRAM` names another build of it, a release.
fn hub() -> HubProcess {
    let program = std::env::var("FLOTILLA_MEMORY_TEST_PROGRAM");
    Setup::new(program.as_deref().unwrap_or(env!("CARGO_BIN_EXE_flotilla"))).config(CONFIG).start()
}

type Attack = fn(&HubProcess, &str);

const ATTACKS: [(&str, Attack); 13] = [
    ("unread tasks over HTTP/2", answers::unread_tasks),
    ("unread lists over HTTP/2", answers::unread_lists),
    ("unread answers without a key", answers::unread_without_a_key),
    ("unfinished bodies over HTTP/2", bodies::unfinished_over_http2),
    ("unfinished bodies over gRPC", bodies::unfinished_over_grpc),
    ("messages whose runs go on", bodies::messages_under_way),
    ("reads of many events", logs::reads_of_many_events),
    ("unfinished socket messages", sockets::unfinished_messages),
    ("unread pongs", sockets::unread_pongs),
    ("unread answers over sockets", sockets::unread_answers),
    ("unread streams over HTTP/2", answers::unread_streams),
    ("unfinished health checks", bodies::unfinished_health_checks),
    ("many tiny values", bodies::many_tiny_values),
];

/// The other caller goes on while the attack does. What the hub had resident at most, and what the other waited.
fn assert_withstood(what: &str, hub: &HubProcess, attack: impl FnOnce()) {
    let bystander = Bystander::begin(hub.address(), &hub.key("other", &[]));
    attack();
    let (p99, count) = bystander.end();
    let most = most_resident(hub.process()) / 1024 / 1024;
    println!("{what}: {most} MiB resident at most; another caller: p99 {p99:?} of {count}");
    assert!(most < MOST, "{what}: {most} MiB");
    assert!(p99 < WAIT, "{what}: another caller waited {p99:?}");
    let health = hub.stranger(Binding::HttpJson).get("/healthz");
    assert_eq!((health.status, health.json()), (200, json!({"status": "ok"})), "{what}");
}

fn withstands(index: usize) {
    let ((what, attack), hub) = (ATTACKS[index], hub());
    let key = hub.key("hostile", &[]);
    assert_withstood(what, &hub, || attack(&hub, &key));
}

macro_rules! each_attack {
    ($($name:ident: $index:literal,)*) => {
        $(#[test] fn $name() { withstands($index); })*

        #[test]
        fn no_attack_is_left_out() {
            assert_eq!([$($index),*].len(), ATTACKS.len());
        }
    };
}

each_attack! {
    unread_tasks_of_one_key_are_bounded: 0,
    unread_lists_of_one_key_are_bounded: 1,
    unread_answers_without_a_key_are_bounded: 2,
    unfinished_bodies_over_http2_are_bounded: 3,
    unfinished_bodies_over_grpc_are_bounded: 4,
    messages_whose_runs_go_on_are_bounded: 5,
    reads_of_a_task_of_many_events_are_bounded: 6,
    unfinished_socket_messages_are_bounded: 7,
    pings_whose_pongs_nobody_reads_are_bounded: 8,
    unread_answers_over_sockets_are_bounded: 9,
    unread_streams_of_one_key_are_bounded: 10,
    unfinished_health_checks_are_bounded: 11,
    messages_of_many_tiny_values_are_bounded: 12,
}

#[test]
fn all_attacks_together_are_bounded() {
    let hub = hub();
    let keys: Vec<String> = (0..ATTACKS.len()).map(|index| hub.key(&format!("hostile-{index}"), &[])).collect();
    assert_withstood("all together, each with a key of its own", &hub, || {
        std::thread::scope(|scope| {
            for ((_, attack), key) in ATTACKS.iter().zip(&keys) {
                // One that finds no room, which others have taken, breaks off.
                scope.spawn(|| drop(catch_unwind(AssertUnwindSafe(|| attack(&hub, key)))));
            }
        });
    });
}
