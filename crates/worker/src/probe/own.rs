//! MCP servers that an agent's program has by its own configuration: told by the program, or read where it reads them.

mod claude;

pub use claude::Sources;

use super::mcp::definition::{Definition, Place, Program};
use super::presence::Asked;
use crate::supervise::Exit;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long a program's word counts: it is looked often, and some programs take a second to say it.
const REMEMBERED: Duration = Duration::from_secs(30);

pub(super) type Servers = BTreeMap<String, Definition>;

/// Where an agent's own servers are found.
#[derive(Debug, Clone)]
pub enum Own {
    /// Claude Code has no command that tells all of them, so its files are read.
    Claude(Sources),
    Told(Arc<Teller>),
}

/// A program that tells its servers.
#[derive(Debug)]
pub struct Teller {
    asked: Asked,
    wording: Wording,
    last: Mutex<Option<(Instant, Servers)>>,
}

/// Whose words they are.
#[derive(Debug, Clone, Copy)]
enum Wording {
    Codex,
    Opencode,
}

impl Own {
    /// `codex mcp list --json`. The arguments are those its runs have; of these, what it is configured with counts here too.
    pub fn codex(mut asked: Asked) -> Self {
        let mut settings = Vec::new();
        let mut words = asked.arguments.into_iter();
        while let Some(word) = words.next() {
            if word == "-c" || word == "--config" {
                settings.extend([word].into_iter().chain(words.next()));
            }
        }
        settings.extend(["mcp", "list", "--json"].map(OsString::from));
        asked.arguments = settings;
        Self::told(asked, Wording::Codex)
    }

    /// `opencode debug config`, which tells all that its files come to; none if it is started in a way that is not known.
    pub fn opencode(mut asked: Asked) -> Option<Self> {
        asked.arguments.pop().filter(|last| last == "acp")?;
        asked.arguments.extend(["debug", "config"].map(OsString::from));
        Some(Self::told(asked, Wording::Opencode))
    }

    fn told(asked: Asked, wording: Wording) -> Self {
        Self::Told(Arc::new(Teller { asked, wording, last: Mutex::default() }))
    }

    /// Those it would have in a session that began now, in this folder.
    pub(super) async fn servers(&self, folder: &Path, environment: &[(OsString, OsString)]) -> Servers {
        match self {
            Self::Claude(sources) => sources.servers(folder, environment),
            Self::Told(teller) => teller.servers(environment).await,
        }
    }

    /// Whether a server that a session had would be found, were it still there. Those of plugins and of an account have other
    /// names, and are where nobody looks.
    pub(super) fn finds(&self, name: &str) -> bool {
        match self {
            Self::Claude(_) => name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter)),
            Self::Told(_) => true,
        }
    }
}

impl Teller {
    async fn servers(&self, environment: &[(OsString, OsString)]) -> Servers {
        let mut last = self.last.lock().await;
        if let Some((_, servers)) = last.as_ref().filter(|(at, _)| at.elapsed() < REMEMBERED) {
            return servers.clone();
        }
        let servers = match self.asked.run_as_given().await {
            Ok((Exit::Code(0), printed)) => self.wording.read(&printed, environment),
            Ok((exit, _)) => Err(format!("it {}", exit.told())),
            Err(problem) => Err(problem),
        };
        let servers = servers.unwrap_or_else(|problem| {
            let program = self.asked.program.display();
            tracing::warn!(%program, "its own MCP servers are not known: {problem}");
            Servers::new()
        });
        *last = Some((Instant::now(), servers.clone()));
        servers
    }
}

impl Wording {
    fn read(self, printed: &str, environment: &[(OsString, OsString)]) -> Result<Servers, String> {
        let begins = printed.find(['{', '[']).unwrap_or(0);
        let told: Value = serde_json::from_str(&printed[begins..])
            .map_err(|error| format!("what it tells of itself is no JSON: {error}"))?;
        let wrong = |error: serde_json::Error| Definition::Wrong(flotilla_protocol::decode::plain(&error.to_string()));
        let servers = match self {
            Self::Codex => {
                let all = told.as_array().into_iter().flatten();
                let one = |entry: &Value| {
                    let server = CodexServer::deserialize(entry);
                    let name = entry["name"].as_str()?.to_owned();
                    Some((name, server.map_or_else(wrong, |server| server.define(environment))))
                };
                all.filter_map(one).collect()
            }
            Self::Opencode => {
                let all = told["mcp"].as_object().into_iter().flatten();
                let one = |entry: &Value| OpencodeServer::deserialize(entry).map_or_else(wrong, OpencodeServer::define);
                all.map(|(name, entry)| (name.clone(), one(entry))).collect()
            }
        };
        Ok(servers)
    }
}

#[derive(Deserialize)]
struct CodexServer {
    enabled: Option<bool>,
    transport: CodexTransport,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CodexTransport {
    Stdio {
        command: String,
        #[serde(default)]
        args: Vec<String>,
        env: Option<BTreeMap<String, String>>,
    },
    StreamableHttp {
        url: String,
        bearer_token_env_var: Option<String>,
        http_headers: Option<BTreeMap<String, String>>,
        env_http_headers: Option<BTreeMap<String, String>>,
    },
    #[serde(other)]
    Other,
}

impl CodexServer {
    fn define(self, environment: &[(OsString, OsString)]) -> Definition {
        if self.enabled == Some(false) {
            return Definition::Disabled;
        }
        match self.transport {
            CodexTransport::Stdio { command, args, env } => {
                Definition::Stdio(Program { command, arguments: args, environment: env.unwrap_or_default() })
            }
            CodexTransport::StreamableHttp { url, bearer_token_env_var, http_headers, env_http_headers } => {
                let mut headers = http_headers.unwrap_or_default();
                let bearer = bearer_token_env_var.map(|name| ("Authorization".to_owned(), name, "Bearer "));
                let named = env_http_headers.into_iter().flatten().map(|(header, name)| (header, name, ""));
                for (header, name, before) in named.chain(bearer) {
                    let Some(value) = variable(environment, &name) else {
                        return Definition::Wrong(format!("the environment variable {name} is not set"));
                    };
                    headers.insert(header, format!("{before}{}", value.to_string_lossy()));
                }
                Definition::Http(Place { url, headers })
            }
            CodexTransport::Other => Definition::Other("of its own".into()),
        }
    }
}

#[derive(Deserialize)]
struct OpencodeServer {
    enabled: Option<bool>,
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

impl OpencodeServer {
    fn define(self) -> Definition {
        let mut words = self.command.into_iter();
        match (self.enabled, words.next(), self.url) {
            (Some(false), ..) => Definition::Disabled,
            (_, Some(command), _) => {
                let (arguments, environment) = (words.collect(), self.environment);
                Definition::Stdio(Program { command, arguments, environment })
            }
            (_, None, Some(url)) => Definition::Http(Place { url, headers: self.headers }),
            (_, None, None) => Definition::Wrong("it names neither a command nor a url".into()),
        }
    }
}

/// The last of a name counts.
fn variable<'a>(environment: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsString> {
    environment.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::{Definition, Wording};

    #[test]
    fn what_codex_tells_is_read() {
        let told = r#"[
            {"name":"a","enabled":true,"transport":{"type":"stdio","command":"npx","args":["-y"],"env":{"K":"v"},"cwd":null}},
            {"name":"b","enabled":false,"transport":{"type":"stdio","command":"x","args":[]}},
            {"name":"c","transport":{"type":"streamable_http","url":"https://x.example","bearer_token_env_var":"TOKEN"}},
            {"name":"d","transport":{"type":"streamable_http","url":"https://x.example","env_http_headers":{"X":"NOT_SET"}}},
            {"name":"e","transport":{"type":"other"}}, {"name":"f","transport":{"type":"stdio"}}]"#;
        let servers = Wording::Codex.read(told, &[("TOKEN".into(), "secret".into())]).unwrap();
        let Definition::Stdio(program) = &servers["a"] else { panic!("{servers:?}") };
        assert_eq!((program.command.as_str(), program.environment["K"].as_str()), ("npx", "v"));
        let Definition::Http(place) = &servers["c"] else { panic!("{servers:?}") };
        assert_eq!(place.headers["Authorization"], "Bearer secret");
        assert_eq!((&servers["b"], &servers["e"]), (&Definition::Disabled, &Definition::Other("of its own".into())));
        assert!(matches!(&servers["d"], Definition::Wrong(problem) if problem.contains("NOT_SET")));
        assert!(matches!(&servers["f"], Definition::Wrong(_)));
        assert!(Wording::Codex.read("no such command", &[]).is_err());
    }

    #[test]
    fn what_opencode_tells_is_read() {
        let told = r#"{"model":"x","mcp":{"a":{"type":"local","command":["node","s.js"],"environment":{"K":"v"}},
            "b":{"type":"remote","url":"https://x.example","headers":{"A":"b"}},
            "c":{"type":"local","command":["x"],"enabled":false},"d":{"type":"local"}}}"#;
        let servers = Wording::Opencode.read(told, &[]).unwrap();
        let Definition::Stdio(program) = &servers["a"] else { panic!("{servers:?}") };
        assert_eq!((program.command.as_str(), program.arguments.as_slice()), ("node", &["s.js".to_owned()][..]));
        assert!(matches!((&servers["b"], &servers["d"]), (Definition::Http(_), Definition::Wrong(_))));
        assert_eq!(servers["c"], Definition::Disabled);
        assert!(Wording::Opencode.read("{}", &[]).unwrap().is_empty());
    }
}
