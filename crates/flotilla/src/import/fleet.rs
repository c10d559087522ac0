//! The a2a_fleet plugin: one `fleet.yaml` with the node's own server and its peers.

use super::{Draft, read, secret, text};
use anyhow::{Result, bail};
use serde_json::{Value, json};
use std::path::Path;

pub fn import(file: &Path) -> Result<Draft> {
    let whole = read(file)?;
    let Some(fleet) = whole.get("fleet").filter(|fleet| fleet.is_object()) else {
        bail!("{}: has no section 'fleet', so it is no fleet.yaml of a2a_fleet", file.display());
    };
    let mut draft = Draft::default();
    let origin = file.display().to_string();
    own(&mut draft, &origin, fleet);
    tell_the_rest(&mut draft, &origin, &whole, fleet);
    for (name, peer) in fleet.get("agents").and_then(Value::as_object).into_iter().flatten() {
        take(&mut draft, &origin, name, peer);
    }
    Ok(draft)
}

/// The node itself: where it listens, and what it is called.
fn own(draft: &mut Draft, origin: &str, fleet: &Value) {
    let none = Value::Null;
    let server = fleet.get("server").unwrap_or(&none);
    if let Some(name) = fleet.get("self").and_then(|own| text(own, "name")) {
        draft.hub.insert("name".into(), name.into());
    }
    if let Some(port) = server.get("bind_port").and_then(Value::as_u64).filter(|port| *port <= u64::from(u16::MAX)) {
        let host = text(server, "bind_host").unwrap_or("127.0.0.1");
        let host = if host == "localhost" { "127.0.0.1" } else { host };
        match host.parse::<std::net::IpAddr>() {
            Ok(host) => {
                let listen = std::net::SocketAddr::new(host, u16::try_from(port).unwrap_or_default());
                draft.hub.insert("listen".into(), listen.to_string().into());
            }
            Err(_) => draft.leave(origin, "server.bind_host", "the hub listens on an address, not on a name"),
        }
    }
    if let Some(variable) = text(server, "token_env") {
        draft.todo.push(format!(
            "{origin}: server.token_env: callers of this node showed the token in {variable}; start the hub with \
             A2A_AUTH_TOKEN=\"${variable}\", or give each a key: flotilla keys create NAME"
        ));
    }
    if server.get("auth_required") == Some(&Value::Bool(false)) {
        draft.leave(
            origin,
            "server.auth_required: false",
            "callers need a key here; hub.allow_anonymous lets others in",
        );
    }
    for key in ["response_handler", "llm", "agent", "herdr"] {
        if fleet.get(key).is_some_and(|value| !value.is_null()) {
            draft.leave(origin, key, "the hub has no model of its own; its agents answer");
        }
    }
    if fleet.get("enabled") == Some(&Value::Bool(false)) {
        draft.todo.push(format!("{origin}: the fleet is not enabled there; its peers were taken over all the same"));
    }
}

/// All that nothing else here looks at.
fn tell_the_rest(draft: &mut Draft, origin: &str, whole: &Value, fleet: &Value) {
    draft.leave_others(origin, "", Some(whole), &["fleet"]);
    let known = ["self", "server", "agents", "enabled", "response_handler", "llm", "agent", "herdr"];
    draft.leave_others(origin, "fleet.", Some(fleet), &known);
    draft.leave_others(origin, "fleet.self.", fleet.get("self"), &["name"]);
    let known = ["bind_host", "bind_port", "token_env", "auth_required"];
    draft.leave_others(origin, "fleet.server.", fleet.get("server"), &known);
}

fn take(draft: &mut Draft, origin: &str, name: &str, peer: &Value) {
    let at = format!("{origin}: agents.{name}");
    if text(peer, "mode") == Some("herdr_session") {
        draft.left.push(format!("{at}: a Herdr session is no A2A agent; nothing can be called"));
        return;
    }
    let Some(url) = text(peer, "url") else {
        draft.left.push(format!("{at}: has no url"));
        return;
    };
    let (mut agent, before) = (json!({"kind": "a2a"}), draft.todo.len());
    // The base is what the peer's card is found below; one that is elsewhere is named.
    let base = url.trim_end_matches('/').trim_end_matches("/jsonrpc");
    match text(peer, "agent_card_url").filter(|card| *card != format!("{base}/.well-known/agent-card.json")) {
        Some(card) => agent["card"] = card.into(),
        None => agent["url"] = base.into(),
    }
    if let Some(description) = text(peer, "description") {
        agent["description"] = description.into();
    }
    if let Some(variable) = text(peer, "token_env") {
        agent["auth"] = json!({"bearer": secret(draft, &at, None, Some(variable), name)});
    }
    if peer.get("managed") == Some(&Value::Bool(true)) {
        let mode = text(peer, "mode").unwrap_or("managed");
        let repository = text(peer, "repo_path").unwrap_or("its repository");
        draft.todo.push(format!(
            "{at}: its receiver ({mode}, in {repository}) is started by Hermes, not by the hub; keep Hermes running, or \
             let the hub run the program itself: docs/command-agent.md"
        ));
    }
    if draft.add(&at, name, agent, before) {
        let known = ["url", "agent_card_url", "description", "token_env", "managed", "mode", "repo_path"];
        draft.leave_others(&at, "", Some(peer), &known);
    }
}
