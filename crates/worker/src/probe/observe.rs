//! An announcement made of what was seen, and the watch that tells whether something changed.

use super::mcp::definition::{self, Definition};
use super::own::Own;
use super::presence::Presence;
use super::repository;
use crate::evidence::git::{Git, Hold, Trouble};
use crate::evidence::snapshot::Snapshot;
use crate::supervise::Limits;
use flotilla_protocol::fleet::announce::{Announce, McpHealth, McpStatus, Observation, RepoState};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// How long git may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between being asked to end and being ended.
const GRACE: Duration = Duration::from_secs(2);

/// What is looked at.
#[derive(Debug, Clone)]
pub struct Subject {
    pub folder: PathBuf,
    pub servers: Servers,
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
    pub async fn now(
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

impl Subject {
    /// The repository its folder is in, as it is announced.
    pub async fn repository(&self, reaper: &Path) -> Option<RepoState> {
        let (reaper, mark, limits) = (reaper.to_owned(), "probe".to_owned(), Limits::default());
        let git = Git::new(&self.folder, Hold { reaper, mark, limits, grace: GRACE, patience: PATIENCE });
        match Snapshot::take(&git).await {
            Ok(seen) => {
                let name = if self.apart { None } else { Some(repository::name(&seen, &git).await) };
                Some(RepoState { repository: name, ..seen.repo_state() })
            }
            Err(Trouble::NoRepository) => None,
            // One of the agent's own is made when it is needed.
            Err(_) if !self.folder.exists() => None,
            Err(problem) => {
                tracing::warn!(%problem, folder = %self.folder.display(), "the repository cannot be looked at");
                None
            }
        }
    }
}

/// What can be looked at by itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thing {
    Program,
    Repository,
    /// Which MCP servers there are.
    Servers,
    /// One of them, by its name.
    Server(String),
}

/// A thing as it was seen.
#[derive(Debug)]
pub enum Seen {
    Program(Presence),
    Repository(Option<RepoState>),
    /// Those of a session that began now, or why that cannot be told.
    Servers(Result<BTreeMap<String, Definition>, String>),
    Server(String, Definition, Observation),
}

impl Seen {
    pub fn thing(&self) -> Thing {
        match self {
            Self::Program(_) => Thing::Program,
            Self::Repository(_) => Thing::Repository,
            Self::Servers(_) => Thing::Servers,
            Self::Server(name, ..) => Thing::Server(name.clone()),
        }
    }
}

/// What is known of an agent by looking. Each thing is as it was last seen, so that none waits for another.
#[derive(Debug, Default)]
pub struct Sight {
    presence: Option<Presence>,
    repository: Option<RepoState>,
    servers: Option<BTreeMap<String, Definition>>,
    /// Why it cannot be told which servers there are.
    problem: Option<String>,
    health: BTreeMap<String, Observation>,
    /// When the look at each thing began.
    began: BTreeMap<Thing, Instant>,
}

impl Sight {
    /// Takes in what was seen by a look that began then. What a later look has told already counts more.
    pub fn take(&mut self, began: Instant, seen: Seen) {
        let thing = seen.thing();
        if self.began.get(&thing).is_some_and(|last| *last > began) {
            return;
        }
        self.began.insert(thing, began);
        match seen {
            Seen::Program(presence) => self.presence = Some(presence),
            Seen::Repository(state) => self.repository = state,
            Seen::Servers(listed) => {
                let before = self.servers.take().unwrap_or_default();
                let (now, problem) = match listed {
                    Ok(servers) => (servers, None),
                    Err(problem) => (BTreeMap::new(), Some(problem)),
                };
                // Under the same name, what is defined in another way is another server.
                let is_same = |name: &String| now.contains_key(name) && now.get(name) == before.get(name);
                self.health.retain(|name, _| is_same(name));
                self.began.retain(|thing, _| !matches!(thing, Thing::Server(name) if !is_same(name)));
                (self.servers, self.problem) = (Some(now), problem);
            }
            Seen::Server(name, asked, observation) => {
                if self.definition(&name) == Some(&asked) {
                    self.health.insert(name, observation);
                }
            }
        }
    }

    /// The servers there are.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.servers.iter().flat_map(BTreeMap::keys)
    }

    pub fn definition(&self, name: &str) -> Option<&Definition> {
        self.servers.as_ref()?.get(name)
    }

    /// Puts it into an announcement that holds what the agent's own sessions have said of themselves; what was asked of a
    /// server counts more. One that has not answered yet is unknown.
    pub fn fill(&self, subject: &Subject, announce: &mut Announce) {
        if let Some(servers) = &self.servers {
            subject.servers.forget(announce, servers);
        }
        for name in self.names() {
            if !announce.capabilities.mcp_servers.contains(name) {
                announce.capabilities.mcp_servers.push(name.clone());
            }
            match self.health.get(name) {
                Some(seen) => drop(announce.mcp_health.insert(name.clone(), McpHealth::Observed(seen.clone()))),
                None => {
                    announce.mcp_health.entry(name.clone()).or_insert(McpHealth::Plain(McpStatus::Unknown));
                }
            }
        }
        announce.session.repo_state.clone_from(&self.repository);
        announce.session.broken = self.problem.clone().or(announce.session.broken.take());
        if let Some(presence) = &self.presence {
            announce.worker.version.clone_from(&presence.version);
            announce.session.broken = presence.problem.clone().or(announce.session.broken.take());
        }
    }
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
    use super::{Definition, Own, Seen, Servers, Sight, Subject, Watch};
    use crate::probe::Sources;
    use flotilla_protocol::fleet::announce::{Announce, McpHealth, McpStatus, Observation};
    use flotilla_protocol::time::Millis;
    use std::time::Duration;
    use tokio::time::Instant;

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
    fn each_thing_is_as_it_was_last_seen_and_a_server_without_an_answer_is_unknown() {
        let server = |name: &str| (name.to_owned(), Definition::Other(name.to_owned()));
        let subject = Subject { folder: "/".into(), servers: Servers::default(), apart: false };
        let (mut sight, start) = (Sight::default(), Instant::now());
        let later = start + Duration::from_secs(1);
        let told = |sight: &Sight| {
            let mut announce = Announce::default();
            sight.fill(&subject, &mut announce);
            announce.mcp_health.iter().map(|(name, health)| (name.clone(), health.status())).collect::<Vec<_>>()
        };
        let answer = |name: &str, kind: &str, status| {
            let observation =
                Observation { status, observed_at: None, latency_ms: None, detail: None, more: Default::default() };
            Seen::Server(name.into(), Definition::Other(kind.into()), observation)
        };
        assert_eq!(told(&sight), []);
        sight.take(start, Seen::Servers(Ok([server("a"), server("b")].into())));
        sight.take(later, answer("a", "a", McpStatus::Ok));
        let (a, b) = ("a".to_owned(), "b".to_owned());
        let known = vec![(a.clone(), McpStatus::Ok), (b.clone(), McpStatus::Unknown)];
        assert_eq!(told(&sight), known);
        sight.take(start, answer("a", "a", McpStatus::Timeout));
        sight.take(start, answer("gone", "gone", McpStatus::Ok));
        assert_eq!(told(&sight), known, "an older look, and one at what is not there, tell nothing");
        let other = (a.clone(), Definition::Other("z".into()));
        sight.take(later, Seen::Servers(Ok([other, server("b")].into())));
        sight.take(later, answer("a", "a", McpStatus::Ok));
        assert_eq!(told(&sight), [(a, McpStatus::Unknown), (b, McpStatus::Unknown)], "it is another server now");
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
