//! `POST /gopherhole/a2a`: JSON-RPC in the dialect. Its clients read a refusal only where HTTP's status is 200.

use super::stream::Streaming;
use super::{Answered, leaves_to_a2a};
use crate::answer::{self, JSON};
use crate::app::App;
use crate::call::{Answer, perform};
use crate::dialect::Dialect;
use crate::jsonrpc::{ENVELOPE, decode};
use crate::meters::Binding;
use crate::parameters::Parameters;
use crate::{body, caller, sse};
use axum::body::Body;
use flotilla_core::error::{Error, Fault};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::jsonrpc::{self, Envelope};
use http::header::ACCEPT;
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode};
use std::sync::Arc;

pub async fn serve(app: &Arc<App>, request: Request<Body>) -> Response<Body> {
    let (parts, mut body) = request.into_parts();
    let mut id = "null".to_owned();
    match Box::pin(answer(app, &parts, &mut body, &mut id)).await {
        Ok(response) => response,
        Err(error) => {
            let response = refuse(app, &parts.headers, &id, &app.refusal(error));
            answer::after(app, &parts.headers, body, response).await
        }
    }
}

/// A refusal, as a stream where its client reads one.
pub fn refuse(app: &App, asked: &HeaderMap, id: &str, refusal: &Refusal) -> Response<Body> {
    app.meters.refused(Binding::JsonRpc, refusal);
    let error = jsonrpc::error(id, refusal, app.now());
    let accepted = asked.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let response = match accepted.contains("text/event-stream") {
        true => sse::single(&error),
        false => answer::with_type(StatusCode::OK, JSON, error),
    };
    answer::refuse(response, Dialect::V10, refusal)
}

async fn answer(app: &Arc<App>, parts: &Parts, body: &mut Body, id: &mut String) -> Result<Response<Body>, Error> {
    let caller = caller::identify(app, parts).await?;
    let limits = app.hub.limits();
    let bytes = body::read(parts, body, &limits).await?;
    body::check_depth(&bytes, &limits, ENVELOPE)?;
    let envelope = Envelope::parse(&bytes)?;
    envelope.answer_id()?.clone_into(id);
    body::check_type(&parts.headers)?;
    let (name, params) = (envelope.method_name()?, envelope.params_text()?);
    let parameters = Parameters::of(&parts.headers, &parts.uri);
    if let Some(method @ (Method::SendStreamingMessage | Method::SubscribeToTask)) = Method::from_name(&name) {
        let response = Streaming { id, method, params, parameters: &parameters }.open(app, &caller).await;
        return Ok(answer::finish(response, Dialect::V10, None));
    }
    if leaves_to_a2a(&name) {
        let request = decode::request(Dialect::V10, Method::GetExtendedAgentCard, params)?;
        let answered = Box::pin(perform(app, &caller, None, Dialect::V10, &parameters, request)).await?;
        let Answer::Card(card) = answered.answer else { return Err(Fault::new("a card was asked for").into()) };
        let written = jsonrpc::result(id, |out| {
            out.extend_from_slice(&card.json);
            Ok(())
        });
        return finish(written);
    }
    let Answered { result, news } = super::answer(app, &caller, &name, params).await?;
    let response = finish(jsonrpc::result(id, |out| serde_json::to_writer(out, &result)))?;
    Ok(match news {
        Some(news) => response.map(|body| answer::until_written(body, news.after_http())),
        None => response,
    })
}

fn finish(written: Result<Vec<u8>, serde_json::Error>) -> Result<Response<Body>, Error> {
    let written = written.map_err(|error| Fault::new(format!("encoding an answer: {error}")))?;
    Ok(answer::finish(answer::with_type(StatusCode::OK, JSON, written), Dialect::V10, None))
}
