//! What is looked at of an agent that is a program: the program itself, its MCP servers, its repository.

use crate::config::{AgentConfig, Kind};
use anyhow::{Context, Result};
use flotilla_worker::attach::Looks;
use flotilla_worker::probe::Subject;
use flotilla_worker::probe::mcp::Prober;
use flotilla_worker::probe::presence::{Asked, Product};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a program may take to say what it is.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long an MCP server may take for each step.
const STEP: Duration = Duration::from_secs(20);
/// Servers that are asked at once.
const AT_ONCE: usize = 4;

pub struct Inspected {
    /// None of a program of one's own, which is asked nothing.
    pub product: Option<Product>,
    pub asked: Asked,
    pub looks: Looks,
}

/// None for an agent that is no program.
pub fn inspect(name: &str, agent: &AgentConfig) -> Result<Option<Inspected>> {
    agent.check_places()?;
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
            (Some(Product::Claude), claude.program, Vec::new(), claude.environment, claude.folder, servers)
        }
        Kind::Command => {
            let own = agent.program(None)?;
            (None, own.program, own.arguments, own.environment, own.folder, BTreeMap::new())
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
    Ok(Some(Inspected { product, asked, looks: Looks { subject, prober } }))
}
