//! gRPC (spec 10) on the same port: one message in, one message or a stream of them out, the status in trailers.

pub mod deadline;
pub mod frame;
mod reflection;
mod services;
mod speech;
mod stream;
mod trailers;

use crate::answer;
use crate::app::App;
use crate::call::{Answer, perform};
use crate::dialect;
use crate::meters::Binding;
use crate::parameters::Parameters;
use crate::reading::Reading;
use crate::{body, caller, rest, well_known};
use axum::body::Body;
use flotilla_core::error::Error;
use flotilla_grpc::{SERVICE, v03};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::method::Method;
use http::header::{ALLOW, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method as Verb, Request, Response, StatusCode, Version};
use speech::Speech;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
/// Metadata that names the agent, for callers who cannot set the tenant.
static AGENT: HeaderName = HeaderName::from_static("agent-name");

/// gRPC is told by its media type, whatever the path.
pub fn is_asked(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| {
        let kind = value.as_bytes().strip_prefix(b"application/grpc");
        matches!(kind, Some([] | [b'+' | b';', ..]))
    })
}

/// Serves one call of any service, in a box that is as large as it needs.
pub fn serve<'a>(
    app: &'a Arc<App>,
    service: &'a str,
    method: &str,
    request: Request<Body>,
) -> Pin<Box<dyn Future<Output = Response<Body>> + Send + 'a>> {
    let at_once = |response| -> Pin<Box<dyn Future<Output = _> + Send>> { Box::pin(std::future::ready(response)) };
    if request.method() != Verb::POST {
        let mut response = answer::with_type(StatusCode::METHOD_NOT_ALLOWED, GRPC, Body::empty());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return at_once(response);
    }
    if request.version() != Version::HTTP_2 {
        let refusal = Refusal::new(Reason::InvalidRequest, "gRPC needs HTTP/2; this request came over HTTP/1.");
        return at_once(refuse(app, &refusal));
    }
    let Some(speech) = Speech::of(service, request.headers()) else {
        return match services::methods(service) {
            Some(known) if known.contains(&method) => Box::pin(services::serve(app, service, request)),
            Some(known) => at_once(refuse(app, &no_method(method, service, known))),
            None => at_once(no_such_service(app, service)),
        };
    };
    match speech.method(method) {
        Some(method) => Box::pin(call(app, speech, method, request)),
        None => at_once(no_such_method(app, speech, method)),
    }
}

async fn call(app: &Arc<App>, speech: Speech, method: Method, request: Request<Body>) -> Response<Body> {
    let started = Instant::now();
    let (parts, mut body) = request.into_parts();
    let deadline = match deadline::of(&parts.headers) {
        Ok(deadline) => deadline,
        Err(refusal) => return refuse_in(app, speech, &refusal),
    };
    if deadline.is_some_and(|left| left.is_zero()) {
        return refuse_in(app, speech, &deadline::over_before());
    }
    let answered = answer(app, speech, method, &parts, &mut body, deadline.map(|left| started + left));
    let answered = match deadline {
        // What was begun goes on without the caller: a deadline is theirs, not the task's.
        Some(left) => match tokio::time::timeout(left, answered).await {
            Ok(answered) => answered,
            Err(_) => return refuse_in(app, speech, &deadline::exceeded()),
        },
        None => answered.await,
    };
    match answered {
        Ok(response) => {
            app.meters.served(Binding::Grpc, method, started);
            response
        }
        Err(error) => refuse_in(app, speech, &app.refusal(error)),
    }
}

async fn answer(
    app: &Arc<App>,
    speech: Speech,
    method: Method,
    parts: &Parts,
    body: &mut Body,
    deadline: Option<Instant>,
) -> Result<Response<Body>, Error> {
    // The card of 0.3 is there without a key too.
    if let (Speech::V03(_), Method::GetExtendedAgentCard) = (speech, method) {
        return Box::pin(old_card(app, speech, parts, body)).await;
    }
    let caller = caller::identify(app, parts).await?;
    let parameters = Parameters::of(&parts.headers, &parts.uri);
    dialect::check(speech.dialect().version(), &parameters)?;
    let limits = app.hub.limits();
    let bytes = body::read(parts, body, &limits).await?;
    let message = frame::only(&parts.headers, bytes)?;
    let request = speech.request(method, &message, limits.json_depth)?;
    let agent = named_agent(&parts.headers)?;
    let answered = perform(app, &caller, agent, speech.dialect(), &parameters, request).await?;
    let response = match answered.answer {
        Answer::Stream(follow, leave) => stream::respond(Reading::new(app, leave, follow), speech, deadline),
        whole => speech.response(whole),
    };
    Ok(answer::finish(response, speech.dialect(), answered.extensions))
}

/// GetAgentCard of 0.3.
async fn old_card(app: &App, speech: Speech, parts: &Parts, body: &mut Body) -> Result<Response<Body>, Error> {
    dialect::check(speech.dialect().version(), &Parameters::of(&parts.headers, &parts.uri))?;
    let bytes = body::read(parts, body, &app.hub.limits()).await?;
    frame::only(&parts.headers, bytes)?;
    let shown = well_known::for_03(app, parts, named_agent(&parts.headers)?).await?;
    Ok(answer::finish(frame::response(&v03::card(&shown.card)), speech.dialect(), None))
}

fn named_agent(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let mut named = headers.get_all(&AGENT).iter();
    let Some(name) = named.next().filter(|name| !name.is_empty()) else { return Ok(None) };
    if named.any(|other| other != name) {
        return Err(Refusal::invalid(AGENT.as_str(), "names several agents: send it once"));
    }
    name.to_str().map(Some).map_err(|_| Refusal::invalid(AGENT.as_str(), "must be the name of an agent"))
}

/// A refusal in this binding's form.
pub fn refuse(app: &App, refusal: &Refusal) -> Response<Body> {
    refuse_in(app, Speech::V10, refusal)
}

fn refuse_in(app: &App, speech: Speech, refusal: &Refusal) -> Response<Body> {
    app.meters.refused(Binding::Grpc, refusal);
    let mut response = trailers::only(&speech.status(refusal, app.now()));
    if refusal.reason == Reason::CompressionNotSupported {
        // gRPC has clients read here what to send instead.
        response.headers_mut().insert("grpc-accept-encoding", HeaderValue::from_static("identity"));
    }
    answer::finish(response, speech.dialect(), None)
}

/// The service's paths speak nothing but gRPC; HTTP has a status for that.
pub fn not_grpc(app: &App, service: &str) -> Response<Body> {
    let text = format!("{service} speaks gRPC: send application/grpc over HTTP/2, or use another binding.");
    rest::refuse(app, &Refusal::new(Reason::MediaTypeNotSupported, text))
}

fn no_such_service(app: &App, service: &str) -> Response<Body> {
    let shown: String = service.chars().take(100).collect();
    let text = format!(
        "There is no service '{shown}' here. There is {SERVICE}, and {} for A2A 0.3; \
         ask reflection for the others.",
        v03::SERVICE
    );
    refuse(app, &Refusal::new(Reason::MethodNotFound, text))
}

fn no_such_method(app: &App, speech: Speech, method: &str) -> Response<Body> {
    let known: Vec<&str> = Method::ALL.into_iter().filter_map(|method| speech.name(method)).collect();
    let version = format!("A2A {}", speech.dialect().version().name());
    refuse_in(app, speech, &no_method(method, &version, &known))
}

fn no_method(method: &str, of: &str, known: &[&str]) -> Refusal {
    let shown: String = method.chars().take(80).collect();
    let text = format!("There is no method '{shown}'. {of} has: {}.", known.join(", "));
    Refusal::new(Reason::MethodNotFound, text)
}
