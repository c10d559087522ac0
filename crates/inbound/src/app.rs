//! What every binding is given.

use crate::address::Network;
use crate::gopherhole::{Followed, Misplaced};
use crate::meters::Meters;
use crate::metrics_text::{Metrics, Render};
use crate::rest::form::Forms;
use crate::shared_text::SharedText;
use crate::ws::Sockets;
use crate::ws::lines::Lines;
use crate::ws::sittings::Sittings;
use crate::ws::ticket::Tickets;
use flotilla_core::access::Access;
use flotilla_core::error::Error;
use flotilla_core::hub::Hub;
use flotilla_core::ports::Signer;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::time::Millis;
use std::sync::{Arc, RwLock};
use std::time::Duration;

/// The forms a card is served in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardForm {
    /// Every member of both, for readers of either version.
    Hybrid,
    V10,
    V03,
}

/// What the outside may know of this hub.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The hub's own name and description, for the card at the root.
    pub name: String,
    pub description: String,
    /// Where callers reach the hub, without a trailing slash.
    pub public_url: String,
    /// What the hub is spoken to over: `http`, `https`, or both.
    pub schemes: Vec<String>,
    /// Whether a key is needed; cards say so.
    pub anonymous: bool,
    /// Names the hub is called by, beside addresses and names without a dot; `*.NAME` is all below one, `*` all.
    pub allowed_hosts: Vec<String>,
    /// Origins whose web pages may use the hub.
    pub allowed_origins: Vec<String>,
    /// Proxies that are believed when they say whom they speak for.
    pub trusted_proxies: Vec<Network>,
    /// The form of cards for those who name no version; none is what the place of the card makes of it.
    pub card_form: Option<CardForm>,
    /// Whether cards list gRPC of 0.3 as a URL, as the official kit for 0.3 wants it.
    pub card_grpc_scheme: bool,
    /// Whether `/metrics` asks for an admin's key.
    pub metrics_need_key: bool,
    /// How often a quiet stream shows that it is alive.
    pub keep_alive: Duration,
    /// Bounds of connections that stay open.
    pub sockets: Sockets,
}

pub struct App {
    pub hub: Arc<Hub>,
    pub access: Arc<Access>,
    pub signer: Arc<dyn Signer>,
    settings: RwLock<(Arc<Settings>, Millis)>,
    pub(crate) metrics: Metrics,
    pub(crate) catalog: SharedText,
    pub(crate) meters: Meters,
    pub(crate) tickets: Tickets,
    pub(crate) lines: Arc<Lines>,
    pub(crate) sittings: Arc<Sittings>,
    pub(crate) followed: Followed,
    pub(crate) misplaced: Misplaced,
    /// Which form of 0.3 callers speak.
    pub(crate) forms: Forms,
}

impl App {
    pub fn new(
        hub: Arc<Hub>,
        access: Arc<Access>,
        signer: Arc<dyn Signer>,
        settings: Settings,
        render_metrics: Render,
    ) -> Arc<Self> {
        let now = hub.clock().now();
        let settings = RwLock::new((Arc::new(settings), now));
        Arc::new(Self {
            hub,
            access,
            signer,
            settings,
            metrics: Metrics::new(render_metrics),
            catalog: SharedText::default(),
            meters: Meters::default(),
            tickets: Tickets::default(),
            lines: Arc::default(),
            sittings: Arc::default(),
            followed: Followed::default(),
            misplaced: Misplaced::default(),
            forms: Forms::default(),
        })
    }

    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().expect("no panic while holding the settings").0)
    }

    /// When what the cards say last changed.
    pub fn changed_at(&self) -> Millis {
        let set = self.settings.read().expect("no panic while holding the settings").1;
        set.max(self.signer.changed_at())
    }

    /// Takes new settings; cards count as changed, whatever it was that changed.
    pub fn replace_settings(&self, settings: Settings) {
        let now = self.now();
        *self.settings.write().expect("no panic while holding the settings") = (Arc::new(settings), now);
    }

    pub fn now(&self) -> Millis {
        self.hub.clock().now()
    }

    /// What the caller is told: a refusal as it is; of a fault only a number to ask about.
    pub fn refusal(&self, error: Error) -> Refusal {
        match error {
            Error::Refused(refusal) => refusal,
            Error::Failed(fault) => {
                let incident = uuid::Uuid::now_v7().to_string();
                tracing::error!(%incident, %fault, "a request failed");
                let text = format!("Internal error. Nothing was acknowledged; try again. Incident {incident}.");
                Refusal::new(Reason::Internal, text).fact("incident", incident)
            }
        }
    }
}
