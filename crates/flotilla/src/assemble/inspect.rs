//! What is looked at of an agent that is a program: the program itself, its MCP servers, its repository.

use crate::config::{AgentConfig, Kind};
use anyhow::{Context, Result};
use flotilla_worker::attach::Looks;
use flotilla_worker::probe::mcp::Prober;
use flotilla_worker::probe::presence::{Asked, Known, Product};
use flotilla_worker::probe::{Servers, Subject};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a program may take to say what it is.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long an MCP server may take for each step.
const STEP: Duration = Duration::from_secs(20);
/// Servers that are asked at once.
const AT_ONCE: usize = 4;

/// None for an agent that is no program.
pub fn looks(name: &str, agent: &AgentConfig) -> Result<Option<Looks>> {
    let reaper = std::env::current_exe().context("this program's own file")?;
    let none = Servers::Given(BTreeMap::new());
    let (product, program, arguments, environment, folder, servers) = match agent.kind {
        Kind::Acp | Kind::Opencode => {
            let acp = agent.acp_program(None)?;
            (
                Some(Product::Acp),
                acp.program,
                acp.arguments,
                acp.environment,
                acp.folder,
                Servers::Given(acp.mcp_servers),
            )
        }
        Kind::Codex => {
            let codex = agent.codex_program(None)?;
            (Some(Product::Codex), codex.program, codex.arguments, codex.environment, codex.folder, none)
        }
        Kind::ClaudeCode => {
            let claude = agent.claude(None)?;
            // What is wrong with it is told at the start; what becomes of it, at each look.
            agent.claude_servers(&claude.environment)?;
            let file = agent.claude_code.as_ref().and_then(|claude| claude.mcp_config.as_ref());
            let file = file.map(std::path::absolute).transpose().context("mcp_config")?;
            let servers = file.map_or(none, Servers::Listed);
            (Some(Product::Claude), claude.program, Vec::new(), claude.environment, claude.folder, servers)
        }
        Kind::Command => {
            let own = agent.program(None)?;
            (None, own.program, own.arguments, own.environment, own.folder, none)
        }
        Kind::Echo | Kind::Script | Kind::Socket | Kind::A2a => return Ok(None),
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
    let known = product.map(|product| Known::new(product, asked));
    Ok(Some(Looks { subject, prober, known }))
}
