//! What a worker finds out about itself by looking, so that it announces facts (docs/probes.md).

pub mod mcp;
pub mod observe;
mod own;
pub mod presence;
mod repository;
pub mod trial;

pub use observe::{Seen, Servers, Sight, Subject, Thing, Watch};
pub use own::{Own, Sources};
