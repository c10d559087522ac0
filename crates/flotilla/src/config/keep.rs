//! How long things are kept.

use super::Span;
use flotilla_core::loops::Keep;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is kept, and how long. Absent means: for ever.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetentionConfig {
    /// Ended tasks are removed after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Span>,
    /// At most so many ended tasks are kept; the oldest go first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks_max: Option<u64>,
    /// Ended tasks keep their result but lose the single events after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Span>,
    /// How often to look.
    pub interval: Span,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self { tasks: None, tasks_max: None, events: None, interval: Span::seconds(60) }
    }
}

/// How long a repeated send is recognised.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IdempotencyConfig {
    pub window: Span,
    /// At most so many sends are remembered; the oldest go first.
    pub max: u64,
}

impl Default for IdempotencyConfig {
    fn default() -> Self {
        let keep = Keep::default();
        Self { window: Span(keep.dedupe), max: keep.dedupe_max }
    }
}
