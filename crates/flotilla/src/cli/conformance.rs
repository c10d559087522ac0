//! `flotilla conformance`: the official compatibility kit against a live agent.

use super::args::ClientArgs;
use super::failure::Failure;
use super::output::{Text, document, say, warn};
use super::session::Session;
use clap::{Args, ValueEnum};
use flotilla_outbound::client::choose::Binding;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;

const KIT: &str = "get it with: git clone --branch 1.0-dev https://github.com/a2aproject/a2a-tck, then in it: \
                   python3 -m venv .venv && .venv/bin/pip install -e .";

#[derive(Debug, Args)]
pub struct Conformance {
    /// Directory of the kit (a checkout of a2aproject/a2a-tck)
    #[arg(long, value_name = "DIR")]
    tck: PathBuf,
    /// The Python to run it with [default: the kit's .venv, else python3]
    #[arg(long, value_name = "PROGRAM")]
    python: Option<PathBuf>,
    /// Only requirements of this level
    #[arg(long, value_enum)]
    level: Option<Level>,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Level {
    Must,
    Should,
    May,
}

/// What the kit writes.
#[derive(Deserialize)]
struct Report {
    per_requirement: BTreeMap<String, Requirement>,
}

#[derive(Deserialize)]
struct Requirement {
    level: String,
    status: String,
    #[serde(default)]
    errors: Vec<Value>,
}

impl Conformance {
    pub async fn run(&self, session: &Session) -> Result<(), Failure> {
        if !self.tck.join("run_tck.py").is_file() {
            return Err(
                Failure::usage(format!("{} is not the kit: it has no run_tck.py", self.tck.display())).hint(KIT)
            );
        }
        let card = session.card().await?;
        let Some((agent, _)) = card.source.split_once("/.well-known/") else {
            let failure = Failure::usage("the kit looks for the card at a host, not in a file or at another path");
            return Err(failure.hint("name the agent by its host: --agent-card https://example.com"));
        };
        let declared = |binding: &Binding| {
            let is = |interface: &flotilla_outbound::client::card::Interface| {
                Binding::parse(&interface.protocol_binding) == Some(*binding)
            };
            card.supported_interfaces.iter().any(is)
        };
        let transports: Vec<&str> = Binding::ALL.into_iter().filter(declared).map(kit_name).collect();
        let file = self.tck.join("reports/compatibility.json");
        // A report of an earlier run must not be taken for this one's.
        let _ = std::fs::remove_file(&file);
        session.watch.hush();
        self.start(agent, &transports.join(",")).await?;
        let text = std::fs::read_to_string(&file).map_err(|error| {
            let failure = Failure::internal(format!("the kit left no report at {}: {error}", file.display()));
            failure.hint("what it printed says why; its Python needs the kit's own packages")
        })?;
        let report = serde_json::from_str(&text)
            .map_err(|error| Failure::internal(format!("the kit's report cannot be read: {error}")))?;
        show(session, agent, &report, &text);
        Ok(())
    }

    /// What the kit prints is for people.
    async fn start(&self, agent: &str, transports: &str) -> Result<(), Failure> {
        let mut command = Command::new(self.python());
        command.current_dir(&self.tck).arg("run_tck.py").args(["--sut-host", agent, "--transport", transports]);
        if let Some(level) = self.level.and_then(|level| level.to_possible_value()) {
            command.args(["--level", level.get_name()]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
        let failed = |error: std::io::Error| Failure::internal(format!("the kit cannot be run: {error}")).hint(KIT);
        let mut kit = command.spawn().map_err(failed)?;
        if let Some(mut out) = kit.stdout.take() {
            tokio::io::copy(&mut out, &mut tokio::io::stderr()).await.map_err(failed)?;
        }
        // Its status says whether all requirements were met; the report says which were not.
        kit.wait().await.map_err(failed)?;
        Ok(())
    }

    fn python(&self) -> PathBuf {
        let own = self.tck.join(".venv/bin/python");
        let found = own.is_file().then(|| std::path::absolute(&own).unwrap_or(own));
        self.python.clone().or(found).unwrap_or_else(|| Path::new("python3").to_owned())
    }
}

fn kit_name(binding: Binding) -> &'static str {
    match binding {
        Binding::JsonRpc => "jsonrpc",
        Binding::HttpJson => "http_json",
        Binding::Grpc => "grpc",
    }
}

fn show(session: &Session, agent: &str, report: &Report, text: &str) {
    let of = |level: &str, status: &str| {
        let fits = |requirement: &&Requirement| requirement.level == level && requirement.status == status;
        report.per_requirement.values().filter(fits).count()
    };
    let missed = of("MUST", "FAIL");
    if session.is_json() {
        document(text);
    } else {
        let mut out = Text::default();
        out.address("Agent", agent);
        for level in ["MUST", "SHOULD", "MAY"] {
            let told = report.per_requirement.values().filter(|requirement| requirement.level == level).count();
            let (passed, failed) = (of(level, "PASS"), of(level, "FAIL"));
            let other = told - passed - failed;
            out.field(level, &format!("{passed} passed, {failed} failed, {other} not measured"));
        }
        for (name, requirement) in report.per_requirement.iter().filter(|(_, found)| found.status == "FAIL") {
            let first = requirement.errors.first().map(|error| error.as_str().map_or(error.to_string(), str::to_owned));
            let about = first.unwrap_or_default().lines().next().unwrap_or_default().to_owned();
            out.field("Failed", &format!("{name} ({}) {about}", requirement.level));
        }
        out.print();
    }
    if missed > 0 {
        warn(&format!("the agent misses {missed} requirements that it must meet"));
    } else {
        say("Every measured MUST is met.");
    }
}
