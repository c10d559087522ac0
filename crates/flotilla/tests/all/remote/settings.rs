//! How an agent elsewhere is configured: what is sent along, what is taken over from its card, and what is refused.

use super::{before, config, done, task};
use crate::cast::{id, setup, state};
use flotilla_testkit::stand_in::card;
use flotilla_testkit::{Act, Asked, Binding, HubProcess, StandIn, until};
use serde_json::json;

fn with_secret(agent: &StandIn, settings: &str) -> HubProcess {
    setup().config(&config(&agent.url(), settings)).env("FAR_SECRET", "s3cret").start()
}

#[test]
fn credentials_go_where_they_are_said_to() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "s3cret\n").expect("the file can be written");
    let path = file.path().display();
    for (auth, name, value) in [
        ("{bearer: 'env:FAR_SECRET'}".to_owned(), "authorization", "Bearer s3cret"),
        (format!("{{bearer: 'file:{path}'}}"), "authorization", "Bearer s3cret"),
        ("{api_key: 'env:FAR_SECRET'}".to_owned(), "x-api-key", "s3cret"),
        ("{header: {name: X-Team, value: 'env:FAR_SECRET'}}".to_owned(), "x-team", "s3cret"),
        ("{basic: {user: me, password: 'env:FAR_SECRET'}}".to_owned(), "authorization", "Basic bWU6czNjcmV0"),
    ] {
        let agent = StandIn::start(false, |_| done("t-1"));
        let near = with_secret(&agent, &format!("auth: {auth}, headers: {{X-Where: here}}"));
        assert_eq!(state(&near.owner(Binding::JsonRpc).say("m-1", "go")), "TASK_STATE_COMPLETED");
        let asked = &agent.asked("SendMessage")[0];
        assert_eq!(asked.header(name), Some(value));
        assert_eq!(asked.header("x-where"), Some("here"));
        assert!(!near.log().contains("s3cret"), "no log holds a secret");
    }
}

#[test]
fn a_token_is_fetched_kept_and_fetched_again_when_it_is_not_taken() {
    let agent = StandIn::start(false, |asked: &Asked| match asked.method.as_str() {
        "/token" => {
            let token = format!("token-{}", asked.nth);
            vec![Act::Body(200, json!({"access_token": token, "token_type": "Bearer", "expires_in": 3600}).to_string())]
        }
        _ if asked.header("authorization") == Some("Bearer token-0") && asked.nth > 1 => {
            vec![Act::Body(401, "{}".into())]
        }
        _ => done("t-1"),
    });
    let oauth = format!(
        "auth: {{oauth2: {{token_url: '{}/token', client_id: me, client_secret: 'env:FAR_SECRET', scopes: [a, b]}}}}, retries: {{first: 10ms}}",
        agent.url()
    );
    let near = with_secret(&agent, &oauth);
    let client = near.owner(Binding::JsonRpc);
    for number in 0..3 {
        assert_eq!(state(&client.say(&format!("m-{number}"), "go")), "TASK_STATE_COMPLETED");
    }
    let sent: Vec<_> =
        agent.asked("SendMessage").iter().map(|asked| asked.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(sent, ["Bearer token-0", "Bearer token-0", "Bearer token-0", "Bearer token-1"]);
    assert_eq!(agent.asked("/token").len(), 2);
}

/// A token server, and the agent it is for; what the hub is told of it.
fn oauth(agent: &StandIn, more: &str) -> HubProcess {
    let oauth = format!(
        "auth: {{oauth2: {{token_url: '{}/token', client_id: me, client_secret: 'env:FAR_SECRET'{more}}}}}, retries: {{first: 10ms}}",
        agent.url()
    );
    with_secret(agent, &oauth)
}

#[test]
fn a_token_server_that_wants_http_basic_is_shown_it() {
    // me:s3cret
    const BASIC: Option<&str> = Some("Basic bWU6czNjcmV0");
    for (more, tries) in [("", 3), (", client_auth: basic", 2)] {
        let agent = StandIn::start(false, |asked: &Asked| match asked.method.as_str() {
            "/token" if asked.header("authorization") == BASIC => {
                let token = json!({"access_token": format!("t-{}", asked.nth), "expires_in": "1"});
                vec![Act::Body(200, token.to_string())]
            }
            "/token" => vec![Act::Body(401, json!({"error": "invalid_client"}).to_string())],
            _ => done("t-1"),
        });
        let near = oauth(&agent, more);
        let client = near.owner(Binding::JsonRpc);
        // A token that lasts a second is used once.
        for id in ["m-1", "m-2"] {
            let task = client.say(id, "go");
            assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{}", super::reason(&task));
        }
        assert_eq!(agent.asked("/token").len(), tries, "what worked is remembered");
        assert!(!near.log().contains("s3cret"), "no log holds a secret");
    }
    let agent = StandIn::start(false, |asked: &Asked| match asked.method.as_str() {
        "/token" => vec![Act::Body(401, json!({"error": "invalid_client"}).to_string())],
        _ => done("t-1"),
    });
    let near = oauth(&agent, ", client_auth: post");
    assert_eq!(state(&near.owner(Binding::JsonRpc).say("m-1", "go")), "TASK_STATE_FAILED");
    assert!(agent.asked("/token").iter().all(|asked| asked.header("authorization").is_none()));
}

#[test]
fn a_token_answer_that_cannot_be_read_is_named_and_not_asked_for_again() {
    let agent = StandIn::start(false, |_: &Asked| vec![Act::Body(200, json!({"token": "t"}).to_string())]);
    let near = oauth(&agent, "");
    let client = near.owner(Binding::JsonRpc);
    let task = client.say("m-1", "go");
    assert_eq!(state(&task), "TASK_STATE_FAILED");
    assert!(super::reason(&task).contains("what its token server answers cannot be read"), "{}", super::reason(&task));
    assert_eq!(agent.asked("/token").len(), 1);
    let log = client.get(&format!("/api/tasks/{}/log", id(&task))).text().to_owned();
    assert!(log.contains("access_token"), "the owner is told what is missing: {log}");
}

#[test]
fn a_token_that_the_agent_repeats_is_masked_like_any_other_secret() {
    let agent = StandIn::start(false, |asked: &Asked| {
        let shown = asked.header("authorization").unwrap_or_default();
        let error = json!({"code": -32603, "message": format!("who is {shown}?")});
        match (asked.method.as_str(), asked.nth) {
            // Each is used once.
            ("/token", nth) => {
                vec![Act::Body(200, json!({"access_token": format!("fetched-{nth}"), "expires_in": 1}).to_string())]
            }
            ("SendMessage", 1) => vec![Act::Answer(json!({"task": task("t-1", "WORKING")}))],
            ("SendMessage", _) => vec![Act::Body(200, json!({"jsonrpc": "2.0", "id": 1, "error": error}).to_string())],
            _ => vec![Act::Answer(task(shown, "WORKING"))],
        }
    });
    let near = oauth(&agent, "");
    let client = near.owner(Binding::JsonRpc);
    let refused = "who is Bearer [redacted]?";
    for (message, told) in [("m-1", refused), ("m-2", "task.id is 'Bearer [redacted]'"), ("m-3", refused)] {
        let task = client.say(message, "go");
        assert_eq!(state(&task), "TASK_STATE_FAILED");
        assert!(super::reason(&task).contains(told), "{}", super::reason(&task));
        let log = client.get(&format!("/api/tasks/{}/log", id(&task))).text().to_owned();
        assert!(!log.contains("fetched-"), "{log}");
    }
    assert!(!near.log().contains("fetched-") && near.log().contains("[redacted]"), "{}", near.log());
}

#[test]
fn the_card_here_says_what_the_card_there_says() {
    let with_modes = |url: &str| {
        let mut card = card(url, false);
        card["skills"][0]["inputModes"] = json!(["text/plain"]);
        card["skills"][0]["outputModes"] = json!(["text/html"]);
        card
    };
    let agent = StandIn::with_card(with_modes, |_| done("t-1"));
    let near = before(&agent, "");
    let client = near.owner(Binding::JsonRpc);
    let shown = until("the card is taken over", || {
        let card = client.get("/agents/far/.well-known/agent-card.json").json();
        (card["description"] == "Stands in.").then_some(card)
    });
    assert_eq!(shown["skills"][0]["id"], "s");
    assert_eq!(shown["defaultInputModes"], json!(["text/plain"]));
    assert_eq!(shown["capabilities"]["streaming"], false);
    assert!(shown["supportedInterfaces"][0]["url"].as_str().unwrap().starts_with(&near.url()), "but not where it is");
    let listed = client.get("/api/agents").json();
    let far = &listed["agents"][0]["remote"];
    assert_eq!(
        (&far["binding"], &far["version"], &far["breaker"]),
        (&json!("JSONRPC"), &json!("1.0"), &json!("closed"))
    );
    let near = before(&agent, "description: Mine, streaming: true, input_modes: [image/png]");
    let client = near.owner(Binding::JsonRpc);
    let shown = until("the card is taken over", || {
        let card = client.get("/agents/far/.well-known/agent-card.json").json();
        (card["defaultOutputModes"] == json!(["text/plain"])).then_some(card)
    });
    assert_eq!((&shown["description"], &shown["capabilities"]["streaming"]), (&json!("Mine"), &json!(true)));
    assert_eq!(shown["defaultInputModes"], json!(["image/png"]));
    assert_eq!(shown["skills"][0]["inputModes"], json!(["image/png"]), "what a skill only repeats is not its own");
    assert_eq!(shown["skills"][0]["outputModes"], json!(["text/html"]));
}

#[test]
fn how_agents_are_reached_is_for_their_owner() {
    let agent = StandIn::start(false, |_| done("t-1"));
    let near = before(&agent, "");
    let seen = near.caller(Binding::JsonRpc, "somebody").get("/api/agents").json();
    assert_eq!((&seen["agents"][0]["name"], &seen["agents"][0]["own"]), (&json!("far"), &json!(false)));
    for hidden in ["remote", "checks", "configuredIn", "settings"] {
        assert!(seen["agents"][0].get(hidden).is_none(), "{hidden}: {seen}");
    }
    assert!(!seen.to_string().contains(&agent.url()), "{seen}");
    assert_eq!(near.stranger(Binding::JsonRpc).get("/api/agents").status, 401);
}

#[test]
fn a_card_elsewhere_does_not_lead_where_nobody_pointed() {
    let inner = StandIn::start(false, |_| done("t-1"));
    let target = inner.url();
    let agent = StandIn::with_card(move |_| card(&target, false), |_| done("t-2"));
    let near = before(&agent, "");
    let task = near.owner(Binding::JsonRpc).say("m-1", "go");
    assert_eq!(state(&task), "TASK_STATE_FAILED");
    let told = super::reason(&task);
    assert!(told.contains("its card cannot be used"), "{told}");
    assert!(!told.contains("://") && !told.contains("targets.allow"), "where it leads is its owner's to know: {told}");
    let log = near.owner(Binding::JsonRpc).get(&format!("/api/tasks/{}/log", id(&task))).text().to_owned();
    assert!(log.contains("did not name") && log.contains("targets.allow"), "{log}");
    assert!(inner.asked("SendMessage").is_empty());
    let admitted = format!("{}\ntargets: {{allow: [127.0.0.1/32]}}\n", config(&agent.url(), ""));
    let near = setup().config(&admitted).start();
    assert_eq!(state(&near.owner(Binding::JsonRpc).say("m-1", "go")), "TASK_STATE_COMPLETED");
    assert_eq!(inner.asked("SendMessage").len(), 1);
}

#[test]
fn credentials_go_nowhere_else_on_a_card_s_word() {
    let inner = StandIn::start(false, |_| done("t-1"));
    let target = inner.url();
    let agent = StandIn::with_card(move |_| card(&target, false), |_| done("t-2"));
    let start = |settings: &str| {
        let admitted = format!("{}\ntargets: {{allow: [127.0.0.1/32]}}\n", config(&agent.url(), settings));
        setup().config(&admitted).env("FAR_SECRET", "s3cret").start()
    };
    for settings in ["auth: {bearer: 'env:FAR_SECRET'}", "headers: {X-Where: here}"] {
        let near = start(settings);
        let client = near.owner(Binding::JsonRpc);
        let task = client.say("m-1", "go");
        assert_eq!(state(&task), "TASK_STATE_FAILED", "{settings}");
        let log = client.get(&format!("/api/tasks/{}/log", id(&task))).text().to_owned();
        assert!(log.contains("credentials_for") && log.contains(&inner.url()), "{settings}: {log}");
    }
    assert!(inner.asked("SendMessage").is_empty());
    let bearer = "auth: {bearer: 'env:FAR_SECRET'}, headers: {X-Where: here}";
    let near = start(&format!("{bearer}, credentials_for: ['{}']", inner.url()));
    assert_eq!(state(&near.owner(Binding::JsonRpc).say("m-1", "go")), "TASK_STATE_COMPLETED");
    let asked = &inner.asked("SendMessage")[0];
    assert_eq!((asked.header("authorization"), asked.header("x-where")), (Some("Bearer s3cret"), Some("here")));
}

#[test]
fn an_interface_where_the_agent_is_comes_before_one_its_credentials_are_not_for() {
    let inner = StandIn::start(false, |_| done("t-1"));
    let target = inner.url();
    let both = move |own: &str| {
        let mut both = card(&target, false);
        let interface = json!({"url": own, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
        both["supportedInterfaces"].as_array_mut().expect("interfaces").push(interface);
        both
    };
    let agent = StandIn::with_card(both, |_| done("t-2"));
    let settings = "auth: {api_key: 'env:FAR_SECRET'}";
    let admitted = format!("{}\ntargets: {{allow: [127.0.0.1/32]}}\n", config(&agent.url(), settings));
    let near = setup().config(&admitted).env("FAR_SECRET", "s3cret").start();
    assert_eq!(state(&near.owner(Binding::JsonRpc).say("m-1", "go")), "TASK_STATE_COMPLETED");
    assert_eq!((agent.asked("SendMessage").len(), inner.asked("SendMessage").len()), (1, 0));
}

#[test]
fn a_client_s_secret_is_not_sent_to_a_token_address_elsewhere_on_a_card_s_word() {
    let tokens = StandIn::start(false, |_| vec![Act::Body(200, json!({"access_token": "t"}).to_string())]);
    let token_url = format!("{}/token", tokens.url());
    let with_scheme = move |own: &str| {
        let mut card = card(own, false);
        let flows = json!({"clientCredentials": {"tokenUrl": token_url, "scopes": {}}});
        card["securitySchemes"] = json!({"o": {"oauth2SecurityScheme": {"flows": flows}}});
        card
    };
    let agent = StandIn::with_card(with_scheme, |_| done("t-1"));
    for (more, end) in [("", "FAILED"), (", credentials_for: ['TOKENS']", "COMPLETED")] {
        let oauth = format!("auth: {{oauth2: {{client_id: me, client_secret: 'env:FAR_SECRET'}}}}{more}");
        let settings = oauth.replace("TOKENS", &tokens.url());
        let admitted = format!("{}\ntargets: {{allow: [127.0.0.1/32]}}\n", config(&agent.url(), &settings));
        let near = setup().config(&admitted).env("FAR_SECRET", "s3cret").start();
        let client = near.owner(Binding::JsonRpc);
        let task = client.say("m-1", "go");
        assert_eq!(state(&task), format!("TASK_STATE_{end}"), "{task}");
        if end == "FAILED" {
            let log = client.get(&format!("/api/tasks/{}/log", id(&task))).text().to_owned();
            assert!(log.contains("auth.oauth2.token_url"), "{log}");
            assert!(tokens.asked("/token").is_empty());
        }
    }
    assert_eq!(tokens.asked("/token").len(), 1);
}

#[test]
fn a_card_may_be_a_file_or_have_an_address_of_its_own() {
    let agent = StandIn::start(false, |_| vec![Act::Answer(json!({"task": task("t-1", "COMPLETED")}))]);
    let file = tempfile::NamedTempFile::with_suffix(".json").expect("a file");
    std::fs::write(file.path(), card(&agent.url(), false).to_string()).expect("the file can be written");
    let elsewhere = format!("{}/cards/.well-known/mine.json", agent.url());
    for place in [file.path().display().to_string(), elsewhere] {
        let near = setup().config(&format!("agents:\n  far: {{kind: a2a, card: '{place}'}}\n")).start();
        assert_eq!(state(&near.owner(Binding::JsonRpc).say("m-1", "go")), "TASK_STATE_COMPLETED");
    }
}

#[test]
fn an_agent_with_four_fields_on_its_card_is_called_as_they_were_then() {
    let minimal = |url: &str| json!({"name": "old", "description": "Old.", "url": url, "version": "1"});
    let agent = StandIn::with_card(minimal, |asked: &Asked| match asked.method.as_str() {
        "message/send" => vec![Act::Answer(json!({"kind": "task", "id": "t-1", "contextId": "c",
            "status": {"state": "completed"},
            "artifacts": [{"artifactId": "a", "parts": [{"kind": "text", "text": "old words"}]}]}))],
        _ => vec![Act::Refuse(-32601, "no such method")],
    });
    let near = before(&agent, "");
    let task = near.owner(Binding::JsonRpc).say("m-1", "go");
    assert_eq!((state(&task), super::texts(&task["artifacts"][0])), ("TASK_STATE_COMPLETED", vec!["old words"]));
    assert_eq!(near.owner(Binding::JsonRpc).get("/api/agents").json()["agents"][0]["remote"]["version"], "0.3");
}

#[test]
fn slips_in_the_configuration_are_told() {
    for (agent, told) in [
        ("{kind: a2a}", "needs 'url:'"),
        ("{kind: a2a, url: 'http://h', card: x.json}", "one of them"),
        ("{kind: a2a, url: 'ftp://h'}", "must start with http"),
        ("{kind: a2a, url: 'http://me:pw@h'}", "url"),
        ("{kind: a2a, url: 'http://h', transports: [SOAP]}", "none of JSONRPC"),
        ("{kind: a2a, url: 'http://h', protocol_version: '2.0'}", "not spoken"),
        ("{kind: a2a, url: 'http://h', auth: {bearer: hunter2}}", "env:NAME or file:PATH"),
        ("{kind: a2a, url: 'http://h', auth: {bearer: 'env:FAR_NOT_SET'}}", "FAR_NOT_SET"),
        ("{kind: a2a, url: 'http://h', headers: {Authorization: x}}", "belongs under 'auth:'"),
        ("{kind: a2a, url: 'http://h', headers: {X-Team-Token: hunter2}}", "headers.X-Team-Token: write env:NAME"),
        ("{kind: a2a, url: 'http://h', headers: {X-Team-Key: 'env:FAR_NOT_SET'}}", "FAR_NOT_SET"),
        (
            "{kind: a2a, url: 'http://h', headers: {X-Team: 'env:FAR_TEAM'}}",
            "headers.X-Team: env: and file: are read only",
        ),
        ("{kind: a2a, url: 'http://h', headers: {x-fleet-hops: '0'}}", "headers.x-fleet-hops: is the hub's own"),
        ("{kind: a2a, url: 'http://h', headers: {A2A-Version: '1.0'}}", "headers.A2A-Version: is the hub's own"),
        ("{kind: a2a, url: 'http://h', headers: {Content-Type: a/b}}", "headers.Content-Type: is the hub's own"),
        ("{kind: a2a, url: 'http://h', headers: {X-Where: \"a\\r\\nb\"}}", "headers.X-Where: holds a line break"),
        ("{kind: a2a, url: 'http://h', credentials_for: [h]}", "credentials_for"),
        ("{kind: a2a, url: 'http://h', credentials_for: ['https://h/a']}", "scheme, host and port alone"),
        ("{kind: echo, credentials_for: ['https://h']}", "only for 'kind: a2a'"),
        ("{kind: a2a, url: 'http://h', timeouts: {idle: 0s}}", "longer than nothing"),
        ("{kind: a2a, url: 'http://h', timeouts: {idel: 1s}}", "idel"),
        ("{kind: echo, url: 'http://h'}", "only for 'kind: a2a'"),
    ] {
        let said = setup().config(&format!("agents:\n  far: {agent}\n")).refused();
        assert!(said.contains(told), "{agent}: {said}");
        assert!(!said.contains("hunter2") && !said.contains("pw@"), "{said}");
    }
}

#[test]
fn an_agent_s_owner_sees_why_its_card_cannot_be_used() {
    let agent = StandIn::with_card(|_| card("http://127.0.0.1:1", false), |_: &Asked| vec![Act::HangUp]);
    let near = before(&agent, "");
    let client = near.owner(Binding::JsonRpc);
    until("the card is looked at", || {
        let listed = client.get("/api/agents").json();
        let problem = listed["agents"][0]["remote"]["problem"].as_str().unwrap_or_default();
        problem.contains("targets.allow").then_some(())
    });
}

#[test]
fn an_agent_that_speaks_another_version_is_not_said_to_have_refused() {
    let agent = StandIn::with_card(
        |url| {
            let mut card = card(url, false);
            card["supportedInterfaces"][0]["protocolVersion"] = json!("2.0");
            card
        },
        |_| done("t-1"),
    );
    let task = before(&agent, "").owner(Binding::JsonRpc).say("m-1", "go");
    let told = "The agent 'far' cannot be called: the agent speaks A2A 2.0 and this program 1.0 and 0.3";
    assert_eq!((state(&task), super::reason(&task).starts_with(told)), ("TASK_STATE_FAILED", true), "{task}");
    assert_eq!(agent.asked("SendMessage").len(), 0);
}
