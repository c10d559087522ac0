//! The hub's memory at default limits, whatever one key does, and another caller's answers meanwhile.

mod answers;
mod bodies;
mod logs;
mod sockets;

use flotilla_testkit::hostile::{Bystander, most_resident};
use flotilla_testkit::{HubProcess, Setup};
use std::time::Duration;

/// What the hub stays under at default limits.
const MOST: usize = 1024 * 1024 * 1024;
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

/// Lets one key do its worst while another caller goes on, and looks what both came to.
fn attack(what: &str, hub: &HubProcess, worst: impl FnOnce(&str)) {
    let (hostile, other) = (hub.key("hostile", &[]), hub.key("other", &[]));
    attack_with(what, hub, &other, || worst(&hostile));
}

fn attack_with(what: &str, hub: &HubProcess, other: &str, worst: impl FnOnce()) {
    let bystander = Bystander::begin(hub.address(), other);
    worst();
    let (p99, count) = bystander.end();
    let most = most_resident(hub.process());
    println!("{what}: {} MiB resident at most; another caller: p99 {p99:?} of {count}", most / 1024 / 1024);
    assert!(most < MOST, "{what}: {} MiB", most / 1024 / 1024);
    assert!(p99 < WAIT, "{what}: another caller waited {p99:?}");
}
