//! `flotilla config`: the client's settings, and the hub's configuration file.

use super::HubSettings;
use super::args::{ClientArgs, switch};
use super::failure::Failure;
use super::output::{Text, document, line};
use super::session::{HUB_KEY, Session, hub_key};
use super::settings::{Setting, Source};
use crate::assemble;
use crate::config::{AgentConfig, Config, Secret};
use crate::run;
use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use flotilla_outbound::net::address;
use flotilla_outbound::net::redact::MASK;
use flotilla_protocol::time::Millis;
use serde_json::json;

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Show the client's settings and where each comes from.
    Show(Box<Show>),
    /// Say whether a hub would start with its configuration, flags and
    /// environment, and what is wrong with them.
    Check(Box<HubSettings>),
    /// Show the hub's configuration with flags and environment applied and every
    /// default filled in, secrets masked.
    Hub(Box<HubSettings>),
    /// Print the JSON Schema of the hub's configuration, for editors.
    Schema,
}

#[derive(Debug, Args)]
pub struct Show {
    #[command(flatten)]
    pub client: ClientArgs,
    #[command(flatten)]
    others: Others,
}

/// Settings that only some commands take: here, to see what would hold.
#[derive(Debug, Args)]
#[command(next_help_heading = "Settings of single commands")]
struct Others {
    /// As of send
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        hide_possible_values = true, value_parser = switch!()
    )]
    r#async: Option<bool>,
    /// As of send and task
    #[arg(long, value_name = "TIME")]
    poll_interval: Option<String>,
    /// As of send and task list
    #[arg(long, value_name = "ID")]
    context_id: Option<String>,
    /// As of send
    #[arg(long, value_name = "ID")]
    task_id: Option<String>,
    /// As of send and task cancel
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// As of auth login
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// As of auth login
    #[arg(long, value_name = "SECRET")]
    client_secret: Option<String>,
    /// As of task push-config create
    #[arg(long, value_name = "TEXT")]
    token: Option<String>,
    /// As of task push-config create
    #[arg(long, value_name = "TEXT")]
    auth_credentials: Option<String>,
}

impl Show {
    pub fn run(&self, session: &Session) -> Result<(), Failure> {
        let settings = Setting::ALL.map(|setting| self.setting(session, setting)).into_iter();
        let settings: Vec<_> = settings.chain(of_the_hub(session)).collect();
        let files: Vec<String> = session.sources.files().map(|file| file.display().to_string()).collect();
        let until = |at: Option<i64>| at.map_or_else(|| "unknown".to_owned(), |at| Millis(at).to_string());
        let tokens: Vec<(String, String)> =
            session.tokens.list().map(|(card, at)| (address::shown(card), until(at))).collect();
        if session.is_json() {
            let settings: Vec<_> = settings
                .iter()
                .map(|(name, value, source)| json!({"name": name, "value": value, "source": source}))
                .collect();
            let tokens: Vec<_> = tokens.iter().map(|(card, at)| json!({"card": card, "expires": at})).collect();
            document(&json!({"settings": settings, "files": files, "tokens": tokens}).to_string());
            return Ok(());
        }
        let mut text = Text::default();
        for (name, value, source) in &settings {
            text.field(name, &format!("{} ({source})", value.as_deref().unwrap_or("-")));
        }
        for file in &files {
            text.field("file", file);
        }
        for (card, at) in &tokens {
            text.field("signed in", &format!("{card} (until {at})"));
        }
        text.print();
        Ok(())
    }

    /// Name, value as it may be shown, source.
    fn setting(&self, session: &Session, setting: Setting) -> (&'static str, Option<String>, String) {
        let args = &self.client;
        let switch = |flag: Option<bool>| flag.map(|truth| truth.to_string());
        let list = |flags: &[String]| (!flags.is_empty()).then(|| flags.join(", "));
        let flag = match setting {
            Setting::AgentCard => args.agent_card.clone(),
            Setting::Output => args.output.clone(),
            Setting::Verbose => switch(args.verbose),
            Setting::Transport => list(&args.transport),
            Setting::A2aVersion => args.a2a_version.clone(),
            Setting::Timeout => args.timeout.clone(),
            Setting::SvcParam => list(&args.svc_param),
            Setting::Bearer => args.bearer.clone(),
            Setting::ApiKey => args.api_key.clone(),
            Setting::Insecure => switch(args.insecure),
            Setting::Debug => switch(args.debug),
            Setting::Async => switch(self.others.r#async),
            Setting::PollInterval => self.others.poll_interval.clone(),
            Setting::ContextId => self.others.context_id.clone(),
            Setting::TaskId => self.others.task_id.clone(),
            Setting::Metadata => self.others.metadata.clone(),
            Setting::ClientId => self.others.client_id.clone(),
            Setting::ClientSecret => self.others.client_secret.clone(),
            Setting::Token => self.others.token.clone(),
            Setting::AuthCredentials => self.others.auth_credentials.clone(),
        };
        let (value, source) = session.sources.resolve(setting, flag);
        let shown = match value {
            Some(value) => Some(setting.shown(&value)),
            None => Some(setting.default_in_words().to_owned()).filter(|words| words != "-"),
        };
        (setting.flag(), shown, source.to_string())
    }
}

/// The hub, and the key that is shown to it: settings without a variable of A2ACLI_.
fn of_the_hub(session: &Session) -> [(&'static str, Option<String>, String); 2] {
    let (hub, source) = session.hub();
    let key = hub_key().map(|_| MASK.to_owned());
    let from = if key.is_some() { Source::Environment(HUB_KEY.to_owned()) } else { Source::Default };
    [("hub", Some(address::shown(&hub)), source.to_string()), ("hub-key", key, from.to_string())]
}

/// What concerns the hub: its file, with flags and environment as `serve` takes them.
pub fn check(settings: HubSettings) -> Result<()> {
    let path = settings.file.path();
    let config = settings.overrides().apply()?;
    if let Some(hurdle) = run::hurdles(&config).into_iter().next() {
        return Err(hurdle.error);
    }
    for (name, agent) in &config.agents {
        agent.check_secrets(name)?;
        // What is no program needs nothing that would have to be there.
        super::block_on(assemble::find(agent, None)).with_context(|| format!("agents.{name}"))?;
    }
    let name = path.map_or_else(|| "the defaults (no file)".to_owned(), |path| path.display().to_string());
    line(&format!("{name}: ok, agents: {}", config.agent_names().join(", ")));
    if !config.borrowed.is_empty() {
        line(&format!("from the environment: {}", config.borrowed.join(", ")));
    }
    Ok(())
}

pub fn hub(settings: HubSettings) -> Result<()> {
    let mut config = settings.overrides().apply()?;
    config.hub.owner_key = run::preset_owner_key(&config)?.map(Secret);
    config.agents.values_mut().for_each(AgentConfig::fill);
    config.agents.values_mut().for_each(AgentConfig::hide_secrets);
    line(&serde_saphyr::to_string(&config)?);
    Ok(())
}

pub fn schema() -> Result<()> {
    line(&serde_json::to_string_pretty(&schemars::schema_for!(Config))?);
    Ok(())
}
