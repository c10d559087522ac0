//! Names of things: tasks, workspaces, principals and agents.

use flotilla_protocol::lineage::{SpanId, TraceId};
use std::fmt;
use std::sync::Mutex;
use uuid::{Builder, NoContext, Timestamp, Uuid};

/// A task's id: a UUID of version 7, time-ordered so that stores append. Nobody can guess one: not even whoever was
/// given the ids before and after it knows the 62 random bits between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(Uuid);

/// The lower bits of an id, all of them random.
const LOW: u32 = 62;
/// An id has 12 bits above those, beside the time.
const ROOM: u128 = 1 << (LOW + 12);

/// The millisecond of the latest id, and its bits beside the time.
static LATEST: Mutex<(u64, u128)> = Mutex::new((0, 0));

impl TaskId {
    /// Ids of one process grow, within a millisecond by a random step: a counter would tell the next one.
    pub fn fresh() -> Self {
        let (seconds, nanos) = Timestamp::now(NoContext).to_unix();
        let now = seconds * 1000 + u64::from(nanos) / 1_000_000;
        let random = Uuid::new_v4().as_u128();
        let step = random & ((1 << LOW) - 1);
        let (millis, bits) = {
            let mut latest = LATEST.lock().expect("no panic while holding the latest id");
            let (millis, bits) = *latest;
            *latest = if now > millis || bits + step + 1 >= ROOM {
                // In the lower half of the room, so that thousands of steps fit above.
                let start = ((random >> 80) << LOW) % (ROOM / 2);
                (now.max(millis + 1), start + step)
            } else {
                (millis, bits + step + 1)
            };
            *latest
        };
        let mut bytes = [0u8; 10];
        bytes[..2].copy_from_slice(&((bits >> LOW) as u16).to_be_bytes());
        bytes[2..].copy_from_slice(&(bits as u64).to_be_bytes());
        Self(Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid())
    }

    /// Only the spelling we hand out names a task; anything else is simply not there.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 36 {
            return None;
        }
        Uuid::try_parse(text).ok().map(Self)
    }

    pub fn bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// The trace a task begins where its caller told none: its own number, which is as random as a trace's must be.
    pub fn trace(&self) -> TraceId {
        TraceId::of(*self.bytes()).expect("an id has a version, so it is not zero")
    }

    /// The span of one run in its task's trace. A run that is looked at again is the same span.
    pub fn span(&self, run: u32) -> SpanId {
        // Mixes the random bits of the id with the run, so that spans look like nothing else.
        let mut mixed = (self.0.as_u128() as u64).wrapping_add(u64::from(run).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        SpanId::of((mixed ^ (mixed >> 31)) | 1).expect("the last bit is set")
    }

    /// The smallest id a task created at this time could have: lets a store find old tasks by id alone.
    pub fn floor_of(millis: i64) -> Self {
        let mut bytes = [0u8; 16];
        bytes[..6].copy_from_slice(&millis.max(0).to_be_bytes()[2..]);
        Self(Uuid::from_bytes(bytes))
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}

/// Where principals belong to: one workspace each. Names are unique within one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkspaceId(pub i64);

impl WorkspaceId {
    /// Holds the owner, and whoever is not said to be elsewhere.
    pub const DEFAULT: Self = Self(1);
}

/// Who a credential stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PrincipalId(pub i64);

impl PrincipalId {
    /// The hub's owner, created at the first start.
    pub const OWNER: Self = Self(1);
    /// Everyone without a key, where anonymous access is on.
    pub const ANONYMOUS: Self = Self(2);
}

/// An agent as the store knows it; its name may be configured anew, its number stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(pub i64);

/// An approval's id: made of what was asked by whom, so that the same question is the same approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApprovalId(Uuid);

impl ApprovalId {
    /// The id of a run's question under the asker's own name for it.
    pub fn of(task: TaskId, run: u32, name: &str) -> Self {
        let asked = [task.bytes().as_slice(), &run.to_be_bytes(), name.as_bytes()].concat();
        let digest = crate::key::sha256(&asked);
        let mut bytes = [0u8; 16];
        bytes.copy_from_slice(&digest[..16]);
        Self(Builder::from_custom_bytes(bytes).into_uuid())
    }

    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 36 {
            return None;
        }
        Uuid::try_parse(text).ok().map(Self)
    }

    pub fn bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}

/// A webhook's id within the hub: random, because it is shown to receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HookId(Uuid);

impl HookId {
    pub fn fresh() -> Self {
        Self(Uuid::now_v7())
    }

    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 36 {
            return None;
        }
        Uuid::try_parse(text).ok().map(Self)
    }

    pub fn bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// Without hyphens.
    pub fn simple(&self) -> uuid::fmt::Simple {
        self.0.simple()
    }

    /// A number that differs from hook to hook and from step to step.
    pub fn spread(&self, step: u32) -> u64 {
        let [.., a, b, c, d] = *self.0.as_bytes();
        let seed = u64::from(u32::from_be_bytes([a, b, c, d])) ^ (u64::from(step) << 32);
        // A multiplication mixes well enough for jitter.
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33
    }
}

impl fmt::Display for HookId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::TaskId;

    #[test]
    fn ids_grow_and_do_not_tell_the_next() {
        let ids: Vec<TaskId> = (0..10_000).map(|_| TaskId::fresh()).collect();
        let numbers: Vec<u128> = ids.iter().map(|id| u128::from_be_bytes(*id.bytes())).collect();
        let near = |pair: &&[u128]| pair[1] - pair[0] < 1 << 40;
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
        // A step of 62 random bits is that small once in four million times.
        assert!(numbers.windows(2).filter(near).count() < 3);
        for id in ids {
            assert_eq!((id.bytes()[6] >> 4, id.bytes()[8] >> 6), (7, 2), "version and variant");
            assert_eq!(TaskId::parse(&id.to_string()), Some(id));
        }
    }
}
