//! News for people: what changed, to those who may know, with a place to come back to.

use super::{allow, approval, hub_with};
use flotilla_testkit::http::{Request, try_stream};
use flotilla_testkit::stream::Stream;
use flotilla_testkit::{Binding, Client, HubProcess};
use serde_json::Value;

fn listen(client: &Client, hub: &HubProcess, last: Option<&str>) -> Stream {
    let mut request = client.dress(Request::get("/api/events").header("accept", "text/event-stream"));
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    try_stream(hub.address(), &request).expect("a stream")
}

fn owner(hub: &HubProcess) -> Client {
    hub.owner(Binding::HttpJson)
}

/// Reads up to an event of this kind that fits.
fn wait_for(stream: &mut Stream, kind: &str, fits: impl Fn(&Value) -> bool) -> (String, Value) {
    let read = stream.through(|event| event.event.as_deref() == Some(kind) && fits(&event.json()));
    let last = read.last().expect("it came");
    (last.id.clone().expect("an id"), last.json())
}

#[test]
fn tasks_approvals_and_usage_are_told_as_they_happen() {
    let hub = hub_with("");
    let mut stream = listen(&owner(&hub), &hub, None);
    let task = hub.caller(Binding::JsonRpc, "peer").start("m1", "run it");
    let (_, asked) = wait_for(&mut stream, "approval", |event| event["state"] == "open");
    assert_eq!((&asked["taskId"], &asked["agent"]), (&task["id"], &Value::from("careful")));
    allow(&hub, &approval(&hub, "open"));
    wait_for(&mut stream, "approval", |event| event["state"] == "allowed");
    let (_, ended) = wait_for(&mut stream, "task", |event| event["state"] == "TASK_STATE_COMPLETED");
    assert_eq!(ended["taskId"], task["id"]);
    hub.owner(Binding::HttpJson).agent("spender").say("m2", "spend");
    let (_, used) = wait_for(&mut stream, "usage", |_| true);
    assert_eq!((&used["added"]["inputTokens"], &used["agent"]), (&100.into(), &Value::from("spender")));
}

#[test]
fn who_comes_back_goes_on_and_who_cannot_is_told_of_the_gap() {
    let mut hub = hub_with("");
    let mut stream = listen(&owner(&hub), &hub, None);
    let client = hub.owner(Binding::HttpJson).agent("spender");
    client.say("m1", "free");
    let (place, _) = wait_for(&mut stream, "task", |event| event["state"] == "TASK_STATE_COMPLETED");
    drop(stream);
    let missed = client.say("m2", "free");
    let mut stream = listen(&owner(&hub), &hub, Some(&place));
    wait_for(&mut stream, "task", |event| event["taskId"] == missed["id"]);
    hub.restart();
    let mut stream = listen(&owner(&hub), &hub, Some(&place));
    let first = stream.expect();
    assert_eq!(first.event.as_deref(), Some("gap"));
    let wrong = owner(&hub).header("last-event-id", "elsewhere").get("/api/events");
    assert_eq!(wrong.status, 400);
}

#[test]
fn an_owner_hears_of_their_own_agents() {
    let config = r#"
agents:
  hers: {kind: echo, owner: anna}
  his: {kind: echo, owner: ben}
"#;
    let hub = crate::cast::setup().config(config).start();
    let anna = hub.stranger(Binding::HttpJson).key(&hub.make_key(&["a", "--principal", "anna"]));
    let mut stream = listen(&anna, &hub, None);
    hub.owner(Binding::HttpJson).agent("his").start("m1", "hidden");
    let hers = hub.owner(Binding::HttpJson).agent("hers").start("m2", "seen");
    let first = stream.expect();
    assert_eq!(first.json()["taskId"], hers["id"], "{first:?}");
    // What an event is called tells nothing of how many others there were.
    let name = first.id.as_deref().and_then(|id| id.rsplit_once('.')).expect("an id").1.to_owned();
    assert!(u64::from_str_radix(&name, 16).is_ok_and(|number| number > 1 << 32), "{name}");
    assert_eq!(hub.stranger(Binding::HttpJson).get("/api/events").status, 401);
}
