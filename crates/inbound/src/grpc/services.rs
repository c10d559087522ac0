//! The services beside A2A's own: health, and reflection in both versions clients ask for.

use super::reflection::Reflection;
use crate::app::App;
use crate::health;
use axum::body::Body;
use flotilla_grpc::{SERVICE, v03};
use futures_util::{Stream, stream};
use http::{Request, Response, Uri};
use std::pin::Pin;
use std::sync::Arc;
use tonic::{Status, async_trait};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_reflection::pb::v1::server_reflection_server::ServerReflectionServer;
use tower::ServiceExt as _;

const HEALTH: &str = "grpc.health.v1.Health";
const REFLECTION: &str = "grpc.reflection.v1.ServerReflection";
const OLDER_REFLECTION: &str = "grpc.reflection.v1alpha.ServerReflection";
/// The largest message of a call, in bytes: these calls need no key, and no budget counts them.
const MOST: usize = 4096;
const REFLECT: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

/// What a service here can do; none if it is none of these.
pub fn methods(service: &str) -> Option<&'static [&'static str]> {
    match service {
        HEALTH => Some(&["Check", "Watch"]),
        REFLECTION | OLDER_REFLECTION => Some(&["ServerReflectionInfo"]),
        _ => None,
    }
}

/// Serves a call of one of these methods.
pub async fn serve(app: &Arc<App>, service: &str, mut request: Request<Body>) -> Response<Body> {
    if service == HEALTH {
        let server = HealthServer::new(Readiness(Arc::clone(app))).max_decoding_message_size(MOST);
        let Ok(response) = server.oneshot(request).await;
        return response.map(Body::new);
    }
    if service == OLDER_REFLECTION {
        // The two differ in their name alone: the messages and their numbers are the same.
        *request.uri_mut() = Uri::from_static(REFLECT);
    }
    let server = ServerReflectionServer::new(Reflection(Arc::clone(app))).max_decoding_message_size(MOST);
    let Ok(response) = server.oneshot(request).await;
    response.map(Body::new)
}

/// The same answer as `/readyz`, for gRPC's own probes.
struct Readiness(Arc<App>);

impl Readiness {
    async fn status(&self, service: &str) -> ServingStatus {
        if !matches!(service, "" | SERVICE | v03::SERVICE) {
            return ServingStatus::ServiceUnknown;
        }
        let serving = health::problem(&self.0).await.is_none();
        if serving { ServingStatus::Serving } else { ServingStatus::NotServing }
    }
}

#[async_trait]
impl Health for Readiness {
    async fn check(
        &self,
        request: tonic::Request<HealthCheckRequest>,
    ) -> Result<tonic::Response<HealthCheckResponse>, Status> {
        let service = &request.get_ref().service;
        match self.status(service).await {
            ServingStatus::ServiceUnknown => {
                Err(Status::not_found(format!("there is no service '{service}'; ask about {SERVICE}")))
            }
            known => Ok(tonic::Response::new(HealthCheckResponse { status: known.into() })),
        }
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    /// The state now, and once more when the hub stops. Of a service that is not there, that it is not there: it might
    /// come, so the stream stays open.
    async fn watch(
        &self,
        request: tonic::Request<HealthCheckRequest>,
    ) -> Result<tonic::Response<Self::WatchStream>, Status> {
        let app = Arc::clone(&self.0);
        let first = self.status(&request.get_ref().service).await;
        let is_known = first != ServingStatus::ServiceUnknown;
        let response = |status: ServingStatus| Ok(HealthCheckResponse { status: status.into() });
        let states = stream::unfold((app, Some(first)), move |(app, first)| async move {
            if let Some(first) = first {
                return Some((response(first), (app, None)));
            }
            if app.hub.is_stopping() {
                return None;
            }
            app.hub.stopped().await;
            is_known.then(|| (response(ServingStatus::NotServing), (app, None)))
        });
        Ok(tonic::Response::new(Box::pin(states)))
    }
}
