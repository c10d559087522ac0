//! Setups of other programs, written down as a configuration of the hub, with word of what could not be taken over.

pub mod fleet;
pub mod hermes;

use crate::config::Config;
use anyhow::{Context as _, Result, bail};
use flotilla_core::registry::check_name;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// What was made of a setup.
#[derive(Debug, Default)]
pub struct Draft {
    hub: Map<String, Value>,
    agents: Map<String, Value>,
    /// The file each agent is from.
    origins: BTreeMap<String, String>,
    /// What is still to be done by hand.
    pub todo: Vec<String>,
    /// What was not taken over, and why.
    pub left: Vec<String>,
}

impl Draft {
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.agents.keys().map(String::as_str)
    }

    /// Each agent, and the file it is from.
    pub fn origins(&self) -> impl Iterator<Item = (&str, &str)> {
        self.origins.iter().map(|(name, origin)| (name.as_str(), origin.as_str()))
    }

    /// Each agent, and what the configuration is to say of it.
    pub fn settings(&self) -> impl Iterator<Item = (&str, Value)> {
        self.agents.iter().map(|(name, agent)| (name.as_str(), agent.clone()))
    }

    /// Adds an agent elsewhere, if a hub would start with it. Of one that is not added nothing is left to do: `before`
    /// says how much there was without it.
    fn add(&mut self, origin: &str, name: &str, agent: Value, before: usize) -> bool {
        let problem = self.adds(origin, name, agent).err();
        if let Some(problem) = &problem {
            self.todo.truncate(before);
            self.left.push(format!("{origin}: {problem:#}"));
        }
        problem.is_none()
    }

    fn adds(&mut self, origin: &str, name: &str, agent: Value) -> Result<()> {
        let name = fitting(name);
        check_name(&name).map_err(|problem| anyhow::anyhow!("{problem}"))?;
        if let Some(first) = self.origins.get(&name) {
            bail!("there is an agent '{name}' already, from {first}, which was kept; rename one and import again");
        }
        let alone = json!({"agents": {name.as_str(): agent}});
        as_yaml(&alone).and_then(|text| Config::parse(&text)).and_then(|config| config.check())?;
        self.origins.insert(name.clone(), origin.to_owned());
        self.agents.insert(name, agent);
        Ok(())
    }

    /// Names every key of a section that says something and is none of those that are known.
    fn leave_others(&mut self, origin: &str, section: &str, value: Option<&Value>, known: &[&str]) {
        for (key, value) in value.and_then(Value::as_object).into_iter().flatten() {
            if !value.is_null() && !known.contains(&key.as_str()) {
                self.leave(origin, &format!("{section}{key}"), "was not taken over: the import does not know it");
            }
        }
    }

    fn leave(&mut self, origin: &str, what: &str, why: &str) {
        self.left.push(format!("{origin}: {what}: {why}"));
    }

    /// The configuration as a file.
    pub fn yaml(&self) -> Result<String> {
        let mut whole = Map::new();
        if !self.hub.is_empty() {
            whole.insert("hub".into(), Value::Object(self.hub.clone()));
        }
        whole.insert("agents".into(), Value::Object(self.agents.clone()));
        as_yaml(&Value::Object(whole))
    }
}

/// A `${` of the other program's must not be filled from the environment when the file is read.
fn as_yaml(value: &Value) -> Result<String> {
    Ok(serde_saphyr::to_string(value)?.replace("${", "$${"))
}

/// A name of the other program's, as the hub can have it.
fn fitting(name: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    name.trim().to_lowercase().chars().map(fits).collect()
}

/// A file of YAML; what is wrong with it is told by its path.
fn read(path: &Path) -> Result<Value> {
    let reading = || format!("reading {} (name the file that is to be imported)", path.display());
    let text = std::fs::read_to_string(path).with_context(reading)?;
    // The message of the parser shows a piece of the text, in which a secret may stand.
    let parsed = serde_saphyr::from_str(&text).map_err(|_| anyhow::anyhow!("is no YAML that can be read"));
    parsed.with_context(|| path.display().to_string())
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}

/// The place of a secret. One that stands in the file itself is not copied: its owner has to put it into a variable.
fn secret(draft: &mut Draft, origin: &str, literal: Option<&str>, variable: Option<&str>, fallback: &str) -> String {
    let reference = literal.and_then(|text| text.strip_prefix("${")?.strip_suffix('}'));
    if let Some(name) = variable.or(reference) {
        let origin_of =
            format!("{origin}: the secret is read from the environment variable {name}; set it for the hub");
        draft.todo.push(origin_of);
        return format!("env:{name}");
    }
    let letters = fallback.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    let name: String = letters.collect();
    draft.todo.push(format!(
        "{origin}: the secret stands in the file and was not copied; put it into the environment variable {name} of the \
         hub, or write file:PATH"
    ));
    format!("env:{name}")
}

#[cfg(test)]
mod tests;
