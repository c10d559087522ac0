//! Agent cards: what they say, where they are, and how they are cached.

use crate::cast::{CONFIG, hub, setup, state};
use flotilla_testkit::{Binding, Client, Request, Response};
use serde_json::{Value, json};

const ROOT: &str = "/.well-known/agent-card.json";

fn get(client: &Client, target: &str) -> Response {
    let response = client.get(target);
    assert_eq!(response.status, 200, "{target}");
    assert_eq!(response.header("content-type"), Some("application/json"), "{target}");
    response
}

/// The interfaces of 1.0, which come first, then those of 0.3.
fn urls(card: &Value) -> Vec<(String, String)> {
    let interfaces = card["supportedInterfaces"].as_array().expect("interfaces");
    let versions: Vec<&str> = interfaces.iter().filter_map(|one| one["protocolVersion"].as_str()).collect();
    assert!(versions.is_sorted_by(|one, next| one >= next), "{versions:?}");
    interfaces
        .iter()
        .map(|one| {
            (
                one["protocolBinding"].as_str().expect("a binding").to_owned(),
                one["url"].as_str().expect("a URL").to_owned(),
            )
        })
        .collect()
}

#[test]
fn both_well_known_paths_show_the_same_card() {
    let hub = hub();
    let client = hub.stranger(Binding::HttpJson).without("a2a-version");
    assert_eq!(get(&client, ROOT).body, get(&client, "/.well-known/agent.json").body);
    let client = hub.stranger(Binding::HttpJson);
    let below = get(&client, "/agents/mock/.well-known/agent-card.json");
    assert_eq!(below.body, get(&client, "/agents/mock/.well-known/agent.json").body);
    assert_eq!(below.json()["name"], "mock");
    assert_eq!(below.json()["description"], "Does what it is told.");
    assert_eq!(client.get("/agents/nobody/.well-known/agent-card.json").status, 404);
}

#[test]
fn a_card_has_all_that_is_required_and_claims_nothing_else() {
    let hub = hub();
    for target in [ROOT, "/agents/echo/.well-known/agent-card.json"] {
        let card = get(&hub.stranger(Binding::HttpJson), target).json();
        for field in ["name", "description", "version"] {
            assert!(card[field].as_str().is_some_and(|text| !text.is_empty()), "{field}");
        }
        for field in ["supportedInterfaces", "defaultInputModes", "defaultOutputModes", "skills"] {
            assert!(card[field].as_array().is_some_and(|list| !list.is_empty()), "{field}");
        }
        let capabilities = &card["capabilities"];
        assert_eq!(capabilities["streaming"], true);
        assert_eq!(capabilities["pushNotifications"], true);
        assert_ne!(capabilities["extendedAgentCard"], true);
        assert!(!card.to_string().contains("null"), "no nulls in a card");
    }
    let still = get(&hub.stranger(Binding::HttpJson), "/agents/still/.well-known/agent-card.json").json();
    assert_eq!(still["capabilities"]["streaming"], false);
    assert_eq!(still["capabilities"]["pushNotifications"], false);
}

/// FastA2A reads no card whose skills do not say it.
#[test]
fn every_skill_says_what_it_takes_and_makes() {
    let hub = hub();
    let client = hub.stranger(Binding::HttpJson).without("a2a-version");
    let old = client.clone().header("a2a-version", "0.3");
    for (client, target) in [
        (&client, ROOT),
        (&client, "/agents/strict/.well-known/agent-card.json"),
        (&old, "/agents/strict/.well-known/agent-card.json"),
        (&client, "/agents/strict/v1/card"),
    ] {
        let card = client.get(target).json();
        for skill in card["skills"].as_array().expect("skills") {
            assert_eq!(skill["inputModes"], card["defaultInputModes"], "{target}");
            assert_eq!(skill["outputModes"], card["defaultOutputModes"], "{target}");
        }
    }
}

#[test]
fn a_card_declares_its_extensions() {
    let hub = hub();
    let card = get(&hub.stranger(Binding::HttpJson), "/agents/strict/.well-known/agent-card.json").json();
    let extensions = card["capabilities"]["extensions"].as_array().expect("extensions");
    let required =
        |uri: &str| extensions.iter().find(|one| one["uri"] == uri).map(|one| one["required"] == json!(true));
    assert_eq!(required("urn:test:required"), Some(true));
    assert_eq!(required("urn:test:optional"), Some(false));
    assert_eq!(required(crate::streams::RESUME), Some(false));
}

#[test]
fn the_addresses_a_card_tells_work() {
    let hub = hub();
    for target in [ROOT, "/agents/echo/.well-known/agent-card.json"] {
        let card = get(&hub.stranger(Binding::HttpJson), target).json();
        let urls = urls(&card);
        let named: Vec<&str> = urls.iter().map(|(binding, _)| binding.as_str()).collect();
        let (all, channel) = (["JSONRPC", "HTTP+JSON", "GRPC"], "urn:flotilla:binding:channel:1.0");
        // Clients of 0.3 name no agent over gRPC: only the default one's card sends them there.
        let in_03 = if target == ROOT { &all[..] } else { &all[..2] };
        assert_eq!(named, [&all[..], &[channel], in_03].concat());
        for (binding, url) in urls.into_iter().take(3) {
            if binding == "GRPC" {
                assert_eq!(url, hub.address().to_string(), "gRPC has a host and a port, no path");
                let mut params = flotilla_testkit::client::message(target, "complete");
                params["tenant"] = card["supportedInterfaces"][2]["tenant"].clone();
                let sent = hub.owner(Binding::Grpc).call("SendMessage", &params).expect("sent");
                assert_eq!(state(&sent["task"]), "TASK_STATE_COMPLETED");
                continue;
            }
            let path = url.strip_prefix(&hub.url()).expect("the hub's own address");
            let params = flotilla_testkit::client::message(&format!("{binding}{path}"), "complete");
            let request = match binding.as_str() {
                "JSONRPC" => {
                    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
                    Request::post(path, body.to_string())
                }
                _ => Request::post(&format!("{path}/message:send"), params.to_string()),
            };
            let body = hub.owner(Binding::HttpJson).send(request.header("content-type", "application/json")).json();
            assert_eq!(state(&body.get("result").unwrap_or(&body)["task"]), "TASK_STATE_COMPLETED");
        }
    }
}

#[test]
fn the_addresses_a_card_of_0_3_tells_work() {
    let hub = hub();
    let owner = hub.owner(Binding::HttpJson).header("a2a-version", "0.3");
    for target in [ROOT, "/agents/echo/.well-known/agent-card.json"] {
        let card = get(&owner, target).json();
        let places = card["additionalInterfaces"].as_array().expect("places");
        assert_eq!((&card["url"], &card["preferredTransport"]), (&places[0]["url"], &places[0]["transport"]));
        for place in &places[..2] {
            let binding = place["transport"].as_str().expect("a transport");
            let path = place["url"].as_str().and_then(|url| url.strip_prefix(&hub.url())).expect("the hub's own");
            let params = crate::dialects::old_message(&format!("{binding}{path}"), "complete");
            let request = match binding {
                "JSONRPC" => {
                    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params});
                    Request::post(path, body.to_string())
                }
                "HTTP+JSON" => Request::post(&format!("{path}/v1/message:send"), params.to_string()),
                other => panic!("not so early: {other}"),
            };
            let body = owner.send(request.header("content-type", "application/json")).json();
            assert_eq!(body.get("result").unwrap_or(&body)["status"]["state"], "completed", "{body}");
        }
    }
}

#[test]
fn a_card_says_how_to_authenticate() {
    let card = get(&hub().stranger(Binding::HttpJson), ROOT).json();
    let schemes = &card["securitySchemes"];
    assert_eq!(schemes["bearer"]["httpAuthSecurityScheme"]["scheme"], "Bearer");
    assert_eq!(schemes["apiKey"]["apiKeySecurityScheme"], json!({"location": "header", "name": "X-API-Key"}));
    assert_eq!(card["securityRequirements"].as_array().map(Vec::len), Some(2), "either of them");
    let open = setup().arg("--allow-anonymous").start();
    let card = get(&open.stranger(Binding::HttpJson), ROOT).json();
    assert!(card.get("securityRequirements").is_none_or(|list| list == &json!([])), "nothing is required there");
}

#[test]
fn the_public_address_is_the_one_on_the_card() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.local_addr().expect("its address").port()
    };
    let hub = setup().config(CONFIG).arg("--public-url").arg("https://fleet.example.com/a/");
    let hub = hub.listen(&format!("127.0.0.1:{port}")).start();
    let client = hub.stranger(Binding::HttpJson);
    let told = urls(&get(&client, ROOT).json());
    assert_eq!(told[0].1, "https://fleet.example.com/a/a2a");
    assert_eq!(told[1].1, "https://fleet.example.com/a");
    let told = urls(&get(&client, "/agents/echo/.well-known/agent-card.json").json());
    assert_eq!(told[0].1, "https://fleet.example.com/a/agents/echo/a2a");
    assert_eq!(told[1].1, "https://fleet.example.com/a/agents/echo");
}

#[test]
fn a_card_is_cacheable() {
    let hub = hub();
    let client = hub.stranger(Binding::HttpJson);
    let card = get(&client, ROOT);
    let etag = card.header("etag").expect("an ETag").to_owned();
    let modified = card.header("last-modified").expect("a time").to_owned();
    assert!(card.header("cache-control").is_some_and(|rule| rule.contains("max-age=")));
    let fresh = |name: &str, value: &str| client.send(Request::get(ROOT).header(name, value));
    for (name, value) in [
        ("if-none-match", etag.clone()),
        ("if-none-match", format!("\"other\", W/{etag}")),
        ("if-none-match", "*".to_owned()),
        ("if-modified-since", modified.clone()),
    ] {
        let response = fresh(name, &value);
        assert_eq!((response.status, response.body.len()), (304, 0), "{name}: {value}");
        assert_eq!(response.header("etag"), Some(etag.as_str()));
        assert!(response.header("cache-control").is_some());
    }
    assert_eq!(fresh("if-none-match", "\"other\"").status, 200);
    assert_eq!(fresh("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT").status, 200);
    assert_eq!(
        fresh("if-modified-since", "Thu, 06 Nov 2994 08:49:37 GMT").status,
        304,
        "not modified since the future"
    );
}

#[test]
fn the_head_of_a_card_is_its_headers() {
    let hub = hub();
    let client = hub.stranger(Binding::HttpJson);
    let (head, card) = (client.send(Request::new("HEAD", ROOT)), client.get(ROOT));
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("etag"), card.header("etag"));
}
