//! What tests stand on: a hub in a process of its own, a client whose every wait ends, and transcripts to compare.
//! Everything here panics with a sentence instead of returning an error, because its only caller is a test.
#![forbid(unsafe_code)]

pub mod client;
pub mod grpc;
pub mod hostile;
pub mod http;
pub mod http2;
mod old;
pub mod pages;
pub mod process;
pub mod proxy;
pub mod receiver;
mod scratch;
pub mod socket;
pub mod sse;
pub mod stand_in;
pub mod stream;
pub mod transcript;
pub mod wait;
pub mod worker;

pub use client::{Binding, Client, Refusal};
pub use http::{Request, Response};
pub use pages::{Page, Pages};
pub use process::{HubProcess, Setup};
pub use proxy::Proxy;
pub use receiver::{Reaction, Received, Receiver};
pub use scratch::scratch;
pub use sse::Event;
pub use stand_in::{Act, Asked, StandIn};
pub use stream::Stream;
pub use transcript::Talk;
pub use wait::until;
pub use worker::WorkerProcess;
