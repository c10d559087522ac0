//! The `sockets` section: agents that dial in, and connections that stay open.

use super::{OnLost, Span, Visibility};
use anyhow::{Result, bail};
use flotilla_core::roster::{self, Terms, Welcome};
use flotilla_inbound::Sockets;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// WebSockets at `/ws`, and the agents that connect there; see docs/sockets.md.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SocketsConfig {
    /// Whether agents that are not configured may register themselves.
    pub register: bool,
    /// Whom those are there for.
    pub visibility: Visibility,
    /// How long a message waits for an agent that is not connected; `0s` refuses it at once.
    pub ttl: Span,
    /// How long a run is held for an agent that took it and went away.
    pub grace: Span,
    /// What becomes of it after that: `fail` or `retry`.
    pub on_lost: OnLost,
    /// How long an agent may take to answer that it stops a run which is canceled.
    pub cancel: Span,
    /// Two connections of one agent: the new one takes the place of the old (`replace`), or they `share` the work.
    pub connections: Connections,
    /// Messages an agent may have been sent and not acknowledged, on each connection.
    #[schemars(range(min = 1, max = 10_000))]
    pub window: usize,
    /// How often a quiet connection is asked whether it is still there.
    pub ping: Span,
    /// How long a connection may be silent before it is closed.
    pub idle: Span,
    /// Largest frame that is taken, in bytes.
    #[schemars(range(min = 1_024, max = 1_073_741_824))]
    pub frame: usize,
    /// Frames that may wait to be written to a connection; whoever makes more waits.
    #[schemars(range(min = 1, max = 10_000))]
    pub outgoing: usize,
    /// How long a connection may take nothing of what is written to it before it is closed.
    pub write_time: Span,
    /// Requests of one connection that are worked on at once.
    #[schemars(range(min = 1, max = 10_000))]
    pub calls: usize,
    /// How long a ticket for a browser is good.
    pub ticket: Span,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Connections {
    #[default]
    Replace,
    Share,
}

impl From<Connections> for roster::Connections {
    fn from(connections: Connections) -> Self {
        match connections {
            Connections::Replace => Self::Replace,
            Connections::Share => Self::Share,
        }
    }
}

impl Default for SocketsConfig {
    fn default() -> Self {
        let (welcome, sockets) = (Welcome::default(), Sockets::default());
        Self {
            register: welcome.register,
            visibility: Visibility::Workspace,
            ttl: Span(welcome.terms.ttl),
            grace: Span(welcome.terms.grace),
            on_lost: OnLost::Fail,
            cancel: Span(welcome.terms.cancel),
            connections: Connections::Replace,
            window: welcome.terms.window,
            ping: Span(sockets.ping),
            idle: Span(sockets.idle),
            frame: sockets.frame,
            outgoing: sockets.outgoing,
            write_time: Span(sockets.write_time),
            calls: sockets.calls,
            ticket: Span(sockets.ticket),
        }
    }
}

impl SocketsConfig {
    pub fn terms(&self) -> Terms {
        Terms {
            ttl: self.ttl.0,
            grace: self.grace.0,
            on_lost: self.on_lost.into(),
            cancel: self.cancel.0,
            connections: self.connections.into(),
            describes_itself: true,
            window: self.window,
        }
    }

    pub fn welcome(&self) -> Welcome {
        Welcome { register: self.register, visibility: self.visibility.into(), terms: self.terms() }
    }

    pub fn sockets(&self) -> Sockets {
        Sockets {
            ping: self.ping.0,
            idle: self.idle.0,
            frame: self.frame,
            outgoing: self.outgoing,
            write_time: self.write_time.0,
            calls: self.calls,
            ticket: self.ticket.0,
        }
    }

    pub fn check(&self) -> Result<()> {
        check_ttl("sockets.ttl", self.ttl)?;
        let times = [
            ("grace", self.grace, 0, 86_400),
            ("cancel", self.cancel, 0, 600),
            ("ping", self.ping, 100, 3_600),
            ("idle", self.idle, 100, 86_400),
            ("write_time", self.write_time, 100, 3_600),
            ("ticket", self.ticket, 1_000, 3_600),
        ];
        for (name, value, least, most) in times {
            let (least, most) = (Span(Duration::from_millis(least)), Span::seconds(most));
            if !(least.0..=most.0).contains(&value.0) {
                bail!("sockets.{name} must be between {least} and {most}");
            }
        }
        let numbers = [
            ("window", self.window, 1, 10_000),
            ("frame", self.frame, 1_024, 1_073_741_824),
            ("outgoing", self.outgoing, 1, 10_000),
            ("calls", self.calls, 1, 10_000),
        ];
        for (name, value, least, most) in numbers {
            if !(least..=most).contains(&value) {
                bail!("sockets.{name} must be between {least} and {most}");
            }
        }
        if self.ping.0 >= self.idle.0 {
            bail!("sockets.idle must be longer than sockets.ping, or every quiet connection is closed");
        }
        Ok(())
    }
}

pub fn check_ttl(name: &str, ttl: Span) -> Result<()> {
    let most = Span::seconds(365 * 86_400);
    if ttl.0 > most.0 || ttl.0.subsec_millis() != 0 {
        bail!("{name} must be whole seconds, at most {most}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::SocketsConfig;
    use crate::config::Config;

    #[test]
    fn the_document_says_what_the_program_does() {
        let text = include_str!("../../../../docs/sockets.md");
        let value = serde_json::to_value(SocketsConfig::default()).expect("a section is JSON");
        let members = value.as_object().expect("an object");
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| `sockets.")).collect();
        assert_eq!(rows.len(), members.len());
        for (name, value) in members {
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let row = format!("| `sockets.{name}` | `{shown}` |");
            assert!(rows.iter().any(|line| line.starts_with(&row)), "{row}");
        }
    }

    #[test]
    fn slips_are_told() {
        for (wrong, told) in [
            ("ping: 2m", "longer than sockets.ping"),
            ("window: 0", "sockets.window must be between 1 and 10000"),
            ("ttl: 1500ms", "whole seconds"),
            ("frame: 10", "sockets.frame"),
        ] {
            let config = Config::parse(&format!("sockets: {{{wrong}}}")).expect("a readable value");
            let problem = config.sockets.check().expect_err(wrong).to_string();
            assert!(problem.contains(told), "{problem}");
        }
        assert!(Config::parse("sockets: {ttl: 0s, grace: 0s}").expect("readable").sockets.check().is_ok());
    }
}
