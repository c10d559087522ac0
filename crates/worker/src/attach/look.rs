//! Looks at an agent, at each thing by itself: what takes long keeps nothing else from being seen and told.

use super::post::Post;
use super::profile::{Found, Looks, Profile};
use crate::probe::{Seen, Thing};
use crate::sessions::seconds_now;
use flotilla_protocol::fleet::dispatch::Requirements;
use flotilla_protocol::fleet::{Announce, name};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Between two looks at the same.
pub const PAUSE: Duration = Duration::from_secs(1);
/// What is seen so soon after the start is announced together.
const SOON: Duration = Duration::from_millis(300);

/// Looks that are under way.
#[derive(Default)]
pub struct Looking {
    looks: JoinSet<(Instant, Seen)>,
    /// What is being looked at; true if it is to be looked at again afterwards, since something may have changed meanwhile.
    under_way: BTreeMap<Thing, bool>,
    /// The servers that are asked; none for all of them.
    wanted: Option<Vec<String>>,
    /// When what is known is told first, whatever is still to be seen.
    first_by: Option<Instant>,
    /// The number of the announcement that was last told.
    told: Option<u64>,
}

impl Looking {
    /// Looks at all there is to see of an agent.
    pub fn begin(&mut self, found: Result<&Found, &str>, profile: &Profile) {
        self.first_by.get_or_insert_with(|| Instant::now() + SOON);
        if let Some(looks) = found.ok().and_then(|found| found.looks.as_ref()) {
            for thing in [Thing::Program, Thing::Repository, Thing::Servers] {
                self.start(thing, looks, profile);
            }
        }
    }

    fn start(&mut self, thing: Thing, looks: &Looks, profile: &Profile) {
        if let Some(again) = self.under_way.get_mut(&thing) {
            *again = true;
            return;
        }
        let (began, Looks { subject, prober, known }) = (Instant::now(), looks.clone());
        match thing.clone() {
            Thing::Program => {
                let Some(known) = known else { return };
                self.looks.spawn(async move { (began, Seen::Program(known.presence().await)) })
            }
            Thing::Repository => self.looks.spawn(async move {
                let repository = subject.repository(&prober.reaper).await;
                (began, Seen::Repository(repository))
            }),
            Thing::Servers => self.looks.spawn(async move {
                let servers = subject.servers.now(&subject.folder, &prober.environment).await;
                (began, Seen::Servers(servers))
            }),
            Thing::Server(name) => {
                let Some(definition) = profile.definition(&name) else { return };
                self.looks.spawn(async move {
                    let observation = prober.ask(&definition).await;
                    (began, Seen::Server(name, definition, observation))
                })
            }
        };
        self.under_way.insert(thing, false);
    }

    /// Takes in what is seen next; false if nothing is looked at any more. May be dropped at any await.
    async fn next(&mut self, looks: Option<&Looks>, profile: &Profile) -> bool {
        let (began, seen) = match self.looks.join_next().await {
            None => return false,
            Some(Ok(seen)) => seen,
            Some(Err(error)) => {
                tracing::error!(%error, "a look at an agent broke off");
                // Which one is not told, so each may be begun anew.
                self.under_way.clear();
                return true;
            }
        };
        let thing = seen.thing();
        let again = self.under_way.remove(&thing) == Some(true);
        profile.saw(began, seen);
        let Some(looks) = looks else { return true };
        if thing == Thing::Servers {
            for server in profile.servers() {
                if self.wants(&server) {
                    self.start(Thing::Server(server), looks, profile);
                }
            }
        }
        if again {
            self.start(thing, looks, profile);
        }
        true
    }

    fn wants(&self, server: &str) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| wanted.iter().any(|wanted| name::same(wanted, server)))
    }

    /// Resolves when there is something new to tell of an agent. May be dropped at any await.
    pub async fn news(&mut self, agent: &str, places: usize, found: Result<&Found, &str>, profile: &Profile) {
        let looks = found.ok().and_then(|found| found.looks.as_ref());
        loop {
            let first_by = self.first_by.filter(|by| self.told.is_none() && *by > Instant::now());
            let first_by = first_by.filter(|_| !self.looks.is_empty());
            if first_by.is_none() {
                let epoch = profile.announce(agent, places, found);
                if self.told.replace(epoch) != Some(epoch) {
                    return;
                }
            }
            let soon = async {
                match first_by {
                    Some(first_by) => sleep_until(first_by).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                true = self.next(looks, profile) => {}
                () = soon => {}
            }
        }
    }
}

/// Looks at an agent for as long as it is attached: at the start, every so often, and when a run has ended.
pub async fn keep_looking(post: Arc<Post>, every: Duration) {
    let mut looking = Looking::default();
    loop {
        let mut woken = pin!(post.profile.look.notified());
        woken.as_mut().enable();
        let found = post.find().await;
        let found = found.as_ref().copied().map_err(String::as_str);
        let trials = found.ok().and_then(|found| found.trials.as_ref());
        if let Some((id, text)) = trials.and_then(|trials| trials.due(seconds_now())) {
            post.ask_for_turn(&id, &text);
        }
        let pause = trials.map_or(every, |trials| trials.pause(seconds_now()).min(every));
        looking.begin(found, &post.profile);
        let mut over = pin!(async {
            // A probe turn that is due does not wait for the next look.
            let _ = timeout(pause, woken).await;
            // Many runs may end together, and one look is enough for all of them.
            sleep(PAUSE.min(every)).await;
        });
        loop {
            tokio::select! {
                () = looking.news(&post.agent.name, post.agent.places, found, &post.profile) => post.wake.notify_one(),
                () = &mut over => break,
            }
        }
    }
}

/// Looks again at what work under a contract needs, and at nothing else.
pub async fn look_for(needs: &Requirements, looks: &Looks, profile: &Profile) {
    let mut looking = Looking { wanted: Some(needs.required_mcp.clone()), ..Looking::default() };
    if needs.write {
        looking.start(Thing::Repository, looks, profile);
    }
    if !needs.required_mcp.is_empty() {
        looking.start(Thing::Servers, looks, profile);
    }
    while looking.next(Some(looks), profile).await {}
}

/// All there is to announce of an agent that takes so many runs at once; of one that cannot work, why not.
pub async fn see(agent: &str, places: usize, found: Result<&Found, &str>) -> Option<Announce> {
    let (mut looking, profile) = (Looking::default(), Profile::default());
    looking.begin(found, &profile);
    let looks = found.ok().and_then(|found| found.looks.as_ref());
    while looking.next(looks, &profile).await {}
    profile.announce(agent, places, found);
    profile.current()
}

#[cfg(test)]
mod tests {
    use super::{Looking, Looks, PAUSE, look_for};
    use crate::agent::Agent;
    use crate::attach::profile::{Found, Profile};
    use crate::probe::mcp::Prober;
    use crate::probe::mcp::definition::{Definition, Place};
    use crate::probe::{Servers, Subject};
    use flotilla_protocol::fleet::announce::McpStatus;
    use flotilla_protocol::fleet::dispatch::Requirements;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::sync::Semaphore;
    use tokio::time::timeout;

    /// An agent with a server that is disabled, and one that takes connections and never says a word.
    fn found(folder: &Path, silent: &std::net::TcpListener) -> Found {
        let place = Place { url: format!("http://{}/", silent.local_addr().unwrap()), ..Place::default() };
        let given = [("hangs".to_owned(), Definition::Http(place)), ("off".to_owned(), Definition::Disabled)].into();
        let subject =
            Subject { folder: folder.to_owned(), servers: Servers { given, ..Servers::default() }, apart: false };
        let (limit, room) = (Duration::from_secs(600), Arc::new(Semaphore::new(1)));
        // A stand-in that starts what it is given, and watches over nothing.
        let reaper = folder.join("reaper");
        std::fs::write(&reaper, "#!/bin/sh\nuntil [ \"$1\" = -- ]; do shift; done; shift; exec \"$@\"\n").unwrap();
        std::fs::set_permissions(&reaper, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let prober = Prober { reaper, environment: Vec::new(), folder: folder.to_owned(), limit, room };
        Found { doer: Agent::Echo, looks: Some(Looks { subject, prober, known: None }), trials: None }
    }

    #[tokio::test]
    async fn a_server_that_hangs_keeps_nothing_else_from_being_told() {
        let (folder, silent) = (tempfile::tempdir().unwrap(), std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let (found, profile) = (found(folder.path(), &silent), Profile::default());
        let mut looking = Looking::default();
        let news = async |looking: &mut Looking| {
            timeout(Duration::from_secs(60), looking.news("a", 1, Ok(&found), &profile)).await.expect("news");
            profile.current().expect("an announcement")
        };
        looking.begin(Ok(&found), &profile);
        let mut told = news(&mut looking).await;
        assert_eq!(told.mcp("hangs"), Some(McpStatus::Unknown), "it has not answered yet");
        // Only one is asked at once, and the one that hangs may be the first.
        while told.mcp("off") != Some(McpStatus::Disabled) {
            told = news(&mut looking).await;
        }
        assert_eq!((told.mcp("hangs"), told.session.repo_state), (Some(McpStatus::Unknown), None));
        let made = std::process::Command::new("git").args(["init", "-q"]).current_dir(folder.path()).status();
        assert!(made.unwrap().success());
        looking.begin(Ok(&found), &profile);
        assert!(news(&mut looking).await.session.repo_state.is_some(), "the next look is not held back either");
        assert!(timeout(PAUSE, looking.news("a", 1, Ok(&found), &profile)).await.is_err(), "nothing else is new");

        let needs = Requirements { required_mcp: vec!["off".into()], write: true, ..Requirements::default() };
        let looks = found.looks.as_ref().unwrap();
        let looked = timeout(Duration::from_secs(60), look_for(&needs, looks, &profile)).await;
        assert!(looked.is_ok(), "work that does not need it does not wait for it");
    }
}
