//! gRPC (spec 10) on the same port: one message in, one message or a stream of them out, the status in trailers.

pub mod deadline;
pub mod frame;
mod reflection;
mod services;
mod stream;
mod trailers;

use crate::answer;
use crate::app::App;
use crate::call::{Answer, perform};
use crate::dialect::{self, Dialect};
use crate::meters::Binding;
use crate::parameters::Parameters;
use crate::reading::Reading;
use crate::{body, caller, rest};
use axum::body::Body;
use flotilla_core::error::Error;
use flotilla_grpc::{Reader, SERVICE, Status};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::method::Method;
use http::header::{ALLOW, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method as Verb, Request, Response, StatusCode, Version};
use std::sync::Arc;
use std::time::Instant;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
/// Metadata that names the agent, for callers who cannot set the tenant.
const AGENT: &str = "agent-name";

/// gRPC is told by its media type, whatever the path.
pub fn is_asked(request: &Request<Body>) -> bool {
    request.headers().get(CONTENT_TYPE).is_some_and(|value| {
        let kind = value.as_bytes().strip_prefix(b"application/grpc");
        matches!(kind, Some([] | [b'+' | b';', ..]))
    })
}

/// Serves one call of any service.
pub async fn serve(app: &Arc<App>, service: &str, method: &str, request: Request<Body>) -> Response<Body> {
    if request.method() != Verb::POST {
        let mut response = answer::with_type(StatusCode::METHOD_NOT_ALLOWED, GRPC, Body::empty());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    if request.version() != Version::HTTP_2 {
        return refuse(app, &Refusal::new(Reason::InvalidRequest, "gRPC needs HTTP/2; this request came over HTTP/1."));
    }
    if service != SERVICE {
        return match services::serve(app, service, request).await {
            Some(response) => response,
            None => no_such_service(app, service),
        };
    }
    match Method::from_name(method) {
        Some(method) => call(app, method, request).await,
        None => no_such_method(app, method),
    }
}

async fn call(app: &Arc<App>, method: Method, request: Request<Body>) -> Response<Body> {
    let started = Instant::now();
    let (parts, mut body) = request.into_parts();
    let deadline = match deadline::of(&parts.headers) {
        Ok(deadline) => deadline,
        Err(refusal) => return refuse(app, &refusal),
    };
    let answered = answer(app, method, &parts, &mut body, deadline.map(|left| started + left));
    let answered = match deadline {
        // What was begun goes on without the caller: a deadline is theirs, not the task's.
        Some(left) => match tokio::time::timeout(left, answered).await {
            Ok(answered) => answered,
            Err(_) => return refuse(app, &deadline::exceeded()),
        },
        None => answered.await,
    };
    match answered {
        Ok(response) => {
            app.meters.served(Binding::Grpc, method, started);
            response
        }
        Err(error) => refuse(app, &app.refusal(error)),
    }
}

async fn answer(
    app: &Arc<App>,
    method: Method,
    parts: &Parts,
    body: &mut Body,
    deadline: Option<Instant>,
) -> Result<Response<Body>, Error> {
    let caller = caller::identify(app, parts).await?;
    let parameters = Parameters::of(&parts.headers, &parts.uri);
    dialect::check(Dialect::V10.version(), &parameters)?;
    let limits = app.hub.limits();
    let bytes = body::read(&parts.headers, body, &limits).await?;
    let message = frame::only(&parts.headers, bytes)?;
    let request = Reader { json_depth: limits.json_depth }.request(method, &message)?;
    let answered = perform(app, &caller, named_agent(&parts.headers)?, Dialect::V10, &parameters, request).await?;
    let response = match answered.answer {
        Answer::Task(task) => frame::response(&flotilla_grpc::task(&task)),
        Answer::Sent(sent) => frame::response(&flotilla_grpc::sent(&sent)),
        Answer::List(list) => frame::response(&flotilla_grpc::list(&list)),
        Answer::PushConfig(config) => frame::response(&flotilla_grpc::push_config(&config)),
        Answer::PushConfigs(list) => frame::response(&flotilla_grpc::push_list(&list)),
        Answer::Card(signed) => frame::response(&flotilla_grpc::card(&signed.card)),
        Answer::Empty => frame::response(&()),
        Answer::Stream(follow, leave) => stream::respond(Reading::new(app, leave, follow), deadline),
    };
    Ok(answer::finish(response, Dialect::V10, answered.extensions))
}

fn named_agent(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let unreadable = || Refusal::invalid(AGENT, "must be the name of an agent");
    headers.get(AGENT).map(|value| value.to_str().map_err(|_| unreadable())).transpose()
}

/// A refusal in this binding's form.
pub fn refuse(app: &App, refusal: &Refusal) -> Response<Body> {
    app.meters.refused(Binding::Grpc, refusal);
    answer::finish(trailers::only(&Status::of(refusal, app.now())), Dialect::V10, None)
}

/// The service's paths speak nothing but gRPC; HTTP has a status for that.
pub fn not_grpc(app: &App) -> Response<Body> {
    let text = format!("{SERVICE} speaks gRPC: send application/grpc over HTTP/2, or use another binding.");
    rest::refuse(app, &Refusal::new(Reason::MediaTypeNotSupported, text))
}

fn no_such_service(app: &App, service: &str) -> Response<Body> {
    let shown: String = service.chars().take(100).collect();
    let text = format!("There is no service '{shown}' here. There is {SERVICE}; ask reflection for the others.");
    refuse(app, &Refusal::new(Reason::MethodNotFound, text))
}

fn no_such_method(app: &App, method: &str) -> Response<Body> {
    let known: Vec<&str> = Method::ALL.into_iter().map(Method::name).collect();
    let shown: String = method.chars().take(80).collect();
    let text = format!("There is no method '{shown}'. A2A 1.0 has: {}.", known.join(", "));
    refuse(app, &Refusal::new(Reason::MethodNotFound, text))
}
