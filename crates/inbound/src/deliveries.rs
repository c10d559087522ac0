//! The owner's view of webhooks: where each stands, every attempt made, and a way to try again or stop.

use crate::answer::{self, JSON, with_type};
use crate::app::App;
use crate::asked::check;
use crate::parameters::query;
use crate::{body, caller, rest, route};
use axum::body::Body;
use flotilla_core::error::{Error, Fault};
use flotilla_core::push::{Attempt, Hook};
use flotilla_core::rights::Right;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::push::PushOptions;
use flotilla_protocol::time::Millis;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use serde::Serialize;
use std::num::NonZeroU64;
use std::sync::Arc;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Delivery<'a> {
    id: String,
    task_id: String,
    config_id: &'a str,
    url: String,
    state: &'static str,
    created_at: Millis,
    /// The last event that is told; the next one is what is tried.
    cursor: u64,
    /// Attempts so far, and how many of the last ones failed in a row.
    attempt_count: u64,
    failures: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<Millis>,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    options: PushOptions,
    /// The A2A version its webhooks are written in.
    version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<Vec<Try<'a>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Try<'a> {
    number: u64,
    webhook_id: String,
    at: Millis,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    delivered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<Millis>,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    deliveries: Vec<Delivery<'a>>,
    /// Where the next page starts; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_before: Option<String>,
}

fn shown<'a>(hook: &'a Hook, attempts: Option<&'a [Attempt]>) -> Delivery<'a> {
    let attempt = |attempt: &'a Attempt| Try {
        number: attempt.number,
        webhook_id: hook.webhook_id(attempt.peer_seq),
        at: attempt.at,
        duration_ms: attempt.millis,
        status: attempt.status,
        delivered: attempt.delivered,
        next_attempt_at: attempt.next_at,
        reason: &attempt.reason,
    };
    Delivery {
        id: hook.uid.to_string(),
        task_id: hook.task.to_string(),
        config_id: &hook.id,
        url: hook.target.shown_url(),
        state: hook.state.name(),
        created_at: hook.created_at,
        cursor: hook.cursor,
        attempt_count: hook.attempts,
        failures: hook.failures,
        next_attempt_at: hook.next_at,
        reason: &hook.reason,
        options: hook.options,
        version: hook.version.name(),
        attempts: attempts.map(|all| all.iter().map(attempt).collect()),
    }
}

/// What a path below `/api/deliveries` and a verb ask for.
enum Asked<'a> {
    List,
    Show(&'a str),
    Redeliver(&'a str),
    Disable(&'a str),
}

impl<'a> Asked<'a> {
    /// Or the verbs that the path takes.
    fn of(verb: &Method, rest: &[&'a str]) -> Result<Self, &'static str> {
        let get = matches!(*verb, Method::GET | Method::HEAD);
        let post = *verb == Method::POST;
        match rest {
            [one] => match one.split_once(':') {
                Some((id, "redeliver")) if post => Ok(Self::Redeliver(id)),
                Some((id, "disable")) if post => Ok(Self::Disable(id)),
                Some((_, "redeliver" | "disable")) => Err("POST"),
                _ if get => Ok(Self::Show(one)),
                _ => Err("GET, HEAD"),
            },
            _ if get => Ok(Self::List),
            _ => Err("GET, HEAD"),
        }
    }

    /// The query's names it knows.
    fn known(&self) -> &'static [&'static str] {
        match self {
            Self::List => &["state", "task", "agent", "before"],
            Self::Redeliver(_) => &["from"],
            Self::Show(_) | Self::Disable(_) => &[],
        }
    }
}

/// `/api/deliveries`, `/api/deliveries/{id}`, and `:redeliver` and `:disable` behind it.
pub async fn serve(app: &Arc<App>, rest: &[&str], request: Request<Body>) -> Response<Body> {
    let (parts, mut body) = request.into_parts();
    let response = match Asked::of(&parts.method, rest) {
        Ok(asked) => answer(app, asked, &parts, &mut body).await,
        Err(allowed) => Ok(route::wrong_verb(app, &parts, allowed)),
    };
    let response = response.unwrap_or_else(|error| rest::refuse(app, &app.refusal(error)));
    answer::after(app, &parts.headers, body, response).await
}

/// What is to be done stands in the path and the query: a body that says more would be passed over.
async fn check_body(app: &App, request: &Parts, body: &mut Body) -> Result<(), Refusal> {
    let bytes = body::read(request, body, &app.hub.limits()).await?;
    match bytes.trim_ascii() {
        b"" | b"{}" => Ok(()),
        _ => Err(Refusal::invalid("body", "must be empty; what to deliver again stands in the query, as ?from=N")),
    }
}

async fn answer(app: &Arc<App>, asked: Asked<'_>, request: &Parts, body: &mut Body) -> Result<Response<Body>, Error> {
    let caller = caller::identify(app, request).await?;
    caller.check(match asked {
        Asked::List | Asked::Show(_) => Right::TasksRead,
        Asked::Redeliver(_) | Asked::Disable(_) => Right::PushWrite,
    })?;
    check(asked.known(), &request.uri)?;
    if request.method == Method::POST {
        check_body(app, request, body).await?;
    }
    let value = |name: &str| query(&request.uri).find(|(known, _)| known == name).map(|(_, value)| value.into_owned());
    match asked {
        Asked::List => {
            let [state, task, agent, before] = ["state", "task", "agent", "before"].map(value);
            let [state, task, agent, before] = [&state, &task, &agent, &before].map(Option::as_deref);
            let page = app.hub.hook_page(&caller, state, task, agent, before).await?;
            let deliveries = page.hooks.iter().map(|hook| shown(hook, None)).collect();
            encode(&Page { deliveries, next_before: page.next.map(|id| id.to_string()) })
        }
        Asked::Show(id) => {
            let (hook, attempts) = app.hub.hook(&caller, id).await?;
            encode(&shown(&hook, Some(&attempts)))
        }
        Asked::Redeliver(id) => {
            let wrong = |_| Refusal::invalid("from", "must be the number of an event, from 1 on");
            let from = value("from").map(|text| text.parse::<NonZeroU64>()).transpose().map_err(wrong)?;
            encode(&shown(&app.hub.redeliver(&caller, id, from.map(NonZeroU64::get)).await?, None))
        }
        Asked::Disable(id) => encode(&shown(&app.hub.disable_hook(&caller, id).await?, None)),
    }
}

fn encode<T: Serialize>(value: &T) -> Result<Response<Body>, Error> {
    let body = serde_json::to_vec(value).map_err(|error| Fault::new(format!("encoding deliveries: {error}")))?;
    Ok(with_type(StatusCode::OK, JSON, body))
}
