//! `flotilla listen`: a receiver of webhooks for developers, which checks what comes and prints it.

use super::args::{HubArgs, from_one};
use super::deliveries::hub;
use super::failure::Failure;
use super::output::{Text, compact, say};
use super::pretty::pretty;
use super::session::Session;
use super::watch::Pastime;
use crate::clock::SystemClock;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use clap::Args;
use flotilla_core::ports::Clock as _;
use flotilla_outbound::hub::Hub;
use flotilla_outbound::webhook::sign::{Proof, Secret, Signed, Verifier, keys_in};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::TcpListener;
use tokio::sync::{Notify, OnceCell};

/// The largest webhook that is read.
const LARGEST: usize = 64 * 1024 * 1024;

#[derive(Debug, Args)]
pub struct Listen {
    /// Address and port to receive at
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7421", value_parser = super::args::address)]
    listen: SocketAddr,
    /// A secret the push config was given, 'whsec_' and base64 (may be repeated)
    #[arg(long, value_name = "SECRET", env = "FLOTILLA_WEBHOOK_SECRET", hide_env_values = true, value_delimiter = ',')]
    secret: Vec<String>,
    /// The token the push config was given
    #[arg(long, value_name = "TOKEN", env = "FLOTILLA_WEBHOOK_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Take webhooks whose signature or token does not fit too
    #[arg(long)]
    any: bool,
    /// Answer with this status instead, to see what the hub does
    #[arg(long, value_name = "CODE")]
    status: Option<u16>,
    /// End after so many webhooks
    #[arg(long, value_name = "N", value_parser = from_one)]
    count: Option<u64>,
    #[command(flatten)]
    pub hub: HubArgs,
}

struct Desk {
    hub: Hub,
    secrets: Vec<Secret>,
    /// The hub's keys, asked for when the first webhook needs them.
    keys: OnceCell<Vec<Vec<u8>>>,
    token: Option<String>,
    any: bool,
    status: Option<StatusCode>,
    as_json: bool,
    left: AtomicU64,
    done: Notify,
}

impl Listen {
    pub async fn run(self, session: &Session) -> Result<(), Failure> {
        session.watch.waits_for(Pastime::Webhooks);
        let secrets = self.secret.iter().map(|text| Secret::parse(text)).collect::<Result<_, _>>();
        let status = self.status.map(StatusCode::from_u16).transpose();
        let desk = Arc::new(Desk {
            hub: hub(session),
            secrets: secrets.map_err(|problem| Failure::usage(format!("--secret {problem}")))?,
            keys: OnceCell::new(),
            token: self.token,
            any: self.any,
            status: status.map_err(|_| Failure::usage("--status takes an HTTP status, such as 503"))?,
            as_json: session.is_json(),
            left: AtomicU64::new(self.count.unwrap_or(u64::MAX)),
            done: Notify::new(),
        });
        let listener = TcpListener::bind(self.listen).await.map_err(|error| {
            Failure::usage(format!("--listen {}: {error}", self.listen))
                .hint("choose another port, such as 127.0.0.1:0")
        })?;
        let address = listener.local_addr().map_err(|error| Failure::internal(error.to_string()))?;
        say(&format!(
            "Listening at http://{address}/ (a hub calls it if it was started with --allow-target {})",
            address.ip()
        ));
        let served = axum::Router::new().fallback(receive).with_state(Arc::clone(&desk));
        let ended = async move { desk.done.notified().await };
        let served = axum::serve(listener, served).with_graceful_shutdown(ended).await;
        served.map_err(|error| Failure::internal(format!("receiving: {error}")))
    }
}

async fn receive(State(desk): State<Arc<Desk>>, request: Request) -> StatusCode {
    let (parts, body) = request.into_parts();
    if parts.method != axum::http::Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED;
    }
    let Ok(body) = to_bytes(Body::new(body), LARGEST).await else { return StatusCode::PAYLOAD_TOO_LARGE };
    let verdict = desk.check(&parts.headers, &body).await;
    desk.print(&parts.headers, &body, &verdict);
    let status = match (&verdict, desk.status) {
        (_, Some(status)) => status,
        (Err(_), None) if !desk.any => StatusCode::UNAUTHORIZED,
        _ => StatusCode::NO_CONTENT,
    };
    if desk.left.fetch_sub(1, Ordering::AcqRel) == 1 {
        desk.done.notify_one();
    }
    status
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

impl Desk {
    async fn check(&self, headers: &HeaderMap, body: &[u8]) -> Result<Proof, String> {
        if let Some(token) = &self.token
            && header(headers, "x-a2a-notification-token") != token
        {
            return Err("X-A2A-Notification-Token is not the token that was given".into());
        }
        let [id, timestamp, signature] =
            ["webhook-id", "webhook-timestamp", "webhook-signature"].map(|name| header(headers, name));
        if signature.is_empty() {
            return Err("it is not signed (no webhook-signature)".into());
        }
        let keys = if signature.contains("v1a,") { self.keys().await? } else { Vec::new() };
        let verifier = Verifier { secrets: self.secrets.clone(), keys };
        verifier.verify(Signed { id, timestamp, signature }, body, SystemClock.now().0 / 1000)
    }

    async fn keys(&self) -> Result<Vec<Vec<u8>>, String> {
        let asked = || async {
            let text = self.hub.jwks().await.map_err(|error| format!("the hub's keys: {error}"))?;
            keys_in(&text)
        };
        self.keys.get_or_try_init(asked).await.cloned()
    }

    fn print(&self, headers: &HeaderMap, body: &[u8], verdict: &Result<Proof, String>) {
        let text = String::from_utf8_lossy(body);
        let (by, problem) = match verdict {
            Ok(Proof::Secret) => ("the secret", ""),
            Ok(Proof::HubKey) => ("the hub's key", ""),
            Err(problem) => ("", problem.as_str()),
        };
        let id = header(headers, "webhook-id");
        let timestamp = header(headers, "webhook-timestamp");
        if self.as_json {
            let body: Value = serde_json::from_str(&text).unwrap_or_else(|_| json!(text));
            let line = json!({"id": id, "timestamp": timestamp, "verified": verdict.is_ok(), "by": by,
                "problem": problem, "body": body});
            return compact(&line.to_string());
        }
        let verified = if verdict.is_ok() { format!("yes, by {by}") } else { format!("no: {problem}") };
        let mut shown = Text::default();
        shown.field("Webhook", id).field("Sent at", timestamp).field("Verified", &verified);
        // What is not JSON is shown as it came.
        let is_json = serde_json::from_str::<IgnoredAny>(&text).is_ok();
        let laid_out = if is_json { pretty(&text) } else { text.into_owned() };
        shown.block("Body", &laid_out).print();
    }
}
