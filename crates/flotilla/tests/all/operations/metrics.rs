//! Who reads `/metrics`, where, and what it costs.

use crate::cast::setup;
use flotilla_testkit::{Binding, HubProcess, Request, http, until};
use std::net::SocketAddr;

const AGENTS: &str = r#"
agents:
  echo: {kind: echo, visibility: public}
  hidden: {kind: echo, visibility: private}
  team: {kind: echo, visibility: workspace}
"#;

fn text(hub: &HubProcess) -> String {
    let answer = hub.stranger(Binding::HttpJson).get("/metrics");
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.text().to_owned()
}

/// `flotilla_remote_breaker` names agents.
#[test]
fn readers_without_a_key_see_no_private_agent() {
    let nobody = SocketAddr::from(([127, 0, 0, 1], 9));
    let remote = |name: &str, visibility: &str| {
        format!("  {name}: {{kind: a2a, url: 'http://{nobody}', visibility: {visibility}}}\n")
    };
    let agents = format!("{AGENTS}{}{}", remote("far-public", "public"), remote("far-private", "private"));
    let hub = setup().config(&agents).start();
    let key = hub.owner(Binding::JsonRpc);
    for agent in ["far-public", "far-private"] {
        // It cannot be reached, which its breaker notes.
        let _ = key.clone().agent(agent).call("SendMessage", &flotilla_testkit::client::message("m", "hi"));
    }
    let whole = hub.owner(Binding::HttpJson).get("/metrics").text().to_owned();
    assert!(whole.contains("agent=\"far-private\"") && whole.contains("agent=\"far-public\""), "{whole}");
    let told = until("the shared text is rendered anew", || {
        let told = text(&hub);
        told.contains("agent=\"far-public\"").then_some(told)
    });
    assert!(!told.contains("far-private"), "{told}");
    let caller = hub.key("caller", &[]);
    let told = hub.stranger(Binding::HttpJson).key(&caller).get("/metrics").text().to_owned();
    assert!(!told.contains("far-private"), "a key without admin: {told}");
}

#[test]
fn a_text_is_rendered_at_most_once_a_second() {
    let hub = setup().config(AGENTS).start();
    let series = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("flotilla_tasks_opened_total"));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).unwrap_or(0)
    };
    let caller = hub.owner(Binding::JsonRpc).agent("echo");
    // However fast this is, texts change no more often than once a second.
    let (begun, mut seen, mut sent) = (std::time::Instant::now(), vec![series(&text(&hub))], 0);
    while begun.elapsed() < std::time::Duration::from_millis(2500) {
        sent += 1;
        caller.say(&format!("m-{sent}"), "hi");
        let now = series(&text(&hub));
        if seen.last() != Some(&now) {
            seen.push(now);
        }
    }
    assert!(sent > 10 && (2..=4).contains(&seen.len()), "{sent} tasks, seen {seen:?}");
}

#[test]
fn a_key_may_be_asked_for() {
    let hub = setup().config(&format!("metrics: {{key: true}}\n{AGENTS}")).start();
    let stranger = hub.stranger(Binding::HttpJson);
    assert_eq!(stranger.get("/metrics").status, 401);
    let caller = stranger.key(&hub.key("caller", &[])).get("/metrics");
    assert_eq!(caller.status, 403);
    assert!(caller.text().contains("owner's key"), "{}", caller.text());
    assert!(hub.owner(Binding::HttpJson).get("/metrics").text().contains("flotilla_runs_live"));
}

#[test]
fn metrics_may_have_an_address_of_their_own() {
    let address = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        free.local_addr().expect("its address")
    };
    let hub = setup().config(&format!("metrics: {{listen: '{address}'}}\n{AGENTS}")).start();
    let get = |target: &str| http::send(address, &Request::get(target));
    assert!(get("/metrics").text().contains("flotilla_runs_live"));
    assert_eq!((get("/healthz").status, get("/a2a").status), (404, 404), "nothing else is there");
    assert_eq!(http::send(address, &Request::post("/metrics", "")).status, 405);
    assert_eq!(hub.stranger(Binding::HttpJson).get("/metrics").status, 401, "the hub's own port asks for a key then");
}
