//! Cards that were verified once: nothing less will do from then on, whatever is changed, read again or started anew.

use super::discover::{CARD, KEYS, keys};
use super::{add, ask, local, owner};
use crate::cast::state;
use crate::cli::signatures::{key, signed_card};
use flotilla_testkit::stand_in::card;
use flotilla_testkit::{Act, Client, HubProcess, Page, Pages, StandIn, until};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A site whose card is signed, until it leads to somebody else and is not.
struct Site {
    site: Pages,
    thief: Pages,
    changed: Arc<AtomicBool>,
}

impl Site {
    fn start() -> Self {
        let thief = Pages::start(|_, _| Page::status(500));
        let changed = Arc::new(AtomicBool::new(false));
        let (now, by, elsewhere) = (Arc::clone(&changed), key(1), thief.url());
        let site = Pages::start(move |path, url| match path {
            CARD if now.load(Ordering::SeqCst) => Page::json(card(&elsewhere, true)),
            CARD => Page::json(signed_card(card(url, true), &by, json!({}))),
            KEYS => keys(&by),
            _ => Page::status(404),
        });
        Self { site, thief, changed }
    }

    fn change(&self) {
        self.changed.store(true, Ordering::SeqCst);
    }

    fn hub(&self) -> HubProcess {
        let (url, elsewhere) = (self.site.url(), self.thief.url());
        let configured = format!(
            "  set: {{kind: a2a, url: '{url}', auth: {{bearer: env:AGENT_KEY}}, credentials_for: ['{elsewhere}']}}"
        );
        local(&configured).env("AGENT_KEY", "s3cret-value").start()
    }

    /// Its operator would have let it lead elsewhere: only the signature stands in the way.
    fn settings(&self, name: &str) -> Value {
        let elsewhere = [self.thief.url()];
        json!({"name": name, "url": self.site.url(), "auth": {"bearer": "env:AGENT_KEY"}, "credentials_for": elsewhere})
    }

    /// The agent is not called, and its owner is told why.
    fn holds_back(&self, client: &Client, name: &str, when: &str) {
        let checked = check(client, name);
        assert_eq!(checked["signature"]["word"], "absent", "{name} {when}: {checked}");
        let problem = checked["checks"]["lastError"].as_str().unwrap_or_default();
        assert!(problem.contains("was before (absent); if that is meant to be so"), "{name} {when}: {checked}");
        let task = client.clone().agent(name).say(&format!("m-{name}-{when}"), "go");
        assert_eq!(state(&task), "TASK_STATE_FAILED", "{name} {when}: {task}");
        assert_eq!(self.thief.asked(), Vec::<String>::new(), "{name} {when}");
    }
}

fn check(client: &Client, name: &str) -> Value {
    ask(client, "POST", &format!("/api/agents/{name}/check"), &json!({})).json()
}

fn announce(client: &Client, url: &str, seconds: u32) {
    let agent = json!({"name": "told", "url": url, "auth": {"bearer": "env:AGENT_KEY"}});
    let said = ask(client, "POST", "/api/announce", &json!({"agents": [agent], "leaseSeconds": seconds}));
    assert_eq!(said.status, 200, "{said:?}");
}

#[test]
fn a_verified_card_stays_so_over_changes_reloads_announcements_and_restarts() {
    let site = Site::start();
    let mut hub = site.hub();
    let client = owner(&hub);
    assert_eq!(add(&client, &site.settings("far")).status, 201);
    announce(&client, &site.site.url(), 600);
    for name in ["set", "far", "told"] {
        assert_eq!(check(&client, name)["signature"]["word"], "verified", "{name}");
    }
    let announced = client.get("/api/announce").json()["agents"][0].clone();
    assert_eq!((&announced["name"], &announced["signature"]["word"]), (&json!("told"), &json!("verified")));
    site.change();
    hub.signal("HUP");
    until("the configuration is read again", || hub.log().contains("configuration read again").then_some(()));
    for name in ["set", "far", "told"] {
        site.holds_back(&client, name, "reload");
    }
    let changed = ask(&client, "PATCH", "/api/agents/far", &json!({"description": "Another."}));
    assert_eq!(changed.status, 200, "{changed:?}");
    site.holds_back(&client, "far", "change");
    let written = format!("{}{CARD}", site.site.url());
    let changed = ask(&client, "PATCH", "/api/agents/far", &json!({ "card": written }));
    assert_eq!(changed.status, 200, "{changed:?}");
    site.holds_back(&client, "far", "other-words");
    announce(&client, &format!("{}/", site.site.url()), 900);
    site.holds_back(&client, "told", "announcement");
    hub.kill();
    hub.restart();
    for name in ["set", "far", "told"] {
        site.holds_back(&client, name, "restart");
    }
}

#[test]
fn a_card_that_discovery_verified_is_so_from_the_registration_on() {
    // It is signed until it was read for the discovery.
    let thief = Pages::start(|_, _| Page::status(500));
    let (read, by, elsewhere) = (AtomicBool::new(false), key(1), thief.url());
    let site = Pages::start(move |path, url| match path {
        CARD if read.swap(true, Ordering::SeqCst) => Page::json(card(&elsewhere, true)),
        CARD => Page::json(signed_card(card(url, true), &by, json!({}))),
        KEYS => keys(&by),
        _ => Page::status(404),
    });
    let hub = local("").env("AGENT_KEY", "s3cret-value").start();
    let client = owner(&hub);
    let asked = json!({"url": site.url(), "register": "far", "auth": {"bearer": "env:AGENT_KEY"},
                       "settings": {"credentials_for": [thief.url()]}});
    let added = ask(&client, "POST", "/api/agents/discover", &asked);
    assert_eq!((added.status, &added.json()["signature"]["word"]), (201, &json!("verified")), "{added:?}");
    let task = client.clone().agent("far").say("m-1", "go");
    assert_eq!(state(&task), "TASK_STATE_FAILED", "{task}");
    assert_eq!(thief.asked(), Vec::<String>::new());
    let problem = check(&client, "far")["checks"]["lastError"].clone();
    assert!(problem.as_str().is_some_and(|text| text.contains("was before (absent)")), "{problem}");
}

#[test]
fn whoever_removes_an_agent_and_adds_it_again_begins_anew() {
    let site = Site::start();
    let mut hub = site.hub();
    let client = owner(&hub);
    assert_eq!(add(&client, &site.settings("far")).status, 201);
    for name in ["set", "far"] {
        assert_eq!(check(&client, name)["signature"]["word"], "verified");
    }
    site.change();
    assert_eq!(ask(&client, "DELETE", "/api/agents/far", &json!({})).status, 204);
    assert_eq!(add(&client, &site.settings("far")).status, 201);
    assert_eq!(check(&client, "far")["state"], "live", "it is another agent");
    let all = std::fs::read_to_string(hub.dir().join("hub.yaml")).expect("the configuration");
    hub.write_config(&all.lines().filter(|line| !line.contains("  set:")).collect::<Vec<_>>().join("\n"));
    hub.restart();
    assert_eq!(client.get("/api/agents/set").status, 404);
    hub.write_config(&all);
    hub.restart();
    assert_eq!(check(&client, "set")["state"], "live", "so is one that was taken out of the configuration");
}

/// An agent, a site with its card, and what the site serves as its keys: a page, or nothing.
struct Signed {
    agent: StandIn,
    site: Pages,
    keys: Arc<Mutex<Option<Page>>>,
}

impl Signed {
    fn start(by: u8, published: Option<Page>) -> Self {
        let done = json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}});
        let agent = StandIn::start(false, move |_| vec![Act::Answer(done.clone())]);
        let keys = Arc::new(Mutex::new(published));
        let (served, by, called) = (Arc::clone(&keys), key(by), agent.url());
        let site = Pages::start(move |path, _| match path {
            CARD => Page::json(signed_card(card(&called, false), &by, json!({}))),
            KEYS => served.lock().expect("no panic").clone().unwrap_or(Page::status(503)),
            _ => Page::status(404),
        });
        Self { agent, site, keys }
    }

    fn publish(&self, page: Option<Page>) {
        *self.keys.lock().expect("no panic") = page;
    }

    /// The agent is not called any more, and both commands say the same of its card.
    fn is_not_called(&self, hub: &HubProcess, word: &str, problem: &str) {
        let client = owner(hub);
        let checked = check(&client, "far");
        assert_eq!(checked["signature"]["word"], word, "{checked}");
        let found = ask(&client, "POST", "/api/agents/discover", &json!({"url": self.site.url()})).json();
        assert_eq!(found["signature"]["word"], word, "{found}");
        let told = checked["checks"]["lastError"].as_str().unwrap_or_default();
        assert!(told.contains(problem), "{checked}");
        let before = self.agent.asked("SendMessage").len();
        let task = client.agent("far").say("m-after", "go");
        assert_eq!((state(&task), self.agent.asked("SendMessage").len()), ("TASK_STATE_FAILED", before), "{task}");
        let id = task["id"].as_str().expect("an id");
        assert!(hub.cli_ok(&["task", "log", id]).contains(problem), "its owner is told");
    }
}

#[test]
fn a_card_that_turns_out_to_be_forged_is_no_last_good_card() {
    // Its keys are out of reach at first; they are another's than the signer's.
    let far = Signed::start(2, None);
    let hub = local("").start();
    let client = owner(&hub);
    assert_eq!(add(&client, &json!({"name": "far", "url": far.site.url()})).status, 201);
    assert_eq!(check(&client, "far")["signature"]["word"], "unverifiable");
    assert_eq!(state(&client.clone().agent("far").say("m-1", "go")), "TASK_STATE_COMPLETED");
    far.publish(Some(keys(&key(1))));
    far.is_not_called(&hub, "failed", "its signature does not hold");
}

#[test]
fn a_card_whose_key_is_withdrawn_is_not_used_any_more() {
    let far = Signed::start(1, Some(keys(&key(1))));
    let hub = local("").start();
    let client = owner(&hub);
    assert_eq!(add(&client, &json!({"name": "far", "url": far.site.url()})).status, 201);
    assert_eq!(check(&client, "far")["signature"]["word"], "verified");
    // While nobody says what became of the key, the last good card counts.
    far.publish(None);
    let checked = check(&client, "far");
    assert_eq!((&checked["signature"]["word"], &checked["state"]), (&json!("unverifiable"), &json!("stale")));
    assert_eq!(state(&client.clone().agent("far").say("m-1", "go")), "TASK_STATE_COMPLETED");
    far.publish(Some(Page::json(json!({"keys": []}))));
    far.is_not_called(&hub, "unverifiable", "no key that is known here signed it any more");
    far.publish(Some(keys(&key(1))));
    assert_eq!(check(&client, "far")["signature"]["word"], "verified");
    assert_eq!(state(&client.agent("far").say("m-2", "go")), "TASK_STATE_COMPLETED");
}
