//! The agents of a configuration that are programs on this machine: whether they are there, and what they would announce.

use super::Findings;
use crate::config::{AgentConfig, Kind};
use anyhow::{Context, Result};
use flotilla_protocol::fleet::Announce;
use flotilla_protocol::fleet::announce::{McpHealth, McpStatus};
use flotilla_worker::probe::mcp::Prober;
use flotilla_worker::probe::presence::{Asked, Presence, Product};
use flotilla_worker::probe::{Subject, observe};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a program may take to say what it is.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long an MCP server may take for each step.
const STEP: Duration = Duration::from_secs(20);
/// Servers that are asked at once.
const AT_ONCE: usize = 4;

const ABOUT: &str = "agent";

/// Looks at each, and gives what it would announce.
pub async fn examine(findings: &mut Findings, agents: &BTreeMap<String, AgentConfig>) -> BTreeMap<String, Announce> {
    let mut announcements = BTreeMap::new();
    for (name, agent) in agents {
        let inspected = match inspected(name, agent) {
            Ok(Some(inspected)) => inspected,
            Ok(None) => continue,
            Err(error) => {
                findings.problem(ABOUT, format!("{name}: {error:#}"), "correct its section in the configuration");
                continue;
            }
        };
        if let Some((product, asked)) = &inspected.asked {
            tell_presence(findings, name, &product.presence(asked).await);
        }
        let announce = observe(&inspected.subject, &inspected.prober, |_| {}).await;
        tell_observed(findings, name, &announce);
        announcements.insert(name.clone(), announce);
    }
    announcements
}

struct Inspected {
    /// None where it was asked already.
    asked: Option<(Product, Asked)>,
    subject: Subject,
    prober: Prober,
}

fn inspected(name: &str, agent: &AgentConfig) -> Result<Option<Inspected>> {
    let reaper = std::env::current_exe().context("this program's own file")?;
    let (product, program, arguments, environment, folder, servers) = match agent.kind {
        Kind::Acp | Kind::Opencode => {
            let acp = agent.acp_program(None)?;
            (Some(Product::Acp), acp.program, acp.arguments, acp.environment, acp.folder, acp.mcp_servers)
        }
        Kind::Codex => {
            let codex = agent.codex_program(None)?;
            (Some(Product::Codex), codex.program, codex.arguments, codex.environment, codex.folder, BTreeMap::new())
        }
        Kind::ClaudeCode => {
            let claude = agent.claude(None)?;
            let servers = agent.claude_servers(&claude.environment)?;
            (None, claude.program, Vec::new(), claude.environment, claude.folder, servers)
        }
        Kind::Echo | Kind::Script | Kind::Socket | Kind::A2a | Kind::Command => return Ok(None),
    };
    let subject = Subject { agent_id: name.to_owned(), folder: folder.clone(), servers, max_concurrent: None };
    let prober = Prober {
        reaper: reaper.clone(),
        environment: environment.clone(),
        folder: folder.clone(),
        limit: STEP,
        at_once: AT_ONCE,
    };
    let asked = Asked { reaper, program, arguments, environment, folder, limit: PATIENCE };
    Ok(Some(Inspected { asked: product.map(|product| (product, asked)), subject, prober }))
}

/// What a worker looks at, again and again: of a program of one's own, its repository if it has one.
pub fn looks(name: &str, agent: &AgentConfig) -> Result<Option<(Subject, Prober)>> {
    if agent.kind != Kind::Command {
        return Ok(inspected(name, agent)?.map(|inspected| (inspected.subject, inspected.prober)));
    }
    let program = agent.program()?;
    let subject = Subject { agent_id: name.to_owned(), folder: program.folder.clone(), ..Subject::default() };
    let (reaper, environment, folder) = (program.reaper, program.environment, program.folder);
    Ok(Some((subject, Prober { reaper, environment, folder, limit: STEP, at_once: AT_ONCE })))
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
