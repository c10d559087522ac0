//! An announcement made of what was seen, and the watch that tells whether something changed.

use super::mcp::Prober;
use super::mcp::definition::Definition;
use crate::evidence::git::{Git, Trouble};
use crate::evidence::snapshot::Snapshot;
use flotilla_protocol::fleet::announce::{Announce, McpHealth};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// How long git may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is looked at.
#[derive(Debug, Clone, Default)]
pub struct Subject {
    pub agent_id: String,
    pub folder: PathBuf,
    pub servers: BTreeMap<String, Definition>,
    pub max_concurrent: Option<u32>,
}

/// Looks at an agent's servers and its repository. `learned` puts in what its own sessions have said of themselves; what
/// was asked of a server just now counts more.
pub async fn observe(subject: &Subject, prober: &Prober, learned: impl FnOnce(&mut Announce)) -> Announce {
    let git = Git::new(&subject.folder, PATIENCE);
    let (health, repository) = tokio::join!(prober.probe(&subject.servers), Snapshot::take(&git));
    let mut announce = Announce::default();
    learned(&mut announce);
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
    use super::Watch;
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
