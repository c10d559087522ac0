//! A client of the HTTP+JSON binding.

use flotilla_protocol::a2a::VERSION;
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::a2a::request::SendMessageRequest;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;
use serde_json::value::RawValue;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("cannot reach {url}: {problem}. Is the hub running there? --url or FLOTILLA_URL names another")]
    Unreachable { url: String, problem: String },
    #[error("{message} ({reason}, HTTP {status})")]
    Refused { status: u16, reason: String, message: String },
    #[error("the answer is not A2A: {0}")]
    Strange(String),
    #[error("{0} is not a usable address: write http://HOST:PORT")]
    Address(String),
    #[error("the stream broke off: {0}. Go on with: flotilla task subscribe ID --after {1}")]
    Cut(String, String),
}

/// What to list.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    pub context_id: Option<String>,
    pub status: Option<String>,
    pub page_size: Option<u32>,
    pub page_token: Option<String>,
}

pub struct Client {
    http: reqwest::Client,
    hub: String,
    base: String,
    key: Option<String>,
}

impl Client {
    pub fn new(hub: &str, agent: Option<&str>, key: Option<&str>) -> Result<Self, ClientError> {
        let hub = hub.trim_end_matches('/').to_owned();
        if !hub.starts_with("http://") && !hub.starts_with("https://") {
            return Err(ClientError::Address(hub));
        }
        // No overall time-out: a task may take as long as it takes.
        let http = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(10))
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| ClientError::Address(error.to_string()))?;
        let base = agent.map_or_else(|| hub.clone(), |agent| format!("{hub}/agents/{}", escape(agent)));
        Ok(Self { http, hub, base, key: key.map(str::to_owned) })
    }

    pub async fn send(&self, request: &SendMessageRequest) -> Result<String, ClientError> {
        let call = self.call(Method::POST, &format!("{}/message:send", self.base)).body(encode(request)?);
        self.json(call).await
    }

    /// Gives each frame as one line of JSON to `each`, until the stream ends or `each` has enough.
    pub async fn send_streaming(
        &self,
        request: &SendMessageRequest,
        each: impl FnMut(&str) -> bool,
    ) -> Result<(), ClientError> {
        let call = self.call(Method::POST, &format!("{}/message:stream", self.base)).body(encode(request)?);
        self.frames(call, each).await
    }

    pub async fn get(&self, id: &str, history: Option<u32>) -> Result<String, ClientError> {
        let query = history.map(|n| format!("?historyLength={n}")).unwrap_or_default();
        self.json(self.call(Method::GET, &format!("{}/tasks/{}{query}", self.base, escape(id)))).await
    }

    pub async fn list(&self, options: &ListOptions) -> Result<String, ClientError> {
        let pairs = [
            ("contextId", options.context_id.clone()),
            ("status", options.status.clone()),
            ("pageSize", options.page_size.map(|n| n.to_string())),
            ("pageToken", options.page_token.clone()),
        ];
        let query: Vec<String> =
            pairs.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", escape(&value?)))).collect();
        self.json(self.call(Method::GET, &format!("{}/tasks?{}", self.base, query.join("&")))).await
    }

    pub async fn cancel(&self, id: &str) -> Result<String, ClientError> {
        self.json(self.call(Method::POST, &format!("{}/tasks/{}:cancel", self.base, escape(id))).body("{}")).await
    }

    pub async fn subscribe(
        &self,
        id: &str,
        after: Option<&str>,
        each: impl FnMut(&str) -> bool,
    ) -> Result<(), ClientError> {
        let mut call = self.call(Method::GET, &format!("{}/tasks/{}:subscribe", self.base, escape(id)));
        if let Some(after) = after {
            call = call.header("Last-Event-ID", after);
        }
        self.frames(call, each).await
    }

    /// The owner's view of a task.
    pub async fn log(&self, id: &str) -> Result<String, ClientError> {
        self.json(self.call(Method::GET, &format!("{}/api/tasks/{}/log", self.hub, escape(id)))).await
    }

    fn call(&self, method: Method, url: &str) -> RequestBuilder {
        let call = self.http.request(method, url).header("A2A-Version", VERSION);
        let call = call.header("Content-Type", "application/a2a+json");
        match &self.key {
            Some(key) => call.bearer_auth(key),
            None => call,
        }
    }

    async fn answer(&self, call: RequestBuilder) -> Result<Response, ClientError> {
        let response = call
            .send()
            .await
            .map_err(|error| ClientError::Unreachable { url: self.hub.clone(), problem: innermost(&error) })?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let body: Value = serde_json::from_slice(&bytes(response).await?).unwrap_or_default();
        let error = &body["error"];
        let told = |value: &Value| value.as_str().unwrap_or("no reason given").to_owned();
        let (reason, message) = (told(&error["details"][0]["reason"]), told(&error["message"]));
        Err(ClientError::Refused { status, reason, message })
    }

    /// The answer as JSON text.
    async fn json(&self, call: RequestBuilder) -> Result<String, ClientError> {
        let body = bytes(self.answer(call).await?).await?;
        let text = String::from_utf8(body).map_err(|error| ClientError::Strange(error.to_string()))?;
        // Checked, but handed on as it is: reading and writing it again would alter opaque JSON.
        serde_json::from_str::<&RawValue>(&text).map_err(|error| ClientError::Strange(error.to_string()))?;
        Ok(text)
    }

    async fn frames(&self, call: RequestBuilder, mut each: impl FnMut(&str) -> bool) -> Result<(), ClientError> {
        let mut response = self.answer(call).await?;
        let mut buffer = Vec::new();
        let mut seen = Seen::default();
        loop {
            let cut = |error: reqwest::Error| ClientError::Cut(innermost(&error), seen.cursor());
            let Some(chunk) = response.chunk().await.map_err(cut)? else { return seen.end() };
            buffer.extend_from_slice(&chunk);
            while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = buffer.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line);
                if let Some(id) = line.strip_prefix("id: ") {
                    seen.last = Some(id.trim_end().to_owned());
                } else if let Some(data) = line.strip_prefix("data: ") {
                    seen.note(data);
                    if !each(data.trim_end()) {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// What a stream has shown so far.
#[derive(Default)]
struct Seen {
    last: Option<String>,
    /// Whether the last word was one after which nothing has to come.
    settled: bool,
}

impl Seen {
    fn note(&mut self, data: &str) {
        let frame: Value = serde_json::from_str(data).unwrap_or_default();
        let status = frame.get("statusUpdate").or_else(|| frame.get("task")).map(|update| &update["status"]["state"]);
        if let Some(state) = status.and_then(|state| serde_json::from_value::<TaskState>(state.clone()).ok()) {
            self.settled = state.is_terminal() || state.is_interrupted();
        }
        self.settled |= frame.get("message").is_some();
    }

    fn cursor(&self) -> String {
        self.last.clone().unwrap_or_else(|| "EVENT".to_owned())
    }

    /// A stream that closed before the work was done is not a success. One that was resumed at the end shows nothing.
    fn end(self) -> Result<(), ClientError> {
        if self.settled || self.last.is_none() {
            return Ok(());
        }
        Err(ClientError::Cut("it was closed before the task was done".into(), self.cursor()))
    }
}

async fn bytes(response: Response) -> Result<Vec<u8>, ClientError> {
    let body = response.bytes().await.map_err(|error| ClientError::Strange(innermost(&error)))?;
    Ok(body.to_vec())
}

fn encode(request: &SendMessageRequest) -> Result<Vec<u8>, ClientError> {
    serde_json::to_vec(request).map_err(|error| ClientError::Strange(error.to_string()))
}

fn escape(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// The cause at the bottom of the chain is the one that says something.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
