//! The room in a task: what still fits, and the word to its owner when little is left.

use super::Head;
use crate::limits::{Limit, Limits};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::event::Event;

/// About the size of a warning in the log.
const WARNING: u64 = 128;

/// Refuses what would make a task larger than it may be.
pub fn fits(head: &Head, events: &[Event], limits: &Limits) -> Result<(), Refusal> {
    let (messages, most) = (u64::from(head.turn) + asked(events), u64::from(limits.messages_per_task));
    if messages > most {
        let text = format!(
            "The task holds as many messages as it may ({most}). Start a new task for what remains, and name this one \
             in referenceTaskIds."
        );
        return Err(Limit::MessagesPerTask.refuse(most, text).fact("taskId", head.id.to_string()));
    }
    let most = limits.events_per_task;
    if head.seq + events.len() as u64 > most {
        let text = format!("The task's log is full ({most} events). Start a new task for what remains.");
        return Err(Limit::EventsPerTask.refuse(most, text).fact("taskId", head.id.to_string()));
    }
    Ok(())
}

/// What an event takes in memory beyond its size in the log.
pub const EVENT_BYTES: usize = 256;

/// What events take in memory, by their size as they are stored.
pub fn weight(events: &[Event], stored: usize) -> usize {
    stored + events.len() * EVENT_BYTES
}

/// Refuses what would make a task's log larger than it may be; `size` is what the events take in memory.
pub fn holds(head: &Head, size: usize, limits: &Limits) -> Result<(), Refusal> {
    let most = limits.bytes_per_task;
    if head.bytes + size as u64 > most {
        let text = format!(
            "The task's log holds as many bytes as it may ({most}). Start a new task for what remains, and send large \
             files as a url part."
        );
        return Err(Limit::BytesPerTask.refuse(most, text).fact("taskId", head.id.to_string()));
    }
    Ok(())
}

/// Adds a warning when a change of this size takes the task past four fifths of its bytes. Says whether it did.
pub fn warn_of_bytes(head: &Head, events: &mut Vec<Event>, size: usize, limits: &Limits) -> bool {
    let (most, used) = (limits.bytes_per_task, head.bytes + size as u64);
    let level = most - most / 5;
    let room = head.seq + (events.len() as u64) < limits.events_per_task && used + WARNING <= most;
    let is_due = head.bytes < level && used >= level && room;
    if is_due {
        events.push(Event::NearLimit { limit: Limit::BytesPerTask.name().to_owned(), used, most });
    }
    is_due
}

/// Adds a warning when these events take the task past four fifths of what it may hold. Each is said once.
pub fn warn(head: &Head, events: &mut Vec<Event>, limits: &Limits) {
    let messages = (u64::from(head.turn), u64::from(head.turn) + asked(events), u64::from(limits.messages_per_task));
    let count = (head.seq, head.seq + events.len() as u64, limits.events_per_task);
    for (limit, (before, after, most)) in [(Limit::MessagesPerTask, messages), (Limit::EventsPerTask, count)] {
        let level = most - most / 5;
        let room = head.seq + (events.len() as u64) < limits.events_per_task;
        if before < level && after >= level && room {
            events.push(Event::NearLimit { limit: limit.name().to_owned(), used: after, most });
        }
    }
}

fn asked(events: &[Event]) -> u64 {
    events.iter().filter(|event| matches!(event, Event::Asked { .. })).count() as u64
}

#[cfg(test)]
mod tests {
    use super::{fits, warn};
    use crate::ids::{AgentId, PrincipalId, TaskId};
    use crate::limits::{Limits, limit_of};
    use crate::task::Head;
    use flotilla_protocol::a2a::model::Message;
    use flotilla_protocol::event::Event;

    fn head(seq: u64, turn: u32) -> Head {
        let head = Head::new(TaskId::fresh(), PrincipalId(7), AgentId(3), PrincipalId(1), "ctx".into());
        Head { seq, turn, ..head }
    }

    fn limits(messages_per_task: u32, events_per_task: u64) -> Limits {
        Limits { messages_per_task, events_per_task, ..Limits::default() }
    }

    fn message() -> Event {
        Event::Asked {
            message: Message::default().into(),
            accepted_output_modes: Vec::new(),
            metadata: None,
            from: String::new(),
            ttl: None,
            extensions: Vec::new(),
            origin: None,
            agents: None,
        }
    }

    fn notes(count: usize) -> Vec<Event> {
        vec![Event::Noted { blocks: Vec::new(), of: None }; count]
    }

    fn warned(head: &Head, mut events: Vec<Event>, limits: &Limits) -> Vec<(String, u64, u64)> {
        warn(head, &mut events, limits);
        let told = |event| match event {
            Event::NearLimit { limit, used, most } => Some((limit, used, most)),
            _ => None,
        };
        events.into_iter().filter_map(told).collect()
    }

    #[test]
    fn a_task_holds_exactly_what_it_may() {
        assert!(fits(&head(18, 1), &notes(2), &limits(9, 20)).is_ok());
        let refusal = fits(&head(18, 1), &notes(3), &limits(9, 20)).unwrap_err();
        assert_eq!(limit_of(&refusal), Some("events_per_task"));
        assert!(fits(&head(5, 1), &[message()], &limits(2, 20)).is_ok());
        let refusal = fits(&head(5, 2), &[message()], &limits(2, 20)).unwrap_err();
        assert_eq!(limit_of(&refusal), Some("messages_per_task"));
    }

    #[test]
    fn the_warning_comes_once_at_four_fifths() {
        let limits = limits(10, 100);
        assert!(warned(&head(77, 1), notes(2), &limits).is_empty());
        assert_eq!(warned(&head(77, 1), notes(3), &limits), [("events_per_task".to_owned(), 80, 100)]);
        assert!(warned(&head(80, 1), notes(3), &limits).is_empty(), "it was said before");
        assert_eq!(warned(&head(9, 7), vec![message()], &limits), [("messages_per_task".to_owned(), 8, 10)]);
        assert!(warned(&head(9, 8), vec![message()], &limits).is_empty());
    }

    #[test]
    fn a_warning_takes_no_room_that_is_not_there() {
        let limits = limits(10, 100);
        assert!(warned(&head(79, 1), notes(21), &limits).is_empty());
        assert_eq!(warned(&head(79, 1), notes(20), &limits).len(), 1);
    }
}
