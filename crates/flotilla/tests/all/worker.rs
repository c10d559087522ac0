//! `flotilla worker`: this machine's agents as members of a hub elsewhere, through cuts, kills and a drain.

pub mod agents;
mod cancel;
mod crash;
mod figures;
mod fleet;
mod leave;
mod outage;
mod work;

use crate::cast::{CONFIG, setup};
use crate::socket::agent_key;
use flotilla_testkit::{Binding, Client, HubProcess, WorkerProcess, until};
use flotilla_worker::reaper::{MARK, tree};
use serde_json::{Value, json};

/// A hub that has no agent but those who come, with these settings of its sockets.
fn hub(sockets: &str) -> HubProcess {
    setup().config(&format!("agents:\n  echo: {{kind: echo}}\nsockets: {{{sockets}}}\n")).start()
}

/// The agents of the other tests, and a program for each script, as a worker has them.
fn config(worker: &str, scripts: &[(&str, &str, &str)]) -> String {
    let agents = CONFIG.split_once("  mock:").and_then(|(_, rest)| rest.split_once("  plain:")).expect("the mock").0;
    let mut config =
        format!("worker: {{{worker}}}\nagents:\n  parrot: {{kind: echo, description: Repeats.}}\n  mock:{agents}");
    for (name, talk, script) in scripts {
        config.push_str(&format!(
            "  {name}:\n    kind: command\n    command:\n      program: sh\n      arguments: [-c, {}]\n      talk: {talk}\n      folder: .\n      grace: 300ms\n",
            json!(script)
        ));
    }
    config
}

/// A worker of a hub that is connected with all its agents.
fn attached(hub: &HubProcess, config: &str) -> WorkerProcess {
    attached_at(hub, &hub.url(), config)
}

fn attached_at(hub: &HubProcess, url: &str, config: &str) -> WorkerProcess {
    let mut worker = hub.worker("one", url, &agent_key(hub, "station"), config);
    worker.start();
    connected(&worker, 1);
    worker
}

/// Waits until each of its agents has connected so many times.
fn connected(worker: &WorkerProcess, times: usize) {
    let config = std::fs::read_to_string(worker.state().with_file_name("worker.yaml")).expect("its configuration");
    let agents = config.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")).count();
    let count = |log: &str| log.lines().filter(|line| line.contains(" connected ")).count();
    until("all agents are connected", || (count(&worker.log()) >= agents * times).then_some(()));
}

fn agent(hub: &HubProcess, name: &str) -> Client {
    hub.owner(Binding::JsonRpc).agent(name)
}

/// Processes of a task that are alive.
fn alive(task: &str) -> usize {
    tree::marked(MARK, |mark| mark.starts_with(&format!("{task}."))).len()
}

fn said(task: &Value) -> &str {
    crate::cast::text(&task["status"]["message"])
}

/// All the text of a task's first artifact.
fn made(task: &Value) -> String {
    let parts = task["artifacts"][0]["parts"].as_array().unwrap_or_else(|| panic!("no artifact in {task}"));
    parts.iter().filter_map(|part| part["text"].as_str()).collect()
}

/// The same, as far as there is one.
fn made_of(task: &Value) -> String {
    if task["artifacts"][0]["parts"].is_array() { made(task) } else { String::new() }
}

/// The owner's log of a task, as text.
fn log(hub: &HubProcess, task: &str) -> String {
    hub.owner(Binding::HttpJson).get(&format!("/api/tasks/{task}/log")).text().to_string()
}

/// What ignores being asked to end, and forks away from its parents.
const STUBBORN: &str = "trap '' TERM HUP; (setsid sh -c 'trap \"\" TERM; sleep 600' &); echo ready; sleep 600";
