//! Where in which file an agent is configured, for those who want to change it.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The file a configuration was read from, and the lines its agents begin at.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    pub file: Option<PathBuf>,
    pub lines: BTreeMap<String, usize>,
}

impl Origin {
    pub fn of(file: PathBuf, text: &str) -> Self {
        Self { file: Some(file), lines: lines(text) }
    }

    /// The place of an agent, in words.
    pub fn place(&self, agent: &str) -> String {
        match (&self.file, self.lines.get(agent)) {
            (None, _) => "the hub's own defaults: it is there because no configuration names agents".to_owned(),
            (Some(file), Some(line)) => format!("{}, line {line} (agents.{agent})", file.display()),
            (Some(file), None) => format!("{} (agents.{agent})", file.display()),
        }
    }
}

/// The lines of keys one level below `agents:` in a file that is written in blocks, as most are.
fn lines(text: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let (mut inside, mut depth) = (false, None);
    for (line, number) in text.lines().zip(1..) {
        let bare = line.trim_start();
        if bare.is_empty() || bare.starts_with('#') {
            continue;
        }
        let indent = line.len() - bare.len();
        if indent == 0 {
            (inside, depth) = (bare.starts_with("agents:"), None);
            continue;
        }
        if inside
            && indent == *depth.get_or_insert(indent)
            && let Some((key, _)) = bare.split_once(':')
        {
            found.insert(key.trim().trim_matches(['"', '\'']).to_owned(), number);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::Origin;

    #[test]
    fn agents_are_found_by_their_lines() {
        let text = "hub:\n  name: x\nagents:\n  # the first\n  far:\n    kind: a2a\n  'near': {kind: echo}\nlog: {}\n";
        let origin = Origin::of("f.yaml".into(), text);
        assert_eq!(origin.place("far"), "f.yaml, line 5 (agents.far)");
        assert_eq!(origin.place("near"), "f.yaml, line 7 (agents.near)");
        assert_eq!(Origin::of("f.yaml".into(), "agents: {a: {kind: echo}}").place("a"), "f.yaml (agents.a)");
        assert!(Origin::default().place("echo").contains("defaults"));
    }
}
