//! An agent as the API shows it: what it can do to all who see it, how it is reached to its owner.

use crate::app::App;
use flotilla_core::caller::Caller;
use flotilla_core::ports::Reach;
use flotilla_core::registry::{Agent, Pulse, Source};
use flotilla_core::roster::Presence;
use flotilla_protocol::time::Millis;
use serde_json::{Value, json};
use std::time::Duration;

/// What the signature of an agent's own card is worth, as it is shown to all; none of one that has no card elsewhere, or
/// whose card was not read yet. The reason is for its owner, as it may tell where the agent is.
pub fn signature_of(app: &App, agent: &Agent) -> Option<Value> {
    app.hub.pulse(agent).as_ref().and_then(signature)
}

fn signature(pulse: &Pulse) -> Option<Value> {
    let signed = pulse.signed.as_ref()?;
    let mut shown = json!({ "word": signed.word.name() });
    if !signed.uncovered.is_empty() {
        shown["notCovered"] = json!(signed.uncovered);
    }
    Some(shown)
}

pub fn shown(app: &App, caller: &Caller, agent: &Agent) -> Value {
    let (reach, presence, pulse) = (agent.link.reach(), agent.link.presence(), app.hub.pulse(agent));
    let kind = match (&reach, &presence) {
        (_, Some(_)) => "socket",
        (Some(_), None) => "a2a",
        // One that was added is elsewhere, also if it cannot be reached in any way.
        (None, None) if agent.source.added().is_some() => "a2a",
        (None, None) => "local",
    };
    let extensions: Vec<&str> = agent.capabilities.extensions.iter().map(|extension| extension.uri.as_str()).collect();
    let mut value = json!({
        "name": agent.name,
        "description": agent.description,
        "version": agent.version,
        "kind": kind,
        "source": agent.source.name(),
        "state": app.hub.liveness(agent).name(),
        "visibility": agent.visibility.name(),
        "own": agent.is_owned_by(caller),
        "cardUrl": format!("{}/agents/{}/.well-known/agent-card.json", app.settings().public_url, agent.name),
        "streaming": agent.capabilities.streaming,
        "pushNotifications": agent.capabilities.push_notifications,
        "extensions": extensions,
        "inputModes": agent.input_modes,
        "outputModes": agent.output_modes,
        "protocolVersions": agent.versions,
        "skills": agent.skills,
    });
    if let Some(signature) = pulse.as_ref().and_then(signature) {
        value["signature"] = signature;
    }
    if agent.is_owned_by(caller) {
        own(app, caller, agent, &mut value);
        if let Some(reach) = reach {
            value["remote"] = remote(reach);
        }
        if let Some(pulse) = pulse {
            checks(&pulse, &mut value);
        }
        if let Some(presence) = presence {
            value["presence"] = here(presence, app.now());
        }
    }
    value
}

fn own(app: &App, caller: &Caller, agent: &Agent, value: &mut Value) {
    match &agent.source {
        Source::Configured(place) if caller.rights.is_admin() => value["configuredIn"] = place.to_string().into(),
        Source::Added(added) => {
            value["addedAt"] = json!(added.at);
            value["changedAt"] = json!(added.changed_at);
            let settings = app.hub.shown_settings(agent);
            value["settings"] = settings.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        }
        Source::Configured(_) | Source::Registered => {}
    }
}

/// How an agent elsewhere is reached.
fn remote(reach: Reach) -> Value {
    let mut value = json!({"address": reach.address, "breaker": reach.breaker.name(), "failures": reach.failures});
    if let Some(binding) = reach.binding {
        value["binding"] = binding.into();
    }
    for (name, text) in [("version", reach.version), ("problem", reach.problem), ("credential", reach.credential)] {
        if let Some(text) = text {
            value[name] = text.into();
        }
    }
    value
}

/// What the checks of it came to.
fn checks(pulse: &Pulse, value: &mut Value) {
    let findings: Vec<Value> = pulse
        .findings
        .iter()
        .map(|finding| {
            let (place, problem) = finding.split_once(' ').unwrap_or(("", finding));
            json!({"place": place, "problem": problem})
        })
        .collect();
    let mut checks = json!({"failures": pulse.failures, "findings": findings});
    if let Some(at) = pulse.last_success {
        checks["lastSuccessAt"] = json!(at);
    }
    if let Some(latency) = pulse.latency {
        checks["latencyMs"] = json!(latency.as_secs_f64() * 1000.0);
    }
    if let Some((at, problem)) = &pulse.last_error {
        checks["lastErrorAt"] = json!(at);
        checks["lastError"] = problem.clone().into();
    }
    value["checks"] = checks;
    if let Some(signed) = &pulse.signed {
        value["signature"]["reason"] = signed.reason.clone().into();
    }
}

/// Who of an agent that dials in is connected.
fn here(presence: Presence, now: Millis) -> Value {
    let ago = |length: Duration| Millis(now.0.saturating_sub(i64::try_from(length.as_millis()).unwrap_or(0)));
    let mut value =
        json!({"connections": presence.connections, "waiting": presence.waiting, "running": presence.running});
    if let Some(length) = presence.connected_for {
        value["connectedSince"] = json!(ago(length));
        value["lastSeen"] = json!(now);
    } else if let Some(length) = presence.gone_for {
        value["lastSeen"] = json!(ago(length));
    }
    value
}
