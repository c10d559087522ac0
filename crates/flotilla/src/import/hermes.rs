//! Hermes' A2A plugin: a folder per agent with an `identity.yaml`, or older `vault.yaml` files of profiles.

use super::{Draft, read, secret, text};
use anyhow::{Result, anyhow, bail};
use serde_json::{Value, json};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// Where its folders are when none is named.
pub fn usual_home() -> Option<PathBuf> {
    let env = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    env("HERMES_HOME").or_else(|| env("HOME").map(|home| home.join(".hermes")))
}

/// Looks for agents below a directory: Hermes' home, its `fleet`, or the folder that holds the agents.
pub fn import(dir: &Path) -> Result<Draft> {
    if !dir.is_dir() {
        bail!("{} is no directory; name the one that holds Hermes' folders, or set HERMES_HOME", dir.display());
    }
    let (mut draft, mut found) = (Draft::default(), 0);
    for below in ["", "agents", "a2a/agents", "fleet/a2a/agents"] {
        for folder in folders(&dir.join(below)) {
            let file = folder.join("identity.yaml");
            found += with_file(&mut draft, &file, |draft, identity| take(draft, &file, &folder, identity));
        }
    }
    for profile in folders(&dir.join("profiles")) {
        let file = profile.join("a2a/vault.yaml");
        found += with_file(&mut draft, &file, |draft, vault| take_vault(draft, &file, vault));
    }
    if found == 0 {
        bail!(
            "there is no identity.yaml of an agent below {} (looked for NAME/identity.yaml there, in agents, a2a/agents and \
             fleet/a2a/agents, and for profiles/NAME/a2a/vault.yaml)",
            dir.display()
        );
    }
    Ok(draft)
}

/// Folders in the order of their names.
fn folders(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// How many files there were: one or none.
fn with_file(draft: &mut Draft, file: &Path, take: impl FnOnce(&mut Draft, &Value)) -> usize {
    let Some(obstacle) = obstacle(file) else { return 0 };
    match obstacle.map_or_else(|| read(file), |problem| Err(anyhow!("{}: {problem}", file.display()))) {
        Ok(value) if value.is_object() => take(draft, &value),
        Ok(_) => draft.left.push(format!("{}: holds nothing that could be an agent", file.display())),
        Err(error) => draft.left.push(format!("{error:#}")),
    }
    1
}

/// Why a file is not to be read, though there is something of its name; none if there is nothing. Whoever opens a FIFO or a
/// device may wait for ever.
fn obstacle(file: &Path) -> Option<Option<String>> {
    let nowhere = |error: &Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    if std::fs::symlink_metadata(file).is_err_and(|error| nowhere(&error)) {
        return None;
    }
    Some(match std::fs::metadata(file) {
        Ok(there) if there.is_file() => None,
        Ok(there) if there.is_dir() => Some("is a directory, and no file".into()),
        Ok(_) => Some("is no file that can be read, but a FIFO, a socket or a device".into()),
        Err(error) if nowhere(&error) => Some("is a link that leads nowhere".into()),
        Err(error) => Some(format!("cannot be read: {error}")),
    })
}

fn take(draft: &mut Draft, file: &Path, folder: &Path, identity: &Value) {
    let origin = file.display().to_string();
    let named = text(identity, "name").or_else(|| text(identity, "id"));
    let folder = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = named.unwrap_or(&folder).to_owned();
    let none = Value::Null;
    let transports = identity.get("transports").unwrap_or(&none);
    let rpc = transports.get("a2a_rpc").unwrap_or(&none);
    let card = transports.get("agent_card").unwrap_or(&none);
    tell_what_is_left(draft, &origin, identity, transports);
    let address = text(rpc, "url").or_else(|| text(identity, "a2a_url"));
    let Some((key, value)) = place(address, card) else {
        let why = "it has no A2A address (transports.a2a_rpc.url); connect it to the hub instead: docs/sockets.md";
        draft.leave(&origin, &name, why);
        return;
    };
    let before = draft.todo.len();
    if text(card, "url").is_none() && has_path(&value) {
        draft.todo.push(format!(
            "{origin}: {name}: the file does not say where its card is; it is looked for below {value}, so see whether it \
             is there (flotilla agents discover {value}), or write 'card: URL'"
        ));
    }
    let mut agent = json!({"kind": "a2a", key: value});
    if let Some(description) = text(identity, "description").or_else(|| text(identity, "role")) {
        agent["description"] = description.into();
    }
    let bearer = text(identity, "auth_token").map(|token| json!({"type": "bearer", "token": token}));
    let auth = rpc.get("auth").filter(|auth| auth.is_object()).cloned().or(bearer);
    if let Some(auth) = auth.and_then(|auth| credential(draft, &origin, &name, &auth)) {
        agent["auth"] = auth;
    }
    if draft.add(&origin, &name, agent, before) {
        tell_the_rest(draft, &origin, identity, transports);
    }
}

/// How addresses end at which an agent is called, and below which no card is.
const CALLED: [&str; 3] = ["/rpc", "/jsonrpc", "/json-rpc"];

/// What an address at which an agent is called is below.
fn base(address: &str) -> &str {
    let address = address.trim_end_matches('/');
    let below = CALLED.iter().find_map(|end| address.strip_suffix(end));
    below.filter(|below| below.contains("://") && !below.ends_with('/')).unwrap_or(address)
}

fn has_path(address: &str) -> bool {
    address.split_once("://").is_some_and(|(_, rest)| rest.contains('/'))
}

/// The base the card is found below, or the card's own address.
fn place(address: Option<&str>, card: &Value) -> Option<(&'static str, String)> {
    let trimmed = |url: &str| url.trim_end_matches('/').to_owned();
    let Some(base) = text(card, "url") else { return Some(("url", base(address?).to_owned())) };
    let path = text(card, "path").unwrap_or("/.well-known/agent.json");
    if base.ends_with(".json") {
        return Some(("card", base.to_owned()));
    }
    match path.trim_start_matches('/') {
        ".well-known/agent.json" | ".well-known/agent-card.json" => Some(("url", trimmed(base))),
        other => Some(("card", format!("{}/{other}", trimmed(base)))),
    }
}

fn credential(draft: &mut Draft, origin: &str, name: &str, auth: &Value) -> Option<Value> {
    let kind = text(auth, "type").unwrap_or("bearer");
    let at = format!("{origin}: {name}");
    let mut place = |literal: &str, variable: &str, fallback: &str| {
        let fallback = format!("{name}_{fallback}");
        secret(draft, &at, text(auth, literal), text(auth, variable), &fallback)
    };
    let header = text(auth, "header").or_else(|| text(auth, "name"));
    match kind {
        "none" => None,
        "bearer" => Some(json!({"bearer": place("token", "token_env", "token")})),
        "api_key" if header.is_none_or(|name| name.eq_ignore_ascii_case("x-api-key")) => {
            Some(json!({"api_key": place("value", "value_env", "key")}))
        }
        "api_key" | "custom_header" => {
            let value = place("value", "value_env", "key");
            Some(json!({"header": {"name": header.unwrap_or("X-API-Key"), "value": value}}))
        }
        other => {
            draft.leave(
                origin,
                &format!("auth of type {other}"),
                "calls of an agent are not signed so; set 'auth' by hand",
            );
            None
        }
    }
}

/// What the plugin can do and the hub does in another way, or not.
fn tell_what_is_left(draft: &mut Draft, origin: &str, identity: &Value, transports: &Value) {
    let has = |key: &str| identity.get(key).is_some_and(|value| !value.is_null());
    if transports.get("hermes_webhook").is_some() || has("webhook_url") {
        draft.leave(
            origin,
            "hermes_webhook",
            "messages into a Hermes session are not relayed; agents are called by A2A",
        );
    }
    if has("auth") {
        draft.leave(
            origin,
            "auth at the top of the file",
            "Hermes reads it in transports.a2a_rpc; if the agent wants it, set 'auth' by hand",
        );
    }
    if has("platforms") || has("telegram_bot_token") {
        draft.leave(origin, "platforms", "the hub speaks to no chat; its bot's token was not copied");
    }
}

/// All that nothing else here looks at. What its skills and capabilities are, an agent's card says.
fn tell_the_rest(draft: &mut Draft, origin: &str, identity: &Value, transports: &Value) {
    let known = [
        "id",
        "name",
        "description",
        "role",
        "transports",
        "a2a_url",
        "auth_token",
        "auth",
        "webhook_url",
        "platforms",
        "telegram_bot_token",
        "metadata",
    ];
    draft.leave_others(origin, "", Some(identity), &known);
    draft.leave_others(origin, "metadata.", identity.get("metadata"), &["skills", "capabilities"]);
    draft.leave_others(origin, "transports.", Some(transports), &["a2a_rpc", "agent_card", "hermes_webhook"]);
    let rpc = transports.get("a2a_rpc");
    draft.leave_others(origin, "transports.a2a_rpc.", rpc, &["protocol", "url", "auth"]);
    let known = ["type", "token", "token_env", "value", "value_env", "header", "name"];
    draft.leave_others(origin, "transports.a2a_rpc.auth.", rpc.and_then(|rpc| rpc.get("auth")), &known);
    draft.leave_others(origin, "transports.agent_card.", transports.get("agent_card"), &["protocol", "url", "path"]);
}

fn take_vault(draft: &mut Draft, file: &Path, vault: &Value) {
    let origin = file.display().to_string();
    let Some(agents) = vault.get("agents").and_then(Value::as_object) else {
        draft.left.push(format!("{origin}: lists no agents"));
        return;
    };
    draft.leave_others(&origin, "", Some(vault), &["agents"]);
    for (name, entry) in agents {
        let mut identity = entry.clone();
        let Some(object) = identity.as_object_mut() else {
            draft.leave(
                &origin,
                &format!("agents.{name}"),
                "is no mapping, so that there is nothing to make an agent of",
            );
            continue;
        };
        object.insert("name".into(), name.as_str().into());
        take(draft, file, Path::new(name), &identity);
    }
}
