//! MCP servers as agents' configurations define them: the `mcpServers` of a `.mcp.json`.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Definition {
    Stdio(Program),
    /// Streamable HTTP.
    Http(Place),
    /// HTTP with a stream of events, the older way.
    Sse(Place),
    Disabled,
    /// Of a type that is not known here.
    Other(String),
    /// It cannot work as it stands; says why.
    Wrong(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    pub command: String,
    pub arguments: Vec<String>,
    pub environment: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    pub url: String,
    pub headers: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "mcpServers", default)]
    servers: Option<BTreeMap<String, Value>>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    disabled: bool,
}

/// Reads a whole file. One server that is wrong does not hide the others. `${NAME}` and `${NAME:-default}` stand for
/// variables of the environment that is given.
pub fn read(text: &str, environment: &[(OsString, OsString)]) -> Result<BTreeMap<String, Definition>, String> {
    let file: File = serde_json::from_str(text).map_err(|error| format!("no MCP configuration: {error}"))?;
    let servers = file.servers.ok_or("no MCP configuration: there is no \"mcpServers\" in it")?;
    Ok(servers.into_iter().map(|(name, entry)| (name, one(entry, environment))).collect())
}

/// The same of the member of a file that lists them; none if it does not.
pub fn all(servers: &Value, environment: &[(OsString, OsString)]) -> BTreeMap<String, Definition> {
    let servers = servers.as_object().into_iter().flatten();
    servers.map(|(name, entry)| (name.clone(), one(entry.clone(), environment))).collect()
}

fn one(entry: Value, environment: &[(OsString, OsString)]) -> Definition {
    match serde_json::from_value::<Entry>(entry) {
        Ok(entry) if entry.disabled => Definition::Disabled,
        Ok(entry) => entry.expanded(environment).map_or_else(Definition::Wrong, Entry::define),
        Err(error) => Definition::Wrong(flotilla_protocol::decode::plain(&error.to_string())),
    }
}

impl Entry {
    fn define(self) -> Definition {
        let (program, place) = (self.command, self.url);
        let kind = self.kind.as_deref().unwrap_or(if program.is_some() { "stdio" } else { "http" });
        match (kind.to_lowercase().as_str(), program, place) {
            ("stdio", Some(command), _) if !command.is_empty() => {
                Definition::Stdio(Program { command, arguments: self.args, environment: self.env })
            }
            ("stdio", ..) => Definition::Wrong("it names no command".into()),
            ("http" | "streamable-http" | "streamablehttp", _, Some(url)) => {
                Definition::Http(Place { url, headers: self.headers })
            }
            ("sse", _, Some(url)) => Definition::Sse(Place { url, headers: self.headers }),
            ("http" | "streamable-http" | "streamablehttp" | "sse", ..) => {
                Definition::Wrong("it names neither a command nor a url".into())
            }
            _ => Definition::Other(kind.to_owned()),
        }
    }

    fn expanded(self, environment: &[(OsString, OsString)]) -> Result<Self, String> {
        let fill = |text: String| expand(&text, environment);
        let fill_all = |values: BTreeMap<String, String>| {
            values.into_iter().map(|(name, value)| Ok((name, fill(value)?))).collect::<Result<_, String>>()
        };
        Ok(Self {
            command: self.command.map(fill).transpose()?,
            args: self.args.into_iter().map(fill).collect::<Result<_, _>>()?,
            env: fill_all(self.env)?,
            url: self.url.map(fill).transpose()?,
            headers: fill_all(self.headers)?,
            ..self
        })
    }
}

fn expand(text: &str, environment: &[(OsString, OsString)]) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((variable, after)) = after.split_once('}') else { break };
        let (name, default) = match variable.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (variable, None),
        };
        let value = environment.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.to_string_lossy());
        let value = value.as_deref().or(default);
        filled.push_str(before);
        filled.push_str(value.ok_or_else(|| format!("the environment variable {name} is not set"))?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::{Definition, Place, Program, read};
    use std::ffi::OsString;

    fn definitions(servers: &str) -> Vec<Definition> {
        let environment: [(OsString, OsString); 1] = [("TOKEN".into(), "secret".into())];
        let text = format!(r#"{{"mcpServers":{servers},"other":1}}"#);
        read(&text, &environment).unwrap().into_values().collect()
    }

    #[test]
    fn programs_and_places_are_told_apart_by_type_or_by_what_they_have() {
        let program = Program { command: "npx".into(), arguments: vec!["-y".into()], ..Program::default() };
        let stdio = Definition::Stdio(program);
        assert_eq!(definitions(r#"{"a":{"command":"npx","args":["-y"]}}"#), std::slice::from_ref(&stdio));
        assert_eq!(definitions(r#"{"a":{"type":"stdio","command":"npx","args":["-y"],"timeout":5}}"#), [stdio]);
        let place = Place { url: "https://x.example".into(), ..Place::default() };
        for kind in ["", r#""type":"http","#, r#""type":"streamableHttp","#] {
            let seen = definitions(&format!(r#"{{"a":{{{kind}"url":"https://x.example"}}}}"#));
            assert_eq!(seen, [Definition::Http(place.clone())]);
        }
        assert_eq!(definitions(r#"{"a":{"type":"sse","url":"https://x.example"}}"#), [Definition::Sse(place)]);
        assert_eq!(definitions(r#"{"a":{"type":"ws","url":"wss://x"}}"#), [Definition::Other("ws".into())]);
        assert_eq!(definitions(r#"{"a":{"command":"x","disabled":true}}"#), [Definition::Disabled]);
    }

    #[test]
    fn variables_are_filled_in_from_the_environment_that_is_given() {
        let seen = definitions(r#"{"a":{"url":"${BASE:-https://x.example}/m","headers":{"A":"Bearer ${TOKEN}"}}}"#);
        let headers = [("A".to_owned(), "Bearer secret".to_owned())].into();
        assert_eq!(seen, [Definition::Http(Place { url: "https://x.example/m".into(), headers })]);
        let [Definition::Wrong(problem)] = &definitions(r#"{"a":{"command":"${NOT_SET}"}}"#)[..] else { panic!() };
        assert!(problem.contains("NOT_SET"), "{problem}");
    }

    #[test]
    fn one_that_is_wrong_does_not_hide_the_others() {
        let seen = definitions(r#"{"a":{"type":"stdio"},"b":{"command":7},"c":{},"d":{"command":"x"}}"#);
        let wrong = seen.iter().filter(|one| matches!(one, Definition::Wrong(_))).count();
        assert_eq!((wrong, seen.len()), (3, 4));
        assert!(read("[]", &[]).is_err() && read("{}", &[]).is_err() && read("no", &[]).is_err());
    }
}
