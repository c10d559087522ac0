//! The kinds of agents a configuration may have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Sends back what it is sent.
    Echo,
    /// Does what its script says.
    Script,
    /// Connects to the hub by itself; see docs/sockets.md.
    Socket,
    /// Is elsewhere, and speaks A2A.
    A2a,
    /// Is a program on this machine.
    Command,
    /// Is a program on this machine that speaks the Agent Client Protocol.
    Acp,
    /// Is opencode on this machine.
    Opencode,
    /// Is Codex on this machine.
    Codex,
    /// Is Claude Code on this machine.
    ClaudeCode,
}

impl Kind {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Script => "script",
            Self::Socket => "socket",
            Self::A2a => "a2a",
            Self::Command => "command",
            Self::Acp => "acp",
            Self::Opencode => "opencode",
            Self::Codex => "codex",
            Self::ClaudeCode => "claude-code",
        }
    }
}
