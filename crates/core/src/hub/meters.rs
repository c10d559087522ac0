//! Counts of what the hub did, for `/metrics`.

use crate::task::Head;
use flotilla_protocol::event::{Change, Event};
use metrics::{Counter, counter};

pub struct Meters {
    changes: Counter,
    events: Counter,
    opened: Counter,
    answered: Counter,
    ended: [Counter; 4],
    pub duplicates: Counter,
}

const ENDS: [(&str, u8); 4] = [("completed", 3), ("failed", 4), ("canceled", 5), ("rejected", 7)];

impl Default for Meters {
    fn default() -> Self {
        Self {
            changes: counter!("flotilla_changes_committed_total"),
            events: counter!("flotilla_events_committed_total"),
            opened: counter!("flotilla_tasks_opened_total"),
            answered: counter!("flotilla_messages_answered_total"),
            ended: ENDS.map(|(state, _)| counter!("flotilla_tasks_ended_total", "state" => state)),
            duplicates: counter!("flotilla_sends_deduplicated_total"),
        }
    }
}

impl Meters {
    pub fn changed(&self, head: &Head, change: &Change) {
        self.changes.increment(1);
        self.events.increment(change.events.len() as u64);
        for event in &change.events {
            match event {
                Event::Opened {} => self.opened.increment(1),
                Event::Answered { .. } => self.answered.increment(1),
                Event::Status { state, .. } => {
                    if let Some(index) = ENDS.iter().position(|(_, number)| *number == *state as u8) {
                        self.ended[index].increment(1);
                    }
                }
                Event::NearLimit { limit, used, most } => {
                    let (task, trace) = (head.id, head.trace_id());
                    tracing::warn!(%task, %trace, limit, used, most, "a task has used most of what it may hold");
                    counter!("flotilla_limit_warnings_total", "limit" => limit.clone()).increment(1);
                }
                _ => {}
            }
        }
    }
}
