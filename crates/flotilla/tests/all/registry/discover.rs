//! Discovery: every kind of card there is, what is none, and what its signature is worth.

use super::{ask, hub, names, owner, told};
use crate::cast::state;
use crate::cli::signatures::{key, signed_card};
use flotilla_outbound::signature::ring::SigningKey;
use flotilla_testkit::stand_in::card;
use flotilla_testkit::{Act, Asked, Binding, Client, Page, Pages, StandIn, until};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub const CARD: &str = "/.well-known/agent-card.json";
pub const KEYS: &str = "/.well-known/jwks.json";

fn discover(client: &Client, url: &str) -> Value {
    let found = ask(client, "POST", "/api/agents/discover", &json!({ "url": url }));
    assert_eq!(found.status, 200, "{found:?}");
    found.json()
}

/// A site that has one page.
fn only(path: &'static str, page: impl Fn(&str) -> Page + Send + Sync + 'static) -> Pages {
    Pages::start(move |asked, url| if asked == path { page(url) } else { Page::status(404) })
}

fn old(url: &str) -> Value {
    json!({"name": "old", "description": "Old.", "version": "1", "protocolVersion": "0.3.0", "url": url,
        "preferredTransport": "JSONRPC", "capabilities": {}, "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"], "skills": [{"id": "s", "name": "s", "description": "s", "tags": []}]})
}

fn finding(report: &Value, place: &str) -> Option<String> {
    let all = report["findings"].as_array().expect("findings");
    all.iter().find(|one| one["place"] == place)?["problem"].as_str().map(str::to_owned)
}

#[test]
fn cards_of_every_form_are_found_and_judged_by_their_own_version() {
    let hub = hub();
    let client = owner(&hub);
    let hybrid = |url: &str| {
        let mut both = card(url, true);
        both["url"] = json!(url);
        both["protocolVersion"] = json!("0.3.0");
        both
    };
    let minimal = |url: &str| json!({"name": "m", "description": "M.", "version": "1", "url": url});
    for (site, form, version, missing) in [
        (only(CARD, |url| Page::json(card(url, true))), "1.0", "1.0", None),
        (only("/.well-known/agent.json", |url| Page::json(old(url))), "0.3", "0.3", None),
        (only(CARD, move |url| Page::json(hybrid(url))), "hybrid", "1.0", None),
        (only("/.well-known/agent.json", move |url| Page::json(minimal(url))), "minimal", "0.3", Some("skills")),
    ] {
        let report = discover(&client, &site.url());
        assert_eq!((&report["found"], &report["usable"]), (&json!(true), &json!(true)), "{report}");
        assert_eq!((&report["form"], &report["protocolVersion"]), (&json!(form), &json!(version)), "{report}");
        assert_eq!(report["signature"]["word"], "absent");
        match missing {
            Some(place) => assert_eq!(finding(&report, place).as_deref(), Some("is missing"), "{report}"),
            None => assert_eq!(report["findings"], json!([]), "{report}"),
        }
    }
    assert_eq!(names(&client.get("/api/agents")), ["echo"], "nothing is added unasked");
}

#[test]
fn a_card_is_found_below_a_path_at_the_origin_and_at_its_own_address() {
    let hub = hub();
    let client = owner(&hub);
    let below = only("/agents/a/.well-known/agent-card.json", |url| Page::json(card(&format!("{url}/agents/a"), true)));
    let origin = only(CARD, |url| Page::json(card(url, true)));
    let own = only("/cards/mine", |url| Page::json(card(url, true)));
    let moved = Pages::start(|path, url| match path {
        CARD => Page::redirect("/moved.json"),
        "/moved.json" => Page::json(card(url, true)),
        _ => Page::status(404),
    });
    for (site, path, at) in [
        (&below, "/agents/a", "/agents/a/.well-known/agent-card.json"),
        (&origin, "/somewhere/deep", CARD),
        (&own, "/cards/mine", "/cards/mine"),
        (&moved, "", "/moved.json"),
    ] {
        let report = discover(&client, &format!("{}{path}", site.url()));
        assert_eq!(report["cardUrl"], format!("{}{at}", site.url()), "{report}");
    }
}

#[test]
fn what_is_no_card_is_told_with_every_place_that_was_tried() {
    let hub = hub();
    let client = owner(&hub);
    let elsewhere = only(CARD, |url| Page::json(card(url, true)));
    let target = format!("{}{CARD}", elsewhere.url());
    let bomb = "[".repeat(100_000);
    for (site, told_of) in [
        (Pages::start(|_, _| Page::status(404)), "HTTP 404"),
        (only(CARD, |_| Page::json("<html>Welcome</html>")), "it is no card: it is a web page, and no JSON"),
        (only(CARD, |_| Page::json("{}")), "neither a name nor an interface"),
        (only(CARD, |_| Page::json("[1, 2]")), "it is no card: it is JSON, but a list"),
        (only(CARD, |_| Page::json(r#"{"name": "#)), "it is no card: it is not JSON"),
        (only(CARD, |_| Page::json(r#"{"name": 5, "skills": "many"}"#)), "name must be"),
        (only(CARD, |_| Page::json("x".repeat(2_000_000))), "larger than"),
        (only(CARD, move |_| Page::json(&bomb)), "nested deeper"),
        (only(CARD, |_| Page::redirect(CARD)), "redirects more than"),
        (only(CARD, move |_| Page::redirect(&target)), "of another origin"),
        (only(CARD, |_| Page::redirect("http://169.254.169.254/latest")), "of another origin"),
        (only(CARD, |_| Page::status(401)), "give 'auth'"),
    ] {
        let report = discover(&client, &site.url());
        assert_eq!((&report["found"], &report["usable"]), (&json!(false), &json!(false)), "{told_of}: {report}");
        let tried = report["tried"].to_string();
        assert!(tried.contains(told_of) && tried.contains(CARD) && tried.contains("agent.json"), "{told_of}: {tried}");
        let refused = ask(&client, "POST", "/api/agents/discover", &json!({"url": site.url(), "register": "far"}));
        assert!(refused.status == 400 && told(&refused).contains(told_of), "{refused:?}");
    }
    assert!(elsewhere.asked().is_empty(), "a redirect is not followed to another origin");
    let nobody = discover(&client, "http://127.0.0.1:1");
    assert_eq!(nobody["tried"].as_array().map(Vec::len), Some(1), "where nobody is, one try is enough: {nobody}");
    assert_eq!(names(&client.get("/api/agents")), ["echo"]);
}

#[test]
fn a_card_that_cannot_be_used_is_told_why() {
    let hub = hub();
    let client = owner(&hub);
    let soap = only(CARD, |url| {
        let mut odd = card(url, true);
        odd["supportedInterfaces"][0]["protocolBinding"] = json!("SOAP");
        odd["skills"][0]["tags"] = json!("none");
        Page::json(odd)
    });
    let report = discover(&client, &soap.url());
    assert_eq!(report["found"], false, "a card of the wrong types is none: {report}");
    assert!(report["tried"].to_string().contains("skills[0].tags must be a list of texts"), "{report}");
    let soap = only(CARD, |url| {
        let mut odd = card(url, true);
        odd["supportedInterfaces"][0]["protocolBinding"] = json!("SOAP");
        Page::json(odd)
    });
    let report = discover(&client, &soap.url());
    assert_eq!((&report["found"], &report["usable"]), (&json!(true), &json!(false)));
    assert!(report["problem"].as_str().is_some_and(|text| text.contains("SOAP")), "{report}");
    let inward = only(CARD, |_| Page::json(card("http://10.1.2.3/rpc", true)));
    let report = discover(&client, &inward.url());
    assert!(report["problem"].as_str().is_some_and(|text| text.contains("10.1.2.3")), "{report}");
    let place = finding(&report, "supportedInterfaces").unwrap_or_default();
    assert!(place.contains("other origins"), "{report}");
    let nowhere = only(CARD, |_| Page::json(card("somewhere", true)));
    let report = discover(&client, &nowhere.url());
    assert_eq!(report["usable"], false, "{report}");
    let problem = report["problem"].as_str().unwrap_or_default();
    assert!(problem.contains("no URL: 'somewhere'") && !problem.contains("targets.allow"), "{problem}");
    for site in [&soap, &inward, &nowhere, &signed_site(key(1), Some(key(1)), true)] {
        let ran = hub.cli(&["agents", "discover", &site.url(), "-o", "json"]);
        let said: Value = serde_json::from_slice(&ran.stdout).expect("one document");
        assert!(said["error"]["code"].is_string() && said["error"]["message"].is_string(), "{said}");
        assert_eq!((&said["found"], &said["usable"]), (&json!(true), &json!(false)), "{said}");
        assert!(!ran.status.success(), "{ran:?}");
    }
}

/// A key under the name every card here is signed by.
pub fn keys(key: &SigningKey) -> Page {
    let mut jwk = key.jwk.clone();
    jwk["kid"] = json!("k");
    Page::json(json!({ "keys": [jwk] }))
}

/// A site with a signed card and a key set; `tamper` changes the card after it was signed.
fn signed_site(by: SigningKey, published: Option<SigningKey>, tamper: bool) -> Pages {
    Pages::start(move |path, url| match (path, &published) {
        (CARD, _) => {
            let mut card = signed_card(card(url, true), &by, json!({}));
            if tamper {
                card["description"] = json!("Another.");
            }
            Page::json(card)
        }
        (KEYS, Some(key)) => keys(key),
        _ => Page::status(404),
    })
}

#[test]
fn the_four_words_are_shown_everywhere() {
    let hub = hub();
    let client = owner(&hub);
    for (name, site, word) in [
        ("verified", signed_site(key(1), Some(key(1)), false), "verified"),
        ("unverifiable", signed_site(key(1), None, false), "unverifiable"),
        ("absent", only(CARD, |url| Page::json(card(url, true))), "absent"),
        ("failed", signed_site(key(1), Some(key(1)), true), "failed"),
    ] {
        let report = discover(&client, &site.url());
        assert_eq!(report["signature"]["word"], word, "{report}");
        let public = json!({"visibility": "public"});
        let asked = json!({"url": site.url(), "register": name, "settings": public});
        let added = ask(&client, "POST", "/api/agents/discover", &asked);
        if word == "failed" {
            assert!(added.status == 400 && told(&added).contains("failed"), "{added:?}");
            let added = super::add(&client, &json!({"name": name, "url": site.url(), "visibility": "public"}));
            assert_eq!(added.status, 201, "{added:?}");
        } else {
            assert_eq!(added.status, 201, "{added:?}");
        }
        let checked = ask(&client, "POST", &format!("/api/agents/{name}/check"), &json!({})).json();
        assert_eq!(checked["signature"]["word"], word, "{checked}");
        let listed = hub.cli_ok(&["agents", "list", name]);
        assert!(listed.contains(&format!("Signature: {word}")), "{listed}");
        let told_in = |entries: &Value| {
            let entry = entries.as_array().into_iter().flatten().find(|entry| entry["displayName"] == name).cloned();
            entry.unwrap_or_default()["metadata"]["signature"]["word"].clone()
        };
        let ard = client.get("/api/ard/agents").json()["items"].clone();
        assert_eq!(told_in(&ard), word, "{ard}");
        // Its readers share a text for a second.
        let catalog = || client.get("/.well-known/ai-catalog.json").json()["entries"].clone();
        until("the catalog tells it", || (told_in(&catalog()) == word).then_some(()));
        let entry = client.get(&format!("/api/discover/agents/{name}")).json()["agent"].clone();
        assert_eq!(entry["signature"]["word"], word, "{entry}");
        assert_eq!(entry["connected"], entry["state"] != "unreachable", "{entry}");
    }
    assert_eq!(client.get("/api/agents/failed").json()["state"], "unreachable");
    let task = client.clone().agent("failed").say("m-1", "go");
    assert!(state(&task) == "TASK_STATE_FAILED" && task.to_string().contains("card"), "{task}");
}

#[test]
fn what_a_signature_says_nothing_about_is_told_to_all() {
    let hub = hub();
    let client = owner(&hub);
    let by = key(1);
    let site = Pages::start(move |path, url| match path {
        CARD => {
            let mut card = signed_card(card(url, true), &by, json!({}));
            card["url"] = json!("http://127.0.0.1:1/");
            Page::json(card)
        }
        KEYS => keys(&by),
        _ => Page::status(404),
    });
    assert_eq!(super::add(&client, &json!({"name": "far", "url": site.url()})).status, 201);
    let checked = ask(&client, "POST", "/api/agents/far/check", &json!({})).json();
    assert_eq!(
        (&checked["signature"]["word"], &checked["signature"]["notCovered"]),
        (&json!("verified"), &json!(["url"]))
    );
    assert!(hub.cli_ok(&["agents", "list", "far"]).contains("not covered: url"));
    let reader = hub.make_key(&["reader"]);
    let seen = hub.stranger(Binding::HttpJson).key(&reader).get("/api/agents/far").json()["signature"].clone();
    assert_eq!(seen, json!({"word": "verified", "notCovered": ["url"]}), "not where it is, but what is open");
}

/// A site whose signed card of 1.0 was given members of 0.3 that lead to somebody else.
fn hybrid_site(thief: &str, binding: &'static str) -> Pages {
    let (by, thief) = (key(1), thief.to_owned());
    Pages::start(move |path, url| match path {
        CARD => {
            let mut own = card(url, true);
            own["supportedInterfaces"][0]["protocolBinding"] = json!(binding);
            let mut card = signed_card(own, &by, json!({}));
            for (name, value) in
                [("url", thief.as_str()), ("protocolVersion", "0.3.0"), ("preferredTransport", "JSONRPC")]
            {
                card[name] = json!(value);
            }
            Page::json(card)
        }
        KEYS => keys(&by),
        _ => Page::status(404),
    })
}

#[test]
fn what_a_signature_does_not_cover_does_not_say_where_an_agent_is_called() {
    let hub = hub();
    let client = owner(&hub);
    let thief = Pages::start(|_, _| Page::status(500));
    let both = hybrid_site(&thief.url(), "JSONRPC");
    let report = discover(&client, &both.url());
    let told = (&report["usable"], &report["protocolVersion"], report["interfaces"].as_array().map(Vec::len));
    assert_eq!(told, (&json!(true), &json!("1.0"), Some(1)), "{report}");
    assert!(finding(&report, "interface").is_some_and(|text| text.contains("not covered")), "{report}");
    let custom = hybrid_site(&thief.url(), "urn:custom");
    let report = discover(&client, &custom.url());
    assert_eq!(report["usable"], false, "{report}");
    assert!(report["problem"].as_str().is_some_and(|text| text.contains("not covered by the signature")), "{report}");
    for (name, site, version) in [("old", &both, json!("0.3")), ("custom", &custom, Value::Null)] {
        let added = super::add(&client, &json!({"name": name, "url": site.url(), "protocolVersion": version}));
        assert_eq!(added.status, 201, "{added:?}");
        let checked = ask(&client, "POST", &format!("/api/agents/{name}/check"), &json!({})).json();
        let problem = checked["checks"]["lastError"].as_str().unwrap_or_default();
        assert!(problem.contains("not covered by the signature"), "{name}: {checked}");
        let task = client.clone().agent(name).say(&format!("m-{name}"), "secret");
        assert_eq!(state(&task), "TASK_STATE_FAILED", "{task}");
    }
    assert_eq!(super::add(&client, &json!({"name": "new", "url": both.url()})).status, 201);
    let checked = ask(&client, "POST", "/api/agents/new/check", &json!({})).json();
    assert!(checked["checks"]["findings"].to_string().contains("not covered"), "{checked}");
    assert_eq!(checked["protocolVersions"], json!(["1.0"]), "{checked}");
    assert_eq!(thief.asked(), Vec::<String>::new());
}

#[test]
fn a_card_that_was_verified_is_not_exchanged_for_one_without_a_signature() {
    not_exchanged("absent", |_| {});
}

#[test]
fn a_card_that_was_verified_is_not_exchanged_for_one_of_a_stranger_s() {
    not_exchanged("unverifiable", |card| {
        *card = signed_card(std::mem::take(card), &key(2), json!({"kid": "another"}));
    });
}

/// Changes a card that was verified, and sees that the agent's state says so with `word`.
fn not_exchanged(word: &str, change: impl Fn(&mut Value) + Send + Sync + 'static) {
    let hub = hub();
    let client = owner(&hub);
    let changed = Arc::new(AtomicBool::new(false));
    let (now, by) = (Arc::clone(&changed), key(1));
    let site = Pages::start(move |path, url| match path {
        CARD if now.load(Ordering::SeqCst) => {
            let mut other = card("http://127.0.0.1:1", true);
            change(&mut other);
            Page::json(other)
        }
        CARD => Page::json(signed_card(card(url, true), &by, json!({}))),
        KEYS => keys(&by),
        _ => Page::status(404),
    });
    assert_eq!(super::add(&client, &json!({"name": "far", "url": site.url()})).status, 201);
    let check = || ask(&client, "POST", "/api/agents/far/check", &json!({})).json();
    assert_eq!(check()["signature"]["word"], "verified");
    changed.store(true, Ordering::SeqCst);
    let checked = check();
    assert_eq!(checked["signature"]["word"], word, "{checked}");
    assert!(checked["checks"]["lastError"].as_str().is_some_and(|text| text.contains(" before (")), "{checked}");
}

#[test]
fn a_pinned_key_is_the_only_one_that_counts() {
    let hub = hub();
    let client = owner(&hub);
    let site = signed_site(key(1), Some(key(1)), false);
    let pinned = |name: &str, pin: &str| {
        let asked = json!({"url": site.url(), "register": name, "cardKeys": [pin]});
        ask(&client, "POST", "/api/agents/discover", &asked)
    };
    assert_eq!(pinned("good", &key(1).kid).status, 201);
    let file = hub.dir().join("key.json");
    std::fs::write(&file, key(1).jwk.to_string()).expect("a file");
    hub.cli_ok(&["agents", "discover", &site.url(), "--register", "filed", "--pin", &file.to_string_lossy()]);
    let ran = hub.cli(&["agents", "discover", &site.url(), "--pin", &key(2).kid, "-o", "json"]);
    let said: Value = serde_json::from_slice(&ran.stdout).expect("one document");
    assert_eq!(
        (ran.status.code(), &said["error"]["code"]),
        (Some(1), &json!("FLOTILLA_ERR_CARD_UNVERIFIED")),
        "{said}"
    );
    assert!(said["error"]["hint"].as_str().is_some_and(|hint| hint.contains("--pin")), "{said}");
    let refused = pinned("bad", &key(2).kid);
    assert!(refused.status == 400 && told(&refused).contains("not added"), "{refused:?}");
    super::add(&client, &json!({"name": "bad", "url": site.url(), "cardKeys": [key(2).kid]}));
    let checked = ask(&client, "POST", "/api/agents/bad/check", &json!({})).json();
    assert!(checked["checks"]["lastError"].as_str().is_some_and(|text| text.contains("no pinned key")), "{checked}");
    assert_eq!(checked["signature"]["word"], "failed", "{checked}");
    for shown in [hub.cli_ok(&["agents", "show", "bad"]), hub.cli_ok(&["agents", "list", "bad"])] {
        assert!(shown.contains("Signature: failed (no pinned key signed it"), "{shown}");
    }
    let listed: Value = serde_json::from_str(&hub.cli_ok(&["agents", "list", "bad", "-o", "json"])).expect("JSON");
    assert_eq!(listed["agents"][0]["signature"]["word"], "failed");
    let task = client.clone().agent("bad").say("m-1", "go");
    assert_eq!(state(&task), "TASK_STATE_FAILED", "a card nobody vouches for is not used");
}

#[test]
fn a_found_agent_is_registered_and_called() {
    let agent = StandIn::start(false, |_: &Asked| {
        vec![Act::Answer(json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}}))]
    });
    let hub = super::local("").env("AGENT_KEY", "s3cret-value").start();
    let said = hub.cli_ok(&["agents", "discover", &agent.url()]);
    for part in ["Name: stand-in", "Form: 1.0", "Signature: absent", "Would be called by: JSONRPC 1.0"] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    let args = ["agents", "discover", &agent.url(), "--register", "far", "--auth", "bearer=env:AGENT_KEY"];
    let said = hub.cli_ok(&[&args[..], &["-o", "json"]].concat());
    let report: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(report["agent"]["name"], "far", "{report}");
    let task = owner(&hub).agent("far").say("m-1", "go");
    assert_eq!(state(&task), "TASK_STATE_COMPLETED");
    assert_eq!(agent.asked("SendMessage")[0].header("authorization"), Some("Bearer s3cret-value"));
    let old = json!({"url": agent.url(), "register": "old", "settings": {"protocolVersion": "0.3"}});
    let refused = ask(&owner(&hub), "POST", "/api/agents/discover", &old);
    assert!(refused.status == 400 && told(&refused).contains("speaks A2A 1.0"), "nothing of 0.3 is there: {refused:?}");
    let nothing = hub.cli(&["agents", "discover", "http://127.0.0.1:1"]);
    assert_eq!(nothing.status.code(), Some(3), "{nothing:?}");
}
