//! What must not be told of a server: its variables, headers and address. It may repeat them in what it says.

use super::definition::{Definition, Place};
use reqwest::Url;
use std::ffi::OsString;

/// What stands in their place.
const MASK: &str = "[redacted]";
/// Shorter ones would mask half of every text.
const SHORTEST: usize = 4;
/// Variables of the agent that every program has, and that are no secret.
const PLAIN: [&str; 12] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR", "PWD", "HOSTNAME"];

pub struct Secrets(Vec<String>);

impl Secrets {
    /// Of a server that has the agent's environment, from which its definition may be filled too.
    pub fn of(definition: &Definition, environment: &[(OsString, OsString)]) -> Self {
        let is_plain =
            |name: &OsString| name.to_str().is_some_and(|name| PLAIN.contains(&name) || name.starts_with("LC_"));
        let known = environment.iter().filter(|(name, _)| !is_plain(name));
        let mut secrets: Vec<String> = known.map(|(_, value)| value.to_string_lossy().into_owned()).collect();
        match definition {
            Definition::Stdio(program) => {
                secrets.extend(program.environment.values().cloned());
                let addresses = program.arguments.iter().filter_map(|word| Some(&word[word.find("://")?..]));
                secrets.extend(addresses.map(str::to_owned));
            }
            Definition::Http(place) | Definition::Sse(place) => secrets.extend(parts(place)),
            Definition::Disabled | Definition::Other(_) | Definition::Wrong(_) => {}
        }
        // A server may repeat a key without the `Bearer` before it.
        let keys: Vec<String> = secrets.iter().filter_map(|value| Some(value.split_once(' ')?.1.to_owned())).collect();
        secrets.extend(keys);
        secrets.retain(|secret| secret.trim().len() >= SHORTEST);
        // The longest first: one may contain another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets)
    }

    pub fn mask(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), MASK))
    }
}

/// The headers of a place and its address, as a whole and in the pieces that may hold a key.
fn parts(place: &Place) -> Vec<String> {
    let mut parts: Vec<String> = place.headers.values().cloned().collect();
    parts.push(place.url.clone());
    let Ok(url) = Url::parse(&place.url) else { return parts };
    parts.extend([url.as_str(), url.authority(), url.path(), url.username()].map(str::to_owned));
    parts.extend([url.host_str(), url.query(), url.password()].into_iter().flatten().map(str::to_owned));
    parts.extend(url.query_pairs().map(|(_, value)| value.into_owned()));
    parts
}

#[cfg(test)]
mod tests {
    use super::Secrets;
    use crate::probe::mcp::definition::{Definition, Place, Program};

    #[test]
    fn whatever_a_server_repeats_of_its_definition_is_masked() {
        let environment =
            [("HOME", "/nowhere/a"), ("KEY", "of-the-agent"), ("N", "1")].map(|(n, v)| (n.into(), v.into()));
        let program = Program {
            command: "serve".into(),
            arguments: vec!["--db=postgres://me:word@db".into(), "-v".into()],
            environment: [("TOK".to_owned(), "s3cr3t".to_owned())].into(),
        };
        let masked = |definition: Definition, text: &str| Secrets::of(&definition, &environment).mask(text);
        let told = masked(Definition::Stdio(program), "1 s3cr3t of-the-agent postgres://me:word@db /nowhere/a -v");
        assert_eq!(told, "1 [redacted] [redacted] postgres[redacted] /nowhere/a -v");
        let headers = [("A".to_owned(), "Bearer abcd-key".to_owned())].into();
        let place = Place { url: "https://me:word@x.example:1/hook?k=wxyz".into(), headers };
        let told =
            masked(Definition::Sse(place), "bad abcd-key at x.example:1 (Bearer abcd-key), /hook, wxyz, word: no");
        assert!(["abcd", "example", "hook", "wxyz", "word"].iter().all(|secret| !told.contains(secret)), "{told}");
        assert!(told.starts_with("bad ") && told.ends_with(": no"), "{told}");
    }
}
