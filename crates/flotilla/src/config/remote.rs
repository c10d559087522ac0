//! What stands in the configuration of an agent elsewhere (`kind: a2a`): where it is, and how it is called.

use super::auth::{AuthConfig, SecretPlace};
use super::{AgentConfig, Kind, OnLost, Span};
use anyhow::{Context, Result, bail};
use flotilla_outbound::client::choose::Binding;
use flotilla_outbound::remote::options::{Auth, BreakerRules, Options, Place, Poll, Protocol, Retries, Times};
use flotilla_outbound::signature::origin::Pins;
use flotilla_protocol::proto03::file::Files;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long is waited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TimeoutsConfig {
    /// For a connection (10s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect: Option<Span>,
    /// For an answer that has no reason to wait for the work (30s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Span>,
    /// For the next event of a stream, before the task is asked for (2m).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Span>,
    /// For an agent that took work up and cannot be reached any more (5m).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<Span>,
    /// For the whole of the work at one message (24h).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<Span>,
}

/// Calls that did not get through are made again, where nothing can be done twice by that.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetriesConfig {
    /// How often after the first (3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<u32>,
    /// The first pause (200ms); each is twice as long as the one before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Span>,
    /// The longest pause (10s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest: Option<Span>,
}

/// After several calls in a row that did not reach the agent, it is left alone for a while.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BreakerConfig {
    /// How many (5).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<u32>,
    /// How long (15s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<Span>,
}

/// How often a task is asked for whose agent does not stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PollConfig {
    /// The first pause (200ms); each is half as long again as the one before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Span>,
    /// The longest pause (5s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest: Option<Span>,
}

/// How the bytes of a file are written where the proto of 0.3 has bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProtoFiles {
    /// As the agent's answers show that it has them.
    #[default]
    Auto,
    /// As base64 text, as the SDKs for Python, Go and Java do.
    Text,
    /// As they are, as the SDK for JavaScript does.
    Bytes,
}

impl ProtoFiles {
    fn known(self) -> Option<Files> {
        match self {
            Self::Auto => None,
            Self::Text => Some(Files::Text),
            Self::Bytes => Some(Files::Bytes),
        }
    }
}

fn or(span: Option<Span>, usual: Duration) -> Duration {
    span.map_or(usual, |span| span.0)
}

pub(super) fn check_url(name: &str, url: &str) -> Result<()> {
    if !(url.starts_with("http://") || url.starts_with("https://")) {
        bail!("{name}: '{}' must start with http:// or https://", flotilla_outbound::net::address::shown(url));
    }
    flotilla_outbound::net::address::check(url).map(drop).with_context(|| name.to_owned())
}

pub(super) fn check_header(name: &str) -> Result<()> {
    match hyper::header::HeaderName::try_from(name) {
        Ok(_) => Ok(()),
        Err(_) => bail!("'{name}' cannot be the name of a header"),
    }
}

/// Headers that the hub sends itself, on every call.
fn is_own(name: &str) -> bool {
    let name = name.to_lowercase();
    let exact = ["x-fleet-hops", "traceparent", "tracestate", "idempotency-key", "host"];
    exact.contains(&name.as_str()) || ["a2a-", "x-a2a-", "content-"].iter().any(|start| name.starts_with(start))
}

/// Whether a header's name says that its value is a secret, which does not stand in the configuration.
fn is_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    ["-token", "-key", "-secret"].iter().any(|end| name.ends_with(end))
}

impl AgentConfig {
    /// Reads what the configuration only names, as a start of the hub does.
    pub fn check_secrets(&self, name: &str) -> Result<()> {
        if self.kind == Kind::A2a {
            self.remote_options(name, 0).with_context(|| format!("agents.{name}"))?;
        }
        Ok(())
    }

    /// The places of all secrets it names.
    pub fn references(&self) -> Vec<String> {
        let of_headers = self.headers.iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| value.clone());
        self.auth.iter().map(|auth| auth.reference().to_owned()).chain(of_headers).collect()
    }

    /// The configuration as it may be shown: an address may hold a secret in its query.
    pub fn hide_secrets(&mut self) {
        for address in [&mut self.url, &mut self.card].into_iter().flatten() {
            *address = flotilla_outbound::net::address::shown(address);
        }
    }

    /// What only an agent elsewhere takes, by name.
    fn only_remote(&self) -> [(&'static str, bool); 14] {
        [
            ("url", self.url.is_some()),
            ("card", self.card.is_some()),
            ("card_refresh", self.card_refresh.is_some()),
            ("transports", !self.transports.is_empty()),
            ("protocol_version", self.protocol_version.is_some()),
            ("proto_files", self.proto_files.is_some()),
            ("auth", self.auth.is_some()),
            ("headers", !self.headers.is_empty()),
            ("credentials_for", !self.credentials_for.is_empty()),
            ("timeouts", self.timeouts.is_some()),
            ("retries", self.retries.is_some()),
            ("breaker", self.breaker.is_some()),
            ("poll", self.poll.is_some()),
            ("card_keys", !self.card_keys.is_empty()),
        ]
    }

    pub(super) fn check_remote(&self) -> Result<()> {
        if self.kind != Kind::A2a {
            return match self.only_remote().into_iter().find(|(_, is_set)| *is_set) {
                Some((name, _)) => bail!("{name}: only for 'kind: a2a' (docs/remote-agents.md)"),
                None => Ok(()),
            };
        }
        match (&self.url, &self.card) {
            (Some(url), None) => check_url("url", url)?,
            (None, Some(card)) if card.contains("://") && !card.starts_with("file://") => check_url("card", card)?,
            (None, Some(_)) => {}
            _ => bail!("an a2a agent needs 'url:' (its address) or 'card:' (its card's address or file), one of them"),
        }
        if let Some(wrong) = self.transports.iter().find(|text| Binding::parse(text).is_none()) {
            bail!("transports: '{wrong}' is none of JSONRPC, HTTP+JSON, GRPC");
        }
        if let Some(wrong) = self.protocol_version.as_ref().filter(|text| Protocol::parse(text).is_none()) {
            bail!("protocol_version: '{wrong}' is not spoken; write '1.0' or '0.3', or leave it to the card");
        }
        if let Some(auth) = &self.auth {
            auth.check()?;
        }
        self.pins()?;
        for origin in &self.credentials_for {
            check_url("credentials_for", origin)?;
            let place = origin.split_once("://").map_or("", |(_, place)| place.trim_end_matches('/'));
            if place.contains(['/', '?', '#']) {
                bail!("credentials_for: write scheme, host and port alone, such as https://agent.example.com");
            }
        }
        for (name, value) in &self.headers {
            check_header(name).context("headers")?;
            if is_own(name) {
                bail!("headers.{name}: is the hub's own to send; leave it out");
            }
            if value.chars().any(char::is_control) {
                bail!("headers.{name}: holds a line break or another control character");
            }
            if ["authorization", "cookie", "x-api-key", "proxy-authorization"].contains(&name.to_lowercase().as_str()) {
                bail!("headers.{name}: a credential belongs under 'auth:', as env:NAME or file:PATH");
            }
            if is_secret(name) {
                SecretPlace(value.clone()).check(&format!("headers.{name}"))?;
            } else if ["env:", "file:"].iter().any(|kind| value.starts_with(kind)) {
                // It would be sent as it is written, which nobody means.
                bail!(
                    "headers.{name}: env: and file: are read only for names that end in -Token, -Key or -Secret; call it \
                     so, or write 'auth: {{header: {{name: {name}, value: ...}}}}'"
                );
            }
        }
        let options = self.remote("check", Auth::None, 0);
        let Times { connect, answer, idle, lost: _, whole } = options.times;
        if [connect, answer, idle, whole, options.refresh].iter().any(Duration::is_zero) {
            bail!("timeouts and card_refresh must be longer than nothing");
        }
        if options.breaker.failures == 0 || options.poll.first.is_zero() || options.poll.longest.is_zero() {
            bail!("breaker.failures, poll.first and poll.longest must be more than nothing");
        }
        Ok(())
    }

    /// How the agent is called; reads its secrets.
    pub fn remote_options(&self, name: &str, bytes: usize) -> Result<Options> {
        let auth = self.auth.as_ref().map_or(Ok(Auth::None), AuthConfig::auth)?;
        let mut options = Options { pins: self.pins()?, ..self.remote(name, auth, bytes) };
        for (name, value) in options.headers.iter_mut().filter(|(name, _)| is_secret(name)) {
            *value = SecretPlace(value.clone()).read(&format!("headers.{name}"))?;
        }
        Ok(options)
    }

    fn pins(&self) -> Result<Pins> {
        let mut pins = Pins::default();
        for key in &self.card_keys {
            let told = |problem| anyhow::anyhow!("card_keys: '{key}' is no thumbprint and no key: {problem}");
            pins.add(key).map_err(told)?;
        }
        Ok(pins)
    }

    fn remote(&self, name: &str, auth: Auth, bytes: usize) -> Options {
        let place = match (&self.url, &self.card) {
            (Some(url), _) => Place::Base(url.clone()),
            (None, Some(card)) if card.starts_with("http://") || card.starts_with("https://") => {
                Place::Card(card.clone())
            }
            (None, card) => {
                let card = card.as_deref().unwrap_or_default();
                Place::File(card.strip_prefix("file://").unwrap_or(card).into())
            }
        };
        let times = self.timeouts.clone().unwrap_or_default();
        let retries = self.retries.clone().unwrap_or_default();
        let breaker = self.breaker.clone().unwrap_or_default();
        let poll = self.poll.clone().unwrap_or_default();
        let (usual, again, switch, asking) =
            (Times::default(), Retries::default(), BreakerRules::default(), Poll::default());
        Options {
            name: name.to_owned(),
            place,
            transports: self.transports.iter().filter_map(|text| Binding::parse(text)).collect(),
            protocol: self.protocol_version.as_deref().and_then(Protocol::parse).unwrap_or_default(),
            files: self.proto_files.unwrap_or_default().known(),
            auth,
            credential: self.auth.as_ref().map(AuthConfig::described),
            headers: self.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            credentials_for: self.credentials_for.clone(),
            times: Times {
                connect: or(times.connect, usual.connect),
                answer: or(times.answer, usual.answer),
                idle: or(times.idle, usual.idle),
                lost: or(times.lost, usual.lost),
                whole: or(times.whole, usual.whole),
            },
            retries: Retries {
                most: retries.most.unwrap_or(again.most),
                first: or(retries.first, again.first),
                longest: or(retries.longest, again.longest),
            },
            breaker: BreakerRules {
                failures: breaker.failures.unwrap_or(switch.failures),
                pause: or(breaker.pause, switch.pause),
            },
            poll: Poll { first: or(poll.first, asking.first), longest: or(poll.longest, asking.longest) },
            refresh: or(self.card_refresh, Duration::from_secs(300)),
            send_again: self.on_lost == OnLost::Retry,
            bytes,
            depth: usize::MAX,
            guarded: false,
            pins: Pins::default(),
        }
    }
}
