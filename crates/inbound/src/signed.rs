//! Cards as they leave the hub: in the form that was asked for, signed in that form; and the extended ones.

use crate::app::{App, CardForm, Settings};
use crate::dialect::Dialect;
use crate::well_known;
use flotilla_core::caller::Caller;
use flotilla_core::error::{Error, Fault};
use flotilla_core::limits::Limits;
use flotilla_core::registry::{Agent, Extended};
use flotilla_protocol::a2a::TERMS;
use flotilla_protocol::a2a::card::{AgentCard, AgentExtension};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::v03;
use flotilla_protocol::wire::Object;
use serde_json::{Map, Value, json};

/// A card for one caller: as 1.0 has it, and the JSON of the dialect it was asked for in.
pub struct Signed {
    pub card: AgentCard,
    pub json: Vec<u8>,
}

/// The JSON of a card in a form, with signatures over exactly what else is in it.
pub fn write(app: &App, card: AgentCard, form: CardForm) -> Result<Vec<u8>, Fault> {
    let broken = |error: serde_json::Error| Fault::new(format!("encoding a card: {error}"));
    let mut both = match form {
        CardForm::V10 => return serde_json::to_vec(&sign(app, card)?).map_err(broken),
        CardForm::V03 => v03::card::write(&card).ok_or_else(|| Fault::new("a card without an interface of 0.3"))?,
        CardForm::Hybrid => v03::card::hybrid(&card).map_err(broken)?,
    };
    let signatures = app.signer.sign(&both.to_string(), &keys_at(&app.settings()))?;
    both["signatures"] = json!(signatures);
    serde_json::to_vec(&both).map_err(broken)
}

/// The card in its 1.0 form, signed.
fn sign(app: &App, mut card: AgentCard) -> Result<AgentCard, Fault> {
    let json = serde_json::to_string(&card).map_err(|error| Fault::new(format!("encoding a card: {error}")))?;
    card.signatures = app.signer.sign(&json, &keys_at(&app.settings()))?.to_vec();
    Ok(card)
}

/// Where the keys are that a card is signed with: said in every signature.
fn keys_at(settings: &Settings) -> String {
    format!("{}/.well-known/jwks.json", settings.public_url)
}

/// What a caller with a key learns of an agent. `named` tells an agent's own card from the hub's.
pub fn extended(app: &App, caller: &Caller, agent: &Agent, named: bool, dialect: Dialect) -> Result<Signed, Error> {
    let Some(more) = &agent.extended else { return Err(none(&agent.name, dialect).into()) };
    if caller.is_anonymous() {
        let text =
            "The extended card is for callers who show a key; the public card is at /.well-known/agent-card.json.";
        return Err(Refusal::new(Reason::Unauthenticated, text).into());
    }
    let card = with_more(public(app, agent, named), more, terms(caller, more, &app.hub.limits())?);
    let json = match dialect {
        Dialect::V10 => None,
        Dialect::V03(_) => Some(write(app, card.clone(), CardForm::V03)?),
    };
    let card = sign(app, card)?;
    let encoded = || serde_json::to_vec(&card).map_err(|error| Fault::new(format!("encoding a card: {error}")));
    let json = json.map_or_else(encoded, Ok)?;
    Ok(Signed { card, json })
}

/// The card that everybody sees, not signed.
pub fn public(app: &App, agent: &Agent, named: bool) -> AgentCard {
    let settings = app.settings();
    let is_default = || app.hub.registry().default_agent().is_some_and(|default| default.id == agent.id);
    let mut card = match named {
        false => well_known::hub_card(&settings, agent),
        true => well_known::agent_card(&settings, agent, is_default()),
    };
    card.capabilities.extensions = app.hub.extensions(agent);
    card.with_modes_of_skills()
}

/// The extended card where there is one for the caller, else the public one; not signed.
pub fn fullest(app: &App, caller: &Caller, agent: &Agent, named: bool) -> Result<AgentCard, Error> {
    let card = public(app, agent, named);
    match &agent.extended {
        Some(more) if !caller.is_anonymous() => Ok(with_more(card, more, terms(caller, more, &app.hub.limits())?)),
        _ => Ok(card),
    }
}

fn none(agent: &str, dialect: Dialect) -> Refusal {
    let text = format!("The agent '{agent}' has no extended card; its public card says all there is.");
    // In 1.0 the capability is off (spec 3.1.11); 0.3 has only the other error for it.
    let reason = match dialect {
        Dialect::V10 => Reason::UnsupportedOperation,
        Dialect::V03(_) => Reason::ExtendedAgentCardNotConfigured,
    };
    Refusal::new(reason, text)
}

fn with_more(mut card: AgentCard, more: &Extended, terms: AgentExtension) -> AgentCard {
    if let Some(description) = &more.description {
        card.description.clone_from(description);
    }
    card.skills.extend(more.skills.iter().cloned());
    card.documentation_url.clone_from(&more.documentation_url);
    card.provider.clone_from(&more.provider);
    card.capabilities.extensions.push(terms);
    card.with_modes_of_skills()
}

/// Under which name, with which rights and within which limits this caller works; and whom to ask about it.
fn terms(caller: &Caller, more: &Extended, limits: &Limits) -> Result<AgentExtension, Fault> {
    let mut params = Map::new();
    params.insert("caller".into(), json!(caller.name));
    params.insert("scopes".into(), json!(caller.rights.names()));
    if let Some(contact) = &more.contact {
        params.insert("contact".into(), json!(contact));
    }
    let most: Value = json!({
        "requestsPerSecond": limits.requests_per_caller,
        "messagesPerSecond": limits.sends_per_agent,
        "openTasks": limits.open_tasks_per_caller,
        "streams": limits.streams_per_caller,
        "requestBytes": limits.body,
        "parts": limits.parts,
        "partBytes": limits.part_bytes,
        "messagesPerTask": limits.messages_per_task,
        "pushConfigsPerTask": limits.push_configs_per_task,
    });
    params.insert("limits".into(), most);
    let params = Object::of(&params).map_err(|error| Fault::new(format!("encoding the terms of a card: {error}")))?;
    Ok(AgentExtension {
        uri: TERMS.into(),
        description: "What holds for the caller who asked: name, scopes, limits, and whom to ask.".into(),
        required: false,
        params: Some(params),
    })
}
