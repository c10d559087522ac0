//! MCP servers that a configuration names by a file.

use super::AgentConfig;
use anyhow::{Context, Result};
use flotilla_worker::probe::mcp::definition::{self, Definition};
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
    /// Those that a `claude-code` agent is given.
    pub fn claude_servers(&self, environment: &[(OsString, OsString)]) -> Result<BTreeMap<String, Definition>> {
        let file = self.claude_code.as_ref().and_then(|claude| claude.mcp_config.as_deref());
        servers(file, environment).context("claude_code")
    }
}
