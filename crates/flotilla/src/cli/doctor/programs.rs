//! The agents of a configuration that are programs on this machine: whether they are there, and what they would announce.

use super::Findings;
use crate::assemble;
use crate::config::{AgentConfig, Kind};
use flotilla_protocol::fleet::Announce;
use flotilla_protocol::fleet::announce::{McpHealth, McpStatus};
use flotilla_worker::Agent;
use flotilla_worker::attach::{Found, see};
use flotilla_worker::probe::presence::Presence;
use std::collections::BTreeMap;

const ABOUT: &str = "agent";

/// Looks at each, and gives what it would announce, of so many runs at once.
pub async fn examine(
    findings: &mut Findings,
    agents: &BTreeMap<String, AgentConfig>,
    places: usize,
) -> BTreeMap<String, Announce> {
    let mut announcements = BTreeMap::new();
    for (name, agent) in agents {
        let found = assemble::find(agent, None).await.map_err(|error| format!("{error:#}"));
        if matches!(agent.kind, Kind::Echo | Kind::Script | Kind::Socket | Kind::A2a) {
            tell_needs(findings, name, agent, found.err());
            continue;
        }
        match &found {
            Ok(found) => tell_found(findings, name, found).await,
            Err(problem) => {
                let advice = "install it, or correct its section in the configuration";
                findings.problem(ABOUT, format!("{name}: {problem}"), advice);
            }
        }
        if let Some(announce) = see(name, places, found.as_ref().map_err(String::as_str)).await {
            tell_observed(findings, name, &announce);
            announcements.insert(name.clone(), announce);
        }
    }
    announcements
}

/// What is no program needs little, and a hub does not start without it.
fn tell_needs(findings: &mut Findings, name: &str, agent: &AgentConfig, problem: Option<String>) {
    let advice = "correct its section in the configuration, or put there what it names";
    if let Some(problem) = problem {
        findings.problem(ABOUT, format!("{name}: {problem}"), advice);
    }
    if let Err(error) = agent.check_secrets(name) {
        findings.problem(ABOUT, format!("{error:#}"), advice);
    }
}

async fn tell_found(findings: &mut Findings, name: &str, found: &Found) {
    if let Some(known) = found.looks.as_ref().and_then(|looks| looks.known.as_ref()) {
        tell_presence(findings, name, &known.presence().await);
    } else if let Agent::Command(program) = &found.doer {
        findings.ok(ABOUT, format!("{name}: {}", program.program.display()));
    }
}

fn tell_presence(findings: &mut Findings, name: &str, presence: &Presence) {
    if let Some(problem) = &presence.problem {
        return findings.problem(ABOUT, format!("{name}: {problem}"), "install it, or correct 'program' and 'path'");
    }
    let version = presence.version.as_deref().unwrap_or("a program that does not say which one it is");
    match presence.signed_in {
        Some(false) => findings.note(
            ABOUT,
            format!("{name}: {version}, not signed in"),
            "sign it in with its own program, unless its environment or its settings name another way",
        ),
        Some(true) => findings.ok(ABOUT, format!("{name}: {version}, signed in")),
        None => findings.ok(ABOUT, format!("{name}: {version} (whether it is signed in, it does not tell)")),
    }
}

fn tell_observed(findings: &mut Findings, name: &str, announce: &Announce) {
    for (server, health) in &announce.mcp_health {
        let McpHealth::Observed(seen) = health else { continue };
        let detail = seen.detail.as_deref().unwrap_or_default();
        let what = format!("{name}: MCP server {server}: {} {detail}", seen.status.name());
        let what = what.trim_end().to_owned();
        match seen.status {
            McpStatus::Ok | McpStatus::Disabled => findings.ok(ABOUT, what),
            McpStatus::NeedsAuth => findings.problem(ABOUT, what, "sign in to the server, or give its headers a token"),
            McpStatus::Timeout | McpStatus::Failed => {
                findings.problem(ABOUT, what, "start it by hand to see what it says, or take it out of the file");
            }
            McpStatus::Unknown => findings.note(ABOUT, what, "nothing; work that needs this server is not sent here"),
        }
    }
    if let Some(repository) = &announce.session.repo_state {
        let branch = repository.branch.as_deref().unwrap_or("no branch");
        let dirty = match repository.dirty_files {
            None | Some(0) => "clean".to_owned(),
            Some(count) => format!("{count} files not committed"),
        };
        findings.ok(ABOUT, format!("{name}: repository on {branch}, {dirty}"));
    }
}
