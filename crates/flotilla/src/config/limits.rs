//! The `limits` section: a default and a range for each bound on what can grow.

use super::Span;
use anyhow::{Result, bail};
use flotilla_core::limits::Limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Bounds on everything that can grow.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Largest request body, in bytes.
    #[schemars(range(min = 1_024, max = 1_073_741_824))]
    pub body: usize,
    /// How long a request's body may take before its pace counts.
    pub body_time: Span,
    /// The pace, in bytes per second, at which a body must come after that.
    #[schemars(range(min = 1, max = 1_073_741_824))]
    pub body_rate: usize,
    /// Largest request head (target, header names and values), in bytes.
    #[schemars(range(min = 1_024, max = 1_048_576))]
    pub header_bytes: usize,
    /// Deepest nesting of a request's JSON.
    #[schemars(range(min = 8, max = 100))]
    pub json_depth: usize,
    /// Most parts one message may hold.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub parts: usize,
    /// Largest part, in bytes.
    #[schemars(range(min = 1_024, max = 1_073_741_824))]
    pub part_bytes: usize,
    /// Most messages a caller may say to one task.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub messages_per_task: u32,
    /// Most events one task may hold.
    #[schemars(range(min = 10, max = 1_000_000_000))]
    pub events_per_task: u64,
    /// Most bytes the events of one task may hold, as they are stored.
    #[schemars(range(min = 65_536, max = 1_099_511_627_776_u64))]
    pub bytes_per_task: u64,
    /// Most tasks of one caller that have not ended.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub open_tasks_per_caller: usize,
    /// Most streams one caller may read at once.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub streams_per_caller: usize,
    /// Most calls from agent to agent that may lead to a task.
    #[schemars(range(min = 1, max = 64))]
    pub hops: u32,
    /// Most push configs of one task.
    #[schemars(range(min = 1, max = 1_000))]
    pub push_configs_per_task: usize,
    /// Most runs of one agent under way at once.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub runs_per_agent: usize,
    /// Most runs under way at once.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub live_runs: usize,
    /// Most messages that wait for one agent which is not connected.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub queued_per_agent: usize,
    /// Most messages that wait for the agents of one workspace.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub queued_per_workspace: usize,
    /// Largest page of tasks.
    #[schemars(range(min = 1, max = 100))]
    pub page: i32,
    /// Content after which a page of tasks ends early, in bytes.
    #[schemars(range(min = 1_024, max = 1_073_741_824))]
    pub page_bytes: usize,
    /// How long a blocking send holds its connection; the task goes on after that.
    pub wait: Span,
    /// How long one to an agent that is not connected does; the message waits on after that.
    pub absent_wait: Span,
    /// Most requests of one caller in a second.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub requests_per_caller: u32,
    /// Most messages to one agent in a second.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub sends_per_agent: u32,
    /// Most wrong keys from one address in a minute.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub wrong_keys_per_address: u32,
    /// Most connections of one caller at once.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections_per_caller: usize,
    /// Most bytes held for one caller: its requests under way, and answers it has not taken yet.
    #[schemars(range(min = 65_536, max = 1_099_511_627_776_u64))]
    pub held_bytes_per_caller: usize,
    /// Most bytes held for all callers.
    #[schemars(range(min = 65_536, max = 1_099_511_627_776_u64))]
    pub held_bytes: usize,
    /// Most connections served at once.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub connections: usize,
    /// How long a client may take to begin and to send the head of a request.
    pub head_time: Span,
    /// How long a connection may stay open without a request.
    pub idle_time: Span,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            body: limits.body,
            body_time: Span(limits.body_time),
            body_rate: limits.body_rate,
            header_bytes: limits.header_bytes,
            json_depth: limits.json_depth,
            parts: limits.parts,
            part_bytes: limits.part_bytes,
            messages_per_task: limits.messages_per_task,
            events_per_task: limits.events_per_task,
            bytes_per_task: limits.bytes_per_task,
            open_tasks_per_caller: limits.open_tasks_per_caller,
            streams_per_caller: limits.streams_per_caller,
            hops: limits.hops,
            push_configs_per_task: limits.push_configs_per_task,
            runs_per_agent: limits.runs_per_agent,
            live_runs: limits.live_runs,
            queued_per_agent: limits.queued_per_agent,
            queued_per_workspace: limits.queued_per_workspace,
            page: limits.page,
            page_bytes: limits.page_bytes,
            wait: Span(limits.wait),
            absent_wait: Span(limits.absent_wait),
            requests_per_caller: limits.requests_per_caller,
            sends_per_agent: limits.sends_per_agent,
            wrong_keys_per_address: limits.wrong_keys_per_address,
            connections_per_caller: limits.connections_per_caller,
            held_bytes_per_caller: limits.held_bytes_per_caller,
            held_bytes: limits.held_bytes,
            connections: 10_000,
            head_time: Span::seconds(30),
            idle_time: Span::seconds(120),
        }
    }
}

/// A value and the range it must be in; times in milliseconds.
enum Bound {
    Number(u64, u64, u64),
    Time(Span, Span, Span),
}

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

impl LimitsConfig {
    pub fn limits(&self) -> Limits {
        Limits {
            body: self.body,
            body_time: self.body_time.0,
            body_rate: self.body_rate,
            header_bytes: self.header_bytes,
            json_depth: self.json_depth,
            parts: self.parts,
            part_bytes: self.part_bytes,
            messages_per_task: self.messages_per_task,
            events_per_task: self.events_per_task,
            bytes_per_task: self.bytes_per_task,
            open_tasks_per_caller: self.open_tasks_per_caller,
            streams_per_caller: self.streams_per_caller,
            hops: self.hops,
            push_configs_per_task: self.push_configs_per_task,
            runs_per_agent: self.runs_per_agent,
            live_runs: self.live_runs,
            queued_per_agent: self.queued_per_agent,
            queued_per_workspace: self.queued_per_workspace,
            page: self.page,
            page_bytes: self.page_bytes,
            wait: self.wait.0,
            absent_wait: self.absent_wait.0,
            requests_per_caller: self.requests_per_caller,
            sends_per_agent: self.sends_per_agent,
            wrong_keys_per_address: self.wrong_keys_per_address,
            connections_per_caller: self.connections_per_caller,
            held_bytes_per_caller: self.held_bytes_per_caller,
            held_bytes: self.held_bytes,
            ..Limits::default()
        }
    }

    /// Each limit with its range. A minimum leaves room for the smallest honest use, a maximum catches a slip.
    fn bounds(&self) -> [(&'static str, Bound); 31] {
        let number = |value: usize, least, most| Bound::Number(value as u64, least, most);
        let time = |value, least, most| Bound::Time(value, Span(Duration::from_millis(least)), Span::seconds(most));
        [
            ("body", number(self.body, KIB, KIB * MIB)),
            ("body_time", time(self.body_time, 100, 3600)),
            ("body_rate", number(self.body_rate, 1, KIB * MIB)),
            ("header_bytes", number(self.header_bytes, KIB, MIB)),
            ("json_depth", number(self.json_depth, 8, 100)),
            ("parts", number(self.parts, 1, 1_000_000)),
            ("part_bytes", number(self.part_bytes, KIB, KIB * MIB)),
            ("messages_per_task", Bound::Number(self.messages_per_task.into(), 1, 1_000_000)),
            ("events_per_task", Bound::Number(self.events_per_task, 10, 1_000_000_000)),
            ("bytes_per_task", Bound::Number(self.bytes_per_task, 64 * KIB, MIB * MIB)),
            ("open_tasks_per_caller", number(self.open_tasks_per_caller, 1, 1_000_000_000)),
            ("streams_per_caller", number(self.streams_per_caller, 1, 1_000_000)),
            ("hops", Bound::Number(self.hops.into(), 1, 64)),
            ("push_configs_per_task", number(self.push_configs_per_task, 1, 1_000)),
            ("runs_per_agent", number(self.runs_per_agent, 1, 1_000_000)),
            ("live_runs", number(self.live_runs, 1, 1_000_000)),
            ("queued_per_agent", number(self.queued_per_agent, 1, 1_000_000)),
            ("queued_per_workspace", number(self.queued_per_workspace, 1, 1_000_000)),
            ("page", Bound::Number(u64::try_from(self.page).unwrap_or(0), 1, 100)),
            ("page_bytes", number(self.page_bytes, KIB, KIB * MIB)),
            ("wait", time(self.wait, 100, 7 * 86_400)),
            ("absent_wait", time(self.absent_wait, 100, 86_400)),
            ("requests_per_caller", Bound::Number(self.requests_per_caller.into(), 1, 1_000_000)),
            ("sends_per_agent", Bound::Number(self.sends_per_agent.into(), 1, 1_000_000)),
            ("wrong_keys_per_address", Bound::Number(self.wrong_keys_per_address.into(), 1, 1_000_000)),
            ("connections_per_caller", number(self.connections_per_caller, 1, 1_000_000)),
            ("held_bytes_per_caller", number(self.held_bytes_per_caller, 64 * KIB, MIB * MIB)),
            ("held_bytes", number(self.held_bytes, 64 * KIB, MIB * MIB)),
            ("connections", number(self.connections, 1, 1_000_000)),
            ("head_time", time(self.head_time, 100, 3600)),
            ("idle_time", time(self.idle_time, 100, 86_400)),
        ]
    }

    pub fn check(&self) -> Result<()> {
        for (name, bound) in self.bounds() {
            if !bound.fits() {
                bail!("limits.{name} must be {bound}");
            }
        }
        Ok(())
    }
}

impl Bound {
    fn fits(&self) -> bool {
        match self {
            Self::Number(value, least, most) => (least..=most).contains(&value),
            Self::Time(value, least, most) => (least.0..=most.0).contains(&value.0),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(_, least, most) => write!(f, "between {least} and {most}"),
            Self::Time(_, least, most) => write!(f, "between {least} and {most}"),
        }
    }
}

/// Where a limit of this name must be.
pub fn range(name: &str) -> Option<String> {
    let bounds = LimitsConfig::default().bounds();
    bounds.iter().find(|(known, _)| *known == name).map(|(_, bound)| bound.to_string())
}

#[cfg(test)]
mod tests {
    use super::{Bound, LimitsConfig};
    use crate::config::Config;
    use flotilla_core::limits::Limit;

    /// The rows of `docs/limits.md`: name, default, range.
    fn documented() -> Vec<[String; 3]> {
        let text = include_str!("../../../../docs/limits.md");
        let rows = text.lines().filter(|line| line.starts_with("| `limits."));
        let cells = |line: &str| {
            let mut cells = line.split('|').skip(1).map(|cell| cell.trim().to_owned());
            std::array::from_fn(|_| cells.next().unwrap_or_default())
        };
        rows.map(cells).collect()
    }

    #[test]
    fn the_document_says_what_the_program_does() {
        let shown = |bound| match bound {
            Bound::Number(value, least, most) => [value.to_string(), format!("{least} to {most}")],
            Bound::Time(value, least, most) => [format!("`{value}`"), format!("`{least}` to `{most}`")],
        };
        let bounds = LimitsConfig::default().bounds();
        let expected = bounds.map(|(name, bound)| {
            let [value, range] = shown(bound);
            [format!("`limits.{name}`"), value, range]
        });
        assert_eq!(documented(), expected);
    }

    #[test]
    fn the_schema_has_the_same_ranges() {
        let schema = serde_json::to_value(schemars::schema_for!(LimitsConfig)).expect("a schema is JSON");
        for (name, bound) in LimitsConfig::default().bounds() {
            let Bound::Number(_, least, most) = bound else { continue };
            let property = &schema["properties"][name];
            assert_eq!((&property["minimum"], &property["maximum"]), (&least.into(), &most.into()), "{name}");
        }
    }

    #[test]
    fn every_limit_that_is_counted_can_be_set() {
        let bounds = LimitsConfig::default().bounds();
        for limit in Limit::ALL {
            assert!(bounds.iter().any(|(name, _)| *name == limit.name()), "{limit:?}");
        }
    }

    #[test]
    fn the_edges_are_allowed_and_what_is_beyond_is_refused_with_the_range() {
        for (name, bound) in LimitsConfig::default().bounds() {
            let (allowed, refused) = match bound {
                Bound::Number(_, least, most) => {
                    let texts = |numbers: [u64; 2]| numbers.map(|number| number.to_string());
                    (texts([least, most]), texts([least - 1, most + 1]))
                }
                Bound::Time(_, least, most) => {
                    let beyond = format!("{}ms", most.0.as_millis() + 1);
                    ([least.to_string(), most.to_string()], ["0s".to_owned(), beyond])
                }
            };
            let checked = |value: &str| {
                let config = Config::parse(&format!("limits: {{{name}: {value}}}")).expect("a readable value");
                config.limits.check()
            };
            for value in allowed {
                checked(&value).unwrap_or_else(|error| panic!("{name}: {value}: {error}"));
            }
            for value in refused {
                let told = checked(&value).expect_err(&format!("{name}: {value} is out of range")).to_string();
                assert!(told.starts_with(&format!("limits.{name} must be between ")), "{told}");
            }
        }
    }
}
