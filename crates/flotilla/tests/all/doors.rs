//! Who gets as far as a binding: names the hub is called by, and web pages, which cannot drive it.

use crate::cast::{CONFIG, hub_set, setup};
use crate::limits::{is_accepted, versions};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, HubProcess, Refusal, Request, Response, until};

const PAGE: &str = "https://app.example.com";

/// A hub anybody on this machine may use: a web page needs no key here.
fn open(settings: &str) -> HubProcess {
    setup().config(&CONFIG.replace("\nhub:\n", &format!("\nhub:\n  allow_anonymous: true\n  {settings}\n"))).start()
}

/// A send over every version of HTTP a binding has, with these headers.
fn sent(client: &Client, headers: &[(&str, &str)]) -> Vec<Response> {
    let versions = versions(client.binding).iter();
    let request = client.request_over_http2("SendMessage", &message("m", "complete"));
    let mut request = headers.iter().fold(request, |request, (name, _)| request.without(name));
    request.headers.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    versions.map(|(_, send)| send(client.address, &request)).collect()
}

fn refused(client: &Client, headers: &[(&str, &str)], header: &str) {
    for response in sent(client, headers) {
        let refusal = Refusal::of(&response);
        assert_eq!(refusal.reason, "PERMISSION_DENIED", "{headers:?}: {}", response.text());
        assert_eq!(refusal.metadata["header"], header);
        let expected = if client.binding == Binding::Grpc { 200 } else { 403 };
        assert_eq!(response.status, expected);
        assert_eq!(response.header("access-control-allow-origin"), None);
    }
}

fn accepted(client: &Client, headers: &[(&str, &str)]) {
    for response in sent(client, headers) {
        assert!(is_accepted(&response), "{headers:?}: {}", String::from_utf8_lossy(&response.body));
    }
}

#[test]
fn a_name_somebody_else_gave_to_this_address_is_refused() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.local_addr().expect("its address").port()
    };
    let hub = setup().config(CONFIG).arg("--allow-anonymous").arg("--public-url").arg("https://hub.example.com/a/");
    let hub = hub.listen(&format!("127.0.0.1:{port}")).start();
    for binding in Binding::ALL {
        let stranger = hub.stranger(binding);
        let password = "user:pw@localhost";
        for name in
            ["evil.example", "hub.example.com.evil.example", "127.0.0.1.evil.example", "1.2.3", "evil.local", password]
        {
            refused(&stranger, &[("host", &format!("{name}:{port}"))], "Host");
            refused(&stranger, &[("host", name)], "Host");
        }
        for name in ["127.0.0.1", "[::1]", "192.168.1.7", "localhost", "a.localhost", "flotilla", "HUB.example.com"] {
            accepted(&stranger, &[("host", &format!("{name}:{port}"))]);
            accepted(&stranger, &[("host", name)]);
        }
        accepted(&stranger, &[("origin", "https://hub.example.com")]);
        refused(&stranger, &[("origin", "https://hub.example.com.evil.example")], "Origin");
        let named = hub.owner(binding);
        refused(&named, &[("host", "evil.example")], "Host");
    }
    let stranger = hub.stranger(Binding::HttpJson);
    for target in ["/.well-known/agent-card.json", "/metrics", "/healthz", "/api/keys"] {
        assert_eq!(stranger.send(Request::get(target).header("host", "evil.example")).status, 403, "{target}");
    }
}

#[test]
fn more_names_are_allowed_by_the_configuration_and_change_with_a_reload() {
    let hub = open("allowed_hosts: [hub.internal.example, '*.fleet.example']");
    let stranger = hub.stranger(Binding::HttpJson);
    accepted(&stranger, &[("host", "hub.internal.example")]);
    accepted(&stranger, &[("host", "a.b.fleet.example:80")]);
    refused(&stranger, &[("host", "fleet.example")], "Host");
    refused(&stranger, &[("host", "evilfleet.example")], "Host");
    let any = CONFIG.replace("\nhub:\n", "\nhub:\n  allow_anonymous: true\n  allowed_hosts: ['*']\n");
    hub.write_config(&any);
    hub.signal("HUP");
    let asked = || stranger.send(Request::get("/healthz").header("host", "any.example")).status;
    until("any name is allowed", || (asked() == 200).then_some(()));
}

#[test]
fn a_web_page_of_another_origin_cannot_drive_the_hub() {
    let hub = open("name: Fleet");
    let address = hub.address();
    for binding in Binding::ALL {
        let stranger = hub.stranger(binding);
        for origin in [PAGE, "null", "http://localhost:3000", "http://127.0.0.1", "http://evil.example:7420"] {
            refused(&stranger, &[("origin", origin)], "Origin");
            refused(&hub.owner(binding), &[("origin", origin)], "Origin");
        }
        refused(&stranger, &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")], "Origin");
        refused(&stranger, &[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "navigate")], "Origin");
        accepted(&stranger, &[("sec-fetch-site", "same-origin")]);
        accepted(&stranger, &[("sec-fetch-site", "none")]);
        let (own, secure) = (format!("http://{address}"), format!("https://{address}"));
        accepted(&stranger, &[("origin", &own)]);
        refused(&stranger, &[("origin", &secure)], "Origin");
        refused(&stranger, &[("origin", &own), ("origin", PAGE)], "Origin");
        refused(&stranger, &[("origin", &own), ("origin", &own)], "Origin");
    }
    // What a form can send without being asked for leave: any verb but these needs a preflight.
    let simple = Request::post("/a2a", "{}").header("content-type", "text/plain").header("origin", PAGE);
    assert_eq!(hub.stranger(Binding::JsonRpc).send(simple).status, 403);
    let visit = Request::get("/.well-known/agent-card.json").header("sec-fetch-site", "cross-site");
    let stranger = hub.stranger(Binding::HttpJson);
    assert_eq!(stranger.send(visit.clone()).status, 403, "an image, a script");
    let visit = visit.header("sec-fetch-mode", "navigate");
    for (into, status) in [("document", 200), ("iframe", 403), ("embed", 403)] {
        let response = stranger.send(visit.clone().header("sec-fetch-dest", into));
        assert_eq!(response.status, status, "only a person who follows a link: {into}");
    }
    assert_eq!(stranger.send(visit).status, 403, "every browser says where to");
    let list = hub.stranger(Binding::HttpJson).call("ListTasks", &serde_json::json!({})).expect("a list");
    assert_eq!(list["totalSize"], 15, "only what was accepted was done");
}

fn preflight(client: &Client, origin: &str) -> Response {
    let request = Request::new("OPTIONS", "/message:send").header("origin", origin);
    let request = request.header("access-control-request-method", "POST");
    client.send(request.header("access-control-request-headers", "authorization,content-type,a2a-version"))
}

#[test]
fn an_allowed_origin_may_ask_and_see_the_answer() {
    let hub = hub_set(&format!("allowed_origins: [{PAGE}, 'http://localhost:3000']"));
    let owner = hub.owner(Binding::HttpJson);
    let told = preflight(&hub.stranger(Binding::HttpJson), PAGE);
    assert_eq!((told.status, told.header("access-control-allow-origin")), (204, Some(PAGE)));
    assert!(told.header("access-control-allow-methods").is_some_and(|verbs| verbs.contains("POST")));
    for name in ["authorization", "a2a-version", "content-type", "last-event-id"] {
        assert!(told.header("access-control-allow-headers").is_some_and(|names| names.contains(name)), "{name}");
    }
    assert_eq!(told.header("access-control-allow-credentials"), None);
    for response in sent(&owner, &[("origin", PAGE)]) {
        assert!(is_accepted(&response), "{}", response.text());
        assert_eq!(response.header("access-control-allow-origin"), Some(PAGE));
        assert_eq!(response.header("vary"), Some("Origin"));
        assert!(response.header("access-control-expose-headers").is_some_and(|names| names.contains("retry-after")));
    }
    let refusal = hub.stranger(Binding::HttpJson).send(Request::get("/tasks").header("origin", PAGE));
    assert_eq!((refusal.status, refusal.header("access-control-allow-origin")), (401, Some(PAGE)), "refusals too");
    for other in ["https://app.example.com.evil.example", "http://app.example.com", "http://localhost:3001"] {
        refused(&owner, &[("origin", other)], "Origin");
        assert_eq!(preflight(&owner, other).status, 403);
    }
    let plain = owner.get("/tasks");
    assert_eq!((plain.header("access-control-allow-origin"), plain.header("vary")), (None, Some("Origin")));
}

#[test]
fn without_a_list_there_is_no_cors_at_all() {
    let hub = hub_set("name: Fleet");
    let stranger = hub.stranger(Binding::HttpJson);
    let told = preflight(&stranger, PAGE);
    assert_eq!((told.status, told.header("access-control-allow-origin")), (403, None));
    let told = stranger.send(Request::new("OPTIONS", "/message:send"));
    assert_eq!((told.status, told.header("vary")), (405, None));
}

#[test]
fn mistakes_in_the_lists_are_told_at_the_start() {
    for (setting, word) in [
        ("allowed_origins: ['*']", "allowed_origins"),
        ("allowed_hosts: ['https://x.example']", "allowed_hosts"),
        ("trusted_proxies: [nowhere]", "trusted_proxies"),
    ] {
        let said = setup().config(&format!("hub: {{{setting}}}")).refused();
        assert!(said.contains(word), "{said}");
    }
}
