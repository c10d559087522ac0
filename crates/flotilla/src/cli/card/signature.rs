//! What the signatures of a card are worth, as it is shown: a word, why, and how it is known.

use crate::cli::failure::Failure;
use crate::cli::output::{Text, object, say};
use crate::cli::session::Session;
use flotilla_outbound::client::card::Card;
use flotilla_outbound::signature::origin::{Fetch, Pins, is_thumbprint, judge};
use flotilla_outbound::signature::verify::{Outcome, Word};
use serde_json::json;

/// Reads pins: thumbprints, and files with keys.
pub fn pins(values: &[String]) -> Result<Pins, Failure> {
    let mut pins = Pins::default();
    for value in values {
        let wrong = |problem: String| {
            let hint =
                "a pin is the thumbprint of a key (43 letters and digits), or a file with a JSON Web Key or a set";
            Failure::usage(format!("--pin {value}: {problem}")).hint(hint)
        };
        if is_thumbprint(value) {
            pins.add(value).map_err(wrong)?;
        } else {
            let text = std::fs::read_to_string(value).map_err(|error| wrong(error.to_string()))?;
            pins.add(&text).map_err(wrong)?;
        }
    }
    Ok(pins)
}

/// Judges a card. Where keys are pinned, nothing but a verified one will do.
pub async fn judged(session: &Session, card: &Card, pins: &Pins) -> Result<Outcome, Failure> {
    let outcome = judge(Fetch { net: &session.net, guard: None }, &card.json, &card.source, pins).await;
    if pins.is_empty() || outcome.word == Word::Verified {
        return Ok(outcome);
    }
    let text = format!("the signature of the card at {} is {}: {}", card.source, outcome.word, outcome.reason);
    let hint = "ask whoever runs the agent for its key, and do not trust the card before";
    Err(Failure::unverified(text).hint(hint))
}

pub fn field(text: &mut Text, outcome: &Outcome) {
    text.field("Signature", &format!("{} ({})", outcome.word, outcome.reason));
}

/// Beside the card, where that is shown as it came.
pub fn beside(outcome: &Outcome) {
    say(&format!("Signature: {} ({})", outcome.word, outcome.reason));
}

/// In the place of the card.
pub fn show(session: &Session, outcome: &Outcome, on_one_line: bool) {
    let proof = outcome.proof.as_deref();
    if session.is_json() {
        let json = json!({
            "signature": outcome.word.name(),
            "reason": outcome.reason,
            "kid": proof.map(|proof| &proof.kid),
            "alg": proof.map(|proof| &proof.alg),
            "thumbprint": proof.map(|proof| &proof.thumbprint),
            "uncovered": proof.map(|proof| &proof.uncovered),
        });
        object(&json.to_string(), on_one_line);
        return;
    }
    let mut text = Text::default();
    field(&mut text, outcome);
    if let Some(proof) = proof {
        text.field("Key", proof.kid.as_deref().unwrap_or_default()).field("Algorithm", &proof.alg);
        text.field("Thumbprint", &proof.thumbprint).field("Not covered", &proof.uncovered.join(", "));
    }
    text.print();
}
