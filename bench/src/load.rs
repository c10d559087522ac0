//! The load generator: connections, calls, and the two ways to make many of them.

pub mod call;
pub mod closed;
pub mod grpc;
pub mod http;
pub mod paced;
pub mod proto;
pub mod sse;
pub mod stats;
