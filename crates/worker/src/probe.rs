//! What a worker finds out about itself by looking, so that it announces facts (docs/probes.md).

pub mod mcp;
