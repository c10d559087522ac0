//! The ledger's questions: what was used, by whom or when. The store answers them from sums it keeps with each commit.

use crate::ids::{AgentId, TaskId};
use flotilla_protocol::event::Event;
use flotilla_protocol::fleet::route::Step;
use flotilla_protocol::time::Millis;
use flotilla_protocol::usage::Usage;

/// The worker that was given the work, if the events of a change say so: what is used from then on is its use.
pub fn assigned(events: &[Event]) -> Option<&str> {
    events.iter().rev().find_map(|event| match event {
        Event::Routed { step, .. } => match &**step {
            Step::Assigned { worker, .. } => Some(worker.as_str()),
            _ => None,
        },
        _ => None,
    })
}

/// The worker that tells what it used, where the work is not its own any more.
pub fn told_by(events: &[Event]) -> Option<&str> {
    events.iter().find_map(|event| match event {
        Event::Noted { of: Some(earlier), .. } => Some(earlier.worker.as_str()),
        _ => None,
    })
}

const DAY_MILLIS: i64 = 86_400_000;

/// A day of the calendar (UTC), counted from 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i64);

impl Day {
    pub fn of(at: Millis) -> Self {
        Self(at.0.div_euclid(DAY_MILLIS))
    }

    pub fn begins(self) -> Millis {
        Millis(self.0 * DAY_MILLIS)
    }

    /// When the next one begins.
    pub fn ends(self) -> Millis {
        Self(self.0 + 1).begins()
    }

    /// `2026-01-31`.
    pub fn name(self) -> String {
        self.begins().to_string().chars().take(10).collect()
    }
}

/// What sums are made by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Task,
    Agent,
    Context,
    Workspace,
    Day,
}

impl By {
    pub const ALL: [Self; 5] = [Self::Task, Self::Agent, Self::Context, Self::Workspace, Self::Day];

    pub fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Agent => "agent",
            Self::Context => "context",
            Self::Workspace => "workspace",
            Self::Day => "day",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.name() == name)
    }
}

/// Which of the ledger is wanted.
#[derive(Debug, Clone, Default)]
pub struct UsageFilter {
    pub since: Option<Day>,
    /// The last day that counts.
    pub until: Option<Day>,
    pub task: Option<TaskId>,
    /// Only these agents.
    pub agents: Option<Vec<AgentId>>,
    pub context: Option<String>,
    /// At most so many sums, those with the latest use first.
    pub limit: usize,
}

/// One sum.
#[derive(Debug, Clone, PartialEq)]
pub struct Sum {
    /// What it is the sum of: a task's id, a name, a day.
    pub key: String,
    /// How many tasks are in it.
    pub tasks: u64,
    pub usage: Usage,
}
