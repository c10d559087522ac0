//! What an agent is and has now: looked at again and again, announced when it changes, and held against work that comes.

use super::post::{LocalAgent, Post};
use crate::probe::mcp::Prober;
use crate::probe::{Subject, Watch, observe};
use flotilla_protocol::fleet::Announce;
use flotilla_protocol::time::Millis;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;

/// Between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// What is looked at, and how.
#[derive(Debug, Clone)]
pub struct Looks {
    pub subject: Subject,
    pub prober: Prober,
}

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
    fn take(&self, seen: Announce) -> bool {
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
        let seen = see(&post.agent).await;
        if post.profile.take(seen) {
            post.wake.notify_one();
        }
        let _ = tokio::time::timeout(every, woken).await;
        // Many runs may end together, and one look is enough for all of them.
        tokio::time::sleep(PAUSE.min(every)).await;
    }
}

async fn see(agent: &LocalAgent) -> Announce {
    let places = u32::try_from(agent.places).unwrap_or(u32::MAX);
    let mut seen = match &agent.looks {
        Some(Looks { subject, prober }) => observe(subject, prober, |announce| agent.doer.announce(announce)).await,
        None => Announce::default(),
    };
    seen.worker.agent_id.clone_from(&agent.name);
    seen.capabilities.max_concurrent = Some(places);
    seen
}
