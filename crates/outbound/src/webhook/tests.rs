//! The courier against receivers that behave badly, and names that come to lead elsewhere.

use super::Webhooks;
use super::keys::Keys;
use crate::guard::{Guard, Rules};
use flotilla_core::ports::{Courier as _, Parcel};
use flotilla_core::push::Came;
use flotilla_protocol::a2a::push::PushOptions;
use flotilla_protocol::a2a::request::{AuthenticationInfo, PushConfig};
use flotilla_protocol::lineage::Trace;
use flotilla_protocol::time::Millis;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const OK: &str = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";

/// A receiver that answers each connection with fixed bytes; its port, how often it was called, and what came.
async fn receiver(answer: &'static str) -> (u16, Arc<AtomicUsize>, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let calls = Arc::new(AtomicUsize::new(0));
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    let counted = Arc::clone(&calls);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let mut request = vec![0; 64 * 1024];
            let read = socket.read(&mut request).await.unwrap_or(0);
            let _ = tell.send(String::from_utf8_lossy(&request[..read]).into_owned());
            let _ = socket.write_all(answer.as_bytes()).await;
            // Held open: an answer that never ends is one of the things to survive.
            tokio::spawn(async move { while socket.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {} });
        }
    });
    (port, calls, told)
}

fn courier(allow: &[&str], timeout: u64) -> Webhooks {
    let allow = allow.iter().map(|text| text.parse().unwrap()).collect();
    let guard = Guard::new(Rules { allow, allow_http: false });
    Webhooks::new(guard, Keys::new(&[9; 32]).unwrap(), Duration::from_millis(timeout))
}

fn config(url: &str) -> PushConfig {
    PushConfig { url: url.into(), ..PushConfig::default() }
}

fn trace() -> Trace {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    Trace::parse(parent, Some("vendor=1")).expect("a trace")
}

async fn carried(courier: &Webhooks, config: PushConfig) -> Came {
    let target = courier.accept(config, PushOptions::default()).await.expect("accepted");
    let parcel = Parcel {
        id: "msg_1".into(),
        at: Millis(1_700_000_000_000),
        target,
        options: PushOptions::default(),
        version: Default::default(),
        trace: trace(),
        body: b"{}".to_vec(),
    };
    courier.carry(parcel).await
}

fn status(came: &Came) -> Option<u16> {
    match came {
        Came::Answer { status, .. } => Some(*status),
        Came::Failure(_) | Came::Locked(_) => None,
    }
}

#[tokio::test]
async fn a_name_that_comes_to_lead_inside_is_not_followed() {
    let (port, calls, _) = receiver(OK).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    // Public when it is checked, this machine when it is called.
    let guard = Guard::new(Rules::default()).with_lookup(Arc::new(move |_| {
        let first = counted.fetch_add(1, Ordering::Relaxed) == 0;
        let address: IpAddr = if first { [93, 184, 216, 34].into() } else { [127, 0, 0, 1].into() };
        Box::pin(async move { Ok(vec![address]) })
    }));
    let courier = Webhooks::new(guard, Keys::new(&[9; 32]).unwrap(), Duration::from_secs(5));
    let came = carried(&courier, config(&format!("https://rebind.example.com:{port}/"))).await;
    assert!(matches!(&came, Came::Failure(why) if why.contains("127.0.0.1 is a loopback")), "{came:?}");
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    assert_eq!(calls.load(Ordering::Relaxed), 0, "nobody was called");
}

#[tokio::test]
async fn a_target_stored_under_other_rules_is_refused_when_it_is_called() {
    let (port, calls, _) = receiver(OK).await;
    let url = format!("http://127.0.0.1:{port}/");
    let open = courier(&["127.0.0.1"], 5_000);
    let target = open.accept(config(&url), PushOptions::default()).await.expect("accepted");
    let (id, at, options) = ("msg_1".into(), Millis(0), PushOptions::default());
    let parcel = Parcel { id, at, target, options, version: Default::default(), trace: trace(), body: Vec::new() };
    let came = courier(&[], 5_000).carry(parcel).await;
    assert!(matches!(&came, Came::Failure(why) if why.contains("loopback")), "{came:?}");
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_nothing_more() {
    let (port, inside, _) = receiver(OK).await;
    let answer = format!("HTTP/1.1 307 x\r\nlocation: http://127.0.0.1:{port}/inside\r\ncontent-length: 0\r\n\r\n");
    let (outer, _, _) = receiver(answer.leak()).await;
    let came = carried(&courier(&["127.0.0.1"], 5_000), config(&format!("http://127.0.0.1:{outer}/"))).await;
    assert_eq!(status(&came), Some(307));
    assert_eq!(inside.load(Ordering::Relaxed), 0, "the redirect was not followed");
}

#[tokio::test]
async fn answers_that_never_end_are_not_waited_for() {
    let courier = courier(&["127.0.0.1"], 400);
    for (answer, expected) in [
        ("", None),
        ("HTTP/1.1 20", None),
        ("HTTP/1.1 200 OK\r\nx: y", None),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\nabc", Some(200)),
        ("HTTP/1.1 500 x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n", Some(500)),
        ("nonsense\r\n\r\n", None),
    ] {
        let (port, _, _) = receiver(answer).await;
        let started = std::time::Instant::now();
        let came = carried(&courier, config(&format!("http://127.0.0.1:{port}/"))).await;
        assert_eq!(status(&came), expected, "{answer:?}: {came:?}");
        assert!(started.elapsed() < Duration::from_secs(3), "{answer:?} took {:?}", started.elapsed());
    }
}

#[tokio::test]
async fn what_the_caller_gave_is_sent_and_a_signing_secret_is_not() {
    let (port, _, mut told) = receiver(OK).await;
    let courier = courier(&["127.0.0.1"], 5_000);
    let with = |token: &str, scheme: &str, credentials: &str| PushConfig {
        token: token.into(),
        authentication: Some(AuthenticationInfo {
            scheme: scheme.into(),
            credentials: credentials.into(),
            ..AuthenticationInfo::default()
        }),
        ..config(&format!("http://127.0.0.1:{port}/hook?x=1"))
    };
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    carried(&courier, with("t-1", "Bearer", "c-1")).await;
    let request = told.recv().await.unwrap().to_lowercase();
    for part in ["post /hook?x=1 ", "x-a2a-notification-token: t-1", "authorization: bearer c-1", "v1a,", "a2a+json"] {
        assert!(request.contains(part), "{part} in {request}");
    }
    carried(&courier, with(secret, "Basic", "user:pass")).await;
    let request = told.recv().await.unwrap();
    assert!(request.contains("Basic dXNlcjpwYXNz") && request.contains("v1,"), "{request}");
    assert!(!request.contains("whsec_") && !request.to_lowercase().contains("notification-token"), "{request}");
    carried(&courier, with("", "Bearer", &format!("{secret} {secret}"))).await;
    let request = told.recv().await.unwrap();
    assert!(!request.contains("whsec_") && !request.to_lowercase().contains("authorization"), "{request}");
    assert_eq!(request.matches("v1,").count(), 2, "one signature for each secret: {request}");
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_when_it_is_given() {
    let courier = courier(&[], 1_000);
    let given = |token: &str, scheme: &str, credentials: &str| PushConfig {
        token: token.into(),
        authentication: Some(AuthenticationInfo {
            scheme: scheme.into(),
            credentials: credentials.into(),
            ..AuthenticationInfo::default()
        }),
        ..config("https://example.com/")
    };
    for (config, field) in [
        (given("a\r\nX-Evil: 1", "Bearer", "c"), "token"),
        (given("a\nb", "Bearer", "c"), "token"),
        (given("a", "Bearer\r\nHost: evil", "c"), "authentication.scheme"),
        (given("a", "Two words", "c"), "authentication.scheme"),
        (given("a", "Bearer", "c\r\n"), "authentication.credentials"),
        (given("a", "Bearer", "ü"), "authentication.credentials"),
        (given("whsec_c2hvcnQ=", "Bearer", "c"), "token"),
        (given("a", "HMAC", "b whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), "authentication.credentials"),
        (given(&"a".repeat(5000), "Bearer", "c"), "token"),
        (config("https://10.0.0.1/"), "url"),
    ] {
        let refused = courier.accept(config, PushOptions::default()).await.unwrap_err();
        assert_eq!(refused.violations[0].field, field, "{refused:?}");
    }
    let options = PushOptions { hub_signature: true, ..PushOptions::default() };
    let refused = courier.accept(config("https://example.com/"), options).await.unwrap_err();
    assert!(refused.message.contains("needs a secret"), "{refused:?}");
}

#[tokio::test]
async fn a_webhook_belongs_to_the_trace_of_its_task() {
    let (port, _, mut told) = receiver(OK).await;
    carried(&courier(&["127.0.0.1"], 5_000), config(&format!("http://127.0.0.1:{port}/"))).await;
    let request = told.recv().await.expect("a request").to_lowercase();
    assert!(request.contains(&format!("\r\ntraceparent: {}\r\n", trace().traceparent())), "{request}");
    assert!(request.contains("\r\ntracestate: vendor=1\r\n"), "{request}");
}
