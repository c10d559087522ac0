//! The courier of webhooks: checks where they lead, signs them, and carries each within a bounded time.

pub mod keys;
mod reason;
pub(crate) mod secrets;
pub mod sign;

use crate::guard::Guard;
use flotilla_core::ports::{Accepting, Courier, Parcel};
use flotilla_core::push::{Came, Target};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::push::PushOptions;
use flotilla_protocol::a2a::request::PushConfig;
use flotilla_protocol::a2a::version::Version;
use flotilla_protocol::lineage::{TRACEPARENT, TRACESTATE};
use keys::{Keys, Unopened};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use reqwest::{Client, Response};
use secrets::Secrets;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

/// What is read of an answer, so that its connection can be used again.
const ANSWER_BYTES: usize = 16 * 1024;
/// Connections that are kept for the next webhook to the same place, and how long.
const IDLE_CONNECTIONS: usize = 32;
const IDLE: Duration = Duration::from_secs(15);

const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/a2a+json");
/// What receivers of 0.3 expect, and many insist on.
const OLD_MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/json");
const AGENT: HeaderValue = HeaderValue::from_static(crate::net::AGENT);
const TOKEN: HeaderName = HeaderName::from_static("x-a2a-notification-token");

/// Carries webhooks to where the guard lets them go.
#[derive(Clone)]
pub struct Webhooks(Arc<Inner>);

struct Inner {
    guard: Guard,
    keys: Keys,
    timeout: Duration,
    /// A client for each way of calling, made when it is first needed.
    secure: OnceLock<Client>,
    plain: OnceLock<Client>,
}

impl Webhooks {
    pub fn new(guard: Guard, keys: Keys, timeout: Duration) -> Self {
        Self(Arc::new(Inner { guard, keys, timeout, secure: OnceLock::new(), plain: OnceLock::new() }))
    }
}

impl Courier for Webhooks {
    fn accept(&self, config: PushConfig, options: PushOptions) -> Accepting {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.accept(config, options).await })
    }

    fn carry(&self, parcel: Parcel) -> Pin<Box<dyn Future<Output = Came> + Send>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            match tokio::time::timeout(inner.timeout, inner.carry(parcel)).await {
                Ok(Ok(came) | Err(came)) => came,
                Err(_) => Came::Failure(format!("no answer within {} ms", inner.timeout.as_millis())),
            }
        })
    }

    fn is_locked(&self, target: &Target) -> bool {
        self.0.secrets(target).is_err_and(|came| matches!(came, Came::Locked(_)))
    }
}

impl Inner {
    async fn accept(&self, config: PushConfig, options: PushOptions) -> Result<Target, Refusal> {
        let secrets = Secrets::of(&config, options)?;
        let url = self.guard.check(&config.url).await.map_err(|refused| Refusal::invalid("url", refused.0))?;
        let sealed = match secrets.is_empty() {
            true => Ok(Vec::new()),
            false => self.keys.seal(&secrets.to_bytes(), config.url.as_bytes()),
        };
        let sealed = sealed.map_err(|problem| Refusal::invalid("authentication", problem))?;
        let scheme = config.authentication.map(|authentication| authentication.scheme).unwrap_or_default();
        Ok(Target { origin: url.origin().ascii_serialization(), url: config.url, scheme, sealed })
    }

    /// What came of it, also where it came to nothing.
    async fn carry(&self, parcel: Parcel) -> Result<Came, Came> {
        let url = self.guard.parse(&parcel.target.url).map_err(|refused| Came::Failure(refused.0))?;
        let secrets = self.secrets(&parcel.target)?;
        let headers = self.headers(&secrets, &parcel).map_err(Came::Failure)?;
        let client = self.client(url.scheme() == "https").map_err(Came::Failure)?;
        let sent = client.post(url).headers(headers).body(parcel.body).send().await;
        let response = sent.map_err(|error| Came::Failure(reason::of(&error.without_url())))?;
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers());
        drain(response, self.timeout).await;
        Ok(Came::Answer { status, retry_after })
    }

    /// What the caller gave, opened; or why the webhook cannot be sent.
    fn secrets(&self, target: &Target) -> Result<Secrets, Came> {
        if target.sealed.is_empty() {
            return Ok(Secrets::default());
        }
        let opened = self.keys.open(&target.sealed, target.url.as_bytes()).map_err(|unopened| match unopened {
            Unopened::OtherKey => Came::Locked(unopened.to_string()),
            Unopened::Damaged => Came::Failure(unopened.to_string()),
        })?;
        Secrets::from_bytes(&opened).map_err(Came::Failure)
    }

    fn headers(&self, secrets: &Secrets, parcel: &Parcel) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::with_capacity(12);
        headers.insert(
            CONTENT_TYPE,
            match parcel.version {
                Version::V10 => MEDIA_TYPE,
                Version::V03 => OLD_MEDIA_TYPE,
            },
        );
        headers.insert(USER_AGENT, AGENT);
        let mut put = |name: HeaderName, value: &str| {
            let value = HeaderValue::from_str(value).map_err(|_| format!("{name} cannot be sent"))?;
            headers.insert(name, value);
            Ok::<_, String>(())
        };
        for (name, value) in secrets.headers() {
            put(name, &value)?;
        }
        let seconds = parcel.at.0 / 1000;
        let signatures = match secrets.signing() {
            [] => vec![self.keys.sign(&parcel.id, seconds, &parcel.body)],
            given => given.iter().map(|secret| sign::v1(secret, &parcel.id, seconds, &parcel.body)).collect(),
        };
        put(HeaderName::from_static("webhook-id"), &parcel.id)?;
        put(HeaderName::from_static("webhook-timestamp"), &seconds.to_string())?;
        put(HeaderName::from_static("webhook-signature"), &signatures.join(" "))?;
        put(HeaderName::from_static(TRACEPARENT), &parcel.trace.traceparent())?;
        if let Some(state) = &parcel.trace.state {
            put(HeaderName::from_static(TRACESTATE), state)?;
        }
        if let Some(text) = secrets.hub_secret().filter(|_| parcel.options.hub_signature) {
            put(HeaderName::from_static("x-hub-signature-256"), &sign::hub(text, &parcel.body))?;
        }
        Ok(headers)
    }

    fn client(&self, secure: bool) -> Result<&Client, String> {
        let kept = if secure { &self.secure } else { &self.plain };
        if let Some(client) = kept.get() {
            return Ok(client);
        }
        let made = Client::builder()
            .dns_resolver(self.guard.resolver(secure))
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .https_only(secure)
            .connect_timeout(self.timeout)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .pool_idle_timeout(IDLE)
            // A connection that died without a word must not swallow one webhook after the other.
            .tcp_keepalive(IDLE)
            .http2_keep_alive_interval(IDLE)
            .http2_keep_alive_timeout(self.timeout)
            .tcp_nodelay(true)
            .build()
            .map_err(|error| format!("the HTTP client cannot be set up: {error}"))?;
        Ok(kept.get_or_init(|| made))
    }
}

/// Reads what little an answer may hold. One that is longer, or slow, costs its sender the connection.
async fn drain(mut response: Response, patience: Duration) {
    let little = async {
        let mut read = 0;
        while let Ok(Some(chunk)) = response.chunk().await {
            read += chunk.len();
            if read > ANSWER_BYTES {
                return;
            }
        }
    };
    // The answer was in its first line: what follows changes nothing, and is waited for but a little.
    let _ = tokio::time::timeout(patience / 10, little).await;
}

/// Seconds, or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::now()).ok()
}

#[cfg(test)]
mod tests;
