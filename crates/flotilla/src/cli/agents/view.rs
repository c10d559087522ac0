//! Agents, and what was found of one elsewhere, as people read them.

use crate::cli::output::Text;
use serde_json::Value;

/// A few words of an agent among others.
pub fn fields(text: &mut Text, agent: &Value) {
    let word = |name: &str| agent[name].as_str().unwrap_or_default();
    text.field("Agent", word("name")).field("State", word("state")).field("Kind", word("kind"));
    signature(text, &agent["signature"]);
    text.field("Description", word("description"));
    text.address("Address", agent["remote"]["address"].as_str().unwrap_or_default());
    text.field("Last error", last_error(agent));
}

/// What is wrong now; an error that a success came after is past.
fn last_error(agent: &Value) -> &str {
    let is_now = agent["checks"]["failures"].as_u64().is_some_and(|failures| failures > 0);
    agent["checks"]["lastError"].as_str().filter(|_| is_now).unwrap_or_default()
}

fn words(list: &Value) -> String {
    let words: Vec<&str> = list.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    words.join(", ")
}

/// All of one agent.
pub fn agent(agent: &Value) {
    let mut text = Text::default();
    let word = |name: &str| agent[name].as_str().unwrap_or_default();
    text.field("Agent", word("name")).field("State", word("state")).field("Kind", word("kind"));
    text.field("From", word("source"))
        .field("Configured in", word("configuredIn"))
        .field("Visibility", word("visibility"));
    text.field("Description", word("description")).field("Version", word("version")).address("Card", word("cardUrl"));
    signature(&mut text, &agent["signature"]);
    text.field("A2A versions", &words(&agent["protocolVersions"]));
    text.field("Takes", &words(&agent["inputModes"])).field("Makes", &words(&agent["outputModes"]));
    skills(&mut text, agent);
    let remote = |name: &str| agent["remote"][name].as_str().unwrap_or_default();
    text.address("Address", remote("address")).field("Binding", remote("binding"));
    text.field("Credential", remote("credential")).field("Breaker", remote("breaker"));
    let check = |name: &str| agent["checks"][name].as_str().unwrap_or_default();
    text.field("Last success", check("lastSuccessAt"));
    if let Some(latency) = agent["checks"]["latencyMs"].as_f64() {
        text.field("Latency", &format!("{latency:.1} ms"));
    }
    text.field("Last error at", check("lastErrorAt")).field("Last error", check("lastError"));
    findings(&mut text, &agent["checks"]["findings"]);
    let presence = &agent["presence"];
    if presence.is_object() {
        let time = |name: &str| presence[name].as_str().unwrap_or_default();
        text.field("Connections", &presence["connections"].to_string());
        text.field("Connected since", time("connectedSince")).field("Last seen", time("lastSeen"));
        text.field("Waiting", &presence["waiting"].to_string()).field("Running", &presence["running"].to_string());
    }
    text.field("Added at", word("addedAt")).field("Changed at", word("changedAt")).print();
}

/// What was found at an address.
pub fn report(report: &Value) {
    let mut text = Text::default();
    let word = |name: &str| report[name].as_str().unwrap_or_default();
    text.field("Name", word("name")).field("Description", word("description")).field("Version", word("version"));
    text.address("Card", word("cardUrl")).field("Form", word("form"));
    signature(&mut text, &report["signature"]);
    for interface in report["interfaces"].as_array().into_iter().flatten() {
        let word = |name: &str| interface[name].as_str().unwrap_or_default();
        let told = format!("{} {} {}", word("binding"), word("protocolVersion"), word("url"));
        text.address("Interface", &told);
    }
    text.field("Would be called by", format!("{} {}", word("binding"), word("protocolVersion")).trim());
    skills(&mut text, report);
    text.field("Wants", &words(&report["securitySchemes"]));
    findings(&mut text, &report["findings"]);
    text.field("Problem", word("problem"));
    for tried in report["tried"].as_array().into_iter().flatten() {
        let word = |name: &str| tried[name].as_str().unwrap_or_default();
        text.address("Tried", &format!("{}: {}", word("address"), word("problem")));
    }
    text.field("Added as", report["agent"]["name"].as_str().unwrap_or_default()).print();
}

fn signature(text: &mut Text, signature: &Value) {
    let word = |name: &str| signature[name].as_str().unwrap_or_default();
    match (word("word"), word("reason")) {
        ("", _) => {}
        (one, "") => {
            let open = words(&signature["notCovered"]);
            let open = if open.is_empty() { open } else { format!(" (not covered: {open})") };
            text.field("Signature", &format!("{one}{open}"));
        }
        (one, reason) => drop(text.field("Signature", &format!("{one} ({reason})"))),
    }
}

fn skills(text: &mut Text, of: &Value) {
    for skill in of["skills"].as_array().into_iter().flatten() {
        let word = |name: &str| skill[name].as_str().unwrap_or_default();
        let tags = words(&skill["tags"]);
        let tags = if tags.is_empty() { tags } else { format!(" [{tags}]") };
        text.field("Skill", &format!("{} ({}){tags}", word("name"), word("id")));
    }
}

fn findings(text: &mut Text, findings: &Value) {
    for finding in findings.as_array().into_iter().flatten() {
        let word = |name: &str| finding[name].as_str().unwrap_or_default();
        text.field("Finding", &format!("{} {}", word("place"), word("problem")));
    }
}
