//! Push: a hook is a stored cursor over what peers see of a task, and the webhook that is told of it.

mod desk;
mod lanes;
mod schedule;
mod unit;
mod verdict;

pub use desk::{Desk, Rest, Taken};
pub use schedule::Schedule;
pub use unit::{Cut, cut};
pub use verdict::{Came, Verdict, verdict};

use crate::ids::{AgentId, HookId, PrincipalId, TaskId};
use flotilla_protocol::a2a::push::{PushChunks, PushOptions};
use flotilla_protocol::a2a::version::Version;
use flotilla_protocol::time::Millis;

/// Why a deleted hook is where it is.
const DELETED: &str = "deleted by its caller";

/// Where a hook stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookState {
    /// Told of whatever comes.
    Active,
    /// The task is over, and all of it is told.
    Done,
    /// The last attempt of the schedule failed: a dead letter, kept at the event it could not deliver.
    Parked,
    /// Its receiver said that it is gone (410), or the operator put an end to it.
    Disabled,
    /// Its caller deleted the config: its record is kept for the owner, without secrets.
    Deleted,
}

impl HookState {
    pub const ALL: [Self; 5] = [Self::Active, Self::Done, Self::Parked, Self::Disabled, Self::Deleted];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Done => "done",
            Self::Parked => "parked",
            Self::Disabled => "disabled",
            Self::Deleted => "deleted",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// The number of the state in stores.
    pub const fn code(self) -> u8 {
        self as u8
    }

    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }
}

/// A webhook of a task. Its secrets are sealed before the core sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// The hub's own name for it: part of the id of every webhook, so nobody may guess or count it.
    pub uid: HookId,
    pub task: TaskId,
    /// The caller's name for it, unique in the task.
    pub id: String,
    pub principal: PrincipalId,
    pub agent: AgentId,
    pub owner: PrincipalId,
    pub target: Target,
    pub options: PushOptions,
    /// The version the config was made in, and what its webhooks are written in.
    pub version: Version,
    pub created_at: Millis,
    /// The last peer-visible event that is told or passed over.
    pub cursor: u64,
    pub state: HookState,
    /// The owner put an end to it: nothing its caller does brings it back.
    pub held: bool,
    /// Failed attempts in a row.
    pub failures: u32,
    /// When the next attempt is due, if one failed.
    pub next_at: Option<Millis>,
    /// Attempts so far, all told.
    pub attempts: u64,
    /// Why the hook is where it is.
    pub reason: String,
    /// Grows when the hook is changed from outside: what an attempt began with no longer counts then.
    pub generation: u64,
}

impl Hook {
    /// The same over all attempts at one delivery.
    pub fn webhook_id(&self, last: u64) -> String {
        format!("msg_{}_{last}", self.uid.simple())
    }

    /// How its task's log is cut. In 0.3 every webhook is the whole task, so that chunks are not told one by one.
    pub fn cutting(&self) -> PushOptions {
        match self.version {
            Version::V10 => self.options,
            Version::V03 => PushOptions { chunks: PushChunks::Whole, ..self.options },
        }
    }

    /// This hook with the target and options of another. It keeps its place in the log, unless it was deleted, and is
    /// tried again, unless it is to stay disabled: a held one only its owner takes up again.
    #[must_use]
    pub fn renewed(&self, by: &Self) -> Self {
        let state = match self.state {
            _ if self.held || by.state == HookState::Disabled => HookState::Disabled,
            HookState::Deleted => by.state,
            HookState::Done => HookState::Done,
            HookState::Active | HookState::Parked | HookState::Disabled => HookState::Active,
        };
        Self {
            target: by.target.clone(),
            options: by.options,
            version: by.version,
            state,
            cursor: if self.state == HookState::Deleted { by.cursor } else { self.cursor },
            failures: 0,
            next_at: None,
            reason: if state == HookState::Disabled { self.stop_reason() } else { String::new() },
            generation: self.generation + 1,
            ..self.clone()
        }
    }

    /// Why it stopped before it was deleted.
    pub fn stop_reason(&self) -> String {
        self.reason.strip_suffix(DELETED).unwrap_or(&self.reason).trim_end_matches("; ").to_owned()
    }

    /// Whether the owner put an end to what another hook of the task would go on with. Of a deleted one the query is
    /// no longer known.
    pub fn holds(&self, url: &str) -> bool {
        let same = match self.state {
            HookState::Deleted => self.target.url == masked(url),
            _ => self.target.url == url,
        };
        self.held && same
    }
}

/// Where a webhook goes and what it is sent with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub url: String,
    /// Scheme, host and port: what is slow or dead is so as a whole.
    pub origin: String,
    /// The scheme of the authentication the caller asked for; empty for none.
    pub scheme: String,
    /// Token and credentials, readable by the courier only.
    pub sealed: Vec<u8>,
}

impl Target {
    /// The URL as others than its caller may see it. A query may hold a secret under any name, or under none.
    pub fn shown_url(&self) -> String {
        masked(&self.url)
    }
}

fn masked(url: &str) -> String {
    let Some(start) = url.find(['?', '#']) else { return url.to_owned() };
    let (path, query) = url.split_at(start);
    let masked = query.split_inclusive(['?', '#', '&', ';']).map(|pair| {
        let (pair, end) = pair.split_at(pair.strip_suffix(['?', '#', '&', ';']).map_or(pair.len(), str::len));
        match pair.split_once('=') {
            Some((name, _)) => format!("{name}=[redacted]{end}"),
            None if pair.is_empty() => end.to_owned(),
            None => format!("[redacted]{end}"),
        }
    });
    format!("{path}{}", masked.collect::<String>())
}

/// One attempt at a delivery, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Set by the store: dense over the attempts of a hook.
    pub number: u64,
    /// The last event of the delivery.
    pub peer_seq: u64,
    pub at: Millis,
    pub millis: u64,
    /// What the receiver answered, if it did.
    pub status: Option<u16>,
    pub delivered: bool,
    pub next_at: Option<Millis>,
    pub reason: String,
}

/// What came of an attempt, or of passing over events nobody wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    pub hook: HookId,
    pub generation: u64,
    pub cursor: u64,
    pub state: HookState,
    pub failures: u32,
    pub next_at: Option<Millis>,
    pub reason: String,
    pub attempt: Option<Attempt>,
}

/// What its owner or its caller does to a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookChange {
    /// Try again now; with a number, from after that event.
    Redeliver {
        after: Option<u64>,
    },
    Disable {
        reason: String,
    },
    /// Its caller wants it no more.
    Delete,
}

impl HookChange {
    /// The hook after the change.
    pub fn apply(&self, hook: &mut Hook) {
        hook.generation += 1;
        hook.next_at = None;
        let is_deleted = hook.state == HookState::Deleted;
        match self {
            // Where to deliver to is gone.
            Self::Redeliver { .. } | Self::Delete if is_deleted => {}
            Self::Redeliver { after } => {
                (hook.state, hook.held) = (HookState::Active, false);
                hook.failures = 0;
                hook.reason.clear();
                hook.cursor = after.unwrap_or(hook.cursor);
            }
            Self::Disable { reason } => {
                // One that is deleted stays so, and does not come back when it is made again.
                if !is_deleted {
                    hook.state = HookState::Disabled;
                }
                hook.held = true;
                hook.reason.clone_from(reason);
            }
            Self::Delete => {
                hook.state = HookState::Deleted;
                hook.target.url = hook.target.shown_url();
                hook.target.scheme.clear();
                hook.target.sealed.clear();
                if !hook.reason.is_empty() {
                    hook.reason.push_str("; ");
                }
                hook.reason.push_str(DELETED);
            }
        }
    }
}

/// How many deleted hooks of one task are kept. None of them is dropped: there are no new ones then.
pub const MOST_DELETED: usize = 1_000;

/// Which hooks an owner wants to see.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HookFilter {
    pub state: Option<HookState>,
    pub task: Option<TaskId>,
    pub agent: Option<AgentId>,
    /// Go on after this one; the newest come first.
    pub before: Option<HookId>,
    pub limit: usize,
}

#[cfg(test)]
mod tests {
    use super::Target;

    #[test]
    fn what_a_query_holds_is_not_shown() {
        for (url, expected) in [
            ("https://h/a/b", "https://h/a/b"),
            ("https://h/?room=1&k=s=x", "https://h/?room=[redacted]&k=[redacted]"),
            ("https://h/?secret", "https://h/?[redacted]"),
            ("https://h/?a=1;secret#t=2&secret", "https://h/?a=[redacted];[redacted]#t=[redacted]&[redacted]"),
            ("https://h/?", "https://h/?"),
        ] {
            let target = Target { url: url.into(), origin: String::new(), scheme: String::new(), sealed: Vec::new() };
            assert_eq!(target.shown_url(), expected);
        }
    }
}
