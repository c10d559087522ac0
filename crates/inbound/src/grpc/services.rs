//! The services beside A2A's own: health, and reflection in both versions clients ask for.

use crate::app::App;
use crate::health;
use axum::body::Body;
use flotilla_grpc::{DESCRIPTORS, SERVICE};
use futures_util::{Stream, stream};
use http::{Request, Response};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use tonic::{Status, async_trait};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{FILE_DESCRIPTOR_SET, HealthCheckRequest, HealthCheckResponse};
use tower::ServiceExt as _;
use tower::util::BoxCloneSyncService;

type Reflection = BoxCloneSyncService<Request<Body>, Response<tonic::body::Body>, Infallible>;

/// Reflection of both versions; parsed once, when somebody first asks.
static REFLECTION: LazyLock<Option<(Reflection, Reflection)>> = LazyLock::new(|| {
    let builder = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
    };
    let v1 = builder().build_v1().ok()?;
    let v1alpha = builder().build_v1alpha().ok()?;
    Some((BoxCloneSyncService::new(v1), BoxCloneSyncService::new(v1alpha)))
});

/// Serves a call of one of these services; none if it is of another.
pub async fn serve(app: &Arc<App>, service: &str, request: Request<Body>) -> Option<Response<Body>> {
    let Ok(response) = match service {
        "grpc.health.v1.Health" => HealthServer::new(Readiness(Arc::clone(app))).oneshot(request).await,
        "grpc.reflection.v1.ServerReflection" => REFLECTION.as_ref()?.0.clone().oneshot(request).await,
        "grpc.reflection.v1alpha.ServerReflection" => REFLECTION.as_ref()?.1.clone().oneshot(request).await,
        _ => return None,
    };
    Some(response.map(Body::new))
}

/// The same answer as `/readyz`, for gRPC's own probes.
struct Readiness(Arc<App>);

impl Readiness {
    async fn status(&self, service: &str) -> Result<HealthCheckResponse, Status> {
        if !service.is_empty() && service != SERVICE {
            return Err(Status::not_found(format!("there is no service '{service}'; ask about {SERVICE}")));
        }
        let serving = health::problem(&self.0).await.is_none();
        let status = if serving { ServingStatus::Serving } else { ServingStatus::NotServing };
        Ok(HealthCheckResponse { status: status.into() })
    }
}

#[async_trait]
impl Health for Readiness {
    async fn check(
        &self,
        request: tonic::Request<HealthCheckRequest>,
    ) -> Result<tonic::Response<HealthCheckResponse>, Status> {
        self.status(&request.get_ref().service).await.map(tonic::Response::new)
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    /// The state now, and once more when the hub stops.
    async fn watch(
        &self,
        request: tonic::Request<HealthCheckRequest>,
    ) -> Result<tonic::Response<Self::WatchStream>, Status> {
        let app = Arc::clone(&self.0);
        let first = self.status(&request.get_ref().service).await?;
        let states = stream::unfold((app, Some(first)), |(app, first)| async move {
            if let Some(first) = first {
                return Some((Ok(first), (app, None)));
            }
            if app.hub.is_stopping() {
                return None;
            }
            app.hub.stopped().await;
            let status = ServingStatus::NotServing.into();
            Some((Ok(HealthCheckResponse { status }), (app, None)))
        });
        Ok(tonic::Response::new(Box::pin(states)))
    }
}
