//! What the query of a request to the hub's own API may hold; a slip in it would do something else than was meant.

use crate::parameters::query;
use flotilla_protocol::a2a::error::Refusal;
use http::Uri;

/// Refuses names that are not known here, and those given twice.
pub fn check(known: &[&str], uri: &Uri) -> Result<(), Refusal> {
    let mut seen: Vec<String> = Vec::new();
    for (name, _) in query(uri) {
        if !known.contains(&name.as_ref()) {
            let text = match known {
                [] => "is not known here, where the query holds nothing".to_owned(),
                known => format!("is not known here; there is {}", known.join(", ")),
            };
            let shown: String = name.chars().take(100).collect();
            return Err(Refusal::invalid(&shown, text));
        }
        if seen.iter().any(|other| *other == name) {
            return Err(Refusal::invalid(&name, "is given twice"));
        }
        seen.push(name.into_owned());
    }
    Ok(())
}

/// The value of one name, if it is there.
pub fn value(uri: &Uri, name: &str) -> Option<String> {
    query(uri).find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}
