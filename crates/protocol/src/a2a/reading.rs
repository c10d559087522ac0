//! What of a card a signature is made over (spec 8.4.1). The specification's reading and that of the published SDKs are
//! not the same, so a card is signed in each reading, and a signature holds if it fits one.

use super::shape::{CARD, Presence, Shape};
use crate::canonical;
use serde_json::{Map, Value};

/// A way to read a card before it is signed or verified. None of them reads `signatures`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// All that is there, as it is there.
    Whole,
    /// The members A2A 1.0 knows, without defaults that need not be said (spec 8.4.1).
    Specified,
    /// The same without anything that is empty, required or not: what the published SDKs sign.
    Bare,
}

/// A card in one reading, as the text that is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    pub reading: Reading,
    pub json: String,
}

/// All readings of a card that differ from those before them.
pub fn payloads(card: &Value) -> Result<Vec<Payload>, String> {
    let Value::Object(members) = card else { return Err("it is not a JSON object".into()) };
    let mut whole = members.clone();
    whole.remove("signatures");
    let mut readings = vec![(Reading::Whole, Value::Object(whole.clone()))];
    // A card of 0.3 alone has no members of 1.0 to pick out.
    let is_new = ["supportedInterfaces", "supported_interfaces"].iter().any(|name| whole.contains_key(*name));
    let known = if is_new { specified(&Value::Object(whole), &CARD)? } else { Value::Object(whole) };
    let bare = bare(&known).unwrap_or_else(|| Value::Object(Map::new()));
    if is_new {
        readings.push((Reading::Specified, known));
    }
    readings.push((Reading::Bare, bare));
    let mut payloads: Vec<Payload> = Vec::new();
    for (reading, value) in readings {
        let json = canonical::write(&value);
        if payloads.iter().all(|known| known.json != json) {
            payloads.push(Payload { reading, json });
        }
    }
    Ok(payloads)
}

/// The members of a card that say something and that a reading of it does not hold, by their places: whoever changes
/// them breaks no signature.
pub fn uncovered(card: &Value, payload: &str) -> Vec<String> {
    let mut lost = Vec::new();
    if let Ok(covered) = serde_json::from_str(payload) {
        missing(card, &covered, "", &mut lost);
    }
    lost.retain(|place| place != "signatures");
    lost
}

fn missing(all: &Value, covered: &Value, place: &str, lost: &mut Vec<String>) {
    match (all, covered) {
        (Value::Object(all), Value::Object(covered)) => {
            for (name, member) in all.iter().filter(|(_, member)| !is_default(member)) {
                let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
                match covered.get(name).or_else(|| covered.get(&camel(name))) {
                    Some(covered) => missing(member, covered, &place, lost),
                    None => lost.push(place),
                }
            }
        }
        (Value::Array(all), Value::Array(covered)) if all.len() == covered.len() => {
            for (index, (item, covered)) in all.iter().zip(covered).enumerate() {
                missing(item, covered, &format!("{place}[{index}]"), lost);
            }
        }
        (Value::Array(_), _) | (_, Value::Array(_)) => lost.push(place.to_owned()),
        _ => {}
    }
}

/// ProtoJSON lets a member be spelled as in the proto file too.
fn camel(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut raise = false;
    for c in name.chars() {
        match c {
            '_' => raise = true,
            c if raise => {
                out.push(c.to_ascii_uppercase());
                raise = false;
            }
            c => out.push(c),
        }
    }
    out
}

fn specified(value: &Value, shape: &Shape) -> Result<Value, String> {
    Ok(match (shape, value) {
        (Shape::Object(known), Value::Object(members)) => {
            let mut kept = Map::new();
            for (name, member) in members {
                let name = camel(name);
                let Some(field) = known.iter().find(|field| field.name == name) else { continue };
                let value = specified(member, field.shape)?;
                let says = match field.presence {
                    Presence::Required | Presence::Optional => !value.is_null(),
                    Presence::Plain => !is_default(&value),
                };
                if says && kept.insert(name.clone(), value).is_some() {
                    return Err(format!("the member '{name}' is there twice, in two spellings"));
                }
            }
            // Writers of ProtoJSON leave out what is empty; what is required is said all the same.
            for field in known.iter().filter(|field| field.presence == Presence::Required) {
                if let Some(unsaid) = field.shape.unsaid() {
                    kept.entry(field.name).or_insert(unsaid);
                }
            }
            Value::Object(kept)
        }
        (Shape::List(of), Value::Array(items)) => {
            Value::Array(items.iter().map(|item| specified(item, of)).collect::<Result<_, _>>()?)
        }
        (Shape::Map(of), Value::Object(members)) => {
            let each = members.iter().map(|(name, member)| Ok((name.clone(), specified(member, of)?)));
            Value::Object(each.collect::<Result<_, String>>()?)
        }
        _ => value.clone(),
    })
}

fn is_default(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
    }
}

fn bare(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::String(text) => (!text.is_empty()).then(|| value.clone()),
        Value::Array(items) => {
            let items: Vec<Value> = items.iter().filter_map(bare).collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        Value::Object(members) => {
            let members: Map<_, _> =
                members.iter().filter_map(|(name, member)| Some((name.clone(), bare(member)?))).collect();
            (!members.is_empty()).then_some(Value::Object(members))
        }
        _ => Some(value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Reading, payloads, uncovered};
    use serde_json::{Value, json};

    fn read(card: &Value, reading: Reading) -> Option<String> {
        payloads(card).unwrap().into_iter().find(|payload| payload.reading == reading).map(|payload| payload.json)
    }

    /// The example of the specification (8.4.1), with an interface so that it is a card of 1.0.
    #[test]
    fn defaults_go_as_the_specification_shows() {
        let card = json!({
            "name": "Example Agent", "description": "", "supportedInterfaces": [], "version": "1",
            "capabilities": {"streaming": false, "pushNotifications": false, "extensions": []},
            "defaultInputModes": ["*/*"], "skills": [], "signatures": [{"protected": "a", "signature": "b"}], "provider": null, "hologram": 1,
        });
        assert_eq!(
            read(&card, Reading::Specified).unwrap(),
            concat!(
                r#"{"capabilities":{"pushNotifications":false,"streaming":false},"defaultInputModes":["*/*"],"#,
                r#""defaultOutputModes":[],"description":"","name":"Example Agent","skills":[],"#,
                r#""supportedInterfaces":[],"version":"1"}"#
            )
        );
        assert_eq!(
            read(&card, Reading::Bare).unwrap(),
            concat!(
                r#"{"capabilities":{"pushNotifications":false,"streaming":false},"defaultInputModes":["*/*"],"#,
                r#""name":"Example Agent","version":"1"}"#
            )
        );
        assert!(read(&card, Reading::Whole).unwrap().contains(r#""hologram":1"#));
    }

    #[test]
    fn spellings_are_one_and_twice_is_refused() {
        let snake = json!({"supported_interfaces": [{"protocol_binding": "GRPC", "tenant": ""}]});
        let expected = r#"{"supportedInterfaces":[{"protocolBinding":"GRPC"}]}"#;
        assert_eq!(read(&snake, Reading::Bare).as_deref(), Some(expected));
        let both = json!({"supported_interfaces": [], "supportedInterfaces": [{"url": "x"}]});
        assert!(payloads(&both).unwrap_err().contains("two spellings"));
        assert!(payloads(&json!([])).is_err());
    }

    #[test]
    fn what_a_reading_leaves_out_is_told() {
        let card = json!({
            "name": "a", "supportedInterfaces": [{"url": "u", "more": 1}], "url": "http://elsewhere",
            "securityRequirements": [{"schemes": {"k": {"list": []}}}], "signatures": [],
        });
        let lost = |reading| uncovered(&card, &read(&card, reading).unwrap());
        assert_eq!(lost(Reading::Whole), [""; 0]);
        let unknown = ["supportedInterfaces[0].more", "url"];
        assert_eq!(lost(Reading::Specified), unknown);
        assert_eq!(lost(Reading::Bare), [&["securityRequirements"][..], &unknown].concat());
    }

    #[test]
    fn an_old_card_is_read_whole_and_bare() {
        let card = json!({"name": "a", "url": "u", "protocolVersion": "0.3.0", "skills": []});
        assert_eq!(read(&card, Reading::Specified), None);
        assert_eq!(read(&card, Reading::Bare).as_deref(), Some(r#"{"name":"a","protocolVersion":"0.3.0","url":"u"}"#));
    }
}
