//! What the signatures of a card are worth, as it is shown: a word, why, and how it is known.

use crate::cli::failure::Failure;
use crate::cli::output::{Text, object, say};
use crate::cli::session::Session;
use flotilla_outbound::client::card::Card;
use flotilla_outbound::signature::origin::{Fetch, Pins, is_thumbprint, judge};
use flotilla_outbound::signature::verify::{Outcome, Word};
use serde_json::{Value, json};

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

/// A pin as it is sent to a hub: a thumbprint, or the keys in a file. Of these only what checks a signature is sent, as a
/// file may hold the key that makes them.
pub fn sent_pin(value: &str) -> Result<String, String> {
    if is_thumbprint(value) {
        return Ok(value.to_owned());
    }
    let wrong = |problem: String| {
        format!(
            "{problem}; a pin is the thumbprint of a key (43 letters and digits), or a file with a JSON Web Key or a set"
        )
    };
    let text = std::fs::read_to_string(value).map_err(|error| wrong(error.to_string()))?;
    Pins::default().add(&text).map_err(wrong)?;
    let mut read: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    match read.get_mut("keys").and_then(Value::as_array_mut) {
        Some(keys) => {
            keys.iter_mut().for_each(publish);
            Ok(json!({ "keys": keys }).to_string())
        }
        None => {
            publish(&mut read);
            Ok(read.to_string())
        }
    }
}

fn publish(key: &mut Value) {
    const PUBLIC: [&str; 10] = ["kty", "crv", "x", "y", "n", "e", "kid", "alg", "use", "key_ops"];
    if let Some(members) = key.as_object_mut() {
        members.retain(|name, _| PUBLIC.contains(&name.as_str()));
    }
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

#[cfg(test)]
mod tests {
    use super::sent_pin;
    use serde_json::{Value, json};

    #[test]
    fn of_a_key_file_only_what_is_public_is_sent() {
        let public = json!({"kty": "EC", "crv": "P-256", "kid": "k", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
            "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"});
        let mut private = public.clone();
        private["d"] = "s3cret".into();
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("key.json");
        for (held, sent) in [(private.clone(), public.clone()), (json!({"keys": [private]}), json!({"keys": [public]}))]
        {
            std::fs::write(&file, held.to_string()).unwrap();
            let read: Value = serde_json::from_str(&sent_pin(&file.to_string_lossy()).unwrap()).unwrap();
            assert_eq!(read, sent);
        }
        std::fs::write(&file, "{}").unwrap();
        for wrong in [file.to_string_lossy().as_ref(), "nowhere"] {
            let told = sent_pin(wrong).unwrap_err();
            assert!(told.contains("the thumbprint of a key") && told.contains("or a file"), "{told}");
        }
    }
}
