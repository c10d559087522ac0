//! An MCP server over streamable HTTP: each message a POST, each answer JSON or a short stream of events.

use super::definition::Place;
use super::events;
use super::talk::{Answer, Problem, STATELESS};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use serde_json::Value;
use std::time::Duration;

/// What is read of one answer.
pub const MUCH: usize = 4 * 1024 * 1024;
/// How long a session is waited for to be closed.
const FAREWELL: Duration = Duration::from_secs(1);

pub struct Post {
    client: Client,
    url: Url,
    headers: HeaderMap,
    version: Option<String>,
    session: Option<HeaderValue>,
}

impl Post {
    pub fn open(place: &Place) -> Result<Self, Problem> {
        let (client, url, headers) = prepare(place)?;
        Ok(Self { client, url, headers, version: None, session: None })
    }

    pub fn agree(&mut self, version: &str) {
        self.version = Some(version.to_owned());
    }

    pub async fn tell(&mut self, message: &Value) -> Result<(), Problem> {
        let response = self.send(message).await?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(Problem::Failed(format!("it answered {status} to the end of the handshake"))),
        }
    }

    pub async fn ask(&mut self, message: &Value, id: u64) -> Result<Answer, Problem> {
        let mut response = self.send(message).await?;
        if let Some(session) = response.headers().get("mcp-session-id") {
            self.session = Some(session.clone());
        }
        let status = response.status();
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let is_stream = kind.starts_with("text/event-stream");
        let mut body = Vec::new();
        while let Some(more) = response.chunk().await.map_err(|error| failed(&error))? {
            body.extend_from_slice(&more);
            if body.len() > MUCH {
                return Err(Problem::Failed(format!("its answer is longer than {MUCH} bytes")));
            }
            if is_stream && let Some(answer) = events::take(&mut body).find_map(|event| event.answer(id)) {
                return Ok(answer);
            }
        }
        let heard = serde_json::from_slice::<Value>(&body).unwrap_or_default();
        // A refusal of a whole request may come without its id.
        let bare = |message: &Value| message["error"].is_object() && message["id"].is_null();
        match Answer::of(&heard, id) {
            Some(answer) => Ok(answer),
            None if bare(&heard) => Ok(Answer::Error {
                code: heard["error"]["code"].as_i64().unwrap_or_default(),
                message: heard["error"]["message"].as_str().unwrap_or_default().to_owned(),
            }),
            None if status.is_success() => Err(Problem::Failed("its answer is no MCP".into())),
            None => Err(Problem::Failed(format!("it answered {status}"))),
        }
    }

    async fn send(&self, message: &Value) -> Result<Response, Problem> {
        let mut request = self.client.post(self.url.clone()).headers(self.headers.clone());
        request = request.header(ACCEPT, "application/json, text/event-stream");
        request = self.marked(request).header(CONTENT_TYPE, "application/json").body(message.to_string());
        if self.version.as_deref() == Some(STATELESS) {
            request = request.header("mcp-method", message["method"].as_str().unwrap_or_default());
        }
        admitted(request.send().await.map_err(|error| failed(&error))?)
    }

    fn marked(&self, mut request: RequestBuilder) -> RequestBuilder {
        if let Some(version) = &self.version {
            request = request.header("mcp-protocol-version", version);
        }
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session.clone());
        }
        request
    }

    /// The server need not keep a session that nobody comes back to.
    pub async fn close(self) {
        if self.session.is_some() {
            let request = self.marked(self.client.delete(self.url.clone()).headers(self.headers.clone()));
            let _ = tokio::time::timeout(FAREWELL, request.send()).await;
        }
    }
}

/// A client that goes where it is sent and nowhere else, with the headers of the definition.
pub fn prepare(place: &Place) -> Result<(Client, Url, HeaderMap), Problem> {
    let url = Url::parse(&place.url).map_err(|error| Problem::Failed(format!("its url is none: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Problem::Failed(format!("its url begins with {}, not with http or https", url.scheme())));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in &place.headers {
        let wrong = |_| Problem::Failed(format!("its header {name} cannot be sent"));
        let header = HeaderName::try_from(name.as_str()).map_err(|_| wrong(()))?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| wrong(()))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    let client = Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build();
    Ok((client.map_err(|error| failed(&error))?, url, headers))
}

/// An answer of somebody who lets us in.
pub fn admitted(response: Response) -> Result<Response, Problem> {
    let asks = response.headers().contains_key(WWW_AUTHENTICATE);
    match response.status() {
        StatusCode::UNAUTHORIZED => Err(Problem::NeedsAuth("it wants to know who asks (401): sign in to it".into())),
        StatusCode::FORBIDDEN if asks => Err(Problem::NeedsAuth("it wants other credentials (403)".into())),
        status if status.is_redirection() => {
            Err(Problem::Failed(format!("it answered {status}; write the address it leads to")))
        }
        _ => Ok(response),
    }
}

/// Without the address: it may hold a secret.
pub fn failed(error: &reqwest::Error) -> Problem {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let what = if error.is_connect() { "it cannot be reached" } else { "the call failed" };
    let why = if std::ptr::addr_eq(cause, error) { String::new() } else { format!(": {cause}") };
    Problem::Failed(format!("{what}{why}"))
}
