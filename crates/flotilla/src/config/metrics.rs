//! The `metrics` section: who reads `/metrics`, and where.

use anyhow::{Result, bail};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// `/metrics`; see docs/operations.md.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MetricsConfig {
    /// Readers show a key with the scope `admin`.
    pub key: bool,
    /// Serves all metrics without a key at an address of their own, `127.0.0.1:9464` say; on the hub's port they need a
    /// key then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
}

impl MetricsConfig {
    pub fn need_key(&self) -> bool {
        self.key || self.listen.is_some()
    }

    pub fn check(&self, hub: SocketAddr) -> Result<()> {
        if self.listen == Some(hub) && hub.port() != 0 {
            bail!("metrics.listen must be another address than hub.listen ({hub})");
        }
        Ok(())
    }
}
