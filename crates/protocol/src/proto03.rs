//! A2A 0.3 as its proto file has it: what gRPC and the ProtoJSON form of HTTP+JSON have in common.

pub mod file;
pub mod json;
pub mod name;
pub mod opaque;
