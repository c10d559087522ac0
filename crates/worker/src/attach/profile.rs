//! What an agent is and has now: looked at again and again, announced when it changes, and held against work that comes.

use super::post::Post;
use crate::agent::{Agent, Outbox, Stop};
use crate::probe::mcp::Prober;
use crate::probe::presence::Known;
use crate::probe::trial::Trials;
use crate::probe::{Subject, Watch, observe};
use crate::sessions::seconds_now;
use flotilla_protocol::fleet::Announce;
use flotilla_protocol::fleet::announce::Session;
use flotilla_protocol::time::Millis;
use flotilla_protocol::work::Assignment;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;

/// Between two looks.
pub const PAUSE: Duration = Duration::from_secs(1);

/// What is looked at, and how.
#[derive(Debug, Clone)]
pub struct Looks {
    pub subject: Subject,
    pub prober: Prober,
    /// None for a program that cannot be asked what it is.
    pub known: Option<Arc<Known>>,
}

/// Who does an agent's work, found on this machine.
#[derive(Debug, Clone)]
pub struct Found {
    pub doer: Agent,
    /// None for an agent that is no program.
    pub looks: Option<Looks>,
    /// None where no probe turns are wanted.
    pub trials: Option<Arc<Trials>>,
}

impl Found {
    pub async fn work(&self, assignment: Assignment, outbox: Outbox, stop: Stop) {
        match &self.trials {
            None => self.doer.work(assignment, outbox, stop).await,
            Some(trials) => trials.watch(&self.doer, assignment, outbox, stop).await,
        }
    }
}

/// Looks for an agent's program and whatever it needs. An error says what is missing, for the agent's owner.
pub type Find = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<Found, String>> + Send>> + Send + Sync>;

/// The latest announcement, and the word that there may be something new to see.
#[derive(Default)]
pub struct Profile {
    watch: Mutex<(Watch, Option<Announce>)>,
    pub look: Notify,
}

pub fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

impl Profile {
    /// What was last announced; none before anything was seen.
    pub fn current(&self) -> Option<Announce> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// Takes what was seen; whether it is new.
    pub fn take(&self, seen: Announce) -> bool {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let (announce, is_new) = watch.0.take(seen, u64::try_from(now().0).unwrap_or(0));
        watch.1 = Some(announce);
        is_new
    }
}

/// Looks at an agent for as long as it is attached: at the start, every so often, and when a run has ended.
pub async fn keep_looking(post: Arc<Post>, every: Duration) {
    loop {
        let mut woken = std::pin::pin!(post.profile.look.notified());
        woken.as_mut().enable();
        let found = post.find().await;
        let trials = found.as_ref().ok().and_then(|found| found.trials.as_ref());
        if let Some((id, text)) = trials.and_then(|trials| trials.due(seconds_now())) {
            post.ask_for_turn(&id, &text);
        }
        let pause = trials.map_or(every, |trials| trials.pause(seconds_now()).min(every));
        let seen = see(&post.agent.name, post.agent.places, found).await;
        if post.profile.take(seen) {
            post.wake.notify_one();
        }
        // A probe turn that is due does not wait for the next look.
        let _ = tokio::time::timeout(pause, woken).await;
        // Many runs may end together, and one look is enough for all of them.
        tokio::time::sleep(PAUSE.min(every)).await;
    }
}

/// What there is to announce of an agent that takes so many runs at once; of one that cannot work, why not.
pub async fn see(name: &str, places: usize, found: Result<&Found, String>) -> Announce {
    let mut seen = match found {
        Ok(Found { doer, looks: Some(Looks { subject, prober, known }), trials }) => {
            let mut seen = observe(subject, prober, |announce| doer.announce(announce)).await;
            if let Some(known) = known {
                let presence = known.presence().await;
                seen.worker.version = presence.version;
                seen.session.broken = presence.problem.or(seen.session.broken);
            }
            trials.iter().for_each(|trials| trials.fill(&mut seen));
            seen
        }
        Ok(_) => Announce::default(),
        Err(problem) => {
            Announce { session: Session { broken: Some(problem), ..Session::default() }, ..Announce::default() }
        }
    };
    seen.worker.agent_id = name.to_owned();
    seen.capabilities.max_concurrent = Some(u32::try_from(places).unwrap_or(u32::MAX));
    seen
}
