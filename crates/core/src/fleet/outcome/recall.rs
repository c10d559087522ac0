//! What a worker said in a run before the hub stopped, read again from the log: it counts as it would have.

use super::Judge;
use flotilla_protocol::a2a::model::{Artifact, TaskState};
use flotilla_protocol::event::{Change, Chunk, Event, Said};
use flotilla_protocol::fleet::told::ToldResult;
use flotilla_protocol::work::{Contents, Report};
use std::sync::Arc;

impl Judge {
    /// Takes up a run where its log ends. What was used is known already, and announcements were heeded when they came.
    pub fn recall(&mut self, changes: &[Arc<Change>]) {
        let spent = self.spent;
        self.begun.read_again();
        let events: Vec<&Event> = changes.iter().flat_map(|change| &change.events).collect();
        let begun = events.iter().rposition(|event| matches!(event, Event::RunQueued { .. })).unwrap_or(0);
        for report in events[begun..].iter().filter_map(|event| reported(event)) {
            let noted = match &report {
                Report::Note { blocks } => blocks.iter().filter_map(ToldResult::of).collect(),
                _ => Vec::new(),
            };
            self.read(vec![report]);
            noted.into_iter().for_each(|told| self.told_in(told));
        }
        (self.spent, self.aside, self.noted) = (spent, Vec::new(), Vec::new());
    }

    /// Who has the work is elsewhere, and may be a hub.
    pub fn is_of_another(&mut self) {
        self.begun.may_be_another_s();
    }

    /// A result that was told in an artifact, and is not its content.
    fn told_in(&mut self, ToldResult { artifact, anew, alone, result, .. }: ToldResult) {
        self.told.add(result, Some(&artifact), anew);
        self.begun.ends(Some(&artifact));
        self.wrong = None;
        self.heard.settle();
        if alone {
            self.artifact = Some(artifact);
        }
    }
}

/// What a worker reported that became this event; none of what the hub itself had to say.
fn reported(event: &Event) -> Option<Report> {
    match event {
        Event::Produced { chunk: Chunk { artifact, blocks, append, last_chunk, metadata } } => {
            let contents = match blocks.is_empty() {
                true => Contents::Parts(artifact.parts.clone()),
                false => Contents::Blocks(blocks.clone()),
            };
            let artifact = Box::new(Artifact { parts: Vec::new(), ..(**artifact).clone() });
            let (append, last_chunk, metadata) = (*append, *last_chunk, metadata.clone());
            Some(Report::Artifact { artifact, contents, append, last_chunk, metadata })
        }
        Event::Status { state: TaskState::Working, said, metadata } => {
            let contents = said.as_ref().map(|Said { message, blocks }| match blocks.is_empty() {
                true => Contents::Message(Box::new((**message).clone())),
                false => Contents::Blocks(blocks.clone()),
            });
            Some(Report::Status { state: TaskState::Working, contents, metadata: metadata.clone() })
        }
        Event::Noted { blocks, of: None } => Some(Report::Note { blocks: blocks.clone() }),
        _ => None,
    }
}
