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

/// Plays a scenario through each binding of 1.0 and through 0.3, each time with a hub of its own, and compares the
/// transcripts: what is answered in 0.3 is read as 1.0 for that.
fn on_all(scenario: impl Fn(&mut Talk)) {
    play(&Binding::ALL, &Binding::JSON, scenario);
}

/// The same for what 0.3 has not, or has in another way.
fn on_current(scenario: impl Fn(&mut Talk)) {
    play(&Binding::ALL, &[], scenario);
}

fn play(current: &[Binding], old: &[Binding], scenario: impl Fn(&mut Talk)) {
    let current = current.iter().map(|binding| (*binding, false));
    let doors: Vec<(Binding, bool)> = current.chain(old.iter().map(|binding| (*binding, true))).collect();
    let mut transcripts = doors.into_iter().map(|(binding, old)| {
        let hub = cast::hub();
        let owner = hub.owner(binding);
        let mut talk = Talk::new(if old { owner.in_03() } else { owner });
        scenario(&mut talk);
        let name = if old { format!("{binding:?} of 0.3") } else { format!("{binding:?}") };
        (name, talk.transcript())
    });
    let (name, reference) = transcripts.next().expect("a binding");
    assert!(!reference.is_empty(), "a scenario that says nothing proves nothing");
    for (other, lines) in transcripts {
        for (left, right) in reference.iter().zip(&lines) {
            assert_eq!(left, right, "{name} (left) and {other} (right) differ");
        }
        assert_eq!(reference.len(), lines.len());
    }
}
