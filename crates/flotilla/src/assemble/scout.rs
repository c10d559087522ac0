//! The scout: what may be said of an agent that is added, how it is made, and the search for agents elsewhere.

use super::{agent_of, remote};
use crate::config::{AgentConfig, AuthConfig, Config, Kind, inward, merge, outward, outward_words};
use anyhow::Result;
use arc_swap::ArcSwap;
use flotilla_core::error::Fault;
use flotilla_core::ids::AgentId;
use flotilla_core::ports::{Asked, Discovered, Later, Plan, Scout};
use flotilla_core::registry::{Added, Agent, Proven, Source};
use flotilla_outbound::client::choose::Binding;
use flotilla_outbound::discover::{self, Discovery};
use flotilla_outbound::guard::Guard;
use flotilla_outbound::remote::options::{Auth, Protocol};
use flotilla_outbound::signature::origin::Pins;
use flotilla_outbound::signature::verify::Word;
use flotilla_protocol::a2a::error::Refusal;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// The largest settings, in bytes.
const MOST_BYTES: usize = 64 * 1024;

/// Knows the configuration of now.
pub struct Recruiter {
    config: ArcSwap<Config>,
    /// Whose cards were verified, whatever the configuration is.
    pub proven: Arc<Proven>,
}

impl Recruiter {
    pub fn new(config: Config, proven: Arc<Proven>) -> Self {
        Self { config: ArcSwap::from_pointee(config), proven }
    }

    pub fn replace_config(&self, config: Arc<Config>) {
        self.config.store(config);
    }

    fn guard(&self) -> Result<Guard, Fault> {
        let rules = self.config.load().targets.rules();
        rules.map(Guard::new).map_err(|error| Fault::new(format!("the rules for targets: {error:#}")))
    }
}

fn wrong(problem: impl std::fmt::Display) -> Refusal {
    Refusal::invalid("", problem.to_string())
}

fn read(settings: &str) -> Result<AgentConfig, Refusal> {
    serde_json::from_str(settings).map_err(wrong)
}

/// What is said of an agent, with the defaults of those that are added.
fn proposed(kept: Option<&str>, settings: &str) -> Result<Value, Refusal> {
    let said: Value = serde_json::from_str(settings).map_err(wrong)?;
    if !said.is_object() {
        return Err(wrong("must be a JSON object with the agent's settings"));
    }
    let said = inward(said);
    let mut whole = match kept {
        Some(kept) => {
            let mut kept: Value = serde_json::from_str(kept).map_err(wrong)?;
            // An agent has one of them: a new one takes the place of the other.
            for (new, old) in [("url", "card"), ("card", "url")] {
                if said.get(new).is_some_and(Value::is_string)
                    && let Some(kept) = kept.as_object_mut()
                {
                    kept.remove(old);
                }
            }
            merge(&mut kept, said);
            kept
        }
        None => said,
    };
    if let Some(members) = whole.as_object_mut() {
        members.entry("kind").or_insert_with(|| "a2a".into());
        members.entry("visibility").or_insert_with(|| "workspace".into());
    }
    Ok(whole)
}

/// What only the configuration may say: the hub's own files and programs, and secrets in the clear.
fn check(config: &AgentConfig) -> Result<(), Refusal> {
    if config.kind != Kind::A2a {
        let text =
            "only agents elsewhere (a2a) are added so; others are for the configuration, or connect by themselves";
        return Err(Refusal::invalid("kind", text));
    }
    config.check().map_err(|error| wrong(format!("{error:#}")))?;
    for (name, address) in [("url", &config.url), ("card", &config.card)] {
        let Some(address) = address else { continue };
        if !address.starts_with("http://") && !address.starts_with("https://") {
            return Err(Refusal::invalid(name, "must be an http or https address; files are for the configuration"));
        }
        if address.contains(['?', '#']) {
            let text = "must hold no query: it might be a secret, which is not kept here. Say 'auth' instead";
            return Err(Refusal::invalid(name, text));
        }
    }
    Ok(())
}

impl Scout for Recruiter {
    fn plan(&self, kept: Option<&str>, settings: &str) -> Result<Plan, Refusal> {
        let unread = |error: serde_json::Error| wrong(outward_words(&error.to_string()));
        let config: AgentConfig = serde_json::from_value(proposed(kept, settings)?).map_err(unread)?;
        check(&config)?;
        let settings = serde_json::to_string(&config).map_err(wrong)?;
        if settings.len() > MOST_BYTES {
            return Err(wrong(format!("the settings must be at most {MOST_BYTES} bytes long")));
        }
        // Read once more: what is kept must be what was checked.
        read(&settings)?;
        Ok(Plan {
            owner: config.owner.clone(),
            visibility: config.visibility.into(),
            references: config.references(),
            settings,
        })
    }

    fn shown(&self, settings: &str) -> String {
        let shown = read(settings).ok().and_then(|mut config| {
            config.hide_secrets();
            serde_json::to_value(config).ok()
        });
        outward(shown.unwrap_or_default()).to_string()
    }

    fn judge(&self, settings: &str) -> Later<Result<(), Refusal>> {
        let (config, guard) = (read(settings), self.guard());
        Box::pin(async move {
            let guard = guard?;
            let config = match config {
                Ok(config) => config,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let token = match &config.auth {
                Some(AuthConfig::OAuth2(oauth)) => oauth.token_url.clone(),
                _ => None,
            };
            for (name, address) in [("url", config.url), ("card", config.card), ("auth.oauth2.tokenUrl", token)] {
                let Some(address) = address else { continue };
                if let Err(refused) = guard.check(&address).await {
                    return Ok(Err(Refusal::invalid(name, refused.to_string())));
                }
            }
            Ok(Ok(()))
        })
    }

    fn build(&self, added: &Added, before: Option<&Agent>) -> Result<Agent, Refusal> {
        let (config, whole) = (read(&added.settings)?, self.config.load());
        let told = |error: anyhow::Error| wrong(format!("{error:#}"));
        let before = before.map(|agent| &agent.link);
        let link = remote::link(&added.name, &config, &whole, true, &self.proven, before).map_err(told)?;
        let source = Source::Added(Arc::new(added.clone()));
        agent_of(&added.name, &config, (AgentId(0), added.owner, added.workspace), source, link).map_err(told)
    }

    fn proved(&self, added: &Added) -> Later<()> {
        let (config, whole) = (read(&added.settings), self.config.load());
        let (name, proven, most) = (added.name.clone(), Arc::clone(&self.proven), whole.limits.limits().body);
        Box::pin(async move {
            let told = |problem: String| Fault::new(format!("what the card of '{name}' is verified for: {problem}"));
            let config = config.map_err(|refusal| told(refusal.message))?;
            let options = config.remote_options(&name, most).map_err(|error| told(format!("{error:#}")))?;
            proven.keep(&name, &options.proof()).await
        })
    }

    fn forget(&self, name: &str) {
        self.proven.forget(name);
    }

    fn references(&self, auth: &str) -> Result<Vec<String>, Refusal> {
        Ok(vec![auth_of(auth)?.reference().to_owned()])
    }

    fn discover(&self, asked: Asked) -> Later<Result<Discovered, Refusal>> {
        let (guard, prepared) = (self.guard(), prepared(&asked));
        Box::pin(async move {
            let guard = guard?;
            let Prepared { auth, pins, protocol, transports } = match prepared {
                Ok(prepared) => prepared,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let patience = discover::PATIENCE;
            let discovery = Discovery { guard: &guard, auth: &auth, pins: &pins, protocol, transports, patience };
            let search = match discovery.search(&asked.url).await {
                Ok(search) => search,
                Err(refused) => return Ok(Err(Refusal::invalid("url", refused.to_string()))),
            };
            let settings = search.settings().map(|settings| settings.to_string());
            let verified = search.found.as_ref().is_some_and(|found| found.outcome.word == Word::Verified);
            Ok(Ok(Discovered { report: search.report().to_string(), settings, verified }))
        })
    }
}

fn auth_of(text: &str) -> Result<AuthConfig, Refusal> {
    let told = |problem: String| Refusal::invalid("auth", problem);
    let value: Value = serde_json::from_str(text).map_err(|error| told(error.to_string()))?;
    let auth: AuthConfig =
        serde_json::from_value(inward(value)).map_err(|error| told(outward_words(&error.to_string())))?;
    auth.check().map_err(|error| told(format!("{error:#}")))?;
    Ok(auth)
}

/// All that is said of an agent before it is looked for.
struct Prepared {
    auth: Auth,
    pins: Pins,
    protocol: Protocol,
    transports: Vec<Binding>,
}

/// Of the settings those that say how the agent is spoken with; all of them are looked at when it is added.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Spoken {
    protocol_version: Option<String>,
    transports: Vec<String>,
}

impl Spoken {
    fn of(settings: Option<&str>) -> Result<Self, Refusal> {
        let Some(settings) = settings else { return Ok(Self::default()) };
        let settings: Value = serde_json::from_str(settings).map_err(wrong)?;
        let told = |error: serde_json::Error| Refusal::invalid("settings", outward_words(&error.to_string()));
        serde_json::from_value(inward(settings)).map_err(told)
    }

    fn protocol(&self) -> Result<Protocol, Refusal> {
        let Some(said) = &self.protocol_version else { return Ok(Protocol::default()) };
        let unknown = || format!("'{said}' is not spoken; write '1.0' or '0.3', or leave it to the card");
        Protocol::parse(said).ok_or_else(|| Refusal::invalid("settings.protocolVersion", unknown()))
    }

    fn transports(&self) -> Result<Vec<Binding>, Refusal> {
        let unknown = |said: &String| format!("'{said}' is none of JSONRPC, HTTP+JSON, GRPC");
        let read =
            |said: &String| Binding::parse(said).ok_or_else(|| Refusal::invalid("settings.transports", unknown(said)));
        self.transports.iter().map(read).collect()
    }
}

fn prepared(asked: &Asked) -> Result<Prepared, Refusal> {
    let auth = match &asked.auth {
        None => Auth::None,
        Some(text) => auth_of(text)?.auth().map_err(|error| Refusal::invalid("auth", format!("{error:#}")))?,
    };
    let mut pins = Pins::default();
    for pin in &asked.pins {
        pins.add(pin).map_err(|problem| Refusal::invalid("cardKeys", problem))?;
    }
    let spoken = Spoken::of(asked.settings.as_deref())?;
    Ok(Prepared { auth, pins, protocol: spoken.protocol()?, transports: spoken.transports()? })
}
