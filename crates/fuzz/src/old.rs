//! A2A 0.3 in its JSON form: what is read of it is written the same from then on, in either version.

use crate::{bindings, lines, text};
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::model::{StreamResponse, Task};
use flotilla_protocol::v03::{V03, answer, card, method, request};

/// The operation on the first line, under its name of 0.3, and the JSON behind it.
fn operation(bytes: &[u8]) -> Option<(Method, &[u8])> {
    let ([name], json) = lines::<1>(bytes);
    Some((method::from_name(text(name)?)?, json))
}

/// The parameters of a request.
pub fn old_request(bytes: &[u8]) {
    let Some((method, json)) = operation(bytes) else { return };
    let Ok(read) = request::read(method, json) else { return };
    bindings::check(&read);
    let once = serde_json::to_string(&V03(&read)).expect("a request that was read can be written");
    let again = request::read(method, once.as_bytes()).expect("a request that was written can be read");
    assert_eq!(serde_json::to_string(&V03(&again)).expect("as before"), once);
}

/// What an agent of 0.3 answers, and the frames of its streams.
pub fn old_result(bytes: &[u8]) {
    let Some((method, json)) = operation(bytes) else { return };
    let Some(json) = text(json) else { return };
    let Ok(newer) = answer::upgraded(method, json) else { return };
    let task = |newer: &str| serde_json::to_string(&V03(serde_json::from_str::<Task>(newer)?));
    let frame = |newer: &str| serde_json::to_string(&V03(serde_json::from_str::<StreamResponse>(newer)?));
    match method {
        Method::GetTask | Method::CancelTask => settles(method, &newer, task),
        Method::SendMessage | Method::SendStreamingMessage | Method::SubscribeToTask => {
            settles(method, &newer, frame);
        }
        _ => drop(serde_json::from_str::<serde_json::Value>(&newer).expect("JSON")),
    }
}

/// There and back changes it once at most, by what the older form has no room for.
fn settles(method: Method, newer: &str, older: impl Fn(&str) -> Result<String, serde_json::Error>) {
    let back = |newer: &str| {
        let old = older(newer).expect("what is written in 1.0 is read in it, and written in 0.3");
        answer::upgraded(method, &old).unwrap_or_else(|error| panic!("{error}: {old}"))
    };
    let once = back(newer);
    assert_eq!(back(&once), once);
}

/// An agent's card, of either version or of a mixture.
pub fn old_card(bytes: &[u8]) {
    let Some(json) = text(bytes) else { return };
    let Ok(newer) = card::upgraded(json) else { return };
    assert_eq!(card::upgraded(&newer).expect("JSON"), newer, "what is said as in 1.0 is said already");
}
