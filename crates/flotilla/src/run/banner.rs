//! What a person sees when the hub has started.

use crate::config::Config;
use flotilla_inbound::App;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;

/// Where things are.
#[derive(Clone, Copy)]
pub struct Places<'a> {
    /// None in memory.
    pub data: Option<&'a Path>,
    /// The address of metrics, if they have one of their own.
    pub metrics: Option<SocketAddr>,
}

/// Written to standard output once everything works.
pub fn show(config: &Config, app: &App, places: Places<'_>, new_key: Option<&str>) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text(config, app, places, new_key).as_bytes()).and_then(|()| out.flush())
}

fn text(config: &Config, app: &App, places: Places<'_>, new_key: Option<&str>) -> String {
    let url = app.settings().public_url.clone();
    let agents = config.agent_names().join(", ");
    let data = places
        .data
        .map_or_else(|| "in memory: gone when this process ends".to_owned(), |dir| dir.display().to_string());
    let mut lines = vec![
        "Flotilla is up.\n".to_owned(),
        format!("  Agent card  {url}/.well-known/agent-card.json"),
        format!("  JSON-RPC    {url}/a2a"),
        format!("  HTTP+JSON   {url}"),
        format!("  gRPC        {}", url.trim_start_matches("https://").trim_start_matches("http://")),
        format!("  Agents      {agents}   (each at {url}/agents/NAME)"),
        format!("  Data        {data}"),
    ];
    if let Some(address) = places.metrics {
        lines.push(format!("  Metrics     http://{address}/metrics"));
    }
    lines.push(String::new());
    if let Some(key) = new_key {
        lines.push(format!("  Owner key   {key}"));
        lines.push(
            "              Shown only this once: keep it. Others get theirs from 'flotilla keys create NAME'.\n"
                .to_owned(),
        );
    }
    if !config.borrowed.is_empty() {
        lines.push(format!(
            "  Taken over  {} from the environment (docs/configuration.md)\n",
            config.borrowed.join(", ")
        ));
    }
    if config.hub.allow_anonymous {
        let because = if config.borrowed.contains(&"A2A_REQUIRE_AUTH") { " (A2A_REQUIRE_AUTH=false)" } else { "" };
        let listen = config.hub.listen;
        lines.push(format!(
            "  WARNING     Anonymous access is on{because}: anyone who reaches {listen} can use this hub.\n"
        ));
    }
    lines.push(format!("Try it:\n\n{}\n\n", request(&url, new_key, config.hub.allow_anonymous)));
    lines.join("\n")
}

/// A request that can be pasted again and again: each paste has a message id of its own.
fn request(url: &str, key: Option<&str>, anonymous: bool) -> String {
    let credential = match (key, anonymous) {
        (Some(key), _) => format!(" -H 'Authorization: Bearer {key}'"),
        (None, true) => String::new(),
        (None, false) => " -H \"Authorization: Bearer $FLOTILLA_KEY\"".to_owned(),
    };
    format!(
        "  curl -s {url}/message:send -H 'A2A-Version: 1.0' -H 'Content-Type: application/a2a+json'{credential} \
         -d '{{\"message\":{{\"messageId\":\"hello-'$(date +%s)-$RANDOM'\",\"role\":\"ROLE_USER\",\"parts\":[{{\"text\":\"Hello, fleet\"}}]}}}}'"
    )
}
