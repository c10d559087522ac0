//! The hub's own API: what its owner may see beyond A2A.

pub mod announce;

use crate::client::error::{ClientError, Told};
use crate::client::{escape, segment};
use crate::net::sse::{Event, Events};
use crate::net::{Net, Outgoing};
use reqwest::{Method, Response};
use serde::Deserialize;
use serde_json::Value;

/// A hub, and the key that opens it.
pub struct Hub {
    net: Net,
    url: String,
    key: Option<String>,
}

/// A part of a task's log.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LogPage {
    pub task_id: String,
    pub context_id: String,
    pub state: String,
    pub provenance: String,
    pub parent_task_id: Option<String>,
    /// Whether events that were asked for are no longer kept.
    pub pruned: bool,
    /// Where the next page starts; none after the last one.
    pub next_after: Option<u64>,
    pub events: Vec<Box<serde_json::value::RawValue>>,
}

/// What answers where a hub is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// A hub, and what time it says it is.
    Ready {
        date: Option<String>,
    },
    /// A hub that cannot do its work, and why.
    NotReady(String),
    NoHub {
        status: u16,
    },
}

impl Hub {
    pub fn new(net: Net, url: &str, key: Option<String>) -> Self {
        Self { net, url: url.trim_end_matches('/').to_owned(), key }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    async fn get(&self, path: &str, accept: &str) -> Result<Response, ClientError> {
        self.call(Method::GET, path, accept).await
    }

    async fn call(&self, method: Method, path: &str, accept: &str) -> Result<Response, ClientError> {
        self.call_with(method, path, accept, None).await
    }

    async fn call_with(
        &self,
        method: Method,
        path: &str,
        accept: &str,
        body: Option<String>,
    ) -> Result<Response, ClientError> {
        let mut headers = vec![("Accept".to_owned(), accept.to_owned())];
        if body.is_some() {
            headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        }
        if let Some(key) = &self.key {
            headers.push(("Authorization".to_owned(), format!("Bearer {key}")));
        }
        let url = format!("{}{path}", self.url);
        let outgoing = Outgoing { method, url, headers, body, ..Outgoing::default() };
        let response = self.net.send(outgoing, Some(self.net.limits.answer)).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let retry = Told::retry_in(response.headers());
        let body: Value = serde_json::from_str(&self.net.text(response).await?).unwrap_or_default();
        let error = &body["error"];
        let message = error["message"].as_str().map_or_else(|| format!("HTTP {status}"), str::to_owned);
        let reason = Told::reason_in(&error["details"]);
        let told = Told { message, reason, http: Some(status), retry, ..Told::default() };
        Err(told.into_error(self.key.is_some()).masked(|text| self.net.clean(text)))
    }

    /// The events of a task after `after`, one page of them.
    pub async fn log(&self, task: &str, after: u64) -> Result<LogPage, ClientError> {
        let path = format!("/api/tasks/{}/log?after={after}", segment(task)?);
        let text = self.net.text(self.get(&path, "application/json").await?).await?;
        serde_json::from_str(&text).map_err(ClientError::malformed)
    }

    /// The events of a task after `after`, and those to come until it ends.
    pub async fn follow_log(&self, task: &str, after: u64) -> Result<Events, ClientError> {
        let path = format!("/api/tasks/{}/log?after={after}", segment(task)?);
        Ok(Events::new(self.net.clone(), self.get(&path, "text/event-stream").await?))
    }

    /// One delivery as JSON, with every attempt.
    pub async fn delivery(&self, id: &str) -> Result<String, ClientError> {
        let path = format!("/api/deliveries/{}", segment(id)?);
        self.net.text(self.get(&path, "application/json").await?).await
    }

    /// Tries a delivery again, from an event on if one is named.
    pub async fn redeliver(&self, id: &str, from: Option<u64>) -> Result<String, ClientError> {
        let from = from.map(|from| format!("?from={from}")).unwrap_or_default();
        let path = format!("/api/deliveries/{}:redeliver{from}", segment(id)?);
        self.net.text(self.call(Method::POST, &path, "application/json").await?).await
    }

    /// Stops a delivery.
    pub async fn disable_delivery(&self, id: &str) -> Result<String, ClientError> {
        let path = format!("/api/deliveries/{}:disable", segment(id)?);
        self.net.text(self.call(Method::POST, &path, "application/json").await?).await
    }

    /// One agent as JSON.
    pub async fn agent(&self, name: &str) -> Result<String, ClientError> {
        let path = format!("/api/agents/{}", segment(name)?);
        self.net.text(self.get(&path, "application/json").await?).await
    }

    /// Adds an agent; its settings are a JSON object with its name.
    pub async fn add_agent(&self, settings: String) -> Result<String, ClientError> {
        let response = self.call_with(Method::POST, "/api/agents", "application/json", Some(settings)).await?;
        self.net.text(response).await
    }

    /// Changes an agent by a JSON merge patch of its settings.
    pub async fn change_agent(&self, name: &str, patch: String) -> Result<String, ClientError> {
        let path = format!("/api/agents/{}", segment(name)?);
        let response = self.call_with(Method::PATCH, &path, "application/json", Some(patch)).await?;
        self.net.text(response).await
    }

    pub async fn remove_agent(&self, name: &str, force: bool) -> Result<(), ClientError> {
        let path = format!("/api/agents/{}?force={force}", segment(name)?);
        self.call(Method::DELETE, &path, "application/json").await.map(drop)
    }

    /// Looks for an agent; what for is a JSON object.
    pub async fn discover(&self, asked: String) -> Result<String, ClientError> {
        let response = self.call_with(Method::POST, "/api/agents/discover", "application/json", Some(asked)).await?;
        self.net.text(response).await
    }

    /// Checks an agent now.
    pub async fn check_agent(&self, name: &str) -> Result<String, ClientError> {
        let path = format!("/api/agents/{}/check", segment(name)?);
        self.net.text(self.call(Method::POST, &path, "application/json").await?).await
    }

    /// What the owner's API says at a path, with a query, as JSON.
    pub async fn show(&self, path: &str, query: &[(&str, &str)]) -> Result<String, ClientError> {
        let pairs: Vec<String> = query.iter().map(|(name, value)| format!("{name}={}", escape(value))).collect();
        let path = if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) };
        self.net.text(self.get(&path, "application/json").await?).await
    }

    /// What a task is part of, and what is part of it, as JSON.
    pub async fn tree(&self, task: &str) -> Result<String, ClientError> {
        self.show(&format!("/api/tasks/{}/tree", segment(task)?), &[]).await
    }

    /// One approval as JSON.
    pub async fn approval(&self, id: &str) -> Result<String, ClientError> {
        self.show(&format!("/api/approvals/{}", segment(id)?), &[]).await
    }

    /// Answers an approval.
    pub async fn answer_approval(&self, id: &str, answer: &Value) -> Result<String, ClientError> {
        let path = format!("/api/approvals/{}", segment(id)?);
        self.net.text(self.call_with(Method::POST, &path, "application/json", Some(answer.to_string())).await?).await
    }

    /// All workers, or one, as JSON.
    pub async fn workers(&self, worker: Option<&str>) -> Result<String, ClientError> {
        let path = match worker {
            Some(worker) => format!("/api/fleet/{}", segment(worker)?),
            None => "/api/fleet".to_owned(),
        };
        self.net.text(self.get(&path, "application/json").await?).await
    }

    /// Gives work to a worker; the task that it became, as JSON.
    pub async fn dispatch(&self, dispatch: String) -> Result<String, ClientError> {
        let answer = self.call_with(Method::POST, "/api/dispatch", "application/json", Some(dispatch)).await?;
        self.net.text(answer).await
    }

    /// What was decided about a task's dispatched work, as JSON.
    pub async fn why(&self, task: &str) -> Result<String, ClientError> {
        let path = format!("/api/tasks/{}/why", segment(task)?);
        self.net.text(self.get(&path, "application/json").await?).await
    }

    /// Workers as they change.
    pub async fn follow_workers(&self) -> Result<Events, ClientError> {
        Ok(Events::new(self.net.clone(), self.get("/api/fleet/stream", "text/event-stream").await?))
    }

    /// Lets a worker take nothing new, or takes that back.
    pub async fn drain(&self, worker: &str, draining: bool) -> Result<String, ClientError> {
        let path = format!("/api/fleet/{}/{}", segment(worker)?, if draining { "drain" } else { "undrain" });
        self.net.text(self.call(Method::POST, &path, "application/json").await?).await
    }

    /// Ends the pause a worker and its account are under.
    pub async fn resume_worker(&self, worker: &str) -> Result<String, ClientError> {
        let path = format!("/api/fleet/{}/resume", segment(worker)?);
        self.net.text(self.call(Method::POST, &path, "application/json").await?).await
    }

    /// The keys the hub signs webhooks with.
    pub async fn jwks(&self) -> Result<String, ClientError> {
        self.net.text(self.get("/.well-known/jwks.json", "application/json").await?).await
    }

    /// What is at the hub's place, told by its own words: other programs answer there too.
    pub async fn ready(&self) -> Result<Readiness, ClientError> {
        let headers = vec![("Accept".to_owned(), "application/json".to_owned())];
        let outgoing = Outgoing { url: format!("{}/readyz", self.url), headers, ..Outgoing::default() };
        let response = self.net.send(outgoing, Some(self.net.limits.answer)).await?;
        let status = response.status().as_u16();
        let date = response.headers().get("date").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let text = self.net.text(response).await.unwrap_or_default();
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        Ok(match body["status"].as_str() {
            Some("ready") => Readiness::Ready { date },
            Some("not ready") => {
                Readiness::NotReady(body["problem"].as_str().unwrap_or("it does not say why").to_owned())
            }
            _ => Readiness::NoHub { status },
        })
    }
}

/// An event of a followed log, or the refusal that ended it.
pub fn entry(event: Event) -> Result<String, ClientError> {
    let body: Value = serde_json::from_str(&event.data).map_err(ClientError::malformed)?;
    let error = &body["error"];
    if error.is_null() {
        return Ok(event.data);
    }
    let message = error["message"].as_str().unwrap_or("the hub ended the stream").to_owned();
    Err(Told { message, reason: Told::reason_in(&error["details"]), ..Told::default() }.into_error(true))
}
