//! What calls find out about an agent that its card does not say: how it streams, how it has files, and which extensions it activates.

use super::Client;
use super::error::{ClientError, Told};
use crate::net::{Outgoing, Received, redirect};
use http::{HeaderMap, StatusCode};
use reqwest::Response;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Client {
    /// What was found out about the agent counts until its card changes.
    #[must_use]
    pub fn remembering(self, before: &Self) -> Self {
        if self.card.json != before.card.json || self.choice.interface.url != before.choice.interface.url {
            return self;
        }
        let (other_dialect, kind_form) = (Arc::clone(&before.other_dialect), Arc::clone(&before.kind_form));
        let shown_files = Arc::clone(&before.shown_files);
        Self { other_dialect, kind_form, shown_files, streamless: Arc::clone(&before.streamless), ..self }
    }

    /// Whether the agent streams, as far as is known.
    pub fn streams(&self) -> bool {
        self.card.capabilities.streaming && !self.streamless.load(Ordering::Relaxed)
    }

    /// It does not, whatever its card says. True the first time.
    pub fn do_without_streams(&self) -> bool {
        !self.streamless.swap(true, Ordering::Relaxed)
    }

    /// The same agent, of whom it is remembered which extensions it says it activates.
    #[must_use]
    pub fn listening(self) -> Self {
        Self { heard: Some(Arc::default()), ..self }
    }

    /// The extensions the agent named in its latest answer.
    pub fn heard(&self) -> Vec<String> {
        let heard =
            self.heard.as_ref().map(|heard| heard.lock().expect("no panic while holding what was heard").clone());
        heard.unwrap_or_default()
    }

    /// Sends, and listens to what the answer's head says. What is sent is made anew for each place a redirect leads to.
    pub(super) async fn start(
        &self,
        made: impl Fn() -> Result<Outgoing, ClientError>,
        patience: Option<Duration>,
    ) -> Result<Response, ClientError> {
        let mut response = self.net.send(made()?, patience).await?;
        if response.status().is_redirection() {
            response = Box::pin(self.led_on(&made, patience, response.status(), response.headers())).await?;
        }
        self.listen(response.status(), response.headers());
        Ok(response)
    }

    /// The same for an answer in one piece.
    pub(super) async fn exchange(
        &self,
        made: impl Fn() -> Result<Outgoing, ClientError>,
        patience: Option<Duration>,
    ) -> Result<Received, ClientError> {
        let mut received = self.net.exchange(made()?, patience).await?;
        if received.status.is_redirection() {
            let led_on = self.led_on(&made, patience, received.status, &received.headers);
            let response = Box::pin(led_on).await?;
            received = Box::pin(self.net.received(response)).await?;
        }
        self.listen(received.status, &received.headers);
        Ok(received)
    }

    /// The answer from where a redirect leads. Within one origin nobody else is told what proves who asks.
    async fn led_on(
        &self,
        made: &impl Fn() -> Result<Outgoing, ClientError>,
        patience: Option<Duration>,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<Response, ClientError> {
        let (mut from, mut status, mut headers) = (made()?.url, status, headers.clone());
        for _ in 0..redirect::MOST {
            let to = redirect::of_call(&from, status, &headers).map_err(|problem| self.astray(status, &problem))?;
            let mut outgoing = made()?;
            outgoing.url = redirect::without(to, &outgoing.query);
            from.clone_from(&outgoing.url);
            let response = self.net.send(outgoing, patience).await?;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            (status, headers) = (response.status(), response.headers().clone());
        }
        Err(self.astray(status, &format!("it redirects more than {} times", redirect::MOST)))
    }

    fn astray(&self, status: StatusCode, problem: &str) -> ClientError {
        let http = status.as_u16();
        let told = Told { message: format!("HTTP {http}: {problem}"), http: Some(http), ..Told::default() };
        told.into_error(self.shows_credential())
    }

    fn listen(&self, status: StatusCode, headers: &HeaderMap) {
        self.note_files(status, headers);
        let Some(heard) = &self.heard else { return };
        let named = ["a2a-extensions", "x-a2a-extensions"].into_iter();
        let values = named.flat_map(|name| headers.get_all(name)).filter_map(|value| value.to_str().ok());
        let uris = values.flat_map(|value| value.split(',')).map(str::trim).filter(|uri| !uri.is_empty());
        *heard.lock().expect("no panic while holding what was heard") = uris.map(str::to_owned).collect();
    }
}
