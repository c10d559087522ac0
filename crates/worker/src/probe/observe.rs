//! An announcement made of what was seen, and the watch that tells whether something changed.

use super::mcp::Prober;
use super::mcp::definition::{self, Definition};
use super::own::Own;
use super::repository;
use crate::evidence::git::{Git, Trouble};
use crate::evidence::snapshot::Snapshot;
use flotilla_protocol::fleet::announce::{Announce, McpHealth, RepoState};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
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
    /// Each task has a working tree of its own: those that change files do not meet.
    pub apart: bool,
}

/// The MCP servers an agent has.
#[derive(Debug, Clone, Default)]
pub struct Servers {
    /// Those it is given in every session, as they were read at the start.
    pub given: BTreeMap<String, Definition>,
    /// Those of a file that its program reads at the start of every session.
    pub listed: Option<PathBuf>,
    /// Those its program has by its own configuration; none where that cannot be known.
    pub own: Option<Own>,
}

impl Servers {
    /// Those it would have in a session that began now.
    async fn now(
        &self,
        folder: &Path,
        environment: &[(OsString, OsString)],
    ) -> Result<BTreeMap<String, Definition>, String> {
        let mut servers = match &self.own {
            Some(own) => own.servers(folder, environment).await,
            None => BTreeMap::new(),
        };
        if let Some(file) = &self.listed {
            let read = std::fs::read_to_string(file).map_err(|error| error.to_string());
            let listed = read.and_then(|text| definition::read(&text, environment));
            servers.extend(listed.map_err(|problem| format!("mcp_config: {}: {problem}", file.display()))?);
        }
        servers.extend(self.given.clone());
        Ok(servers)
    }

    /// What a session had and the configuration has no more, the next one will not have.
    fn forget(&self, announce: &mut Announce, now: &BTreeMap<String, Definition>) {
        let Some(own) = &self.own else { return };
        let stays = |name: &String| now.contains_key(name) || !own.finds(name);
        announce.capabilities.mcp_servers.retain(stays);
        announce.mcp_health.retain(|name, _| stays(name));
    }
}

/// Looks at an agent's servers and its repository. `learned` puts in what its own sessions have said of themselves; what
/// was asked of a server just now counts more.
pub async fn observe(subject: &Subject, prober: &Prober, learned: impl FnOnce(&mut Announce)) -> Announce {
    let git = Git::new(&subject.folder, PATIENCE);
    let (servers, problem) = match subject.servers.now(&subject.folder, &prober.environment).await {
        Ok(servers) => (servers, None),
        Err(problem) => (BTreeMap::new(), Some(problem)),
    };
    let (health, repository) = tokio::join!(prober.probe(&servers), Snapshot::take(&git));
    let mut announce = Announce::default();
    learned(&mut announce);
    subject.servers.forget(&mut announce, &servers);
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
        Ok(seen) => {
            let name = if subject.apart { None } else { Some(repository::name(&seen, &git).await) };
            Some(RepoState { repository: name, ..seen.repo_state() })
        }
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
    use super::{Own, Servers, Watch};
    use crate::probe::Sources;
    use flotilla_protocol::fleet::announce::{Announce, McpHealth, McpStatus, Observation};
    use flotilla_protocol::time::Millis;

    fn seen(status: McpStatus, at: i64) -> Announce {
        let observed_at = Some(Millis(at));
        let observation =
            Observation { status, observed_at, latency_ms: Some(1), detail: None, more: Default::default() };
        let mcp_health = [("docs".to_owned(), McpHealth::Observed(observation))].into();
        Announce { mcp_health, ..Announce::default() }
    }

    #[tokio::test]
    async fn a_list_of_servers_is_read_anew_at_each_look() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("mcp.json");
        let servers = Servers { listed: Some(file.clone()), ..Servers::default() };
        let seen = async |text: &str| {
            std::fs::write(&file, text).unwrap();
            servers.now(place.path(), &[]).await.map(|servers| format!("{servers:?}"))
        };
        assert!(seen(r#"{"mcpServers":{"docs":{"command":"/bin/true"}}}"#).await.unwrap().contains("/bin/true"));
        assert!(seen(r#"{"mcpServers":{"docs":{"command":"/bin/false"}}}"#).await.unwrap().contains("/bin/false"));
        assert!(seen("{").await.unwrap_err().contains("mcp.json"), "one that cannot be read is told");
    }

    #[tokio::test]
    async fn what_a_session_had_and_the_configuration_has_no_more_is_forgotten() {
        let place = tempfile::tempdir().unwrap();
        let sources = Sources { user: true, project: true, local: true };
        let servers = Servers { own: Some(Own::Claude(sources)), ..Servers::default() };
        let file = place.path().join(".mcp.json");
        let left = async |text: &str| {
            std::fs::write(&file, text).unwrap();
            let now = servers.now(place.path(), &[]).await.unwrap();
            let mut announce = seen(McpStatus::Ok, 1);
            announce.mcp_health.insert("plugin:a:b".into(), McpHealth::Plain(McpStatus::Ok));
            servers.forget(&mut announce, &now);
            announce.mcp_health.into_keys().collect::<Vec<_>>()
        };
        assert_eq!(left(r#"{"mcpServers":{"docs":{"command":"x"}}}"#).await, ["docs", "plugin:a:b"]);
        assert_eq!(left("{}").await, ["plugin:a:b"], "nobody knows where those of plugins are");
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
