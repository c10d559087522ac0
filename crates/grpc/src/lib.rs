//! A2A over gRPC: the messages generated from `proto/`, and their exchange with the model of `flotilla-protocol`.
#![forbid(unsafe_code)]

mod answer;
mod backwards;
mod card;
#[allow(clippy::all)]
mod generated;
mod json;
mod read;
mod status;
pub mod v03;
mod write;

pub use answer::{frame, list, sent, task};
pub use card::{card, card_json};
pub use generated::{a2a, a2a_v03, rpc};
pub use read::Reader;
pub use status::{Code, Status, details_json};
pub use write::*;

/// The service's full name, the first part of every path.
pub const SERVICE: &str = "lf.a2a.v1.A2AService";

/// The compiled proto files, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!("generated/descriptors.binpb");
