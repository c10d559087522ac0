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
use flotilla_testkit::{Binding, Client, Talk};

/// Plays a scenario through each binding of 1.0, over the socket, and through 0.3, each time with a hub of its own, and compares the
/// transcripts: what is answered in 0.3 is read as 1.0 for that.
fn on_all(scenario: impl Fn(&mut Talk)) {
    play(&Binding::ALL, true, &Binding::JSON, scenario);
}

/// The same for what is said with a path, which the socket has not.
fn on_paths(scenario: impl Fn(&mut Talk)) {
    play(&Binding::ALL, false, &Binding::JSON, scenario);
}

/// The same for what 0.3 has not, or has in another way.
fn on_current(scenario: impl Fn(&mut Talk)) {
    play(&Binding::ALL, true, &[], scenario);
}

fn play(current: &[Binding], socket: bool, old: &[Binding], scenario: impl Fn(&mut Talk)) {
    type Door = (String, fn(Client) -> Client, Binding);
    let current = current.iter().map(|binding| -> Door { (format!("{binding:?}"), |client| client, *binding) });
    let socket = socket.then(|| -> Door { ("the socket".into(), Client::over_socket, Binding::JsonRpc) });
    let old = old.iter().map(|binding| -> Door { (format!("{binding:?} of 0.3"), Client::in_03, *binding) });
    let doors: Vec<Door> = current.chain(socket).chain(old).collect();
    let mut transcripts = doors.into_iter().map(|(name, through, binding)| {
        let hub = cast::hub();
        let mut talk = Talk::new(through(hub.owner(binding)));
        scenario(&mut talk);
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
