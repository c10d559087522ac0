//! What stands in the configuration of an agent that is Claude Code (`kind: claude-code`).

use super::program::{check_folders, reaper, section};
use super::{AgentConfig, Kind};
use anyhow::{Context, Result, bail};
use flotilla_protocol::wire::Json;
use flotilla_worker::claude::{Settings, Wishes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The kernel takes no longer word on a command line.
const LONGEST_WORD: usize = 100_000;

section! {
    /// Claude Code, how it is started, what it may do and what a run of it may cost.
    pub struct ClaudeConfig, memory: "super::program::much_memory", processor: "super::program::much_time" {
        /// The program's file, or a name that is looked for in `path`.
        #[serde(default = "claude")]
        pub program: String,
        /// Where it works.
        pub folder: PathBuf,
        /// A folder that `folder` may not lead out of, by links either.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub root: Option<PathBuf>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub model: Option<String>,
        /// What it may do unasked, by Claude Code's own names, such as `acceptEdits` or `plan`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub permission_mode: Option<String>,
        /// Tools it may use unasked, such as `Read` or `Bash(git *)`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub allowed_tools: Vec<String>,
        /// Tools it does not get.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub disallowed_tools: Vec<String>,
        /// A file that lists MCP servers, as Claude Code reads it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub mcp_config: Option<PathBuf>,
        /// Whether it uses no other MCP servers than those.
        #[serde(default)]
        pub strict_mcp: bool,
        /// What is added to its system prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub append_system_prompt: Option<String>,
        /// Which settings on the machine count, of `user`, `project` and `local`; all if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub setting_sources: Option<Vec<String>>,
        /// The JSON Schema of every reply, which comes as data then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub json_schema: Option<Map<String, Value>>,
        /// What the answer to one message may cost, in US dollars.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub max_budget_usd: Option<f64>,
        /// How often the model may be asked for the answer to one message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub max_turns: Option<u32>,
        /// What becomes of a message that comes during a run: the next run takes it up (`queue`, the default), or the run is
        /// told at once (`steer`).
        #[serde(default)]
        pub follow_up: FollowUp,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FollowUp {
    #[default]
    Queue,
    Steer,
}

fn claude() -> String {
    "claude".into()
}

impl AgentConfig {
    pub(super) fn check_claude(&self) -> Result<()> {
        match (self.kind, &self.claude_code) {
            (Kind::ClaudeCode, None) => {
                bail!("a claude-code agent needs 'claude_code:' with a folder (docs/claude-code.md shows how)")
            }
            (Kind::ClaudeCode, Some(claude)) => claude.check().context("claude_code"),
            (_, Some(_)) => bail!("claude_code: only a claude-code agent takes it; say 'kind: claude-code'"),
            (_, None) => Ok(()),
        }
    }

    /// Claude Code, ready to be asked what it can do. `state` is a folder of the agent's own, if anything is kept.
    pub fn claude(&self, state: Option<&Path>) -> Result<Settings> {
        let claude = self.claude_code.as_ref().context("a claude-code agent needs 'claude_code:'")?;
        claude.settings(state).context("claude_code")
    }
}

impl ClaudeConfig {
    fn check(&self) -> Result<()> {
        if self.program.is_empty() {
            bail!("program: must name a program");
        }
        self.shared().check()?;
        if self.max_budget_usd.is_some_and(|most| most.is_nan() || most <= 0.0) || self.max_turns == Some(0) {
            bail!("max_budget_usd and max_turns must be more than nothing");
        }
        if self.allowed_tools.iter().chain(&self.disallowed_tools).any(|tool| tool.trim().is_empty()) {
            bail!("allowed_tools and disallowed_tools must name tools, such as Read or Bash(git *)");
        }
        let schema = serde_json::to_string(&self.json_schema)?;
        let prompt = self.append_system_prompt.as_ref().map_or(0, String::len);
        if schema.len().max(prompt) > LONGEST_WORD {
            bail!("json_schema and append_system_prompt may each have {LONGEST_WORD} bytes");
        }
        let schema = self.json_schema.clone().map(Value::Object);
        if let Some(problem) = schema.as_ref().and_then(flotilla_core::fleet::schema::malformed) {
            bail!("json_schema: is no JSON Schema: {problem}");
        }
        // A key in a file is soon in a backup, a screenshot, a repository.
        for name in ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"] {
            if self.env.get(name).is_some_and(|value| !value.starts_with("env:")) {
                bail!("env.{name}: write env:NAME, and give the hub the secret in its environment variable NAME");
            }
        }
        Ok(())
    }

    pub(super) fn check_places(&self) -> Result<()> {
        check_folders([
            ("folder", Some(&self.folder)),
            ("root", self.root.as_deref()),
            ("home", self.home.as_deref()),
        ])?;
        if let Some(file) = self.mcp_config.as_ref().filter(|file| !file.is_file()) {
            bail!("mcp_config: {} is not a file", file.display());
        }
        Ok(())
    }

    fn settings(&self, state: Option<&Path>) -> Result<Settings> {
        let shared = self.shared();
        let mut environment = shared.environment()?;
        // The program must stay what it was found to be.
        if !self.env.contains_key("DISABLE_AUTOUPDATER") {
            environment.push(("DISABLE_AUTOUPDATER".into(), "1".into()));
        }
        Ok(Settings {
            reaper: reaper()?,
            program: shared.find(&self.program, &std::env::current_dir().context("the hub's folder")?)?,
            environment,
            folder: self.folder.clone(),
            root: self.root.clone(),
            bounds: shared.bounds(),
            limits: shared.limits(),
            git: shared.git.plan(state),
            wishes: self.wishes()?,
            state: state.map(Path::to_owned),
        })
    }

    fn wishes(&self) -> Result<Wishes> {
        let absolute = |file: &PathBuf| std::path::absolute(file);
        Ok(Wishes {
            model: self.model.clone(),
            permission_mode: self.permission_mode.clone(),
            allowed_tools: self.allowed_tools.clone(),
            disallowed_tools: self.disallowed_tools.clone(),
            mcp_config: self.mcp_config.as_ref().map(absolute).transpose()?,
            strict_mcp: self.strict_mcp,
            append_system_prompt: self.append_system_prompt.clone(),
            setting_sources: self.setting_sources.as_ref().map(|sources| sources.join(",")),
            json_schema: self.json_schema.as_ref().map(Json::of).transpose()?,
            max_budget_usd: self.max_budget_usd,
            max_turns: self.max_turns,
            steer: self.follow_up == FollowUp::Steer,
        })
    }
}
