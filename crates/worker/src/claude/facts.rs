//! What a session says of itself when it begins: the measured part of an announcement.

use super::frame::Init;
use flotilla_protocol::block::Block;
use flotilla_protocol::fleet::announce::{Announce, McpHealth, McpStatus};
use flotilla_protocol::wire::Json;
use serde_json::json;

/// Facts of the latest session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    pub model: String,
    pub tools: Vec<String>,
    /// Each by name, with the program's own word for how it is.
    pub mcp_servers: Vec<(String, String)>,
    pub version: String,
    pub session: String,
    pub permission_mode: String,
    /// Known after the first turn.
    pub context_window: Option<u64>,
}

impl Facts {
    pub(super) fn of(init: &Init) -> Self {
        Self {
            model: init.model.clone(),
            tools: init.tools.clone(),
            mcp_servers: init.mcp_servers.iter().map(|server| (server.name.clone(), server.status.clone())).collect(),
            version: init.claude_code_version.clone(),
            session: init.session_id.clone(),
            permission_mode: init.permission_mode.clone(),
            context_window: None,
        }
    }

    /// Puts what was seen into an announcement, in the place of what was assumed.
    pub fn fill(&self, announce: &mut Announce) {
        announce.worker.model = Some(self.model.clone());
        announce.worker.vendor = Some("anthropic".into());
        announce.worker.context_window = self.context_window.or(announce.worker.context_window);
        announce.capabilities.tools = self.tools.clone();
        announce.capabilities.mcp_servers = self.mcp_servers.iter().map(|(name, _)| name.clone()).collect();
        let health = |(name, status): &(String, String)| (name.clone(), McpHealth::Plain(status_of(status)));
        announce.mcp_health = self.mcp_servers.iter().map(health).collect();
    }

    /// The same for the owner's log.
    pub(super) fn block(&self) -> Option<Block> {
        let servers: Vec<_> =
            self.mcp_servers.iter().map(|(name, status)| json!({"name": name, "status": status})).collect();
        let facts = json!({
            "type": "session", "session_id": self.session, "model": self.model, "claude_code_version": self.version,
            "permission_mode": self.permission_mode, "tools": self.tools, "mcp_servers": servers,
        });
        Block::new(Json::of(&facts).ok()?).ok()
    }
}

/// What a result tells of a model's size.
pub(super) fn context_window(usage: &Json) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct Window {
        #[serde(rename = "contextWindow")]
        window: Option<u64>,
    }
    serde_json::from_str::<Window>(usage.text()).ok()?.window
}

fn status_of(word: &str) -> McpStatus {
    match word {
        "connected" => McpStatus::Ok,
        "failed" => McpStatus::Failed,
        "needs-auth" => McpStatus::NeedsAuth,
        "disabled" => McpStatus::Disabled,
        _ => McpStatus::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::Facts;
    use flotilla_protocol::fleet::announce::{Announce, McpStatus};

    #[test]
    fn an_announcement_is_filled_with_what_was_seen() {
        let servers = vec![("docs".into(), "connected".into()), ("mail".into(), "needs-auth".into())];
        let facts = Facts { model: "m".into(), tools: vec!["Bash".into()], mcp_servers: servers, ..Facts::default() };
        let mut announce = Announce::default();
        facts.fill(&mut announce);
        assert_eq!((announce.worker.model.as_deref(), announce.has_tool("Bash")), (Some("m"), true));
        assert_eq!((announce.mcp("docs"), announce.mcp("mail")), (Some(McpStatus::Ok), Some(McpStatus::NeedsAuth)));
        assert!(facts.block().is_some_and(|block| block.to_part().is_none()), "for the owner only");
    }
}
