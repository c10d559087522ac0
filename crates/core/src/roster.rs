//! The agents that dial in: who of them is here now, and what waits for those who are not.

mod desk;
mod link;
mod session;
mod silence;
#[cfg(test)]
mod tests;

pub use desk::{Desk, Reported, Several};
pub use link::Dialed;
pub use session::{Delivery, NoRun, Order, Session, Unheard};

use crate::ids::AgentId;
use crate::ports::Link;
use crate::registry::{OnLost, Visibility};
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What becomes of an agent's connection when it opens another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connections {
    /// The new one takes the place of the old.
    Replace,
    /// Work is spread over all of them.
    Share,
}

/// How an agent that dials in is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// How long a message waits for it, unless its caller says otherwise; zero refuses at once.
    pub ttl: Duration,
    /// How long a run it has taken is held while it is away.
    pub grace: Duration,
    /// What becomes of such a run after that.
    pub on_lost: OnLost,
    /// How long it may take to answer that it stops a run.
    pub cancel: Duration,
    pub connections: Connections,
    /// Whether its card is its own to say, and not the configuration's.
    pub describes_itself: bool,
    /// Runs it may have been sent and not yet taken, on each connection.
    pub window: usize,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(30 * 86_400),
            grace: Duration::from_secs(60),
            on_lost: OnLost::Fail,
            cancel: Duration::from_secs(5),
            connections: Connections::Replace,
            describes_itself: true,
            window: 64,
        }
    }
}

/// Whether an agent that dials in is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Presence {
    pub connections: usize,
    /// Connections that go on for each other, or stand beside each other, are of one line: the number of its first. Zero
    /// as long as there is none but those that go on for what was there before the hub started.
    pub line: u64,
    /// How long ago the oldest of its connections was opened.
    pub connected_for: Option<Duration>,
    /// How long ago the last of them was closed, if none is open; none if it was not here since the hub started.
    pub gone_for: Option<Duration>,
    /// Runs that wait for it, and runs it has.
    pub waiting: usize,
    pub running: usize,
}

/// How those are treated whom the configuration does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Welcome {
    /// Whether they may register themselves.
    pub register: bool,
    pub visibility: Visibility,
    pub terms: Terms,
}

impl Default for Welcome {
    fn default() -> Self {
        Self { register: true, visibility: Visibility::Workspace, terms: Terms::default() }
    }
}

/// One desk for every agent that ever dialed in, or may.
#[derive(Default)]
pub struct Roster {
    desks: Mutex<HashMap<AgentId, Arc<Desk>>>,
    welcome: ArcSwap<Welcome>,
    /// One registration at a time, so that none is lost to another.
    pub(crate) registering: tokio::sync::Mutex<()>,
}

impl Roster {
    pub fn new(welcome: Welcome) -> Arc<Self> {
        Arc::new(Self { welcome: ArcSwap::from_pointee(welcome), ..Self::default() })
    }

    pub fn welcome(&self) -> Welcome {
        **self.welcome.load()
    }

    pub fn replace_welcome(&self, welcome: Welcome) {
        self.welcome.store(Arc::new(welcome));
    }

    /// The way to an agent that registered itself.
    pub fn link(&self, agent: AgentId) -> Arc<dyn Link> {
        Arc::new(Dialed::new(self, agent, self.welcome().terms))
    }

    pub fn desk(&self, agent: AgentId) -> Arc<Desk> {
        let mut desks = self.desks.lock().expect("no panic while holding the desks");
        Arc::clone(desks.entry(agent).or_default())
    }

    /// How many agents are here.
    pub fn present(&self) -> usize {
        let desks = self.desks.lock().expect("no panic while holding the desks");
        desks.values().filter(|desk| desk.is_present()).count()
    }
}
