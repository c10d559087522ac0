//! The hub's own API: every path below `/api`, its verbs, and who serves it. Its description is `openapi.json` beside this.

use crate::answer::{self, JSON, with_type};
use crate::app::App;
use crate::catalog::ard;
use crate::gopherhole::discover;
use crate::{agents, announce, approvals, deliveries, dispatching, events, fleet, keys, owner, route, tree, usage, ws};
use axum::body::Body;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use std::sync::Arc;

/// A test compares it with the endpoints below.
const DESCRIPTION: &str = include_str!("api/openapi.json");

/// Every path there is. One that is not in the description does not pass the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    Agents,
    Discover,
    Agent,
    AgentCheck,
    Announcements,
    Announcement,
    Search,
    Catalog,
    Explore,
    Approvals,
    Approval,
    Whoami,
    FindAgents,
    FoundAgent,
    Featured,
    Categories,
    Deliveries,
    Delivery,
    Redeliver,
    Disable,
    Dispatch,
    Events,
    Fleet,
    FleetStream,
    FleetAnnounce,
    Worker,
    DrainWorker,
    UndrainWorker,
    ResumeWorker,
    Keys,
    Key,
    KeyOfWorkspace,
    RotateKey,
    RotateKeyOfWorkspace,
    TaskLog,
    TaskTree,
    TaskWhy,
    Usage,
    Ticket,
    Description,
}

impl Endpoint {
    fn of(verb: &Method, segments: &[&str]) -> Option<Self> {
        Some(match segments {
            ["agents"] => Self::Agents,
            // An agent may have this name: it takes other verbs.
            ["agents", "discover"] if *verb == Method::POST => Self::Discover,
            ["agents", _] => Self::Agent,
            ["agents", _, "check"] => Self::AgentCheck,
            ["announce"] => Self::Announcements,
            ["announce", _] => Self::Announcement,
            ["ard", "search"] => Self::Search,
            ["ard", "agents"] => Self::Catalog,
            ["ard", "explore"] => Self::Explore,
            ["approvals"] => Self::Approvals,
            ["approvals", _] => Self::Approval,
            ["auth", "whoami"] => Self::Whoami,
            ["dispatch"] => Self::Dispatch,
            ["events"] => Self::Events,
            ["fleet"] => Self::Fleet,
            ["fleet", "stream"] => Self::FleetStream,
            ["fleet", "announce"] if *verb == Method::POST => Self::FleetAnnounce,
            ["fleet", _] => Self::Worker,
            ["fleet", _, "drain"] => Self::DrainWorker,
            ["fleet", _, "undrain"] => Self::UndrainWorker,
            ["fleet", _, "resume"] => Self::ResumeWorker,
            ["usage"] => Self::Usage,
            ["discover", "agents"] => Self::FindAgents,
            ["discover", "agents", "nearby"] => return None,
            ["discover", "agents", _] => Self::FoundAgent,
            ["discover", "featured"] => Self::Featured,
            ["discover", "categories"] => Self::Categories,
            ["deliveries"] => Self::Deliveries,
            ["deliveries", one] if one.ends_with(":redeliver") => Self::Redeliver,
            ["deliveries", one] if one.ends_with(":disable") => Self::Disable,
            ["deliveries", _] => Self::Delivery,
            ["keys"] => Self::Keys,
            ["keys", one] if one.ends_with(":rotate") => Self::RotateKey,
            ["keys", _] => Self::Key,
            ["keys", _, one] if one.ends_with(":rotate") => Self::RotateKeyOfWorkspace,
            ["keys", _, _] => Self::KeyOfWorkspace,
            ["tasks", _, "log"] => Self::TaskLog,
            ["tasks", _, "tree"] => Self::TaskTree,
            ["tasks", _, "why"] => Self::TaskWhy,
            ["ws-ticket"] => Self::Ticket,
            ["openapi.json"] => Self::Description,
            _ => return None,
        })
    }

    const fn verbs(self) -> &'static str {
        match self {
            Self::Agents | Self::Keys | Self::Announcements => "GET, HEAD, POST",
            Self::Agent => "GET, HEAD, PUT, PATCH, DELETE",
            Self::Approval => "GET, HEAD, POST",
            Self::Approvals
            | Self::Catalog
            | Self::Deliveries
            | Self::Delivery
            | Self::Description
            | Self::Events
            | Self::FindAgents
            | Self::Fleet
            | Self::FoundAgent
            | Self::Featured
            | Self::Categories
            | Self::FleetStream
            | Self::TaskLog
            | Self::TaskTree
            | Self::TaskWhy
            | Self::Usage
            | Self::Whoami
            | Self::Worker => "GET, HEAD",
            Self::Key | Self::KeyOfWorkspace | Self::Announcement => "DELETE",
            Self::AgentCheck
            | Self::Discover
            | Self::Dispatch
            | Self::DrainWorker
            | Self::FleetAnnounce
            | Self::UndrainWorker
            | Self::ResumeWorker
            | Self::Search
            | Self::Explore
            | Self::Redeliver
            | Self::Disable
            | Self::RotateKey
            | Self::RotateKeyOfWorkspace
            | Self::Ticket => "POST",
        }
    }
}

/// Serves what is below `/api`.
pub async fn serve(app: &Arc<App>, segments: &[&str], request: Request<Body>) -> Response<Body> {
    let endpoint = Endpoint::of(request.method(), segments);
    let takes = |endpoint: &Endpoint| endpoint.verbs().split(", ").any(|verb| verb == request.method().as_str());
    let served = endpoint.filter(takes);
    match served {
        Some(Endpoint::Agents | Endpoint::Agent | Endpoint::AgentCheck | Endpoint::Discover) => {
            agents::serve(app, &segments[1..], request).await
        }
        Some(Endpoint::Announcements | Endpoint::Announcement) => announce::serve(app, &segments[1..], request).await,
        Some(
            Endpoint::FindAgents | Endpoint::FoundAgent | Endpoint::Featured | Endpoint::Categories | Endpoint::Whoami,
        ) => discover::serve(app, &segments[1..], request).await,
        Some(Endpoint::Search | Endpoint::Catalog | Endpoint::Explore) => {
            ard::serve(app, &segments[1..], request).await
        }
        Some(Endpoint::Approvals | Endpoint::Approval) => approvals::serve(app, &segments[1..], request).await,
        Some(Endpoint::Dispatch) => dispatching::serve(app, request).await,
        Some(
            Endpoint::Fleet
            | Endpoint::FleetStream
            | Endpoint::FleetAnnounce
            | Endpoint::Worker
            | Endpoint::DrainWorker
            | Endpoint::UndrainWorker
            | Endpoint::ResumeWorker,
        ) => fleet::serve(app, &segments[1..], request).await,
        Some(Endpoint::Deliveries | Endpoint::Delivery | Endpoint::Redeliver | Endpoint::Disable) => {
            deliveries::serve(app, &segments[1..], request).await
        }
        Some(
            Endpoint::Keys
            | Endpoint::Key
            | Endpoint::KeyOfWorkspace
            | Endpoint::RotateKey
            | Endpoint::RotateKeyOfWorkspace,
        ) => keys::serve(app, &segments[1..], request).await,
        Some(Endpoint::Ticket) => ws::ticket::serve(app, request).await,
        found @ (Some(
            Endpoint::TaskLog
            | Endpoint::TaskTree
            | Endpoint::TaskWhy
            | Endpoint::Usage
            | Endpoint::Events
            | Endpoint::Description,
        )
        | None) => {
            let (parts, body) = request.into_parts();
            let response = without_body(app, found, segments, &parts).await;
            let response = response.unwrap_or_else(|| refused(app, endpoint, segments, &parts));
            answer::after(app, &parts.headers, body, response).await
        }
    }
}

/// Endpoints that take no body.
async fn without_body(
    app: &Arc<App>,
    endpoint: Option<Endpoint>,
    segments: &[&str],
    request: &Parts,
) -> Option<Response<Body>> {
    Some(match endpoint? {
        Endpoint::TaskLog => owner::log(app, segments[1], request).await,
        Endpoint::TaskTree => tree::show(app, segments[1], request).await,
        Endpoint::TaskWhy => dispatching::why(app, segments[1], request).await,
        Endpoint::Usage => usage::show(app, request).await,
        Endpoint::Events => events::follow(app, request).await,
        Endpoint::Description => described(),
        _ => return None,
    })
}

fn described() -> Response<Body> {
    with_type(StatusCode::OK, JSON, DESCRIPTION)
}

fn refused(app: &App, endpoint: Option<Endpoint>, segments: &[&str], request: &Parts) -> Response<Body> {
    match endpoint {
        Some(endpoint) => route::wrong_verb(app, request, endpoint.verbs()),
        None if matches!(segments, ["discover" | "access", ..]) => discover::not_here(app, segments),
        None => route::no_such_path(app, request.uri.path()),
    }
}

#[cfg(test)]
mod tests {
    use super::{DESCRIPTION, Endpoint};
    use http::Method;
    use serde_json::Value;
    use std::collections::BTreeSet;

    const PATHS: [(Endpoint, &str); 40] = [
        (Endpoint::Agents, "/api/agents"),
        (Endpoint::Discover, "/api/agents/discover"),
        (Endpoint::Agent, "/api/agents/{name}"),
        (Endpoint::AgentCheck, "/api/agents/{name}/check"),
        (Endpoint::Announcements, "/api/announce"),
        (Endpoint::Announcement, "/api/announce/{name}"),
        (Endpoint::Search, "/api/ard/search"),
        (Endpoint::Catalog, "/api/ard/agents"),
        (Endpoint::Explore, "/api/ard/explore"),
        (Endpoint::Approvals, "/api/approvals"),
        (Endpoint::Approval, "/api/approvals/{id}"),
        (Endpoint::Whoami, "/api/auth/whoami"),
        (Endpoint::Dispatch, "/api/dispatch"),
        (Endpoint::Events, "/api/events"),
        (Endpoint::Fleet, "/api/fleet"),
        (Endpoint::FleetStream, "/api/fleet/stream"),
        (Endpoint::FleetAnnounce, "/api/fleet/announce"),
        (Endpoint::Worker, "/api/fleet/{name}"),
        (Endpoint::DrainWorker, "/api/fleet/{name}/drain"),
        (Endpoint::UndrainWorker, "/api/fleet/{name}/undrain"),
        (Endpoint::ResumeWorker, "/api/fleet/{name}/resume"),
        (Endpoint::TaskTree, "/api/tasks/{id}/tree"),
        (Endpoint::TaskWhy, "/api/tasks/{id}/why"),
        (Endpoint::Usage, "/api/usage"),
        (Endpoint::FindAgents, "/api/discover/agents"),
        (Endpoint::FoundAgent, "/api/discover/agents/{name}"),
        (Endpoint::Featured, "/api/discover/featured"),
        (Endpoint::Categories, "/api/discover/categories"),
        (Endpoint::Deliveries, "/api/deliveries"),
        (Endpoint::Delivery, "/api/deliveries/{id}"),
        (Endpoint::Redeliver, "/api/deliveries/{id}:redeliver"),
        (Endpoint::Disable, "/api/deliveries/{id}:disable"),
        (Endpoint::Keys, "/api/keys"),
        (Endpoint::Key, "/api/keys/{name}"),
        (Endpoint::KeyOfWorkspace, "/api/keys/{workspace}/{name}"),
        (Endpoint::RotateKey, "/api/keys/{name}:rotate"),
        (Endpoint::RotateKeyOfWorkspace, "/api/keys/{workspace}/{name}:rotate"),
        (Endpoint::TaskLog, "/api/tasks/{id}/log"),
        (Endpoint::Ticket, "/api/ws-ticket"),
        (Endpoint::Description, "/api/openapi.json"),
    ];

    #[test]
    fn every_path_and_verb_is_described_and_nothing_else() {
        let description: Value = serde_json::from_str(DESCRIPTION).unwrap();
        let verbs = ["get", "put", "post", "delete", "patch", "head"];
        let mut described = BTreeSet::new();
        for (path, item) in description["paths"].as_object().unwrap() {
            let of_path = item.as_object().unwrap().keys().filter(|key| verbs.contains(&key.as_str()));
            described.extend(of_path.map(|verb| (path.as_str(), verb.to_uppercase())));
        }
        let mut served = BTreeSet::new();
        for (endpoint, path) in PATHS {
            let own = endpoint.verbs().split(", ").filter(|verb| *verb != "HEAD");
            served.extend(own.map(|verb| (path, verb.to_owned())));
        }
        assert_eq!(described, served);
        assert_eq!(description["info"]["version"], env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn every_path_leads_to_its_endpoint() {
        for (endpoint, path) in PATHS {
            let filled = path.replace("{name}", "x").replace("{id}", "x").replace("{workspace}", "w");
            let segments: Vec<&str> = filled.split('/').skip(2).collect();
            for verb in endpoint.verbs().split(", ") {
                let verb = Method::from_bytes(verb.as_bytes()).unwrap();
                assert_eq!(Endpoint::of(&verb, &segments), Some(endpoint), "{verb} {path}");
            }
        }
    }

    #[test]
    fn no_path_below_api_is_served_elsewhere() {
        let arms: Vec<_> = include_str!("route.rs").lines().filter(|line| line.contains("[\"api\"")).collect();
        let all_here = arms.iter().all(|arm| arm.contains("[\"api\", rest @ ..] =>") && arm.contains("api::serve("));
        assert!(!arms.is_empty() && all_here, "paths below /api belong into api.rs and openapi.json: {arms:?}");
    }
}
