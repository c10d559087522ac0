//! Settings of an agent as the API spells them (camelCase), and as the configuration does (snake_case).

use serde_json::{Map, Value};

/// Members whose own members are names that somebody else chose.
const FOREIGN: [&str; 2] = ["headers", "params"];

/// As the configuration spells them. What is spelled so already stays.
pub fn inward(value: Value) -> Value {
    respelled(value, &snake)
}

/// As the API spells them.
pub fn outward(value: Value) -> Value {
    respelled(value, &camel)
}

/// What a decoder says of members, with their names (between backquotes) as the API spells them.
pub fn outward_words(text: &str) -> String {
    let pieces = text.split('`').enumerate();
    let spelled = pieces.map(|(index, piece)| if index % 2 == 1 { camel(piece) } else { piece.to_owned() });
    spelled.collect::<Vec<_>>().join("`")
}

fn respelled(value: Value, spell: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::Object(members) => {
            let member = |(name, value): (String, Value)| {
                let value = if FOREIGN.contains(&name.as_str()) { value } else { respelled(value, spell) };
                (spell(&name), value)
            };
            Value::Object(members.into_iter().map(member).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.into_iter().map(|item| respelled(item, spell)).collect(),
        other => other,
    }
}

fn snake(name: &str) -> String {
    let mut spelled = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            spelled.push('_');
        }
        spelled.push(letter.to_ascii_lowercase());
    }
    spelled
}

fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let mut spelled = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        spelled.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        spelled.push_str(letters.as_str());
    }
    spelled
}

/// Changes a value as RFC 7396 says: members that are null go, others take the place of those of their name.
pub fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(members) = target.as_object_mut() else { return };
    for (name, value) in patch {
        if value.is_null() {
            members.remove(&name);
        } else {
            merge(members.entry(name).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{inward, merge, outward, outward_words};
    use serde_json::json;

    #[test]
    fn what_is_wrong_is_told_in_the_names_of_the_api() {
        let told = outward_words("unknown field `card_key`, expected one of `url`, `card_keys`: some_text");
        assert_eq!(told, "unknown field `cardKey`, expected one of `url`, `cardKeys`: some_text");
    }

    #[test]
    fn names_are_spelled_both_ways_and_those_of_others_are_left() {
        let api = json!({"protocolVersion": "1.0", "headers": {"X-Team": "a"}, "auth": {"oauth2": {"clientId": "c"}},
            "extensions": [{"uri": "u", "params": {"someThing": 1}}]});
        let kept = json!({"protocol_version": "1.0", "headers": {"X-Team": "a"}, "auth": {"oauth2": {"client_id": "c"}},
            "extensions": [{"uri": "u", "params": {"someThing": 1}}]});
        assert_eq!(inward(api.clone()), kept);
        assert_eq!(inward(kept.clone()), kept);
        assert_eq!(outward(kept), api);
    }

    #[test]
    fn a_patch_changes_what_it_names() {
        let mut value = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1, 2]});
        merge(&mut value, json!({"a": null, "b": {"c": 4}, "e": [3], "f": {"g": null, "h": 5}}));
        assert_eq!(value, json!({"b": {"c": 4, "d": 3}, "e": [3], "f": {"h": 5}}));
    }
}
