//! One run of a command for agents: its settings resolved, the network ready, the agent found when it is needed.

use super::args::ClientArgs;
use super::auth;
use super::failure::{Failure, Local};
use super::output::{Format, say, warn};
use super::settings::{self, Setting, Source, Sources};
use super::svc_param;
use super::tokens::Tokens;
use super::watch::Watch;
use flotilla_outbound::client::cache::Cache;
use flotilla_outbound::client::card::{Card, Scheme};
use flotilla_outbound::client::choose::{Binding, Versions};
use flotilla_outbound::client::credential::Credentials;
use flotilla_outbound::client::error::ClientError;
use flotilla_outbound::client::resolve::{Reference, resolve_in, scheme_for};
use flotilla_outbound::client::{Client, Options};
use flotilla_outbound::net::redact::{self, Redactor};
use flotilla_outbound::net::{Net, Observer, address};
use flotilla_protocol::a2a::VERSION;
use flotilla_protocol::v03;
use std::sync::Arc;
use std::time::{Duration, Instant};

const HUB: &str = "http://127.0.0.1:7420";
const HUB_URL: &str = "FLOTILLA_URL";
pub const HUB_KEY: &str = "FLOTILLA_KEY";
const INSECURE: &str = "SECURITY: a credential is sent over a connection whose certificate is not checked (--insecure)";

pub struct Session {
    pub args: ClientArgs,
    pub sources: Sources,
    pub format: Format,
    pub verbose: bool,
    pub timeout: Option<Duration>,
    pub watch: Watch,
    pub net: Net,
    pub tokens: Tokens,
    credentials: Credentials,
    parameters: Vec<(String, String)>,
}

impl Session {
    pub fn new(args: ClientArgs) -> Result<Self, Failure> {
        for (flag, given) in [("--agent-card", &args.agent_card), ("--hub", &args.hub)] {
            if given.as_ref().is_some_and(|given| given.trim().is_empty()) {
                let text =
                    format!("{flag} is empty: name one, or leave the flag out to use the hub that is configured");
                return Err(Failure::usage(text));
            }
        }
        let sources = Sources::load(args.config.as_deref())?;
        let text = |setting, flag: &Option<String>| sources.value(setting, flag.clone());
        let said = sources.said(Setting::Output, args.output.is_some());
        let format = Format::parse(&said, &text(Setting::Output, &args.output).unwrap_or_default())?;
        let timeout = sources.length(Setting::Timeout, args.timeout.clone())?;
        let verbose = sources.truth(Setting::Verbose, args.verbose)?;
        let insecure = sources.truth(Setting::Insecure, args.insecure)?;
        let debug = sources.truth(Setting::Debug, args.debug)?;
        let bearer = text(Setting::Bearer, &args.bearer);
        let credentials = Credentials { bearer, api_key: text(Setting::ApiKey, &args.api_key) };
        let said = sources.said(Setting::SvcParam, !args.svc_param.is_empty());
        let parameters = svc_param::parse(&said, &sources.list(Setting::SvcParam, &args.svc_param, ';'))?;
        let tokens = Tokens::load()?;
        for file in sources.exposed() {
            warn(&format!("{0} holds a credential and others can read it; run: chmod 600 {0}", file.display()));
        }
        if insecure {
            warn("certificates are not checked (--insecure): anyone in between can read and change what is sent");
        }
        let known = [credentials.bearer.clone(), credentials.api_key.clone(), hub_key()].into_iter().flatten();
        let hidden = parameters.iter().filter(|(name, _)| !redact::is_open(name));
        let values = hidden.map(|(_, value)| value.clone());
        let others = [Setting::ClientSecret, Setting::Token, Setting::AuthCredentials];
        let others = others.into_iter().filter_map(|setting| text(setting, &None));
        let secrets = known.chain(values).chain(tokens.secrets()).chain(others);
        let net = Net::new(insecure, Redactor::new(secrets), debug.then(observer))?;
        let watch = Watch::default();
        Ok(Self { args, sources, format, verbose, timeout, watch, net, tokens, credentials, parameters })
    }

    pub fn hub_url(&self) -> String {
        let named = self.hub().0;
        if named.contains("://") { named } else { format!("{}://{named}", scheme_for(&named)) }
    }

    /// The hub as it is named, and where.
    pub fn hub(&self) -> (String, Source) {
        let by_variable = || Some((variable(HUB_URL)?, Source::Environment(HUB_URL.to_owned())));
        let by_flag = self.args.hub.clone().map(|named| (named, Source::Flag));
        let by_default = || self.args.configured_hub.clone().unwrap_or_else(|| HUB.to_owned());
        by_flag.or_else(by_variable).unwrap_or_else(|| (by_default(), Source::Default))
    }

    /// The card that is named, or the hub's, or that of one of its agents.
    pub fn reference(&self) -> Result<Reference, Failure> {
        if let Some(agent) = &self.args.agent {
            return Reference::of_agent(&self.hub_url(), agent).map_err(Failure::from);
        }
        let named = self.sources.value(Setting::AgentCard, self.args.agent_card.clone());
        // `--hub` on the command line is nearer than a card named elsewhere.
        let named = named.filter(|_| self.args.agent_card.is_some() || self.args.hub.is_none());
        Ok(Reference::parse(&named.unwrap_or_else(|| self.hub_url())))
    }

    /// Whether the agent is one of the hub's, so that the hub's key may be shown to it.
    pub fn is_hub(&self) -> bool {
        let named = self.sources.value(Setting::AgentCard, self.args.agent_card.clone());
        self.args.agent.is_some() || named.is_none() || (self.args.hub.is_some() && self.args.agent_card.is_none())
    }

    pub async fn card(&self) -> Result<Card, Failure> {
        let reference = self.reference()?;
        let cache = settings::cache().map(|directory| Cache::new(&directory));
        let shown = self.shown_for_card();
        if self.net.is_insecure() && !shown.is_empty() {
            warn(INSECURE);
        }
        let (versions, _) = self.versions()?;
        let version = if versions == Versions::Old { v03::VERSION } else { VERSION };
        let resolve =
            async |reference: &Reference| resolve_in(version, &self.net, reference, cache.as_ref(), &shown).await;
        let mut card = resolve(&reference).await;
        for other in reference.others() {
            if !matches!(card, Err(ClientError::CardNotFound { .. } | ClientError::CardInvalid { .. })) {
                break;
            }
            card = resolve(&other).await.or(card);
        }
        card.map_err(|error| {
            // It is there, and says who it is: what to do about that is told with it.
            let is_there = matches!(error, ClientError::Untrusted { .. });
            let failure = Failure::from(error);
            let is_hub = self.is_hub();
            if is_hub && !is_there && failure.is(Local::Unreachable) {
                let hint = "start a hub with: flotilla serve; or name an agent with --agent-card";
                return failure.hint(hint);
            }
            if is_hub && failure.is(Local::CardNotFound) && self.args.agent.is_some() {
                return failure.hint(
                    "the hub has no such agent, or not for your key (FLOTILLA_KEY); --agent takes the name in its \
                     configuration",
                );
            }
            failure
        })
    }

    /// The hub shows the cards of agents that are not public only to those they are there for. Nobody else is shown a
    /// credential before its card has said how.
    fn shown_for_card(&self) -> Credentials {
        if !self.is_hub() {
            return Credentials::default();
        }
        let own = Some(&self.credentials).filter(|own| !own.is_empty()).cloned();
        own.unwrap_or_else(|| Credentials { bearer: hub_key(), api_key: None })
    }

    /// The hub's key goes to the hub alone; a token from `auth login` to the agent it was given for.
    pub async fn credentials(&self, card: &Card) -> Result<Credentials, Failure> {
        let mut credentials = self.credentials.clone();
        if credentials.is_empty() {
            credentials.bearer = self.tokens.current(self, card).await?;
        }
        if credentials.is_empty() && self.is_hub() {
            credentials.bearer = hub_key();
        }
        Ok(credentials)
    }

    pub async fn client(&self) -> Result<Client, Failure> {
        let card = self.card().await?;
        let transports = self.transports()?;
        let (versions, version) = self.versions()?;
        let credentials = self.credentials(&card).await?;
        let parameters = self.parameters.clone();
        let sign_in = self.sign_in_hint(&card);
        let client = Client::new(
            self.net.clone(),
            card,
            Options { transports, version, versions, credentials, parameters, ..Options::default() },
        )
        .map_err(|error| match (Failure::from(error), sign_in) {
            (failure, Some(hint)) if failure.is(Local::CredentialsMissing) => failure.hint(hint),
            (failure, _) => failure,
        })?;
        svc_param::check_beside(&self.parameters, client.attached())?;
        for unused in &client.attached().unused {
            warn(&format!("the agent's card declares no scheme that takes {unused}, so it is not sent"));
        }
        // Said once: where the card was asked for with a credential, it has been.
        if self.net.is_insecure() && !client.attached().is_empty() && self.shown_for_card().is_empty() {
            warn(INSECURE);
        }
        Ok(client)
    }

    /// The bindings that are preferred, the best first.
    pub fn transports(&self) -> Result<Vec<Binding>, Failure> {
        let names = self.sources.list(Setting::Transport, &self.args.transport, ',');
        let wrong = |name: &String| {
            let known: Vec<&str> = Binding::ALL.into_iter().map(Binding::name).collect();
            let said = self.sources.said(Setting::Transport, !self.args.transport.is_empty());
            Failure::usage(format!("{said}: '{name}' is none of {}", known.join(", ")))
        };
        names.iter().map(|name| Binding::parse(name).ok_or_else(|| wrong(name))).collect()
    }

    /// Which versions are spoken, and which of them is signalled. 0.3 is spoken only where it is named: commands and
    /// scripts rely on 1.x.
    pub fn versions(&self) -> Result<(Versions, Option<String>), Failure> {
        let named = self.sources.value(Setting::A2aVersion, self.args.a2a_version.clone());
        match named {
            Some(version) if version == v03::VERSION || version.starts_with("0.3.") => Ok((Versions::Old, None)),
            Some(version) if !version.starts_with("1.") => {
                let said = self.sources.said(Setting::A2aVersion, self.args.a2a_version.is_some());
                let text = format!("{said}: '{version}' is not spoken; 1.x is, and 0.3 where it is named here");
                Err(Failure::usage(text).hint("leave it out to use the highest version of 1.x both sides speak"))
            }
            version => Ok((Versions::Current, version)),
        }
    }

    /// The exact way in, read from the card's schemes.
    pub fn sign_in_hint(&self, card: &Card) -> Option<String> {
        if self.is_hub() {
            return Some(
                "set FLOTILLA_KEY to a key of the hub; its owner makes one with: flotilla keys create NAME".into(),
            );
        }
        Some(way_in(card, || auth::advice(self, card)))
    }

    /// A command to type next, with what this one was told about the agent. What is secret is left to be filled in.
    pub fn command(&self, words: &str) -> String {
        let mut command = format!("flotilla {words}");
        let args = &self.args;
        let mut say = |flag: &str, value: &str| command.push_str(&format!(" {flag} {}", quoted(value)));
        let named = [("--agent-card", &args.agent_card), ("--agent", &args.agent), ("--hub", &args.hub)];
        for (flag, value) in named.into_iter().filter_map(|(flag, value)| Some((flag, value.as_ref()?))) {
            say(flag, &address::shown(value));
        }
        args.transport.iter().for_each(|transport| say("--transport", transport));
        args.a2a_version.iter().for_each(|version| say("--a2a-version", version));
        for (name, value) in self.parameters.iter().filter(|_| !args.svc_param.is_empty()) {
            let value = if redact::is_open(name) { value.as_str() } else { "<value>" };
            say("--svc-param", &format!("{name}:{value}"));
        }
        args.bearer.iter().for_each(|_| say("--bearer", "<token>"));
        args.api_key.iter().for_each(|_| say("--api-key", "<key>"));
        args.config.iter().for_each(|config| say("--config", &config.display().to_string()));
        if let Some(insecure) = args.insecure {
            command.push_str(if insecure { " --insecure" } else { " --insecure=false" });
        }
        command
    }

    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }
}

/// What meets a requirement of the card, of all that would the easiest.
fn way_in(card: &Card, sign_in: impl Fn() -> String) -> String {
    let required: Vec<&Scheme> = card
        .security_requirements
        .iter()
        .flat_map(|requirement| requirement.schemes.keys())
        .filter_map(|name| card.security_schemes.get(name))
        .collect();
    let any = |is: fn(&Scheme) -> bool| required.iter().any(|scheme| is(scheme));
    if any(|scheme| scheme.oauth2_security_scheme.is_some()) {
        return sign_in();
    }
    if any(|scheme| scheme.api_key_security_scheme.is_some()) {
        return "set A2ACLI_API_KEY to your key for this agent".into();
    }
    let http = || required.iter().find_map(|scheme| scheme.http_auth_security_scheme.as_ref());
    match http().map(|http| http.scheme.as_str()) {
        Some(scheme) if !scheme.eq_ignore_ascii_case("bearer") => format!(
            "there is no flag for HTTP {scheme}: whoever knows the header sets it, as \
             A2ACLI_SVC_PARAM='Authorization:{scheme} <credentials>'"
        ),
        None if any(|scheme| scheme.mtls_security_scheme.is_some()) => {
            "this program shows no certificates: ask whoever runs the agent for another way in, or call it through a \
             proxy that shows one"
                .into()
        }
        _ => "set A2ACLI_BEARER to your token for this agent".into(),
    }
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

pub fn hub_key() -> Option<String> {
    variable(HUB_KEY)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// What goes over the wire, with the time since the start.
fn observer() -> Observer {
    let started = Instant::now();
    Arc::new(move |text| say(&format!("debug {:>7.3} {text}", started.elapsed().as_secs_f64())))
}
