//! MCP servers that a configuration names by a file.

use super::AgentConfig;
use anyhow::{Context, Result};
use flotilla_worker::probe::mcp::definition::{self, Definition};
use flotilla_worker::probe::{Own, Servers, Sources};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// The servers of a file; none without one.
pub fn servers(file: Option<&Path>, environment: &[(OsString, OsString)]) -> Result<BTreeMap<String, Definition>> {
    let Some(file) = file else { return Ok(BTreeMap::new()) };
    let text = std::fs::read_to_string(file).with_context(|| format!("mcp_config: {}", file.display()))?;
    definition::read(&text, environment).map_err(|problem| anyhow::anyhow!("mcp_config: {}: {problem}", file.display()))
}

impl AgentConfig {
    /// Those that a `claude-code` agent has: of a file, and, unless these are to be all, by its own settings. What is wrong
    /// with the file is told now; what becomes of it, at each look.
    pub fn claude_servers(&self, environment: &[(OsString, OsString)]) -> Result<Servers> {
        let Some(claude) = &self.claude_code else { return Ok(Servers::default()) };
        servers(claude.mcp_config.as_deref(), environment).context("claude_code")?;
        let listed = claude.mcp_config.as_ref().map(std::path::absolute).transpose().context("mcp_config")?;
        let counts = |source: &str| {
            let is_named = |all: &Vec<String>| all.iter().any(|one| one == source);
            !claude.strict_mcp && claude.setting_sources.as_ref().is_none_or(is_named)
        };
        let sources = Sources { user: counts("user"), project: counts("project"), local: counts("local") };
        Ok(Servers { listed, own: Some(Own::Claude(sources)), ..Servers::default() })
    }
}
