//! What a session is set to by the configuration: its mode and its model, in the ways agents have for that.

use serde_json::{Value, json};

/// Values that are named when one is not among them.
const NAMED: usize = 30;

/// What can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    Mode,
    Model,
}

impl Choice {
    fn name(self) -> &'static str {
        match self {
            Self::Mode => "mode",
            Self::Model => "model",
        }
    }

    /// The request that sets a session to what is wanted, by what the agent said when it opened it; none if it is so.
    pub fn request(self, wanted: &str, session: &str, opened: &Value) -> Result<Option<(&'static str, Value)>, String> {
        let name = self.name();
        let modes = &opened["modes"];
        if self == Self::Mode && modes.is_object() {
            let known = modes["availableModes"].as_array().into_iter().flatten().filter_map(|mode| mode["id"].as_str());
            let params = json!({"sessionId": session, "modeId": wanted});
            return pick(name, wanted, &modes["currentModeId"], known.collect(), ("session/set_mode", params));
        }
        let options = opened["configOptions"].as_array().into_iter().flatten();
        let mut matching = options.filter(|option| option["category"] == name || option["id"] == name);
        let option = matching.next().ok_or_else(|| format!("the agent has no {name} to choose"))?;
        let params = json!({"sessionId": session, "configId": option["id"], "value": wanted});
        let request = ("session/set_config_option", params);
        pick(name, wanted, &option["currentValue"], values(&option["options"]), request)
    }
}

fn pick(
    name: &str,
    wanted: &str,
    current: &Value,
    known: Vec<&str>,
    request: (&'static str, Value),
) -> Result<Option<(&'static str, Value)>, String> {
    if current == wanted {
        return Ok(None);
    }
    if known.contains(&wanted) {
        return Ok(Some(request));
    }
    let shown = known.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    Err(format!("the agent has no {name} '{wanted}'; it has: {shown}"))
}

/// The values of a list, which may be in groups.
fn values(options: &Value) -> Vec<&str> {
    let all = options.as_array().into_iter().flatten();
    all.flat_map(|option| match option["value"].as_str() {
        Some(value) => vec![value],
        None => values(&option["options"]),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::Choice;
    use serde_json::{Value, json};

    fn opened() -> Value {
        json!({
            "modes": {"currentModeId": "ask", "availableModes": [{"id": "ask"}, {"id": "code"}]},
            "configOptions": [
                {"id": "which", "category": "model", "currentValue": "a", "options": [
                    {"value": "a"}, {"group": "g", "options": [{"value": "b"}]}
                ]}
            ]
        })
    }

    #[test]
    fn what_is_not_so_is_asked_for_in_the_agents_way() {
        let set = Choice::Mode.request("code", "s", &opened()).unwrap();
        assert_eq!(set, Some(("session/set_mode", json!({"sessionId": "s", "modeId": "code"}))));
        let set = Choice::Model.request("b", "s", &opened()).unwrap();
        let params = json!({"sessionId": "s", "configId": "which", "value": "b"});
        assert_eq!(set, Some(("session/set_config_option", params)));
        assert_eq!(Choice::Mode.request("ask", "s", &opened()), Ok(None));
        let by_option = json!({"configOptions": [{"id": "mode", "currentValue": "x", "options": [{"value": "y"}]}]});
        assert!(Choice::Mode.request("y", "s", &by_option).unwrap().is_some());
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        let told = Choice::Model.request("c", "s", &opened()).unwrap_err();
        assert!(told.contains("'c'") && told.ends_with("a, b"), "{told}");
        assert!(Choice::Mode.request("c", "s", &json!({})).unwrap_err().contains("no mode"));
    }
}
