//! `flotilla doctor`: looks at everything a hub and its clients need, and says what to do about what is wrong.

mod beyond;
mod machine;
mod programs;
mod reach;

use super::args::{ClientArgs, switch};
use super::failure::Failure;
use super::output::{Text, document};
use super::session::Session;
use super::settings::{Setting, Source};
use super::{ConfigFile, DataDir};
use crate::assemble::PLACES;
use crate::config::{Config, Kind, WorkerFile};
use clap::Args;
use flotilla_outbound::net::address;
use flotilla_protocol::fleet::Announce;
use reach::At;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Debug, Args)]
pub struct Doctor {
    #[command(flatten)]
    file: ConfigFile,
    #[command(flatten)]
    data: DataDir,
    /// The hub to look at (FLOTILLA_URL) [default: where the configuration has it
    /// listen]
    #[arg(long, value_name = "URL")]
    hub: Option<String>,
    /// An agent to look at too: a host, the URL of its card, or a file
    /// [A2ACLI_AGENT_CARD]
    #[arg(id = "other_agent", short = 'a', long = "agent-card", value_name = "REF")]
    agent_card: Option<String>,
    /// Format of the result: text or json
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<String>,
    /// Log what goes over the wire to standard error, credentials masked
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        hide_possible_values = true, value_parser = switch!()
    )]
    debug: Option<bool>,
    /// Accept any certificate (development only; warns)
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        hide_possible_values = true, value_parser = switch!()
    )]
    insecure: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Ok,
    /// Worth knowing, and nothing has to be done.
    Note,
    Problem,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "Ok",
            Self::Note => "Note",
            Self::Problem => "Problem",
        }
    }
}

/// One thing that was looked at.
struct Finding {
    level: Level,
    about: &'static str,
    what: String,
    advice: String,
}

/// All that was found.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn found(&mut self, level: Level, about: &'static str, what: &str, advice: String) {
        self.0.push(Finding { level, about, what: address::shown_in(what), advice });
    }

    fn ok(&mut self, about: &'static str, what: impl Into<String>) {
        self.found(Level::Ok, about, &what.into(), String::new());
    }

    fn note(&mut self, about: &'static str, what: impl Into<String>, advice: impl Into<String>) {
        self.found(Level::Note, about, &what.into(), advice.into());
    }

    fn problem(&mut self, about: &'static str, what: impl Into<String>, advice: impl Into<String>) {
        self.found(Level::Problem, about, &what.into(), advice.into());
    }

    fn problems(&self) -> usize {
        self.0.iter().filter(|finding| finding.level == Level::Problem).count()
    }
}

impl Doctor {
    /// What a command for agents would be told.
    pub fn client(&self) -> ClientArgs {
        let (hub, agent_card, output) = (self.hub.clone(), self.agent_card.clone(), self.output.clone());
        let configured_hub = machine::hub_of(&self.file, &self.data);
        let (debug, insecure) = (self.debug, self.insecure);
        ClientArgs { hub, agent_card, output, debug, insecure, configured_hub, ..ClientArgs::default() }
    }

    pub async fn run(&self, session: &Session) -> Result<(), Failure> {
        let mut findings = Findings::default();
        machine::settings(&mut findings);
        let config = machine::config(&mut findings, &self.file, &self.data);
        machine::clock(&mut findings);
        self.look(&mut findings, session, config.as_ref()).await;
        if session.sources.value(Setting::AgentCard, self.agent_card.clone()).is_some() {
            reach::named(&mut findings, session).await;
        }
        let agents = config.as_ref().map(|config| &config.agents);
        let announcements = match agents {
            Some(agents) => programs::examine(&mut findings, agents, PLACES).await,
            None => Default::default(),
        };
        show(session, &findings, &announcements);
        // What is wrong has been said, with what to do about it.
        if findings.problems() > 0 { Err(Failure::silent(1)) } else { Ok(()) }
    }
}

impl Doctor {
    /// Looks at what the configuration says the place of: the store, the hub with its agents, the port. A file that is
    /// refused says nothing, and the usual places may be another hub's.
    async fn look(&self, findings: &mut Findings, session: &Session, config: Option<&Config>) {
        let is_store_known = config.is_some() || self.data.data_dir.is_some();
        let is_hub_known = config.is_some() || session.hub().1 != Source::Default;
        if is_store_known {
            machine::store(findings, &self.data, config).await;
        }
        let at = if is_hub_known { reach::hub(findings, session).await } else { At::Nobody };
        let Some(config) = config else {
            let names = [("store", is_store_known), ("hub", is_hub_known), ("port", false)];
            let names: Vec<&str> =
                names.into_iter().filter_map(|(name, is_known)| (!is_known).then_some(name)).collect();
            let what = format!("not looked at, as it says where they are: {}", names.join(", "));
            findings.note("configuration", what, "mend it first, or name them: --data-dir DIR, --hub URL");
            if at == At::Hub {
                reach::agents(findings, session, None).await;
            }
            return;
        };
        let at_port = reach::at_port(session, config, (&session.hub_url(), at)).await;
        // What is wrong with a certificate is told once.
        if (at, at_port) != (At::Untrusted, At::Untrusted) {
            machine::port(findings, config.hub.listen, at_port);
        }
        // Without a file, the agents of a hub elsewhere are not known here.
        let configured = self.file.path().map(|_| config);
        if at == At::Hub {
            reach::agents(findings, session, configured).await;
        } else {
            configured.into_iter().for_each(|config| reach::unasked(findings, config));
        }
    }
}

/// `flotilla worker doctor`: the agents of a worker, and what each would announce.
pub async fn worker(session: &Session, path: &Path) -> Result<(), Failure> {
    let mut findings = Findings::default();
    let mut announcements = BTreeMap::new();
    match WorkerFile::load(path) {
        Ok(file) => {
            findings.ok("worker", format!("{} is in order", path.display()));
            for (name, _) in file.agents.iter().filter(|(_, agent)| matches!(agent.kind, Kind::Echo | Kind::Script)) {
                findings.ok("agent", format!("{name}: needs no program"));
            }
            announcements = programs::examine(&mut findings, &file.agents, file.worker.max_concurrent).await;
        }
        Err(error) => findings.problem("worker", format!("{error:#}"), "correct the file, or name one with --config"),
    }
    show(session, &findings, &announcements);
    if findings.problems() > 0 { Err(Failure::silent(1)) } else { Ok(()) }
}

fn show(session: &Session, findings: &Findings, announcements: &BTreeMap<String, Announce>) {
    if session.is_json() {
        let all: Vec<_> = findings
            .0
            .iter()
            .map(|found| {
                let level = found.level.name().to_lowercase();
                json!({"level": level, "about": found.about, "what": found.what, "do": found.advice})
            })
            .collect();
        let mut found = json!({"findings": all, "problems": findings.problems()});
        if !announcements.is_empty() {
            found["announcements"] = json!(announcements);
        }
        return document(&found.to_string());
    }
    let mut text = Text::default();
    for found in &findings.0 {
        text.field(found.level.name(), &format!("{}: {}", found.about, found.what));
        text.field("  Do", &found.advice);
    }
    // Of one that cannot work, what stands in its way is a finding.
    for (name, announce) in announcements.iter().filter(|(_, announce)| announce.session.broken.is_none()) {
        text.field("Announces", &format!("{name}: {}", json!(announce)));
    }
    text.field("Problems", &findings.problems().to_string()).print();
}
