//! Discovery against small servers: where it looks, what it shows there, and how long it waits.

use super::{Discovery, is_below, places, speaks_of_another};
use crate::client::card::Card;
use crate::guard::{Guard, Rules};
use crate::remote::options::{Auth, Protocol};
use crate::signature::origin::Pins;
use std::io::{Read as _, Write as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[test]
fn a_card_is_looked_for_at_its_address_below_it_and_at_its_origin() {
    let all = |url: &str| places(url).into_iter().map(|(place, _)| place).collect::<Vec<_>>();
    assert_eq!(
        all("https://h/agents/a/"),
        [
            "https://h/agents/a/.well-known/agent-card.json",
            "https://h/agents/a/.well-known/agent.json",
            "https://h/.well-known/agent-card.json",
            "https://h/.well-known/agent.json",
            "https://h/agents/a/",
        ]
    );
    assert_eq!(all("https://h"), ["https://h/.well-known/agent-card.json", "https://h/.well-known/agent.json"]);
    assert_eq!(all("https://h/cards/a.json")[0], "https://h/cards/a.json");
}

#[tokio::test]
async fn a_card_that_comes_a_byte_at_a_time_is_not_waited_for() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/slow", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n{").unwrap();
        while stream.write_all(b" ").is_ok() {
            std::thread::park_timeout(Duration::from_millis(20));
        }
    });
    let guard = Guard::new(Rules { allow: vec!["127.0.0.0/8".parse().unwrap()], allow_http: false });
    let (auth, pins) = (Auth::None, Pins::default());
    let discovery = Discovery {
        guard: &guard,
        auth: &auth,
        pins: &pins,
        protocol: Protocol::Highest,
        transports: vec![],
        patience: Duration::from_millis(300),
    };
    let search = discovery.search(&url).await.unwrap();
    assert!(search.found.is_none() && search.tried.len() == 1, "{:?}", search.tried);
    assert!(search.tried[0].problem.contains("not all there"), "{:?}", search.tried);
}

#[test]
fn a_secret_is_for_the_address_that_was_named_and_what_is_below_it() {
    for (place, address, below) in [
        ("https://h/a/.well-known/agent-card.json", "https://h/a/", true),
        ("https://h/a/", "https://h/a", true),
        ("https://h/.well-known/agent-card.json", "https://h", true),
        ("https://h/.well-known/agent-card.json", "https://h/a", false),
        ("https://h/ab/card.json", "https://h/a", false),
        ("https://h/a/../b/card.json", "https://h/a", false),
        ("https://other/a/card.json", "https://h/a", false),
        ("http://h/a/card.json", "https://h/a", false),
    ] {
        assert_eq!(is_below(place, address), below, "{place} {address}");
    }
}

#[test]
fn a_card_of_another_agent_is_noticed() {
    let card = |url: &str| {
        let json = serde_json::json!({"name": "a", "supportedInterfaces":
            [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]});
        Card::parse(&json.to_string(), "x").unwrap()
    };
    let base = super::At::Base("https://h/agents/a".into());
    assert_eq!(speaks_of_another(&card("https://h/agents/a"), &base), None);
    assert!(speaks_of_another(&card("https://h/agents/b"), &base).unwrap().contains("another agent"));
    assert!(speaks_of_another(&card("https://other/a"), &base).unwrap().contains("other origins"));
    let root = super::At::Base("https://h".into());
    assert_eq!(speaks_of_another(&card("https://h/rpc"), &root), None);
}

/// A server that has a card at its root and nothing else; what it was asked, as it came.
fn root_only() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (asked, own): (Arc<Mutex<Vec<String>>>, _) = (Arc::default(), url.clone());
    let kept = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 8192];
            let length = stream.read(&mut request).unwrap_or(0);
            let request = String::from_utf8_lossy(&request[..length]).to_lowercase();
            let card = serde_json::json!({"name": "a", "supportedInterfaces":
                [{"url": own, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]});
            let (status, body) = match request.starts_with("get /.well-known/agent-card.json ") {
                true => ("200 OK", card.to_string()),
                false => ("404 Not Found", String::new()),
            };
            kept.lock().unwrap().push(request);
            let length = body.len();
            let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
        }
    });
    (url, asked)
}

#[tokio::test]
async fn a_secret_is_not_shown_to_others_of_the_origin() {
    let (url, asked) = root_only();
    let guard = Guard::new(Rules { allow: vec!["127.0.0.0/8".parse().unwrap()], allow_http: false });
    let auth = Auth::Header { name: "authorization".into(), value: "Bearer s3cret".into() };
    let (none, pins) = (Auth::None, Pins::default());
    let discovery = |auth| Discovery {
        guard: &guard,
        auth,
        pins: &pins,
        protocol: Protocol::Highest,
        transports: Vec::new(),
        patience: Duration::from_secs(10),
    };
    let search = discovery(&auth).search(&format!("{url}/tenant/a")).await.unwrap();
    for request in asked.lock().unwrap().iter() {
        assert_eq!(request.contains("s3cret"), request.starts_with("get /tenant/a/"), "{request}");
    }
    assert!(search.found.is_some() && search.settings().is_none(), "it is found, and not added with the secret");
    let problem = search.report()["problem"].as_str().unwrap_or_default().to_owned();
    assert!(problem.contains("'auth' is for") && problem.contains("/tenant/a alone"), "{problem}");
    let open = discovery(&none).search(&format!("{url}/tenant/a")).await.unwrap();
    assert!(open.settings().is_some(), "without one there is nothing to lose");
    asked.lock().unwrap().clear();
    let named = discovery(&auth).search(&url).await.unwrap();
    assert!(
        named.settings().is_some() && asked.lock().unwrap()[0].contains("s3cret"),
        "it is the address that was named"
    );
}
