//! A worker as its owner is shown it.

use flotilla_core::dispatch::{Health, Pause};
use flotilla_core::fleet::Seen;
use flotilla_protocol::fleet::Announce;
use flotilla_protocol::time::Millis;
use serde::Serialize;
use std::collections::BTreeSet;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown<'a> {
    name: &'a str,
    health: &'static str,
    /// Why it is broken, or not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Its account is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<Paused<'a>>,
    /// What it may use today is used up.
    #[serde(skip_serializing_if = "Option::is_none")]
    broke: Option<Paused<'a>>,
    epoch: Option<u64>,
    model: Option<&'a str>,
    model_tier: Option<&'a str>,
    /// Runs it has, how many of them are not the hub's, and how many it takes at once.
    active: u32,
    elsewhere: u32,
    places: u32,
    draining: bool,
    labels: &'a BTreeSet<String>,
    skills: &'a BTreeSet<String>,
    account: Option<&'a str>,
    via: &'static str,
    announced_at: Millis,
    heard_at: Millis,
    lease_until: Millis,
    last_success: Option<Millis>,
    failures: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failure: Option<&'a str>,
    success_rate: Option<f64>,
    /// What it announced is of an earlier connection: its MCP servers count as unknown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unconfirmed: bool,
    announce: &'a Announce,
}

/// Of a worker that no work could be sent to, whatever it announces.
pub const UNREACHABLE: &str = "it is not connected, so no work can reach it";

#[derive(Serialize)]
struct Paused<'a> {
    until: Millis,
    reason: &'a str,
}

fn paused(pause: &Pause) -> Paused<'_> {
    Paused { until: pause.until, reason: &pause.reason }
}

impl<'a> Shown<'a> {
    pub fn of(seen: &'a Seen, now: Millis) -> Self {
        let worker = &seen.worker;
        let reason = match &seen.health {
            Health::Broken { reason } => Some(reason.clone()),
            Health::Offline if !worker.present => Some(UNREACHABLE.to_owned()),
            Health::Offline => Some("it was not heard of in time".to_owned()),
            _ => None,
        };
        Self {
            name: &worker.name,
            health: seen.health.name(),
            reason,
            paused: worker.pause(now).map(paused),
            broke: worker.broke(now).map(paused),
            epoch: worker.announce.epoch,
            model: worker.announce.worker.model.as_deref(),
            model_tier: worker.announce.worker.model_tier.as_deref(),
            active: worker.taken(),
            elsewhere: worker.taken() - worker.given(),
            places: worker.places(),
            draining: worker.draining,
            labels: &worker.labels,
            skills: &worker.skills,
            account: worker.account.as_deref(),
            via: seen.via.name(),
            announced_at: seen.announced_at,
            heard_at: seen.heard_at,
            lease_until: worker.lease_until,
            last_success: worker.turns.last_success,
            failures: worker.turns.failures,
            last_failure: worker.turns.last_failure.as_deref(),
            success_rate: worker.turns.success,
            unconfirmed: worker.unconfirmed,
            announce: &worker.announce,
        }
    }
}
