//! Bounds on everything a caller or an agent can make grow, and the refusals of those who go beyond one.

use flotilla_protocol::a2a::error::{Reason, Refusal};
use metrics::counter;
use std::fmt::Display;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest request body, in bytes.
    pub body: usize,
    /// How long a body may take before its pace counts.
    pub body_time: Duration,
    /// The pace, in bytes per second, at which a body must come after that.
    pub body_rate: usize,
    /// Largest request head: target, names and values of the header fields, in bytes.
    pub header_bytes: usize,
    /// Deepest nesting of a request's JSON.
    pub json_depth: usize,
    /// Most parts one message may hold.
    pub parts: usize,
    /// Largest part, in bytes.
    pub part_bytes: usize,
    /// Most messages a caller may say to one task.
    pub messages_per_task: u32,
    /// Most events one task may hold; a run that goes on is failed.
    pub events_per_task: u64,
    /// Most bytes the events of one task may hold; a run that goes on is failed.
    pub bytes_per_task: u64,
    /// Most tasks of one caller that have not ended.
    pub open_tasks_per_caller: usize,
    /// Most streams one caller may read at once.
    pub streams_per_caller: usize,
    /// Most calls from agent to agent that may lead to a task.
    pub hops: u32,
    /// Most push configs of one task.
    pub push_configs_per_task: usize,
    /// Most runs of one agent under way at once.
    pub runs_per_agent: usize,
    /// Most runs under way in this process at once.
    pub live_runs: usize,
    /// Most messages that wait for one agent which is not there.
    pub queued_per_agent: usize,
    /// Most messages that wait for the agents of one workspace.
    pub queued_per_workspace: usize,
    /// Largest page of ListTasks (the specification allows 100).
    pub page: i32,
    /// Content after which a page ends early, in bytes.
    pub page_bytes: usize,
    /// How long a blocking send holds its connection; the task goes on after that.
    pub wait: Duration,
    /// How long one to an agent that is not there does; the message waits on after that.
    pub absent_wait: Duration,
    /// Most requests of one caller in a second.
    pub requests_per_caller: u32,
    /// Most messages to one agent in a second.
    pub sends_per_agent: u32,
    /// Most wrong keys from one address in a minute.
    pub wrong_keys_per_address: u32,
    /// Most connections of one caller at once.
    pub connections_per_caller: usize,
    /// Most bytes of one caller's requests under way and answers not yet taken.
    pub held_bytes_per_caller: usize,
    /// The same of all callers.
    pub held_bytes: usize,
    /// Commits on their way to the store at once.
    pub commits: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 16 * 1024 * 1024,
            body_time: Duration::from_secs(20),
            body_rate: 16 * 1024,
            header_bytes: 64 * 1024,
            json_depth: 64,
            parts: 1_000,
            part_bytes: 8 * 1024 * 1024,
            messages_per_task: 10_000,
            events_per_task: 1_000_000,
            bytes_per_task: 64 * 1024 * 1024,
            open_tasks_per_caller: 100_000,
            streams_per_caller: 1_000,
            hops: 8,
            push_configs_per_task: 20,
            runs_per_agent: 5_000,
            live_runs: 10_000,
            queued_per_agent: 1_000,
            queued_per_workspace: 10_000,
            page: 100,
            page_bytes: 32 * 1024 * 1024,
            wait: Duration::from_secs(3600),
            absent_wait: Duration::from_secs(2),
            requests_per_caller: 100_000,
            sends_per_agent: 100_000,
            wrong_keys_per_address: 300,
            connections_per_caller: 8_000,
            held_bytes_per_caller: 64 * 1024 * 1024,
            held_bytes: 256 * 1024 * 1024,
            commits: 4096,
        }
    }
}

/// The limits whose excess is refused, cut off or warned of: each by the name it is set and counted under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    Body,
    BodyTime,
    HeaderBytes,
    JsonDepth,
    Parts,
    PartBytes,
    MessagesPerTask,
    EventsPerTask,
    BytesPerTask,
    OpenTasksPerCaller,
    StreamsPerCaller,
    Hops,
    PushConfigsPerTask,
    RunsPerAgent,
    LiveRuns,
    QueuedPerAgent,
    QueuedPerWorkspace,
    Page,
    RequestsPerCaller,
    SendsPerAgent,
    WrongKeysPerAddress,
    ConnectionsPerCaller,
    HeldBytesPerCaller,
    HeldBytes,
    Connections,
    HeadTime,
    IdleTime,
}

impl Limit {
    pub const ALL: [Self; 27] = [
        Self::Body,
        Self::BodyTime,
        Self::HeaderBytes,
        Self::JsonDepth,
        Self::Parts,
        Self::PartBytes,
        Self::MessagesPerTask,
        Self::EventsPerTask,
        Self::BytesPerTask,
        Self::OpenTasksPerCaller,
        Self::StreamsPerCaller,
        Self::Hops,
        Self::PushConfigsPerTask,
        Self::RunsPerAgent,
        Self::LiveRuns,
        Self::QueuedPerAgent,
        Self::QueuedPerWorkspace,
        Self::Page,
        Self::RequestsPerCaller,
        Self::SendsPerAgent,
        Self::WrongKeysPerAddress,
        Self::ConnectionsPerCaller,
        Self::HeldBytesPerCaller,
        Self::HeldBytes,
        Self::Connections,
        Self::HeadTime,
        Self::IdleTime,
    ];

    /// Its key in the `limits` section.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::BodyTime => "body_time",
            Self::HeaderBytes => "header_bytes",
            Self::JsonDepth => "json_depth",
            Self::Parts => "parts",
            Self::PartBytes => "part_bytes",
            Self::MessagesPerTask => "messages_per_task",
            Self::EventsPerTask => "events_per_task",
            Self::BytesPerTask => "bytes_per_task",
            Self::OpenTasksPerCaller => "open_tasks_per_caller",
            Self::StreamsPerCaller => "streams_per_caller",
            Self::Hops => "hops",
            Self::PushConfigsPerTask => "push_configs_per_task",
            Self::RunsPerAgent => "runs_per_agent",
            Self::LiveRuns => "live_runs",
            Self::QueuedPerAgent => "queued_per_agent",
            Self::QueuedPerWorkspace => "queued_per_workspace",
            Self::Page => "page",
            Self::RequestsPerCaller => "requests_per_caller",
            Self::SendsPerAgent => "sends_per_agent",
            Self::WrongKeysPerAddress => "wrong_keys_per_address",
            Self::ConnectionsPerCaller => "connections_per_caller",
            Self::HeldBytesPerCaller => "held_bytes_per_caller",
            Self::HeldBytes => "held_bytes",
            Self::Connections => "connections",
            Self::HeadTime => "head_time",
            Self::IdleTime => "idle_time",
        }
    }

    /// What going beyond it is: too much at once, wrong for ever, or only wrong now.
    const fn reason(self) -> Reason {
        match self {
            Self::Body | Self::PartBytes => Reason::PayloadTooLarge,
            Self::BodyTime | Self::HeadTime | Self::IdleTime => Reason::RequestTimeout,
            Self::HeaderBytes => Reason::HeadersTooLarge,
            Self::JsonDepth => Reason::InvalidRequest,
            Self::Parts | Self::Page => Reason::InvalidParams,
            // Waiting does not make room in a task that is full, so this is not "try again later".
            Self::MessagesPerTask
            | Self::EventsPerTask
            | Self::BytesPerTask
            | Self::PushConfigsPerTask
            | Self::Hops => Reason::UnsupportedOperation,
            Self::OpenTasksPerCaller
            | Self::StreamsPerCaller
            | Self::RunsPerAgent
            | Self::LiveRuns
            | Self::RequestsPerCaller
            | Self::SendsPerAgent
            | Self::WrongKeysPerAddress
            | Self::ConnectionsPerCaller
            | Self::HeldBytesPerCaller => Reason::ResourceExhausted,
            Self::QueuedPerAgent => Reason::QueueFull,
            Self::QueuedPerWorkspace => Reason::TenantQueueFull,
            Self::Connections | Self::HeldBytes => Reason::Unavailable,
        }
    }

    /// The refusal of whoever goes beyond: `text` says what is too much and what to do, the facts name the limit.
    pub fn refuse(self, most: impl Display, text: impl Into<String>) -> Refusal {
        self.named(most, Refusal::new(self.reason(), text))
    }

    /// The same, where one field of the request is at fault.
    pub fn refuse_field(self, most: impl Display, field: &str, description: impl Into<String>) -> Refusal {
        let invalid = Refusal::invalid(field, description);
        self.named(most, Refusal { reason: self.reason(), ..invalid })
    }

    fn named(self, most: impl Display, refusal: Refusal) -> Refusal {
        refusal.fact(LIMIT, self.name()).fact("limitValue", most.to_string())
    }
}

/// The fact of a refusal that names the limit.
const LIMIT: &str = "limit";

/// Counts that a limit was gone beyond: by a request of a binding, by a `run`, or by a `connection` as such.
pub fn count_over(limit: &str, by: &'static str) {
    counter!("flotilla_over_limit_total", "limit" => limit.to_owned(), "by" => by).increment(1);
}

/// The limit a refusal is about, if it is about one.
pub fn limit_of(refusal: &Refusal) -> Option<&str> {
    refusal.facts.iter().find(|(name, _)| *name == LIMIT).map(|(_, limit)| limit.as_str())
}

#[cfg(test)]
mod tests {
    use super::{Limit, limit_of};
    use flotilla_protocol::decode::too_deep;

    #[test]
    fn a_refusal_names_its_limit() {
        let refusal = Limit::Parts.refuse_field(3, "message.parts", "must hold at most 3 parts");
        assert_eq!(limit_of(&refusal), Some("parts"));
        assert_eq!(limit_of(&too_deep(3)), Some(Limit::JsonDepth.name()), "refused where JSON is read");
        assert_eq!(too_deep(3).reason, Limit::JsonDepth.reason());
    }
}
