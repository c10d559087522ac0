//! `/api/announce`: agents elsewhere that others say are there, each for as long as its lease.

use crate::agents::signature_of;
use crate::answer::{self, JSON, with_type};
use crate::app::App;
use crate::{body, caller, rest};
use axum::body::Body;
use flotilla_core::caller::Caller;
use flotilla_core::error::Error;
use flotilla_core::hub::lease::{LONGEST, SHORTEST, Standing};
use flotilla_protocol::a2a::error::Refusal;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The usual lease, and that of a card which is posted as it is: nobody says of those that they are still there.
const USUAL: Duration = Duration::from_secs(90);
const OF_A_CARD: Duration = LONGEST;
/// Agents that are announced at once.
const MOST: usize = 100;
/// What may be said of an agent; the rest is its card's to say.
const MEMBERS: [&str; 5] = ["name", "url", "card", "auth", "visibility"];

/// What somebody announces.
#[derive(Debug, PartialEq)]
pub struct Announcement {
    /// Each with its settings, or what is wrong with it: that concerns no other.
    pub agents: Vec<(String, Result<Value, Refusal>)>,
    pub term: Duration,
}

/// Serves what is below `/api/announce`.
pub async fn serve(app: &Arc<App>, path: &[&str], request: Request<Body>) -> Response<Body> {
    let (parts, mut body) = request.into_parts();
    let response = match (&parts.method, path) {
        (&Method::GET | &Method::HEAD, []) => list(app, &parts).await,
        (&Method::POST, []) => announce(app, &parts, &mut body).await,
        (_, path) => withdraw(app, &parts, path.first().copied().unwrap_or_default()).await,
    };
    let response = response.unwrap_or_else(|error| rest::refuse(app, &app.refusal(error)));
    answer::after(app, &parts.headers, body, response).await
}

async fn identify(app: &App, request: &Parts) -> Result<Caller, Error> {
    let caller = caller::identify(app, request).await?;
    app.hub.count_request(caller.principal)?;
    Ok(caller)
}

async fn announce(app: &Arc<App>, request: &Parts, body: &mut Body) -> Result<Response<Body>, Error> {
    let caller = identify(app, request).await?;
    let limits = app.hub.limits();
    let bytes = body::read(request, body, &limits).await?;
    body::check_depth(&bytes, &limits, 0)?;
    let Announcement { agents, term } = read(&bytes)?;
    let (mut announced, mut refused, mut first) = (Vec::new(), Vec::new(), None);
    for (name, said) in agents {
        let told = match said {
            Ok(said) => app.hub.announce(&caller, &name, &said.to_string(), term).await,
            Err(refusal) => Err(refusal.into()),
        };
        match told {
            Ok(agent) => announced.push(json!({"name": agent.name, "leaseSeconds": term.as_secs()})),
            Err(error) => {
                let refusal = app.refusal(error);
                let reason = refusal.reason.row().reason;
                refused.push(json!({"name": name, "reason": reason, "message": refusal.message}));
                first.get_or_insert(refusal);
            }
        }
    }
    match first {
        Some(refusal) if announced.is_empty() => Err(refusal.into()),
        _ => {
            app.cards_changed();
            let answer = json!({"agents": announced, "refused": refused});
            Ok(with_type(StatusCode::OK, JSON, answer.to_string()))
        }
    }
}

/// Either our own form, or a card as it is.
pub fn read(bytes: &[u8]) -> Result<Announcement, Refusal> {
    let said: Value = serde_json::from_slice(bytes).map_err(|error| Refusal::invalid("", error.to_string()))?;
    let Value::Object(said) = said else {
        return Err(Refusal::invalid("", "must be an object with 'agents', or an agent's card"));
    };
    let Some(agents) = said.get("agents") else { return of_card(&said) };
    if let Some(other) = said.keys().find(|key| !matches!(key.as_str(), "agents" | "leaseSeconds")) {
        return Err(Refusal::invalid(other, "is not known here; there are agents and leaseSeconds"));
    }
    let term = match said.get("leaseSeconds") {
        None => USUAL,
        Some(seconds) => seconds
            .as_u64()
            .map(Duration::from_secs)
            .filter(|term| (SHORTEST..=LONGEST).contains(term))
            .ok_or_else(|| Refusal::invalid("leaseSeconds", "must be from 1 to 86400"))?,
    };
    let agents = agents.as_array().filter(|agents| (1..=MOST).contains(&agents.len()));
    let agents = agents.ok_or_else(|| Refusal::invalid("agents", format!("must be a list of 1 to {MOST} agents")))?;
    let name = |agent: &Value| agent["name"].as_str().unwrap_or_default().to_owned();
    let agents = agents.iter().enumerate().map(|(index, agent)| (name(agent), settings(index, agent))).collect();
    Ok(Announcement { agents, term })
}

/// What is said of one agent, as its settings.
fn settings(index: usize, agent: &Value) -> Result<Value, Refusal> {
    let at = |name: &str| format!("agents[{index}].{name}");
    let Value::Object(members) = agent else {
        return Err(Refusal::invalid(&format!("agents[{index}]"), "must be an object"));
    };
    if let Some(other) = members.keys().find(|key| !MEMBERS.contains(&key.as_str())) {
        return Err(Refusal::invalid(&at(other), format!("is not known here; there are {}", MEMBERS.join(", "))));
    }
    if !members.get("name").is_some_and(Value::is_string) {
        return Err(Refusal::invalid(&at("name"), "is required, and must be a text"));
    }
    let mut settings = members.clone();
    settings.remove("name");
    if let Some(Value::Object(card)) = settings.get("card") {
        let problem = "must be the address of a card, or a card that names the address of an interface";
        let place = place(card).ok_or_else(|| Refusal::invalid(&at("card"), problem))?;
        settings.remove("card");
        settings.entry("url").or_insert(place.into());
    }
    Ok(Value::Object(settings))
}

fn text(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str)
}

/// A card does not say where it is; it is looked for at the address it names for calls.
fn place(card: &Map<String, Value>) -> Option<String> {
    let interface = ["supportedInterfaces", "supported_interfaces"].iter().find_map(|key| card.get(*key)?.get(0));
    let address = text(card.get("url")).or_else(|| text(interface?.get("url")))?.trim_end_matches('/');
    let base = ["/a2a", "/jsonrpc", "/rpc"].iter().find_map(|end| address.strip_suffix(end));
    Some(base.unwrap_or(address).to_owned())
}

fn of_card(card: &Map<String, Value>) -> Result<Announcement, Refusal> {
    let (Some(name), Some(base)) = (text(card.get("name")), place(card)) else {
        let problem = "must have 'agents', or be an agent's card with a name and the address of an interface";
        return Err(Refusal::invalid("", problem));
    };
    let fits = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let name: String = name.trim().to_lowercase().chars().map(fits).take(64).collect();
    Ok(Announcement { agents: vec![(name, Ok(json!({"url": base})))], term: OF_A_CARD })
}

async fn list(app: &Arc<App>, request: &Parts) -> Result<Response<Body>, Error> {
    let caller = identify(app, request).await?;
    let agents = app.hub.announced(&caller)?.into_iter().map(|(agent, standing)| {
        let (state, seconds) = match standing {
            Standing::Held(left) => ("announced", Some(left.as_secs())),
            Standing::Late => ("stale", None),
            Standing::Over => ("gone", None),
        };
        let mut shown = json!({"name": agent.name, "state": state});
        if let Some(seconds) = seconds {
            shown["secondsLeft"] = seconds.into();
        }
        if let Some(signature) = signature_of(app, &agent) {
            shown["signature"] = signature;
        }
        shown
    });
    let answer = json!({"agents": agents.collect::<Vec<Value>>()});
    Ok(with_type(StatusCode::OK, JSON, answer.to_string()))
}

async fn withdraw(app: &Arc<App>, request: &Parts, name: &str) -> Result<Response<Body>, Error> {
    let caller = identify(app, request).await?;
    app.hub.withdraw(&caller, name).await?;
    app.cards_changed();
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::{OF_A_CARD, USUAL, read};
    use serde_json::json;

    #[test]
    fn announcements_are_read_and_slips_are_told() {
        let read = |value: serde_json::Value| read(value.to_string().as_bytes());
        let own = read(json!({"agents": [{"name": "a", "card": "https://h/c.json"}]})).unwrap();
        assert_eq!((own.agents[0].0.as_str(), own.term), ("a", USUAL));
        assert_eq!(own.agents[0].1, Ok(json!({"card": "https://h/c.json"})));
        let inline = read(json!({"agents": [{"name": "a", "card": {"name": "b", "url": "https://h/x/a2a"}}]})).unwrap();
        assert_eq!(inline.agents[0], ("a".into(), Ok(json!({"url": "https://h/x"}))));
        let hermes = json!({"name": "My Agent", "url": "http://h:8081/", "protocol": "a2a", "skills": []});
        let card = read(hermes).unwrap();
        assert_eq!(
            (card.agents[0].clone(), card.term),
            (("my-agent".into(), Ok(json!({"url": "http://h:8081"}))), OF_A_CARD)
        );
        let new =
            json!({"name": "n", "supportedInterfaces": [{"url": "https://h/x/a2a", "protocolBinding": "JSONRPC"}]});
        assert_eq!(read(new).unwrap().agents[0].1, Ok(json!({"url": "https://h/x"})));
        for (wrong, word) in [
            (json!({"name": "a", "kind": "echo"}), "kind"),
            (json!({"url": "x"}), "required"),
            (json!({"name": 7}), "required"),
            (json!({"name": "a", "card": {"name": "b"}}), "address of a card"),
            (json!("a"), "object"),
        ] {
            let both = read(json!({"agents": [wrong, {"name": "good", "url": "https://h"}]})).unwrap().agents;
            let told = format!("{:?}", both[0].1);
            assert!(told.contains(word) && both[1].1.is_ok(), "{wrong}: {told}");
        }
        for (wrong, word) in [
            (json!({"agents": []}), "1 to 100"),
            (json!({"agents": [{"name": "a"}], "leaseSeconds": 0}), "86400"),
            (json!({"agents": [{"name": "a"}], "ttl": 1}), "ttl"),
            (json!({"name": "a"}), "card"),
            (json!([]), "object"),
        ] {
            let told = format!("{:?}", read(wrong.clone()).unwrap_err());
            assert!(told.contains(word), "{wrong}: {told}");
        }
    }
}
