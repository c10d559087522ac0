//! Bounds on everything a caller or an agent can make grow.

use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest request body, in bytes.
    pub body: usize,
    /// Deepest nesting of a request's JSON.
    pub json_depth: usize,
    /// Most parts one message may hold.
    pub parts: usize,
    /// Most events one task may hold; a run that goes on is failed.
    pub events_per_task: u64,
    /// Most runs under way in this process at once.
    pub live_runs: usize,
    /// Largest page of ListTasks (the specification allows 100).
    pub page: i32,
    /// Content after which a page ends early, in bytes.
    pub page_bytes: usize,
    /// How long a blocking send holds its connection; the task goes on after that.
    pub wait: Duration,
    /// Commits on their way to the store at once.
    pub commits: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 16 * 1024 * 1024,
            json_depth: 64,
            parts: 1_000,
            events_per_task: 1_000_000,
            live_runs: 10_000,
            page: 100,
            page_bytes: 32 * 1024 * 1024,
            wait: Duration::from_secs(3600),
            commits: 4096,
        }
    }
}
