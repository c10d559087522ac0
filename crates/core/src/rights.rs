//! What a key lets its bearer do. People say scopes; here, `Scope` is which tasks a query may touch.

use flotilla_protocol::a2a::method::Method;
use std::fmt;
use std::str::FromStr;

/// One thing a key may be good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Right {
    /// Read the cards of agents that are not public, and extended cards.
    AgentsRead,
    /// Read tasks, and follow them.
    TasksRead,
    /// Send messages and cancel tasks.
    TasksWrite,
    /// Set, read and remove where a task's news are pushed to.
    PushWrite,
    /// Manage keys, and see everything on this hub. Holds all the others.
    Admin,
    /// Be an agent: connect as one, and do its work.
    AgentsConnect,
    /// Look for agents elsewhere, add them, change and remove one's own.
    AgentsWrite,
    /// Answer what one's agents ask leave for. No agent's own key has it, or it could answer itself.
    ApprovalsWrite,
}

impl Right {
    pub const ALL: [Self; 8] = [
        Self::AgentsRead,
        Self::TasksRead,
        Self::TasksWrite,
        Self::PushWrite,
        Self::AgentsConnect,
        Self::AgentsWrite,
        Self::ApprovalsWrite,
        Self::Admin,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::AgentsRead => "agents:read",
            Self::TasksRead => "tasks:read",
            Self::TasksWrite => "tasks:write",
            Self::PushWrite => "push:write",
            Self::Admin => "admin",
            Self::AgentsConnect => "agents:connect",
            Self::AgentsWrite => "agents:write",
            Self::ApprovalsWrite => "approvals:write",
        }
    }

    /// What an operation needs; a new operation does not compile until it is placed.
    pub const fn for_method(method: Method) -> Self {
        match method {
            Method::SendMessage | Method::SendStreamingMessage | Method::CancelTask => Self::TasksWrite,
            Method::GetTask | Method::ListTasks | Method::SubscribeToTask => Self::TasksRead,
            // Reading them too: they tell where somebody's news go.
            Method::CreatePushConfig | Method::GetPushConfig | Method::ListPushConfigs | Method::DeletePushConfig => {
                Self::PushWrite
            }
            Method::GetExtendedAgentCard => Self::AgentsRead,
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl FromStr for Right {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|right| right.name() == text).ok_or_else(|| {
            let all: Vec<&str> = Self::ALL.into_iter().map(Self::name).collect();
            format!("'{text}' is no scope; there are: {}", all.join(", "))
        })
    }
}

/// A set of rights.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Rights(u8);

impl Rights {
    /// All a caller of agents needs.
    pub const CALLER: Self =
        Self(Right::AgentsRead.bit() | Right::TasksRead.bit() | Right::TasksWrite.bit() | Right::PushWrite.bit());
    /// Whoever administers the hub may be an agent too, but is none unless they say so.
    pub const ALL: Self = Self(Self::CALLER.0 | Right::Admin.bit());

    pub fn of(rights: impl IntoIterator<Item = Right>) -> Self {
        Self(rights.into_iter().fold(0, |all, right| all | right.bit()))
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub const fn is_admin(self) -> bool {
        self.0 & Right::Admin.bit() != 0
    }

    pub const fn has(self, right: Right) -> bool {
        self.is_admin() || self.0 & right.bit() != 0
    }

    /// Whether the right itself was given, and not only all of them.
    pub const fn names_one(self, right: Right) -> bool {
        self.0 & right.bit() != 0
    }

    pub fn names(self) -> Vec<&'static str> {
        Right::ALL.into_iter().filter(|right| self.0 & right.bit() != 0).map(Right::name).collect()
    }

    /// These and one more.
    #[must_use]
    pub const fn with(self, right: Right) -> Self {
        Self(self.0 | right.bit())
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(" "))
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}

#[cfg(test)]
mod tests {
    use super::{Right, Rights};

    #[test]
    fn names_are_written_and_read_back() {
        let some = Rights::of([Right::PushWrite, Right::TasksRead]);
        assert_eq!(some.to_string(), "tasks:read push:write");
        for right in Right::ALL {
            assert_eq!(right.name().parse(), Ok(right));
        }
        assert!("tasks".parse::<Right>().unwrap_err().contains("tasks:read"));
    }

    #[test]
    fn an_admin_may_all_and_nobody_else_is_one() {
        for right in Right::ALL {
            assert!(Rights::of([Right::Admin]).has(right));
            let more =
                matches!(right, Right::Admin | Right::AgentsConnect | Right::AgentsWrite | Right::ApprovalsWrite);
            assert_eq!(Rights::CALLER.has(right), !more, "{right:?}");
            assert!(!Rights::of([]).has(right) && Rights::of([]).with(right).has(right));
        }
    }
}
