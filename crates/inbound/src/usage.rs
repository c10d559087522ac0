//! The owner's view of the ledger: what their agents used, by task, agent, context, workspace or day.

use crate::answer::{JSON, with_type};
use crate::app::App;
use crate::asked::{check, value};
use crate::{caller, rest};
use axum::body::Body;
use flotilla_core::error::{Error, Fault};
use flotilla_core::hub::UsageQuery;
use flotilla_core::rights::Right;
use flotilla_core::usage::Sum;
use flotilla_protocol::usage::{NAMES, Usage};
use http::request::Parts;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;

const KNOWN: [&str; 6] = ["by", "since", "until", "task", "agent", "context"];

/// `GET /api/usage?by=agent&since=2026-01-31`.
pub async fn show(app: &Arc<App>, request: &Parts) -> Response<Body> {
    answered(app, request).await.unwrap_or_else(|error| rest::refuse(app, &app.refusal(error)))
}

async fn answered(app: &Arc<App>, request: &Parts) -> Result<Response<Body>, Error> {
    let caller = caller::identify(app, request).await?;
    caller.check(Right::TasksRead)?;
    check(&KNOWN, &request.uri)?;
    let [by, since, until, task, agent, context] = KNOWN.map(|name| value(&request.uri, name));
    let query = UsageQuery { by, since, until, task, agent, context };
    let report = app.hub.usage(&caller, query).await?;
    let mut total = Usage::default();
    report.sums.iter().for_each(|sum| total.add(&sum.usage));
    let sums: Vec<Value> = report.sums.iter().map(shown).collect();
    let answer = json!({"by": report.by.name(), "usage": sums, "total": figures(&total), "more": report.more});
    let body = serde_json::to_vec(&answer).map_err(|error| Fault::new(format!("encoding usage: {error}")))?;
    Ok(with_type(StatusCode::OK, JSON, body))
}

fn shown(sum: &Sum) -> Value {
    let mut shown = figures(&sum.usage);
    shown["key"] = sum.key.as_str().into();
    shown["tasks"] = sum.tasks.into();
    shown
}

/// What is not known is null.
pub fn figures(usage: &Usage) -> Value {
    let mut shown = json!({"reports": usage.reports, "totalTokens": usage.tokens(), "incomplete": usage.incomplete()});
    for (index, name) in NAMES.into_iter().enumerate() {
        shown[name] = usage.shown(index);
    }
    shown
}
