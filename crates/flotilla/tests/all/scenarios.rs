//! Scenarios written once and run over every binding: what callers are told must be the same, word for word.

mod addressing;
mod answers;
mod cancel;
mod list;
mod negotiation;
mod states;
mod subscribe;
mod turns;
mod whole;

use crate::cast;
use flotilla_testkit::{Binding, Talk};

/// Plays a scenario through each binding, each time with a hub of its own, and compares the transcripts.
fn on_all(scenario: impl Fn(&mut Talk)) {
    let [reference, others @ ..] = Binding::ALL.map(|binding| {
        let hub = cast::hub();
        let mut talk = Talk::new(hub.owner(binding));
        scenario(&mut talk);
        (binding, talk.transcript())
    });
    let (name, reference) = reference;
    assert!(!reference.is_empty(), "a scenario that says nothing proves nothing");
    for (other, lines) in others {
        for (left, right) in reference.iter().zip(&lines) {
            assert_eq!(left, right, "{name:?} (left) and {other:?} (right) differ");
        }
        assert_eq!(reference.len(), lines.len());
    }
}
