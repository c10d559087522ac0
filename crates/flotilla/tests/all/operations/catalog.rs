//! The catalog of public agents: what it lists, how it is kept, and how it is searched. No key is shown anywhere here.

use crate::cast::setup;
use flotilla_testkit::stand_in::card;
use flotilla_testkit::{Binding, HubProcess, Page, Pages, Request, Response, http};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const AGENTS: &str = "
hub: {name: Fleet, default_agent: echo}
agents:
  echo: {kind: echo}
  weather:
    kind: echo
    description: Knows the sky.
    skills:
      - {id: forecast, name: Forecast, description: Tells tomorrow's temperature., tags: [weather, sky], examples: [Will it rain?, Is it cold in Oslo?]}
  weather-archive: {kind: echo, description: Remembers the weather of the past.}
  secret-weather: {kind: echo, visibility: private}
  team-weather: {kind: echo, visibility: workspace}
";

fn catalog_hub() -> HubProcess {
    setup().config(AGENTS).start()
}

fn get(hub: &HubProcess, target: &str) -> Response {
    http::send(hub.address(), &Request::get(target))
}

fn search(hub: &HubProcess, body: &Value) -> Response {
    let request = Request::post("/api/ard/search", body.to_string().as_bytes());
    http::send(hub.address(), &request.header("content-type", "application/json"))
}

fn names(entries: &Value) -> Vec<&str> {
    entries.as_array().expect("entries").iter().filter_map(|entry| entry["displayName"].as_str()).collect()
}

#[test]
fn public_agents_are_listed_and_no_others() {
    let hub = catalog_hub();
    let response = get(&hub, "/.well-known/ai-catalog.json");
    assert_eq!(response.header("content-type"), Some("application/ai-catalog+json"));
    let catalog = response.json();
    assert_eq!((&catalog["specVersion"], &catalog["host"]["displayName"]), (&json!("1.0"), &json!("Fleet")));
    assert_eq!(names(&catalog["entries"]), ["Fleet: agents", "echo", "weather", "weather-archive"]);
    let entry = &catalog["entries"][2];
    assert_eq!(entry["identifier"], "urn:air:127.0.0.1:agent:weather");
    assert_eq!((&entry["type"], &entry["mediaType"]), (&entry["mediaType"], &json!("application/a2a-agent-card+json")));
    assert_eq!((&entry["tags"], &entry["capabilities"]), (&json!(["sky", "weather"]), &json!(["forecast"])));
    assert_eq!(entry["representativeQueries"], json!(["Will it rain?", "Is it cold in Oslo?"]));
    assert!(catalog["entries"][1].get("representativeQueries").is_none(), "one or none are not enough");
    let card = entry["url"].as_str().expect("a URL").trim_start_matches(&hub.url()).to_owned();
    assert_eq!(get(&hub, &card).json()["name"], "weather", "the entry leads to the card");
    assert_eq!(catalog["entries"][0]["url"], format!("{}/api/ard", hub.url()));
}

#[test]
fn it_may_be_kept_until_it_changes() {
    let hub = catalog_hub();
    let first = get(&hub, "/.well-known/ai-catalog.json");
    let tag = first.header("etag").expect("a tag").to_owned();
    assert!(first.header("cache-control").is_some_and(|text| text.contains("public")));
    let again = |tag: &str| {
        let request = Request::get("/.well-known/ai-catalog.json").header("if-none-match", tag);
        http::send(hub.address(), &request).status
    };
    assert_eq!(again(&tag), 304);
    hub.write_config(&AGENTS.replace("visibility: private", "visibility: public"));
    hub.signal("HUP");
    flotilla_testkit::until("the catalog changes", || (again(&tag) == 200).then_some(()));
}

#[test]
fn agents_that_may_not_answer_are_marked() {
    let well = Arc::new(AtomicBool::new(true));
    let seen = Arc::clone(&well);
    let far = Pages::start(move |_, url| match seen.load(Ordering::Acquire) {
        true => Page::json(card(url, false)),
        false => Page::status(404),
    });
    let checked = "registry: {check_every: 300ms}\ntargets: {allow: [127.0.0.1]}";
    let hub = setup().config(&format!("{AGENTS}  far: {{kind: a2a, url: '{}'}}\n{checked}", far.url())).start();
    let states = || {
        let found = search(&hub, &json!({"query": {"text": "far"}})).json()["results"][0].clone();
        let entries = get(&hub, "/.well-known/ai-catalog.json").json()["entries"].clone();
        let listed = get(&hub, "/api/ard/agents").json()["items"].clone();
        let of =
            |list: &Value| list.as_array().expect("a list").iter().find(|one| one["displayName"] == "far").cloned();
        let entries = [Some(found), of(&entries), of(&listed)];
        entries.map(|entry| entry.expect("far is listed")["metadata"]["state"].clone())
    };
    flotilla_testkit::until("it is live", || (states() == [(); 3].map(|()| json!("live"))).then_some(()));
    well.store(false, Ordering::Release);
    flotilla_testkit::until("it is marked", || (states() == [(); 3].map(|()| json!("stale"))).then_some(()));
    let echo = search(&hub, &json!({"query": {"text": "echo"}})).json();
    assert_eq!(echo["results"][0]["metadata"]["state"], "live");
}

#[test]
fn a_search_ranks_and_filters() {
    let hub = catalog_hub();
    let found = search(&hub, &json!({"query": {"text": "find me a weather forecast"}})).json();
    assert_eq!(names(&found["results"]), ["weather", "weather-archive"]);
    let first = &found["results"][0];
    assert_eq!((&first["score"], &first["source"]), (&json!(100), &json!(format!("{}/api/ard", hub.url()))));
    assert!(found.get("referrals").is_none() && found.get("pageToken").is_none());
    let tagged =
        search(&hub, &json!({"query": {"text": "weather", "filter": {"tags": ["sky"], "publisher": "127.0.0.1"}}}));
    assert_eq!(names(&tagged.json()["results"]), ["weather"]);
    let other =
        search(&hub, &json!({"query": {"text": "weather", "filter": {"type": ["application/mcp-server-card+json"]}}}));
    assert_eq!(other.json()["results"], json!([]));
    let referred = search(&hub, &json!({"query": {"text": "flight booking"}, "federation": "referrals"})).json();
    assert_eq!((&referred["results"], &referred["referrals"]), (&json!([]), &json!([])));
    let page = search(&hub, &json!({"query": {"text": "weather"}, "pageSize": 1})).json();
    assert_eq!(names(&page["results"]).len(), 1);
    let rest = json!({"query": {"text": "weather"}, "pageSize": 1, "pageToken": page["pageToken"]});
    let rest = search(&hub, &rest).json();
    assert_eq!((names(&rest["results"]).len(), rest.get("pageToken")), (1, None));
    assert_ne!(names(&rest["results"]), names(&page["results"]));
}

#[test]
fn all_are_listed_page_by_page() {
    let hub = catalog_hub();
    let first = get(&hub, "/api/ard/agents?pageSize=2").json();
    assert_eq!((names(&first["items"]), &first["total"]), (vec!["echo", "weather"], &json!(3)));
    let token = first["pageToken"].as_str().expect("a token");
    let second = get(&hub, &format!("/api/ard/agents?pageSize=2&pageToken={token}")).json();
    assert_eq!((names(&second["items"]), second.get("pageToken")), (vec!["weather-archive"], None));
}

#[test]
fn mistakes_are_told_in_its_form() {
    let hub = catalog_hub();
    for (body, word) in [
        (json!({"query": {}}), "query.text"),
        (json!({"query": {"text": "x", "filter": {"trustManifest.identity": ["y"]}}}), "trustManifest.identity"),
        (json!({"text": "x"}), "query"),
    ] {
        let refused = search(&hub, &body);
        assert_eq!((refused.status, &refused.json()["errorCode"]), (400, &json!("INVALID_ARGUMENT")), "{body}");
        assert!(refused.json()["message"].as_str().is_some_and(|text| text.contains(word)), "{body}");
    }
    let list = search(&hub, &json!([]));
    assert!(list.status == 400 && list.text().contains("a JSON object") && !list.text().contains("struct"), "{list:?}");
    assert_eq!(get(&hub, "/api/ard/agents?filter=x").status, 400);
    assert_eq!(get(&hub, "/api/ard/agents?pageToken=x").status, 400, "no token of this hub's");
    let explore = http::send(hub.address(), &Request::post("/api/ard/explore", "{}"));
    assert_eq!((explore.status, &explore.json()["errorCode"]), (501, &json!("NOT_IMPLEMENTED")));
    assert_eq!(get(&hub, "/api/ard/search").status, 405);
    assert_eq!(get(&hub, "/api/ard/nothing").status, 404);
}

#[test]
fn who_asks_too_often_has_to_wait() {
    let hub = setup().config(&format!("{AGENTS}\nlimits: {{requests_per_caller: 2}}")).start();
    let answers: Vec<Response> = (0..5).map(|_| search(&hub, &json!({"query": {"text": "weather"}}))).collect();
    let refused = answers.iter().find(|answer| answer.status == 429).expect("the third or so is refused");
    assert_eq!(refused.json()["errorCode"], "RATE_LIMIT_EXCEEDED");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(hub.owner(Binding::HttpJson).response("ListTasks", &json!({})).status, 200, "others go on");
}
