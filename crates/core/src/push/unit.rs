//! What one webhook holds: one frame of the log, or chunks in a row as one. The same log is always cut the same way,
//! so that a delivery made again after a crash has the same id and the same content.

use crate::hub::Framed;
use crate::project::extend;
use flotilla_protocol::a2a::model::{ArtifactUpdate, Part, StreamResponse};
use flotilla_protocol::a2a::push::{PushChunks, PushEvents, PushOptions};
use std::collections::VecDeque;
use std::sync::Arc;

/// What chunks in a row may hold to become one.
const WHOLE_BYTES: usize = 256 * 1024;

#[derive(Debug, Clone, PartialEq)]
pub enum Cut {
    /// One webhook, up to and including this event.
    Unit(u64, Box<StreamResponse>),
    /// Nobody wants the events up to this one.
    Passed(u64),
    /// What comes next may belong to what is there.
    Open,
    Nothing,
}

/// Takes the next webhook off the frames.
pub fn cut(frames: &mut VecDeque<Framed>, options: PushOptions) -> Cut {
    let Some(first) = frames.front() else { return Cut::Nothing };
    let is_artifact = matches!(first.frame, StreamResponse::ArtifactUpdate(_));
    if is_artifact && options.events == PushEvents::Status {
        let last = frames.pop_front().map_or(0, |framed| framed.peer_seq);
        return Cut::Passed(last);
    }
    let count = match options.chunks {
        PushChunks::Whole if is_artifact => match run(frames) {
            Some(count) => count,
            None => return Cut::Open,
        },
        _ => 1,
    };
    let mut taken = frames.drain(..count);
    let Some(Framed { mut peer_seq, mut frame }) = taken.next() else { return Cut::Nothing };
    for next in taken {
        if let (StreamResponse::ArtifactUpdate(whole), StreamResponse::ArtifactUpdate(chunk)) = (&mut frame, next.frame)
        {
            join(whole, &chunk);
        }
        peer_seq = next.peer_seq;
    }
    Cut::Unit(peer_seq, Box::new(frame))
}

/// How many of the frames are chunks that belong together; none while that may still change.
fn run(frames: &VecDeque<Framed>) -> Option<usize> {
    let (mut size, mut id) = (0, None);
    for (index, framed) in frames.iter().enumerate() {
        let StreamResponse::ArtifactUpdate(update) = &framed.frame else { return Some(index) };
        let artifact = &update.artifact;
        if id.is_some_and(|id| id != &artifact.artifact_id || !update.append) {
            return Some(index);
        }
        id = Some(&artifact.artifact_id);
        size += artifact.parts.iter().map(Part::size).sum::<usize>();
        if update.last_chunk || size >= WHOLE_BYTES {
            return Some(index + 1);
        }
    }
    None
}

fn join(whole: &mut ArtifactUpdate, chunk: &ArtifactUpdate) {
    extend(Arc::make_mut(&mut whole.artifact), &chunk.artifact);
    whole.last_chunk = chunk.last_chunk;
    if chunk.metadata.is_some() {
        whole.metadata.clone_from(&chunk.metadata);
    }
}

#[cfg(test)]
mod tests {
    use super::{Cut, cut};
    use crate::hub::Framed;
    use flotilla_protocol::a2a::model::{Artifact, ArtifactUpdate, Part, StatusUpdate, StreamResponse};
    use flotilla_protocol::a2a::push::{PushChunks, PushEvents, PushOptions};
    use std::collections::VecDeque;
    use std::sync::Arc;

    /// `a` begins an artifact, `+a` extends it, `a.` and `+a.` complete it, `!` is a status.
    fn log(script: &str) -> VecDeque<Framed> {
        let frame = |word: &str| {
            let id = word.trim_start_matches('+').trim_end_matches('.');
            if id == "!" {
                return StreamResponse::StatusUpdate(StatusUpdate::default());
            }
            let artifact = Artifact { artifact_id: id.into(), parts: vec![Part::text(word)], ..Artifact::default() };
            StreamResponse::ArtifactUpdate(ArtifactUpdate {
                artifact: Arc::new(artifact),
                append: word.starts_with('+'),
                last_chunk: word.ends_with('.'),
                ..ArtifactUpdate::default()
            })
        };
        (1..).zip(script.split_whitespace()).map(|(peer_seq, word)| Framed { peer_seq, frame: frame(word) }).collect()
    }

    fn cuts(script: &str, options: PushOptions) -> String {
        let mut frames = log(script);
        let mut told = Vec::new();
        loop {
            told.push(match cut(&mut frames, options) {
                Cut::Unit(last, frame) => match *frame {
                    StreamResponse::ArtifactUpdate(update) => {
                        let texts: Vec<_> = update.artifact.parts.iter().filter_map(|part| part.text.clone()).collect();
                        format!("{last}:{}", texts.join(""))
                    }
                    _ => format!("{last}:!"),
                },
                Cut::Passed(last) => format!("({last})"),
                Cut::Open => {
                    told.push("...".into());
                    return told.join(" ");
                }
                Cut::Nothing => return told.join(" "),
            });
        }
    }

    #[test]
    fn every_event_by_itself_unless_asked() {
        assert_eq!(cuts("! a +a +a. !", PushOptions::default()), "1:! 2:a 3:+a 4:+a. 5:!");
        let states = PushOptions { events: PushEvents::Status, ..PushOptions::default() };
        assert_eq!(cuts("! a +a +a. !", states), "1:! (2) (3) (4) 5:!");
    }

    #[test]
    fn chunks_in_a_row_become_one_and_wait_until_they_are_whole() {
        let whole = PushOptions { chunks: PushChunks::Whole, ..PushOptions::default() };
        for (script, expected) in [
            ("! a +a +a. !", "1:! 4:a+a+a. 5:!"),
            ("a +a", "..."),
            ("a +a !", "2:a+a 3:!"),
            ("a +a b !", "2:a+a 3:b 4:!"),
            ("a a +a !", "1:a 3:a+a 4:!"),
            ("a. +a. b", "1:a. 2:+a. ..."),
            ("", ""),
        ] {
            assert_eq!(cuts(script, whole), expected, "{script}");
        }
    }

    #[test]
    fn the_same_log_is_cut_the_same_way_wherever_it_is_taken_up() {
        let whole = PushOptions { chunks: PushChunks::Whole, ..PushOptions::default() };
        let mut once = log("! a +a +a. b +b ! c +c. !");
        let mut last = Vec::new();
        while let Cut::Unit(at, _) = cut(&mut once, whole) {
            last.push(at);
        }
        for (index, start) in last.iter().enumerate() {
            let mut again = log("! a +a +a. b +b ! c +c. !");
            again.retain(|framed| framed.peer_seq > *start);
            let next = match cut(&mut again, whole) {
                Cut::Unit(at, _) => Some(at),
                _ => None,
            };
            assert_eq!(next, last.get(index + 1).copied());
        }
    }
}
