//! What an owner may ask of Claude Code, and the options of the program that say it.

use super::installed::{BUDGET, Installed, PERMISSIONS, PIECES, REPLAY, SCHEMA, TURNS};
use super::session::Held;
use flotilla_protocol::wire::Json;
use std::ffi::OsString;
use std::path::PathBuf;

/// What is said to every run, whoever calls.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    pub model: Option<String>,
    pub permission_mode: Option<String>,
    pub allowed_tools: Vec<String>,
    pub disallowed_tools: Vec<String>,
    /// A file that lists MCP servers.
    pub mcp_config: Option<PathBuf>,
    /// No other MCP servers than those.
    pub strict_mcp: bool,
    pub append_system_prompt: Option<String>,
    /// Which of the settings on the machine count.
    pub setting_sources: Option<String>,
    /// The form every reply has.
    pub json_schema: Option<Json>,
    pub max_budget_usd: Option<f64>,
    pub max_turns: Option<u32>,
    /// Whether what the caller says during a run is told to it at once, instead of to the next.
    pub steer: bool,
}

impl Wishes {
    /// Each wish by the name of its setting, with the option and its value.
    fn options(&self, max_budget_usd: Option<f64>) -> Vec<(&'static str, &'static str, Option<OsString>)> {
        let text = |text: &Option<String>| text.as_ref().map(|text| text.into());
        let list = |list: &[String]| (!list.is_empty()).then(|| list.join(",").into());
        let wished: [(&str, &str, Option<OsString>); 10] = [
            ("model", "--model", text(&self.model)),
            ("permission_mode", "--permission-mode", text(&self.permission_mode)),
            ("allowed_tools", "--allowedTools", list(&self.allowed_tools)),
            ("disallowed_tools", "--disallowedTools", list(&self.disallowed_tools)),
            ("mcp_config", "--mcp-config", self.mcp_config.as_ref().map(|file| file.into())),
            ("append_system_prompt", "--append-system-prompt", text(&self.append_system_prompt)),
            ("setting_sources", "--setting-sources", text(&self.setting_sources)),
            ("json_schema", SCHEMA, self.json_schema.as_ref().map(|schema| schema.text().into())),
            ("max_budget_usd", BUDGET, max_budget_usd.map(|most| most.to_string().into())),
            ("max_turns", TURNS, self.max_turns.map(|most| most.to_string().into())),
        ];
        let mut options: Vec<_> = wished
            .into_iter()
            .filter_map(|(setting, option, value)| value.map(|value| (setting, option, Some(value))))
            .collect();
        if self.strict_mcp {
            options.push(("strict_mcp", "--strict-mcp-config", None));
        }
        if self.steer {
            options.push(("follow_up", REPLAY, None));
        }
        options
    }

    /// The first wish that the installed program cannot grant.
    pub fn check(&self, installed: &Installed) -> Result<(), String> {
        let version = &installed.version;
        let unmet = self.options(self.max_budget_usd).into_iter().find(|(_, option, _)| !installed.offers(option));
        if let Some((setting, option, _)) = unmet {
            return Err(format!(
                "{setting}: the installed Claude Code ({version}) has no option {option}; leave the setting out, or \
                 install a version that has it"
            ));
        }
        match &self.permission_mode {
            Some(mode) if !installed.names(mode) => Err(format!(
                "permission_mode: the installed Claude Code ({version}) does not list '{mode}'; see its --help"
            )),
            _ => Ok(()),
        }
    }

    /// Everything a run is started with, held to what its ceilings leave it. What the caller says is not among it.
    pub fn arguments(&self, installed: &Installed, held: &Held, left_usd: Option<f64>) -> Vec<OsString> {
        let fixed = ["--print", "--input-format=stream-json", "--output-format=stream-json", "--verbose"];
        let mut arguments: Vec<OsString> = fixed.iter().map(OsString::from).collect();
        if installed.offers(PIECES) {
            arguments.push(PIECES.into());
        }
        if installed.offers(PERMISSIONS) {
            arguments.push(format!("{PERMISSIONS}=stdio").into());
        }
        let opening = if held.is_known { "--resume" } else { "--session-id" };
        arguments.push(format!("{opening}={}", held.id).into());
        let left_usd = left_usd.filter(|_| installed.offers(BUDGET));
        let max_budget_usd = self.max_budget_usd.into_iter().chain(left_usd).reduce(f64::min);
        for (_, option, value) in self.options(max_budget_usd) {
            let mut argument = OsString::from(option);
            // In one word: some options take all the words that follow.
            if let Some(value) = value {
                argument.push("=");
                argument.push(value);
            }
            arguments.push(argument);
        }
        arguments
    }
}
