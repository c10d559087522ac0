//! An announcement made of what was seen, and the watch that tells whether something changed.

use super::mcp::Prober;
use super::mcp::definition::{self, Definition};
use crate::evidence::git::{Git, Trouble};
use crate::evidence::snapshot::Snapshot;
use flotilla_protocol::fleet::announce::{Announce, McpHealth};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// How long git may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is looked at.
#[derive(Debug, Clone)]
pub struct Subject {
    pub agent_id: String,
    pub folder: PathBuf,
    pub servers: Servers,
    pub max_concurrent: Option<u32>,
}

/// The MCP servers an agent has.
#[derive(Debug, Clone)]
pub enum Servers {
    /// Those it is given in every session, as they were read at the start.
    Given(BTreeMap<String, Definition>),
    /// Those of a file that its program reads at the start of every session.
    Listed(PathBuf),
}

impl Servers {
    /// Those it would have in a session that began now.
    fn now(&self, environment: &[(OsString, OsString)]) -> Result<BTreeMap<String, Definition>, String> {
        match self {
            Self::Given(servers) => Ok(servers.clone()),
            Self::Listed(file) => std::fs::read_to_string(file)
                .map_err(|error| error.to_string())
                .and_then(|text| definition::read(&text, environment))
                .map_err(|problem| format!("mcp_config: {}: {problem}", file.display())),
        }
    }
}

/// Looks at an agent's servers and its repository. `learned` puts in what its own sessions have said of themselves; what
/// was asked of a server just now counts more.
pub async fn observe(subject: &Subject, prober: &Prober, learned: impl FnOnce(&mut Announce)) -> Announce {
    let git = Git::new(&subject.folder, PATIENCE);
    let (servers, problem) = match subject.servers.now(&prober.environment) {
        Ok(servers) => (servers, None),
        Err(problem) => (BTreeMap::new(), Some(problem)),
    };
    let (health, repository) = tokio::join!(prober.probe(&servers), Snapshot::take(&git));
    let mut announce = Announce::default();
    learned(&mut announce);
    announce.session.broken = problem.or(announce.session.broken);
    announce.worker.agent_id.clone_from(&subject.agent_id);
    announce.capabilities.max_concurrent = subject.max_concurrent;
    for (name, observation) in health {
        if !announce.capabilities.mcp_servers.contains(&name) {
            announce.capabilities.mcp_servers.push(name.clone());
        }
        announce.mcp_health.insert(name, McpHealth::Observed(observation));
    }
    announce.session.repo_state = match repository {
        Ok(seen) => Some(seen.repo_state()),
        Err(Trouble::NoRepository) => None,
        // One of the agent's own is made when it is needed.
        Err(_) if !subject.folder.exists() => None,
        Err(problem) => {
            tracing::warn!(%problem, folder = %subject.folder.display(), "the repository cannot be looked at");
            None
        }
    };
    announce
}

/// Keeps the latest announcement, so that a changed fact gets a new epoch and the same facts keep theirs.
#[derive(Debug, Default)]
pub struct Watch {
    last: Option<Announce>,
}

impl Watch {
    /// Numbers what was seen now. True if it says something new. `now` are milliseconds since 1970, so that a worker that
    /// was started anew goes on above its old numbers.
    pub fn take(&mut self, mut seen: Announce, now: u64) -> (Announce, bool) {
        let before = self.last.as_ref().and_then(|last| last.epoch).unwrap_or_default();
        let is_new = self.last.as_ref().is_none_or(|last| facts(last) != facts(&seen));
        seen.epoch = Some(if is_new { now.max(before + 1) } else { before });
        self.last = Some(seen.clone());
        (seen, is_new)
    }
}

/// What counts as a change: how a server is, not when or how fast it said so.
fn facts(announce: &Announce) -> Announce {
    let mut facts = announce.clone();
    facts.epoch = None;
    facts.session.last_successful_turn = None;
    for health in facts.mcp_health.values_mut() {
        *health = McpHealth::Plain(health.status());
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::{Servers, Watch};
    use flotilla_protocol::fleet::announce::{Announce, McpHealth, McpStatus, Observation};
    use flotilla_protocol::time::Millis;

    fn seen(status: McpStatus, at: i64) -> Announce {
        let observed_at = Some(Millis(at));
        let observation =
            Observation { status, observed_at, latency_ms: Some(1), detail: None, more: Default::default() };
        let mcp_health = [("docs".to_owned(), McpHealth::Observed(observation))].into();
        Announce { mcp_health, ..Announce::default() }
    }

    #[test]
    fn a_list_of_servers_is_read_anew_at_each_look() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("mcp.json");
        let servers = Servers::Listed(file.clone());
        let seen = |text: &str| {
            std::fs::write(&file, text).unwrap();
            servers.now(&[]).map(|servers| format!("{servers:?}"))
        };
        assert!(seen(r#"{"mcpServers":{"docs":{"command":"/bin/true"}}}"#).unwrap().contains("/bin/true"));
        assert!(seen(r#"{"mcpServers":{"docs":{"command":"/bin/false"}}}"#).unwrap().contains("/bin/false"));
        assert!(seen("{").unwrap_err().contains("mcp.json"), "one that cannot be read is told");
    }

    #[test]
    fn only_a_changed_fact_gets_a_new_epoch() {
        let mut watch = Watch::default();
        let (first, is_new) = watch.take(seen(McpStatus::Ok, 1), 1000);
        assert_eq!((first.epoch, is_new), (Some(1000), true));
        let (same, is_new) = watch.take(seen(McpStatus::Ok, 2), 2000);
        assert_eq!((same.epoch, is_new), (Some(1000), false), "seen again, and still so");
        let (changed, is_new) = watch.take(seen(McpStatus::Timeout, 3), 500);
        assert_eq!((changed.epoch, is_new), (Some(1001), true), "epochs rise, also where the clock does not");
        let busier = Announce {
            session: flotilla_protocol::fleet::announce::Session { active_tasks: Some(1), ..Default::default() },
            ..seen(McpStatus::Timeout, 4)
        };
        assert!(watch.take(busier, 3000).1, "how busy it is counts");
    }
}
