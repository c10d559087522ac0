//! A result that a worker tells beside its words: in the metadata of its message, or of the status that came with it.

use super::Judge;
use super::heard::{Held, held_beside};
use flotilla_protocol::wire::Object;
use flotilla_protocol::work::Contents;

impl Judge {
    pub(super) fn told_beside(&mut self, contents: Option<&Contents>, metadata: Option<&Object>) {
        let of_message = contents.and_then(|contents| match contents {
            Contents::Message(message) => message.metadata.as_ref(),
            Contents::Parts(_) | Contents::Blocks(_) => None,
        });
        for metadata in [of_message, metadata].into_iter().flatten() {
            match held_beside(metadata) {
                Held::Result(result, _) => {
                    self.told.add(result, None, false);
                    self.wrong = None;
                }
                Held::Wrong(problem, _) => self.wrong = Some(problem),
                Held::Announce(_) | Held::Content => {}
            }
        }
    }
}
