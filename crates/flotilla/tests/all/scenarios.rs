//! Scenarios written once and run over every binding: what callers are told must be the same, word for word.

mod addressing;
mod answers;
mod cancel;
mod list;
mod negotiation;
mod states;
mod subscribe;
mod turns;

use crate::cast;
use flotilla_testkit::{Binding, Talk};

/// Plays a scenario through each binding, each time with a hub of its own, and compares the transcripts.
fn on_both(scenario: impl Fn(&mut Talk)) {
    let [left, right] = Binding::ALL.map(|binding| {
        let hub = cast::hub();
        let mut talk = Talk::new(hub.owner(binding));
        scenario(&mut talk);
        talk.transcript()
    });
    assert!(!left.is_empty(), "a scenario that says nothing proves nothing");
    for (left, right) in left.iter().zip(&right) {
        assert_eq!(left, right, "JSON-RPC (left) and HTTP+JSON (right) differ");
    }
    assert_eq!(left.len(), right.len());
}
