//! What the query of `/api/agents` asks for.

use crate::parameters::query;
use flotilla_core::registry::{Liveness, Search};
use flotilla_protocol::a2a::error::Refusal;
use http::Uri;

const KNOWN: [&str; 9] = ["q", "skill", "tag", "mode", "capability", "version", "state", "pageSize", "pageToken"];
/// Agents on a page where nobody says how many.
const USUAL: usize = 50;

/// A slip in the query would otherwise do something else than was meant.
pub fn check(uri: &Uri, known: &[&str]) -> Result<(), Refusal> {
    let mut seen: Vec<String> = Vec::new();
    for (name, _) in query(uri) {
        let short: String = name.chars().take(100).collect();
        if !known.contains(&name.as_ref()) {
            let text = match known {
                [] => "is not known here, where the query holds nothing".to_owned(),
                known => format!("is not known here; there is {}", known.join(", ")),
            };
            return Err(Refusal::invalid(&short, text));
        }
        if seen.contains(&short) {
            return Err(Refusal::invalid(&short, "is given twice"));
        }
        seen.push(short);
    }
    Ok(())
}

fn value(uri: &Uri, name: &str) -> Option<String> {
    query(uri).find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value.into_owned())
}

/// `?force`, `?force=true` or `?force=false`.
pub fn flag(uri: &Uri, name: &'static str) -> Result<bool, Refusal> {
    check(uri, &[name])?;
    match query(uri).find(|(known, _)| known == name).map(|(_, value)| value.into_owned()).as_deref() {
        None | Some("false") => Ok(false),
        Some("" | "true") => Ok(true),
        Some(_) => Err(Refusal::invalid(name, "must be true or false")),
    }
}

/// A search for agents, at most so many at once.
pub fn search(uri: &Uri, most: usize) -> Result<Search, Refusal> {
    check(uri, &KNOWN)?;
    let state = value(uri, "state").map(|state| {
        Liveness::ALL.into_iter().find(|known| known.name() == state).ok_or_else(|| {
            let all: Vec<&str> = Liveness::ALL.into_iter().map(Liveness::name).collect();
            Refusal::invalid("state", format!("must be one of {}", all.join(", ")))
        })
    });
    let limit = match value(uri, "pageSize") {
        None => USUAL.min(most),
        Some(text) => match text.parse::<usize>() {
            Ok(size) if (1..=most).contains(&size) => size,
            _ => return Err(Refusal::invalid("pageSize", format!("must be a number from 1 to {most}"))),
        },
    };
    Ok(Search {
        words: value(uri, "q").unwrap_or_default(),
        skill: value(uri, "skill"),
        tag: value(uri, "tag"),
        mode: value(uri, "mode"),
        capability: value(uri, "capability"),
        version: value(uri, "version"),
        state: state.transpose()?,
        after: value(uri, "pageToken"),
        limit,
    })
}
