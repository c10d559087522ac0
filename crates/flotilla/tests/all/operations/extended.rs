//! Extended cards: what they say more, to whom, and how they are kept.

use crate::cast::setup;
use flotilla_testkit::{Binding, Client, HubProcess, Request};
use serde_json::{Value, json};

const CONFIG: &str = r#"
hub: {default_agent: more}
limits: {requests_per_caller: 4321}
agents:
  plain: {kind: echo}
  more:
    kind: echo
    description: For all.
    extended:
      description: For friends.
      skills: [{id: hidden, name: Hidden, description: Not for all, tags: [x]}]
      documentation_url: https://example.com/docs
      provider: {organization: Example, url: "https://example.com"}
      contact: Ask olga
"#;

fn hub() -> HubProcess {
    setup().config(CONFIG).start()
}

fn terms(card: &Value) -> &Value {
    let extensions = card["capabilities"]["extensions"].as_array().expect("extensions");
    let found = extensions.iter().find(|one| one["uri"] == "urn:flotilla:ext:terms:1.0");
    &found.unwrap_or_else(|| panic!("no terms in {card}"))["params"]
}

#[test]
fn it_says_more_than_the_public_card_and_the_same_over_every_binding() {
    let hub = hub();
    let public = hub.stranger(Binding::HttpJson).get("/agents/more/.well-known/agent-card.json").json();
    assert_eq!(public["capabilities"]["extendedAgentCard"], true);
    assert!(!public.to_string().contains("olga") && !public.to_string().contains("hidden"), "{public}");
    let mut seen = Vec::new();
    let carol = hub.caller(Binding::HttpJson, "carol").agent("more");
    for binding in Binding::ALL {
        let card = carol.clone().through(binding).call("GetExtendedAgentCard", &json!({})).expect("a card");
        assert_eq!(card["description"], "For friends.");
        assert_eq!(card["skills"].as_array().expect("skills").len(), 2);
        assert_eq!(card["provider"], json!({"organization": "Example", "url": "https://example.com"}));
        assert_eq!(card["documentationUrl"], "https://example.com/docs");
        let terms = terms(&card);
        assert_eq!((&terms["caller"], &terms["contact"]), (&json!("carol"), &json!("Ask olga")));
        assert_eq!(terms["scopes"], json!(["agents:read", "tasks:read", "tasks:write", "push:write"]));
        assert_eq!(terms["limits"]["requestsPerSecond"], 4321);
        assert_eq!(card["supportedInterfaces"], public["supportedInterfaces"]);
        seen.push((card["name"].clone(), card["signatures"].clone()));
    }
    assert!(seen.iter().all(|one| one == &seen[0]), "{seen:?}");
    let root = hub.owner(Binding::JsonRpc).call("GetExtendedAgentCard", &json!({})).expect("a card");
    assert_eq!((&root["name"], &terms(&root)["caller"]), (&json!("Flotilla"), &json!("owner")));
}

#[test]
fn the_calls_of_0_3_give_it_to_whoever_shows_a_key_and_else_the_public_one() {
    let hub = hub();
    let (owner, stranger) = (hub.owner(Binding::HttpJson), hub.stranger(Binding::HttpJson));
    let rest = |client: &Client, agent: &str| client.get(&format!("/agents/{agent}/v1/card"));
    let grpc = |client: &Client, agent: &str| {
        let client = client.clone().through(Binding::Grpc).without("a2a-version").agent(agent);
        client.call("a2a.v1.A2AService/GetAgentCard", &json!({})).expect("a card")
    };
    for (client, agent, description) in [
        (&owner, "more", "For friends."),
        (&stranger, "more", "For all."),
        (&owner, "plain", ""),
        (&stranger, "plain", ""),
    ] {
        let answer = rest(&client.clone().without("a2a-version"), agent);
        let kept = if description == "For friends." { "private, max-age=60" } else { "public, max-age=60" };
        assert_eq!((answer.header("a2a-version"), answer.header("cache-control")), (Some("0.3"), Some(kept)));
        for card in [answer.json(), grpc(client, agent)] {
            assert_eq!(card["name"], agent, "{card}");
            assert!(description.is_empty() || card["description"] == description, "{card}");
            assert_eq!(card.to_string().contains("hidden"), description == "For friends.", "{card}");
        }
    }
    let wrong = stranger.clone().header("authorization", "Bearer wrong");
    assert_eq!(rest(&wrong, "more").status, 401);
    for (place, version) in [("/.well-known/agent-card.json", "1.0"), ("/agents/more/v1/card", "0.3")] {
        let answer = stranger.clone().without("a2a-version").get(place);
        assert_eq!(answer.header("a2a-version"), Some(version), "{place}");
    }
}

#[test]
fn it_is_declared_only_where_it_is() {
    let hub = hub();
    let plain = hub.stranger(Binding::HttpJson).get("/agents/plain/.well-known/agent-card.json").json();
    assert_eq!(plain["capabilities"]["extendedAgentCard"], false);
    for binding in Binding::ALL {
        let asked = hub.owner(binding).agent("plain").call("GetExtendedAgentCard", &json!({}));
        assert_eq!(asked.expect_err("refused").reason, "UNSUPPORTED_OPERATION");
    }
    let told = setup().config("agents: {a: {kind: echo, extended: {}}}").refused();
    assert!(told.contains("says nothing beyond the public card"), "{told}");
}

#[test]
fn it_needs_a_key_even_where_nothing_else_does() {
    let hub = setup().config(CONFIG).arg("--allow-anonymous").start();
    for binding in Binding::ALL {
        let stranger = hub.stranger(binding).agent("more");
        assert_eq!(stranger.call("GetExtendedAgentCard", &json!({})).expect_err("refused").reason, "UNAUTHENTICATED");
        stranger.call("ListTasks", &json!({})).expect("anyone may");
    }
}

#[test]
fn it_is_kept_by_nobody_but_the_one_who_asked() {
    let hub = hub();
    let client = hub.caller(Binding::HttpJson, "carol");
    let card = client.get("/extendedAgentCard");
    assert_eq!(card.header("cache-control"), Some("private, max-age=60"));
    assert!(card.header("vary").is_some_and(|vary| vary.contains("authorization") && vary.contains("x-api-key")));
    assert_eq!(card.header("content-type"), Some("application/a2a+json"));
    let tag = card.header("etag").expect("a tag").to_owned();
    let again = |tag: &str| client.send(Request::get("/extendedAgentCard").header("if-none-match", tag));
    assert_eq!((again(&tag).status, again("\"other\"").status), (304, 200));
    let other =
        hub.caller(Binding::HttpJson, "dave").send(Request::get("/extendedAgentCard").header("if-none-match", &tag));
    assert_eq!(other.status, 200, "another caller, another card");
}

#[test]
fn callers_of_0_3_get_it_in_their_form() {
    let hub = hub();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "agent/getAuthenticatedExtendedCard"}).to_string();
    let ask = |agent: &str| {
        let request =
            Request::post(&format!("/agents/{agent}"), body.clone()).header("content-type", "application/json");
        hub.owner(Binding::HttpJson).without("a2a-version").send(request).json()
    };
    let card = &ask("more")["result"];
    assert_eq!(card["protocolVersion"], "0.3.0", "{card}");
    assert_eq!(
        (&card["description"], &card["supportsAuthenticatedExtendedCard"]),
        (&json!("For friends."), &json!(true))
    );
    assert!(card["signatures"].as_array().is_some_and(|all| !all.is_empty()), "{card}");
    assert_eq!(ask("plain")["error"]["code"], -32007);
}
