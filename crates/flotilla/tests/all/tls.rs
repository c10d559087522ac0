//! TLS on the same port: every binding by it, a certificate that can be renewed, and words for who speaks in the clear.

use crate::cast::{CONFIG, setup, state};
use crate::cli::program::Place;
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, HubProcess, grpc, http, until};
use reqwest::{Certificate, Client, Version};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Writes a certificate for this machine and its key; returns the certificate.
fn certify(dir: &Path) -> Vec<u8> {
    certify_for(dir, &["localhost", "127.0.0.1"])
}

fn certify_for(dir: &Path, names: &[&str]) -> Vec<u8> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).expect("made");
    fs::write(dir.join("key.pem"), made.signing_key.serialize_pem()).expect("written");
    fs::write(dir.join("cert.pem"), made.cert.pem()).expect("written");
    made.cert.pem().into_bytes()
}

fn hub(dir: &Path, more: &str) -> HubProcess {
    let place = |name: &str| dir.join(name).display().to_string();
    let tls = format!("tls: {{certificate: '{}', key: '{}'{more}}}", place("cert.pem"), place("key.pem"));
    setup().config(&CONFIG.replace("\nhub:\n", &format!("\nhub:\n  {tls}\n"))).start()
}

fn trusting(certificate: &[u8]) -> Client {
    let root = Certificate::from_pem(certificate).expect("a certificate");
    Client::builder().tls_certs_only([root]).build().expect("a client")
}

fn on_runtime<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}

async fn post(client: &Client, hub: &HubProcess, path: &str, kind: &str, body: Vec<u8>) -> reqwest::Response {
    let url = format!("https://localhost:{}{path}", hub.address().port());
    let key = hub.owner_key();
    let request = client.post(url).header("a2a-version", "1.0").header("content-type", kind).bearer_auth(key);
    request.body(body).send().await.expect("an answer")
}

/// A message in its frame.
fn framed(params: &Value) -> Vec<u8> {
    let message = grpc::encoded("SendMessage", params);
    let length = u32::try_from(message.len()).expect("short").to_be_bytes();
    [&[0][..], &length, &message].concat()
}

#[test]
fn every_binding_is_served_by_tls_on_the_one_port() {
    let dir = flotilla_testkit::scratch();
    let certificate = certify(dir.path());
    let hub = hub(dir.path(), "");
    on_runtime(async {
        let client = trusting(&certificate);
        let rpc = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message("m1", "complete")});
        let answer = post(&client, &hub, "/a2a", "application/json", rpc.to_string().into()).await;
        let answer: Value = serde_json::from_slice(&answer.bytes().await.expect("a body")).expect("JSON");
        assert_eq!(state(&answer["result"]["task"]), "TASK_STATE_COMPLETED");
        let body = message("m2", "complete").to_string().into();
        let answer = post(&client, &hub, "/message:send", "application/json", body).await;
        assert_eq!((answer.status().as_u16(), answer.version()), (200, Version::HTTP_2), "agreed on by ALPN");
        let path = "/lf.a2a.v1.A2AService/SendMessage";
        let answer = post(&client, &hub, path, "application/grpc", framed(&message("m3", "complete"))).await;
        assert_eq!(answer.headers()["content-type"], "application/grpc");
        let bytes = answer.bytes().await.expect("a message");
        let sent = <flotilla_grpc::a2a::SendMessageResponse as prost::Message>::decode(&bytes[5..]).expect("an answer");
        assert!(sent.payload.is_some());
        let card = client.get(format!("https://localhost:{}/.well-known/agent-card.json", hub.address().port()));
        let card = card.send().await.expect("a card").bytes().await.expect("a body");
        let card: Value = serde_json::from_slice(&card).expect("JSON");
        assert!(card["supportedInterfaces"][0]["url"].as_str().expect("a url").starts_with("https://"));
    });
}

#[test]
fn who_speaks_in_the_clear_is_told_to_use_tls() {
    let dir = flotilla_testkit::scratch();
    certify(dir.path());
    let hub = hub(dir.path(), "");
    let answer = hub.owner(Binding::HttpJson).send(http::Request::get("/tasks"));
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("https://"), "{}", answer.text());
    let ran = Place::new().run(&["card", "get", "-a", &format!("localhost:{}", hub.address().port())]);
    assert!(ran.code == 3 && ran.err.contains("This port speaks TLS: use https://"), "{ran:?}");
}

#[test]
fn the_port_can_speak_both() {
    let dir = flotilla_testkit::scratch();
    let certificate = certify(dir.path());
    let hub = hub(dir.path(), ", allow_plain: true");
    for binding in Binding::ALL {
        assert_eq!(state(&hub.owner(binding).say(&format!("{binding:?}"), "complete")), "TASK_STATE_COMPLETED");
    }
    on_runtime(async {
        let body = message("m", "complete").to_string().into();
        let answer = post(&trusting(&certificate), &hub, "/message:send", "application/json", body).await;
        assert_eq!(answer.status().as_u16(), 200);
    });
}

#[test]
fn a_renewed_certificate_is_taken_up_on_sighup() {
    let dir = flotilla_testkit::scratch();
    let old = certify(dir.path());
    let hub = hub(dir.path(), "");
    let reaches = |certificate: &[u8]| {
        let request = trusting(certificate).get(format!("https://localhost:{}/healthz", hub.address().port()));
        on_runtime(async { request.send().await.is_ok() })
    };
    assert!(reaches(&old));
    let new = certify(dir.path());
    hub.signal("HUP");
    until("the new certificate is shown", || reaches(&new).then_some(()));
    assert!(!reaches(&old));
    fs::write(dir.path().join("cert.pem"), "nonsense").expect("written");
    hub.signal("HUP");
    until("the mistake is told", || hub.log().contains("hub.tls.certificate").then_some(()));
    assert!(reaches(&new), "a mistake changes nothing");
}

#[test]
fn files_that_do_not_fit_are_told_before_anything_is_served() {
    let dir = flotilla_testkit::scratch();
    certify(dir.path());
    let place = |name: &str| dir.path().join(name).display().to_string();
    let refused = |certificate: &str, key: &str| {
        setup().config(&format!("hub: {{tls: {{certificate: '{certificate}', key: '{key}'}}}}")).refused()
    };
    assert!(refused(&place("missing.pem"), &place("key.pem")).contains("missing.pem"));
    assert!(refused(&place("key.pem"), &place("key.pem")).contains("holds no certificate"));
    assert!(refused(&place("cert.pem"), &place("cert.pem")).contains("hub.tls.key"));
    fs::copy(dir.path().join("cert.pem"), dir.path().join("other.pem")).expect("copied");
    certify(dir.path());
    assert!(refused(&place("other.pem"), &place("key.pem")).contains("does not fit"));
}

#[test]
fn the_client_says_in_words_what_is_wrong_with_a_certificate() {
    let dir = flotilla_testkit::scratch();
    certify(dir.path());
    let hub = hub(dir.path(), "");
    let port = hub.address().port();
    let told = |place: &Place, host: &str| {
        let ran = place.run(&["card", "get", "-a", &format!("https://{host}:{port}"), "-o", "json"]);
        assert_eq!((ran.code, ran.error().as_str()), (3, "A2ACLI_ERR_UNREACHABLE"), "{ran:?}");
        let error = ran.json()["error"].clone();
        let word = |name: &str| error[name].as_str().expect("a text").to_owned();
        assert!(!word("message").contains("Error(") && !word("message").contains("UnknownIssuer"), "{error}");
        (word("message"), word("hint"))
    };
    let (message, hint) = told(&Place::new(), "localhost");
    assert!(message.contains("does not trust who signed it"), "{message}");
    assert!(hint.contains("SSL_CERT_FILE") && hint.contains("--insecure"), "{hint}");
    let ran = Place::new().env("FLOTILLA_URL", &format!("https://localhost:{port}")).run(&["send", "x"]);
    assert!(ran.code == 3 && ran.err.contains("SSL_CERT_FILE") && !ran.err.contains("flotilla serve"), "{ran:?}");
    let trusting = Place::new().env("SSL_CERT_FILE", &dir.path().join("cert.pem").display().to_string());
    trusting.run(&["card", "get", "-a", &format!("https://localhost:{port}")]).ok();
    certify_for(dir.path(), &["elsewhere.example"]);
    hub.signal("HUP");
    let message = until("the new certificate is shown", || {
        let place = Place::new().env("SSL_CERT_FILE", &dir.path().join("cert.pem").display().to_string());
        Some(told(&place, "localhost").0).filter(|message| message.contains("another name"))
    });
    assert!(message.contains("for another name: elsewhere.example"), "{message}");
    Place::new().run(&["card", "get", "--insecure", "-a", &format!("https://localhost:{port}")]).ok();
}

#[test]
fn doctor_tells_a_certificate_that_is_not_accepted_once_and_as_such() {
    let dir = flotilla_testkit::scratch();
    certify(dir.path());
    let hub = hub(dir.path(), "");
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (certificate, key, listen) = (file("cert.pem"), file("key.pem"), hub.address());
    let config = format!("hub: {{listen: '{listen}', tls: {{certificate: '{certificate}', key: '{key}'}}}}");
    fs::write(file("hub.yaml"), config).expect("written");
    let (config, data) = (file("hub.yaml"), hub.data().display().to_string());
    let args = ["doctor", "--config", &config, "--data-dir", &data, "-o", "json"];
    let ran = Place::new().run(&args);
    let all = ran.json()["findings"].as_array().cloned().expect("findings");
    let told: Vec<&Value> = all.iter().filter(|found| found["level"] == "problem").collect();
    let [found] = told.as_slice() else { panic!("one problem: {ran:?}") };
    assert!(found["what"].as_str().is_some_and(|what| what.contains("does not trust who signed it")), "{found}");
    assert!(found["do"].as_str().is_some_and(|advice| advice.contains("SSL_CERT_FILE")), "{found}");
    assert!(!ran.out.contains("flotilla serve") && all.iter().all(|found| found["about"] != "port"), "{ran:?}");
    let ran = Place::new().env("SSL_CERT_FILE", &certificate).run(&args);
    assert!(ran.out.contains("is ready") && ran.out.contains("is taken, and a hub answers"), "{ran:?}");
}

#[test]
fn the_client_says_when_there_is_no_tls_to_speak() {
    let hub = setup().config(CONFIG).start();
    let ran = Place::new().run(&["card", "get", "-a", &format!("https://{}", hub.address())]);
    assert!(ran.code == 3 && ran.err.contains("does not speak TLS"), "{ran:?}");
}
