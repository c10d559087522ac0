//! What is looked at of an agent that is a program: the program itself, its MCP servers, its repository.

use crate::config::{AgentConfig, Kind};
use anyhow::{Context, Result};
use flotilla_worker::attach::Looks;
use flotilla_worker::probe::mcp::Prober;
use flotilla_worker::probe::presence::{Asked, Known, Product};
use flotilla_worker::probe::{Own, Servers, Subject};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long a program may take to say what it is.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long an MCP server may take for each step.
const STEP: Duration = Duration::from_secs(20);
/// Servers that are asked at once.
const AT_ONCE: usize = 4;

/// None for an agent that is no program.
pub fn looks(agent: &AgentConfig) -> Result<Option<Looks>> {
    let reaper = std::env::current_exe().context("this program's own file")?;
    let (product, program, arguments, environment, folder, servers, git) = match agent.kind {
        Kind::Acp | Kind::Opencode => {
            let acp = agent.acp_program(None)?;
            let servers = Servers { given: acp.mcp_servers, ..Servers::default() };
            (Some(Product::Acp), acp.program, acp.arguments, acp.environment, acp.folder, servers, acp.git)
        }
        Kind::Codex => {
            let codex = agent.codex_program(None)?;
            let none = Servers::default();
            (Some(Product::Codex), codex.program, codex.arguments, codex.environment, codex.folder, none, codex.git)
        }
        Kind::ClaudeCode => {
            let claude = agent.claude(None)?;
            let servers = agent.claude_servers(&claude.environment)?;
            (Some(Product::Claude), claude.program, Vec::new(), claude.environment, claude.folder, servers, claude.git)
        }
        Kind::Command => {
            let own = agent.program(None)?;
            (None, own.program, own.arguments, own.environment, own.folder, Servers::default(), own.git)
        }
        Kind::Echo | Kind::Script | Kind::Socket | Kind::A2a => return Ok(None),
    };
    let asked = Asked { reaper, program, arguments, environment, folder, limit: PATIENCE };
    let prober = Prober {
        reaper: asked.reaper.clone(),
        environment: asked.environment.clone(),
        folder: asked.folder.clone(),
        limit: STEP,
        room: Arc::new(Semaphore::new(AT_ONCE)),
    };
    let own = match agent.kind {
        Kind::Codex => Some(Own::codex(asked.clone())),
        Kind::Opencode => Own::opencode(asked.clone()),
        _ => servers.own.clone(),
    };
    let servers = Servers { own, ..servers };
    let subject = Subject { folder: asked.folder.clone(), servers, apart: git.worktrees.is_some() };
    let known = product.map(|product| Known::new(product, asked));
    Ok(Some(Looks { subject, prober, known }))
}
