//! Who calls us: every binding on one port, each only decoding, asking the core, and encoding.
#![forbid(unsafe_code)]

mod address;
mod agents;
mod announce;
mod answer;
mod api;
mod app;
mod approvals;
mod asked;
mod body;
mod browser;
mod call;
mod caller;
mod catalog;
mod deliveries;
mod dialect;
mod dispatching;
mod door;
mod events;
mod fleet;
#[doc(hidden)]
pub mod fuzz;
mod gopherhole;
mod grpc;
mod health;
mod jsonrpc;
mod keys;
mod load;
mod meters;
mod metrics_text;
mod owner;
mod parameters;
mod reading;
mod rest;
mod route;
mod schemas;
mod shared_text;
mod signed;
mod spoken;
mod sse;
mod tree;
mod usage;
mod well_known;
mod ws;

pub use address::{Network, Peer};
pub use app::{App, CardForm, Settings};
pub use load::ClientConnection;
pub use metrics_text::{Render, serve_operators as serve_metrics};
pub use route::{serve, turn_away};
pub use ws::{Sockets, Upgrade};
