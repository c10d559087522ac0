//! What the installed Claude Code can do, found by asking it: versions differ, and nothing is assumed.

use super::Settings;
use crate::attach::receipt;
use crate::sessions::seconds_now;
use crate::supervise::{Launch, Limits, Streams};
use flotilla_protocol::a2a::model::Message;
use flotilla_protocol::wire::Json;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// How long the program may take to say what it can.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest schema that is handed over, in bytes: the kernel takes no longer word than 128 KiB.
const LONGEST_SCHEMA: usize = 100_000;
/// What it may say of itself, in bytes.
const MUCH: u64 = 1024 * 1024;

/// Options that no run can do without.
const NEEDED: [&str; 6] = ["--print", "--input-format", "--output-format", "--verbose", "--session-id", "--resume"];
/// Options that work in versions whose help does not list them, each with a value to try it with.
const UNLISTED: [(&str, &str); 2] = [(PERMISSIONS, "stdio"), (TURNS, "1")];

pub const PERMISSIONS: &str = "--permission-prompt-tool";
pub const TURNS: &str = "--max-turns";
pub const BUDGET: &str = "--max-budget-usd";
pub const SCHEMA: &str = "--json-schema";
pub const PIECES: &str = "--include-partial-messages";
/// It says again what it was told, once it takes it up.
pub const REPLAY: &str = "--replay-user-messages";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Installed {
    pub version: String,
    options: BTreeSet<String>,
    help: String,
}

/// A file that was not changed is the same program.
type Identity = (PathBuf, Option<SystemTime>, u64);
static ASKED: OnceLock<Mutex<HashMap<Identity, Installed>>> = OnceLock::new();

impl Installed {
    /// Asks the program, once for each file.
    pub async fn ask(settings: &Settings) -> Result<Self, String> {
        let file = std::fs::metadata(&settings.program)
            .map_err(|error| format!("program: {}: {error}", settings.program.display()))?;
        let identity = (settings.program.clone(), file.modified().ok(), file.len());
        let asked = ASKED.get_or_init(Mutex::default);
        if let Some(known) = asked.lock().unwrap_or_else(PoisonError::into_inner).get(&identity) {
            return Ok(known.clone());
        }
        let (version, help) = tokio::join!(run(settings, &["--version"]), run(settings, &["--help"]));
        let (version, help) = (version?.trim().to_owned(), help?);
        let mut installed = Self { version, options: listed(&help), help };
        if let Some(missing) = NEEDED.iter().find(|option| !installed.offers(option)) {
            return Err(format!(
                "program: {} ({}) has no option {missing}, which every run needs; install a newer Claude Code",
                settings.program.display(),
                installed.version,
            ));
        }
        for (option, value) in UNLISTED {
            // Without input it ends before it asks its model anything.
            if !installed.offers(option) && !run(settings, &["-p", option, value]).await?.contains("unknown option") {
                installed.options.insert(option.to_owned());
            }
        }
        asked.lock().unwrap_or_else(PoisonError::into_inner).insert(identity, installed.clone());
        Ok(installed)
    }

    pub fn offers(&self, option: &str) -> bool {
        self.options.contains(option)
    }

    /// The form that the contract of a message asks for, if this version can be held to it: it replies with objects only.
    pub fn contracted(&self, message: &Message) -> Option<Json> {
        let task = receipt::dispatch(message)?.task;
        let schema = task.json_schema.filter(|schema| self.offers(SCHEMA) && schema["type"] == "object")?;
        Json::of(&schema).ok().filter(|schema| schema.text().len() <= LONGEST_SCHEMA)
    }

    /// Whether a word stands among the choices of an option.
    pub fn names(&self, choice: &str) -> bool {
        self.help.contains(&format!("\"{choice}\""))
    }
}

/// The options a help text lists: descriptions are set off further than the options themselves.
fn listed(help: &str) -> BTreeSet<String> {
    let lines = help.lines().filter(|line| line.trim_start().starts_with('-') && !line.starts_with("        "));
    let words = lines.flat_map(|line| line.split([' ', ',', '=', '[']));
    words.filter(|word| word.starts_with("--") && word.len() > 2).map(str::to_owned).collect()
}

/// What the program prints on either stream when it is given no input.
async fn run(settings: &Settings, arguments: &[&str]) -> Result<String, String> {
    let launch = Launch {
        program: settings.program.clone(),
        arguments: arguments.iter().map(OsString::from).collect(),
        environment: settings.environment.clone(),
        folder: settings.folder.clone(),
        mark: format!("claude-code.{}", seconds_now()),
        grace: settings.bounds.grace,
        limits: Limits::default(),
    };
    let told = |problem: String| format!("program: {} {}: {problem}", settings.program.display(), arguments.join(" "));
    let (mut running, streams) = launch.start(&settings.reaper).map_err(told)?;
    let Streams { stdin, stdout, stderr } = streams;
    drop(stdin);
    let said = async {
        let (out, err) = tokio::join!(text(stdout), text(stderr));
        running.ended().await;
        format!("{out}{err}")
    };
    match tokio::time::timeout(PATIENCE, said).await {
        Ok(said) => Ok(said),
        Err(_) => {
            running.kill().await;
            Err(told(format!("it did not end within {} s", PATIENCE.as_secs())))
        }
    }
}

async fn text(from: impl AsyncRead + Unpin) -> String {
    let mut bytes = Vec::new();
    // What cannot be read was not said.
    let _ = from.take(MUCH).read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Installed, SCHEMA, listed};
    use flotilla_protocol::a2a::model::Message;
    use flotilla_protocol::fleet::HANDSHAKE;
    use flotilla_protocol::wire::Object;
    use serde_json::{Value, json};

    #[test]
    fn a_contract_s_schema_is_handed_over_where_the_version_takes_it() {
        let asked = |schema: Value| {
            let task = json!({"reply_schema": "json", "json_schema": schema});
            let contract = json!({"type": "TASK_DISPATCH", "protocol_version": "2.0", "brief": "do it", "task": task});
            let metadata = Some(Object::of(&json!({HANDSHAKE: contract})).unwrap());
            Message { metadata, ..Message::default() }
        };
        let able = Installed { options: [SCHEMA.to_owned()].into(), ..Installed::default() };
        let object = asked(json!({"type": "object", "required": ["n"]}));
        let handed = able.contracted(&object).expect("a schema");
        assert_eq!(serde_json::from_str::<Value>(handed.text()).unwrap(), json!({"type": "object", "required": ["n"]}));
        assert_eq!(Installed::default().contracted(&object), None, "it has no such option");
        assert_eq!(able.contracted(&asked(json!({"type": "array"}))), None, "told in words");
        assert_eq!(able.contracted(&asked(json!({"type": "object", "title": "x".repeat(200_000)}))), None);
        assert_eq!(able.contracted(&Message::default()), None);
    }

    #[test]
    fn options_are_read_from_the_help() {
        let help = "Usage: claude [options]\n\nOptions:\n  --allowedTools, --allowed-tools <tools...>\n      Comma\n  -p, --print                Print response, as in\n                             --output-format=json\n  --permission-mode <mode>   (choices: \"plan\")\n";
        let found: Vec<String> = listed(help).into_iter().collect();
        assert_eq!(found, ["--allowed-tools", "--allowedTools", "--permission-mode", "--print"]);
    }
}
