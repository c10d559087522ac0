//! Agents of this hub that are programs, as members of its own fleet: looked at again and again, announced when something
//! changed, and held against work that comes.

use super::here::Programs;
use flotilla_core::error::Error;
use flotilla_core::fleet::Via;
use flotilla_core::hub::Hub;
use flotilla_core::registry::Agent;
use flotilla_protocol::work::Assignment;
use flotilla_worker::attach::receipt::{self, Blocked, Now};
use flotilla_worker::attach::{Found, Looking, PAUSE, Profile, look_for, now};
use flotilla_worker::sessions::seconds_now;
use flotilla_worker::{Outbox, Stop};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// How often an agent is looked at to which nothing happens.
const EVERY: Duration = Duration::from_secs(60);
/// Runs that work under a contract has at once, of an agent that nothing else is said of.
pub const PLACES: usize = 16;

/// What of this process outlives a configuration that is read again.
#[derive(Default)]
pub struct Here {
    /// Runs that are programs.
    pub(super) programs: Programs,
    members: Mutex<Members>,
    changed: Notify,
}

/// By name: those that are looked at, and those of a configuration that is not in use yet.
#[derive(Default)]
struct Members {
    now: BTreeMap<String, Arc<Member>>,
    coming: BTreeMap<String, Arc<Member>>,
}

pub(super) struct Member {
    name: String,
    found: Found,
    profile: Profile,
}

impl Here {
    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, name: &str, found: Found) -> Arc<Member> {
        let member = Arc::new(Member { name: name.to_owned(), found, profile: Profile::default() });
        self.members().coming.insert(name.to_owned(), Arc::clone(&member));
        member
    }

    /// A new configuration is about to be read: what came of one that had a mistake is forgotten.
    pub fn begin(&self) {
        self.members().coming.clear();
    }

    /// The new configuration is in use.
    pub fn install(&self) {
        let mut members = self.members();
        members.now = std::mem::take(&mut members.coming);
        drop(members);
        self.changed.notify_one();
    }
}

impl Member {
    /// Why work that comes under a contract cannot be begun.
    pub async fn objection(&self, assignment: &Assignment) -> Option<Blocked> {
        let dispatch = receipt::dispatch(&assignment.message)?;
        if receipt::wants_a_look(&dispatch)
            && let Some(looks) = &self.found.looks
        {
            look_for(&dispatch.requirements, looks, &self.profile).await;
            let found = self.found();
            self.profile.announce(&self.name, PLACES, found.as_ref().copied().map_err(String::as_str));
            self.worked();
        }
        let profile = self.profile.current();
        // How many runs it has is the hub's to count.
        receipt::objection(&dispatch, &Now { profile: profile.as_ref(), working: 0, places: usize::MAX, time: now() })
    }

    fn found(&self) -> Result<&Found, String> {
        self.found.doer.missing().map_or(Ok(&self.found), Err)
    }

    /// Announces what was seen, and asks for a probe turn if one is due.
    async fn tell(&self, hub: &Arc<Hub>, agent: &Arc<Agent>) -> Result<(), Error> {
        if let Some(announce) = self.profile.current() {
            hub.announce_worker(agent, announce, Via::Here).await?;
        }
        let due = self.found.trials.as_ref().and_then(|trials| trials.due(seconds_now()));
        match due {
            Some((id, text)) => hub.probe_turn(agent, id, text).await,
            None => Ok(()),
        }
    }

    pub async fn work(&self, assignment: Assignment, outbox: Outbox, stop: Stop) {
        self.found.work(assignment, outbox, stop).await;
    }

    /// There may be something new to see: a run changed files, or told what its session has.
    pub fn worked(&self) {
        self.profile.look.notify_one();
    }
}

struct LookedAt(Arc<Member>, JoinHandle<()>);

impl Drop for LookedAt {
    fn drop(&mut self) {
        self.1.abort();
    }
}

/// Looks at the hub's own programs for as long as it runs.
pub async fn look_after(hub: Arc<Hub>, here: Arc<Here>) {
    let mut looking: BTreeMap<String, LookedAt> = BTreeMap::new();
    loop {
        let mut changed = pin!(here.changed.notified());
        changed.as_mut().enable();
        let members = here.members().now.clone();
        looking.retain(|name, LookedAt(member, _)| members.get(name).is_some_and(|now| Arc::ptr_eq(now, member)));
        for (name, member) in members {
            let (hub, own) = (Arc::clone(&hub), Arc::clone(&member));
            looking.entry(name).or_insert_with(|| LookedAt(member, tokio::spawn(look_at(hub, own))));
        }
        changed.await;
    }
}

async fn look_at(hub: Arc<Hub>, member: Arc<Member>) {
    let tell = async || {
        if let Some(agent) = hub.registry().by_name(&member.name).cloned()
            && let Err(error) = member.tell(&hub, &agent).await
        {
            tracing::error!(agent = member.name, %error, "what was seen of an agent cannot be told");
        }
    };
    let mut looking = Looking::default();
    loop {
        let mut woken = pin!(member.profile.look.notified());
        woken.as_mut().enable();
        let found = member.found();
        let found = found.as_ref().copied().map_err(String::as_str);
        looking.begin(found, &member.profile);
        let mut over = pin!(async {
            let _ = tokio::time::timeout(EVERY, woken).await;
            // Many runs may end together, and one look is enough for all of them.
            tokio::time::sleep(PAUSE).await;
        });
        loop {
            tokio::select! {
                () = looking.news(&member.name, PLACES, found, &member.profile) => tell().await,
                () = &mut over => break,
            }
        }
        // That a turn ended well is told too, and is no news by itself.
        member.profile.announce(&member.name, PLACES, found);
        tell().await;
    }
}
