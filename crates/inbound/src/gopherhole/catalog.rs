//! The registry, as clients of the dialect look for agents in it.

use crate::agents::signature_of;
use crate::app::App;
use flotilla_core::caller::Caller;
use flotilla_core::registry::{Agent, Liveness, Visibility, takes_or_makes};
use flotilla_core::relevance::Need;
use flotilla_core::rights::Right;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::gopherhole::Search;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many are shown where nobody says.
const USUAL: usize = 50;
const MOST: usize = 500;

/// Agents a caller can talk to: those of its workspace, and public ones if they are asked for.
pub fn available(app: &App, caller: &Caller, search: &Search) -> Result<Value, Refusal> {
    caller.check(Right::AgentsRead)?;
    let public = search.public || search.query.is_some();
    let registry = app.hub.registry();
    let seen = registry.agents().filter(|agent| is_listed(app, caller, agent) && fits(app, agent, search));
    let seen = seen.filter(|agent| public || agent.workspace == caller.workspace);
    let agents: Vec<Value> = seen.take(MOST).map(|agent| entry(app, caller, agent)).collect();
    Ok(json!({"agents": agents}))
}

/// Public agents, page by page.
pub fn discover(app: &App, caller: &Caller, search: &Search) -> Result<Value, Refusal> {
    caller.check(Right::AgentsRead)?;
    let registry = app.hub.registry();
    let mut found: Vec<&Arc<Agent>> =
        registry.agents().filter(|agent| is_listed(app, caller, agent) && fits(app, agent, search)).collect();
    if let Some(query) = &search.query {
        // Whoever takes the first one takes the best.
        let need = Need::of(query);
        found.sort_by_key(|agent| (!agent.name.eq_ignore_ascii_case(query), Reverse(need.score(agent))));
    }
    let (offset, limit) = (search.offset.unwrap_or(0), search.limit.unwrap_or(USUAL).min(MOST));
    let page: Vec<Value> = found.iter().skip(offset).take(limit).map(|agent| entry(app, caller, agent)).collect();
    Ok(json!({"agents": page, "count": found.len(), "offset": offset}))
}

/// Those a caller sees, but who is gone.
fn is_listed(app: &App, caller: &Caller, agent: &Agent) -> bool {
    agent.is_seen_by(caller) && app.hub.liveness(agent) != Liveness::Gone
}

/// The tags of skills, each with the number of agents that have it.
pub fn categories(app: &App, caller: &Caller) -> Result<Value, Refusal> {
    caller.check(Right::AgentsRead)?;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for agent in app.hub.registry().agents().filter(|agent| is_listed(app, caller, agent)) {
        let tags: BTreeSet<&String> = agent.skills.iter().flat_map(|skill| &skill.tags).collect();
        for tag in tags {
            *counts.entry(tag.clone()).or_default() += 1;
        }
    }
    let told = counts.into_iter().map(|(name, count)| json!({"name": name, "count": count}));
    Ok(json!({"categories": told.collect::<Vec<Value>>()}))
}

/// Nobody is put forward here.
pub fn featured(caller: &Caller) -> Result<Value, Refusal> {
    caller.check(Right::AgentsRead)?;
    Ok(json!({"featured": []}))
}

/// What is told of how an agent did, where nothing is: its callers' tasks are theirs.
pub fn stats() -> Value {
    json!({"avgRating": 0, "ratingCount": 0, "totalMessages": 0, "successRate": 0, "avgResponseTime": 0})
}

fn fits(app: &App, agent: &Agent, search: &Search) -> bool {
    let holds = |text: &str, words: &str| text.to_lowercase().contains(&words.to_lowercase());
    let query = search.query.as_deref().filter(|query| !query.is_empty()).is_none_or(|query| {
        let skills = agent.skills.iter().any(|skill| {
            holds(&skill.name, query)
                || holds(&skill.description, query)
                || skill.tags.iter().any(|tag| holds(tag, query))
        });
        holds(&agent.name, query) || holds(&agent.description, query) || skills
    });
    let tagged = |wanted: &Option<String>| {
        wanted.as_deref().is_none_or(|wanted| {
            agent.skills.iter().any(|skill| skill.tags.iter().any(|tag| tag.eq_ignore_ascii_case(wanted)))
        })
    };
    let takes = search.content_mode.as_ref().is_none_or(|wanted| takes_or_makes(agent, wanted));
    let owner = search.owner.as_ref().or(search.organization.as_ref());
    let owned = owner.is_none_or(|owner| owner.eq_ignore_ascii_case(&app.settings().name));
    let all = [&search.tag, &search.skill_tag, &search.category].into_iter().all(tagged);
    query && all && takes && owned && search.verified != Some(true)
}

pub fn entry(app: &App, caller: &Caller, agent: &Agent) -> Value {
    let own = agent.workspace == caller.workspace;
    let access = if own { "same-tenant" } else { "public" };
    let tags: Vec<&String> = agent.skills.iter().flat_map(|skill| &skill.tags).collect();
    let state = app.hub.liveness(agent);
    let is_away = matches!(state, Liveness::Unreachable | Liveness::Absent | Liveness::Gone);
    let mut entry = json!({
        "id": agent.name,
        "name": agent.name,
        "description": agent.description,
        "tenantName": app.settings().name,
        "tenantSlug": "",
        "verified": false,
        "accessType": access,
        "autoApprove": true,
        "tags": tags,
        // Its clients count on these, whether there is anything to tell or not.
        "category": tags.first(),
        "pricing": "free",
        "avgRating": 0,
        "ratingCount": 0,
        "websiteUrl": null,
        "docsUrl": null,
        "skills": agent.skills,
        "connected": !is_away && agent.link.absence().is_none(),
        "state": state.name(),
        "public": agent.visibility == Visibility::Public,
        "url": format!("{}/agents/{}", app.settings().public_url, agent.name),
    });
    if let Some(signature) = signature_of(app, agent) {
        entry["signature"] = signature;
    }
    entry
}
