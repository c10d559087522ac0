//! What answers: the hub, its agents, and an agent that was named.

use super::Findings;
use super::beyond::Beyond;
use super::machine::{apart, place_of};
use crate::cli::failure::{Failure, Local};
use crate::cli::session::{Session, hub_key};
use crate::cli::settings::Source;
use crate::config::{Config, Kind};
use flotilla_outbound::client::card::Card;
use flotilla_outbound::client::choose::Binding;
use flotilla_outbound::client::credential::Credentials;
use flotilla_outbound::client::error::ClientError;
use flotilla_outbound::client::resolve::{Reference, resolve};
use flotilla_outbound::client::{Client, Options, check};
use flotilla_outbound::hub::{Hub, Readiness};
use flotilla_outbound::net::address;
use flotilla_protocol::a2a::request::ListTasksRequest;
use flotilla_protocol::wire::Int32;
use std::time::Duration;

const HUB_CARD: &str = "the hub's card";
/// Clocks further apart than this many seconds make tokens and deadlines go wrong.
const DRIFT: i64 = 30;
/// How long whoever has the hub's port may take to say that it is one.
const PATIENCE: Duration = Duration::from_secs(2);

/// What helps where the hub does not accept a key.
const NEW_KEY: &str = "copy the key again, or make another with: flotilla keys create NAME";

/// What is where a hub is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    Hub,
    /// A hub that cannot do its work.
    SickHub,
    /// Whoever shows a certificate that is not accepted here.
    Untrusted,
    Other,
    Nobody,
}

impl At {
    fn of(looked: &Result<Readiness, ClientError>) -> Self {
        match looked {
            Ok(Readiness::Ready { .. }) => Self::Hub,
            Ok(Readiness::NotReady(_)) => Self::SickHub,
            Ok(Readiness::NoHub { .. }) => Self::Other,
            Err(ClientError::Untrusted { .. }) => Self::Untrusted,
            Err(_) => Self::Nobody,
        }
    }
}

/// Whether a hub answers, and whether its clock agrees with ours.
pub async fn hub(findings: &mut Findings, session: &Session) -> At {
    let hub = Hub::new(session.net.clone(), &session.hub_url(), None);
    let place = address::shown(hub.url());
    let looked = hub.ready().await;
    let at = At::of(&looked);
    let mut missing = |what: String, advice: &str| match session.hub().1 {
        Source::Default => findings.note("hub", what, advice),
        _ => findings.problem("hub", what, format!("{advice}; or correct FLOTILLA_URL or --hub")),
    };
    match looked {
        Ok(Readiness::Ready { date }) => {
            findings.ok("hub", format!("{place} is ready"));
            if let Some(seconds) = date.as_deref().and_then(apart).filter(|seconds| *seconds > DRIFT) {
                let what = format!("this machine and the hub are {seconds} s apart");
                findings.problem("clock", what, "set both clocks (on Debian: timedatectl set-ntp true)");
            }
        }
        Ok(Readiness::NotReady(problem)) => {
            let advice = "its log says more; look again in a moment if it is just stopping";
            findings.problem("hub", format!("the hub at {place} is not ready: {problem}"), advice);
        }
        Ok(Readiness::NoHub { status }) => {
            let what = format!("what answers at {place} is another program and no hub (HTTP {status})");
            missing(what, "start a hub where there is room for it, with: flotilla serve --listen ADDRESS");
        }
        Err(error @ ClientError::Untrusted { .. }) => {
            let (what, advice) = told(&Failure::from(error));
            findings.problem("hub", what, advice);
        }
        Err(error) => missing(format!("no hub answers at {place}: {error}"), "start it with: flotilla serve"),
    }
    at
}

/// What is where the configuration has a hub listen. `asked` is where one was looked for, and what is there: it may be
/// the same, reached in a way that is not tried here.
pub async fn at_port(session: &Session, config: &Config, (url, at): (&str, At)) -> At {
    let port = config.hub.listen.port();
    if at != At::Nobody && url.trim_end_matches('/').ends_with(&format!(":{port}")) {
        return at;
    }
    let Some(place) = place_of(config) else { return At::Nobody };
    let hub = Hub::new(session.net.clone(), &place, None);
    tokio::time::timeout(PATIENCE, hub.ready()).await.map_or(At::Other, |looked| At::of(&looked))
}

/// Agents elsewhere are the hub's to reach: without one, nobody has looked.
pub fn unasked(findings: &mut Findings, config: &Config) {
    for name in config.agents.iter().filter(|(_, agent)| agent.kind == Kind::A2a).map(|(name, _)| name) {
        findings.note(
            "agents",
            format!("whether the agent {name} can be reached is not known: no hub was asked"),
            format!("start the hub, then: flotilla agents check {name}"),
        );
    }
}

/// A door of the hub's: its own, or that of one of its agents.
struct Door {
    shown: String,
    agent: Option<String>,
    reference: Reference,
    /// Whether it is there for some callers only.
    is_hidden: bool,
}

/// The hub's own card, and each agent of the configuration.
fn doors(hub: &str, config: Option<&Config>) -> Vec<Door> {
    let is_hidden = |name: &str| config.is_some_and(|config| !config.is_public(name));
    let default = config.and_then(Config::default_agent);
    let own = Door {
        shown: HUB_CARD.to_owned(),
        agent: None,
        reference: Reference::parse(hub),
        is_hidden: default.is_some_and(|name| is_hidden(&name)),
    };
    let of_agent = |name: &str| {
        let reference = Reference::of_agent(hub, name).ok()?;
        Some(Door {
            shown: format!("agent {name}"),
            agent: Some(name.to_owned()),
            reference,
            is_hidden: is_hidden(name),
        })
    };
    let names = config.map(Config::agent_names).unwrap_or_default();
    std::iter::once(own).chain(names.into_iter().filter_map(of_agent)).collect()
}

/// Each agent of the configuration that the hub has, else the hub's own card.
pub async fn agents(findings: &mut Findings, session: &Session, config: Option<&Config>) {
    let lacks_default = config.is_some_and(|config| config.default_agent().is_none());
    let credentials = Credentials { bearer: hub_key(), api_key: None };
    let mut let_in = true;
    for door in doors(&session.hub_url(), config) {
        match resolve(&session.net, &door.reference, None, &credentials).await {
            Ok(card) => {
                check_card(findings, &door.shown, &card);
                // The same key opens all of them or none.
                let_in = let_in && enter(findings, session, config, &door, &card, &credentials).await;
            }
            Err(ClientError::CardNotFound { .. }) if door.agent.is_none() && lacks_default => {
                let advice = "nothing, if callers name their agent; else set hub.default_agent";
                findings.note("agents", "the hub has no default agent, so there is no card at its root", advice);
            }
            Err(ClientError::CardNotFound { .. }) if door.is_hidden => {
                let advice = "to have it called too, set FLOTILLA_KEY to a key of somebody it is there for";
                let what = format!("{} is not public, and not there for the key in use", door.shown);
                findings.note("agents", what, advice);
            }
            Err(error) => {
                let advice = "reload the hub (kill -HUP), or start it with this configuration";
                findings.problem("agents", format!("{}: {error}", door.shown), advice);
            }
        }
    }
}

/// Calls what is at a door, and tells what came of it; whether the credential was accepted.
async fn enter(
    findings: &mut Findings,
    session: &Session,
    config: Option<&Config>,
    door: &Door,
    card: &Card,
    credentials: &Credentials,
) -> bool {
    let Some(answered) = call_all(findings, session, &door.shown, card, (credentials, NEW_KEY)).await else {
        return false;
    };
    let kind = |name: &String| config.and_then(|config| config.agents.get(name)).map(|agent| agent.kind);
    match &door.agent {
        Some(name) if matches!(kind(name), Some(Kind::A2a | Kind::Socket)) => {
            Beyond::of(session, name).await.tell(findings, name, &answered);
        }
        _ => tell_answered(findings, &door.shown, &answered),
    }
    true
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
            let refused = if session.is_hub() { NEW_KEY.to_owned() } else { new_credential(session, &card) };
            let called = call_all(findings, session, &card.name, &card, (&credentials, &refused));
            let answered = called.await.unwrap_or_default();
            tell_answered(findings, &card.name, &answered);
        }
        Err(failure) => {
            let (what, advice) = told(&failure);
            findings.problem("agents", what, advice);
        }
    }
}

/// What helps where an agent elsewhere does not accept a credential: no key of a hub does.
fn new_credential(session: &Session, card: &Card) -> String {
    let way_in = session.sign_in_hint(card).map(|hint| format!("; {hint}")).unwrap_or_default();
    format!(
        "flotilla config show says which credential is used: copy it again, or get another from whoever runs the \
         agent{way_in}"
    )
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

/// Calls every interface a card declares with something that changes nothing; gives those that answer, or nothing if the
/// credential was not accepted, with `refused` as what to do about that.
async fn call_all(
    findings: &mut Findings,
    session: &Session,
    name: &str,
    card: &Card,
    (credentials, refused): (&Credentials, &str),
) -> Option<Vec<&'static str>> {
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
            return None;
        }
        if failure.is(Local::AuthFailed) {
            findings.problem("agents", format!("{name}: {what}"), refused);
            return None;
        }
        findings.problem("agents", format!("{name} over {}: {what}", binding.name()), advice);
    }
    Some(answered)
}

fn tell_answered(findings: &mut Findings, name: &str, answered: &[&str]) {
    if !answered.is_empty() {
        findings.ok("agents", format!("{name} answers over {}", answered.join(", ")));
    }
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
