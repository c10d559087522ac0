//! What answers: the hub, its agents, and an agent that was named.

use super::Findings;
use super::machine::apart;
use crate::cli::failure::{Failure, Local};
use crate::cli::session::{Session, hub_key};
use crate::config::{Config, Kind};
use flotilla_outbound::client::card::Card;
use flotilla_outbound::client::choose::Binding;
use flotilla_outbound::client::credential::Credentials;
use flotilla_outbound::client::error::ClientError;
use flotilla_outbound::client::resolve::{Reference, resolve};
use flotilla_outbound::client::{Client, Options, check};
use flotilla_outbound::hub::Hub;
use flotilla_outbound::net::address;
use flotilla_protocol::a2a::request::ListTasksRequest;
use flotilla_protocol::wire::Int32;
use serde_json::Value;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

const HUB_CARD: &str = "the hub's card";
/// Clocks further apart than this many seconds make tokens and deadlines go wrong.
const DRIFT: i64 = 30;
/// How long whoever has the hub's port may take to say that it is one.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether a hub answers, and whether its clock agrees with ours.
pub async fn hub(findings: &mut Findings, session: &Session) -> bool {
    let hub = Hub::new(session.net.clone(), &session.hub_url(), None);
    let place = address::shown(hub.url());
    let date = match hub.ready().await {
        Ok(date) => date,
        Err(error) => {
            let expected = session.args.hub.is_some() || std::env::var_os("FLOTILLA_URL").is_some();
            let (what, advice) = (format!("no hub answers at {place}: {error}"), "start it with: flotilla serve");
            if expected {
                findings.problem("hub", what, format!("{advice}; or correct FLOTILLA_URL or --hub"));
            } else {
                findings.note("hub", what, advice);
            }
            return false;
        }
    };
    findings.ok("hub", format!("{place} is ready"));
    match date.as_deref().and_then(apart) {
        Some(seconds) if seconds > DRIFT => {
            let what = format!("this machine and the hub are {seconds} s apart");
            findings.problem("clock", what, "set both clocks (on Debian: timedatectl set-ntp true)");
        }
        _ => {}
    }
    true
}

/// Whether a hub answers where the configuration has one listen. `asked` is where one was asked and answered: it may
/// be the same, reached in a way that is not tried here.
pub async fn is_hub_at(session: &Session, config: &Config, asked: Option<&str>) -> bool {
    let mut listen = config.hub.listen;
    if asked.is_some_and(|url| url.trim_end_matches('/').ends_with(&format!(":{}", listen.port()))) {
        return true;
    }
    if listen.ip().is_unspecified() {
        listen.set_ip(if listen.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
    }
    let scheme = if config.hub.tls.is_some() { "https" } else { "http" };
    let hub = Hub::new(session.net.clone(), &format!("{scheme}://{listen}"), None);
    tokio::time::timeout(PATIENCE, hub.ready()).await.is_ok_and(|ready| ready.is_ok())
}

/// Agents elsewhere are the hub's to reach: without one, nobody has looked.
pub fn unasked(findings: &mut Findings, config: &Config) {
    for name in config.agents.iter().filter(|(_, agent)| agent.kind == Kind::A2a).map(|(name, _)| name) {
        findings.note(
            "agents",
            format!("whether the agent {name} can be reached is not known: no hub answers"),
            format!("start the hub, then: flotilla agents check {name}"),
        );
    }
}

/// Each agent of the configuration that the hub has, else the hub's own card.
pub async fn agents(findings: &mut Findings, session: &Session, config: Option<&Config>) {
    let hub = session.hub_url();
    let mut references = vec![(HUB_CARD.to_owned(), Reference::parse(&hub))];
    let is_hub = |name: &str| name == HUB_CARD;
    let lacks_default = config.is_some_and(|config| config.default_agent().is_none());
    let mut hidden = Vec::new();
    for name in config.map(Config::agent_names).unwrap_or_default() {
        let shown = format!("agent {name}");
        if config.is_some_and(|config| !config.is_public(name)) {
            hidden.push(shown.clone());
        }
        if let Ok(reference) = Reference::of_agent(&hub, name) {
            references.push((shown, reference));
        }
    }
    if config.is_some_and(|config| config.default_agent().is_some_and(|name| !config.is_public(&name))) {
        hidden.push(references[0].0.clone());
    }
    let credentials = Credentials { bearer: hub_key(), api_key: None };
    let mut let_in = true;
    for (name, reference) in references {
        match resolve(&session.net, &reference, None, &credentials).await {
            Ok(card) => {
                check_card(findings, &name, &card);
                // The same key opens all of them or none.
                let_in = let_in && call_all(findings, session, &name, &card, &credentials).await;
            }
            Err(ClientError::CardNotFound { .. }) if is_hub(&name) && lacks_default => {
                let advice = "nothing, if callers name their agent; else set hub.default_agent";
                findings.note("agents", "the hub has no default agent, so there is no card at its root", advice);
            }
            Err(ClientError::CardNotFound { .. }) if hidden.contains(&name) => {
                let advice = "to have it called too, set FLOTILLA_KEY to a key of somebody it is there for";
                findings.note("agents", format!("{name} is not public, and not there for the key in use"), advice);
            }
            Err(error) => {
                let advice = "reload the hub (kill -HUP), or start it with this configuration";
                findings.problem("agents", format!("{name}: {error}"), advice);
            }
        }
    }
}

/// Agents elsewhere, as the hub itself reaches them: their cards here are the hub's own.
pub async fn elsewhere(findings: &mut Findings, session: &Session, config: &Config) {
    let hub = Hub::new(session.net.clone(), &session.hub_url(), hub_key());
    for name in config.agents.iter().filter(|(_, agent)| agent.kind == Kind::A2a).map(|(name, _)| name) {
        let Ok(shown) = hub.agent(name).await else { continue };
        let shown: Value = serde_json::from_str(&shown).unwrap_or_default();
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match shown["state"].as_str() {
            Some(state @ ("unreachable" | "stale" | "gone")) => {
                let what = format!("the hub finds the agent {name} {state}: {}", word(&shown["checks"]["lastError"]));
                findings.problem(
                    "agents",
                    what,
                    format!("start it, or correct agents.{name}.url; then: flotilla agents check {name}"),
                );
            }
            Some("live") => findings.ok("agents", format!("the hub reaches the agent {name}")),
            _ => findings.note(
                "agents",
                format!("the hub has not looked at the agent {name} yet"),
                format!("look at once with: flotilla agents check {name}"),
            ),
        }
    }
}

/// The agent named by `--agent-card`.
pub async fn named(findings: &mut Findings, session: &Session) {
    let found = async {
        let card = session.card().await?;
        let credentials = session.credentials(&card).await?;
        Ok::<_, Failure>((card, credentials))
    };
    match found.await {
        Ok((card, credentials)) => {
            check_card(findings, &card.name, &card);
            call_all(findings, session, &card.name, &card, &credentials).await;
        }
        Err(failure) => {
            let (what, advice) = told(&failure);
            findings.problem("agents", what, advice);
        }
    }
}

/// What a failure says, and what it says to do.
fn told(failure: &Failure) -> (String, String) {
    let error = &failure.envelope()["error"];
    let word = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    (word("message"), word("hint"))
}

fn check_card(findings: &mut Findings, name: &str, card: &Card) {
    for problem in check::problems(&card.json) {
        let advice = "its operator has to mend the card; flotilla card get --validate says the same";
        findings.problem("agents", format!("{name}: {problem}"), advice);
    }
}

/// Calls every interface a card declares with something that changes nothing; whether the credential was accepted.
async fn call_all(
    findings: &mut Findings,
    session: &Session,
    name: &str,
    card: &Card,
    credentials: &Credentials,
) -> bool {
    let declared = |binding: &Binding| {
        card.supported_interfaces.iter().any(|interface| Binding::parse(&interface.protocol_binding) == Some(*binding))
    };
    let mut answered = Vec::new();
    for binding in Binding::ALL.into_iter().filter(declared) {
        let Err(failure) = call(session, card, binding, credentials).await else {
            answered.push(binding.name());
            continue;
        };
        let (what, advice) = told(&failure);
        if failure.is(Local::CredentialsMissing) {
            let advice = "to have agents called too, set FLOTILLA_KEY, or A2ACLI_BEARER or A2ACLI_API_KEY for others";
            findings.note("agents", format!("{name} is not called: {what}"), advice);
            return false;
        }
        if failure.is(Local::AuthFailed) {
            let advice = "copy the key again, or make another with: flotilla keys create NAME";
            findings.problem("agents", format!("{name}: {what}"), advice);
            return false;
        }
        findings.problem("agents", format!("{name} over {}: {what}", binding.name()), advice);
    }
    if !answered.is_empty() {
        findings.ok("agents", format!("{name} answers over {}", answered.join(", ")));
    }
    true
}

async fn call(session: &Session, card: &Card, binding: Binding, credentials: &Credentials) -> Result<(), Failure> {
    let options = Options { transports: vec![binding], credentials: credentials.clone(), ..Options::default() };
    let client = Client::new(session.net.clone(), card.clone(), options)?;
    let asked = client.tasks(ListTasksRequest { page_size: Some(Int32(1)), ..ListTasksRequest::default() }).await;
    match asked {
        // An agent that does not list tasks says so, and so it answers.
        Err(ClientError::Refused { code: Some(_), .. }) | Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
