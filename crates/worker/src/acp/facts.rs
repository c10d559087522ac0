//! What an ACP agent's sessions say of themselves: the measured part of an announcement.

use flotilla_protocol::fleet::announce::Announce;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// What was seen until now; kept over all runs.
#[derive(Debug, Default)]
pub struct Learned(Mutex<Facts>);

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    /// The agent's own words for which one it is.
    pub version: Option<String>,
    pub model: Option<String>,
    pub context_window: Option<u64>,
    /// Tools it was seen to use, by its own names: an ACP agent lists none.
    pub tools: BTreeSet<String>,
}

impl Learned {
    pub fn facts(&self) -> Facts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn learn(&self, change: impl FnOnce(&mut Facts)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// From the answer to the handshake.
    pub(super) fn greeted(&self, answer: &Value) {
        let info = &answer["agentInfo"];
        let (name, version) = (info["name"].as_str(), info["version"].as_str());
        let words: Vec<&str> = name.into_iter().chain(version).collect();
        self.learn(|facts| facts.version = (!words.is_empty()).then(|| words.join(" ")));
    }

    /// From the answer that opened a session, or set it to another model.
    pub(super) fn opened(&self, answer: &Value) {
        let options = answer["configOptions"].as_array().into_iter().flatten();
        let model =
            options.filter(|option| option["category"] == "model").find_map(|option| option["currentValue"].as_str());
        if let Some(model) = model {
            self.learn(|facts| facts.model = Some(model.to_owned()));
        }
    }

    pub(super) fn updated(&self, update: &Value) {
        match update["sessionUpdate"].as_str() {
            Some("usage_update") => {
                if let Some(size) = update["size"].as_u64().filter(|size| *size > 0) {
                    self.learn(|facts| facts.context_window = Some(size));
                }
            }
            Some("tool_call") => {
                if let Some(name) = update["name"].as_str() {
                    self.learn(|facts| {
                        facts.tools.insert(name.to_owned());
                    });
                }
            }
            _ => {}
        }
    }
}

impl Facts {
    /// Puts what was seen into an announcement.
    pub fn fill(&self, announce: &mut Announce) {
        announce.worker.model.clone_from(&self.model);
        announce.worker.context_window = self.context_window;
        announce.capabilities.tools = self.tools.iter().cloned().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::Learned;
    use flotilla_protocol::fleet::announce::Announce;
    use serde_json::json;

    #[test]
    fn what_was_seen_is_announced_and_nothing_else() {
        let learned = Learned::default();
        let mut announce = Announce::default();
        learned.facts().fill(&mut announce);
        assert_eq!(announce, Announce::default(), "nothing was seen yet");
        learned.greeted(&json!({"agentInfo": {"name": "coder", "version": "1.2"}}));
        learned.opened(&json!({"configOptions": [{"category": "model", "currentValue": "big"}]}));
        learned.updated(&json!({"sessionUpdate": "usage_update", "used": 5, "size": 1000}));
        learned.updated(&json!({"sessionUpdate": "tool_call", "name": "Bash", "title": "ls"}));
        learned.updated(&json!({"sessionUpdate": "tool_call", "title": "a title is no name"}));
        let facts = learned.facts();
        assert_eq!(facts.version.as_deref(), Some("coder 1.2"));
        facts.fill(&mut announce);
        assert_eq!((announce.worker.model.as_deref(), announce.worker.context_window), (Some("big"), Some(1000)));
        assert_eq!(announce.capabilities.tools, ["Bash"]);
    }
}
