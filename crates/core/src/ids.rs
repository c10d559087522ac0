//! Names of things: tasks, principals and agents.

use std::fmt;
use uuid::Uuid;

/// A task's id: time-ordered so that stores append, with 74 random bits so that nobody can guess one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(Uuid);

impl TaskId {
    pub fn fresh() -> Self {
        Self(Uuid::now_v7())
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AgentId(pub i64);

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
