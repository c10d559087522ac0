//! TASK_RESULT: what became of work that was dispatched.

use super::More;
use super::lenient::{or_default, whole};
use super::version::Version;
use crate::block::Block;
use crate::usage as ledger;
use crate::wire::Json;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum ResultType {
    #[default]
    #[serde(rename = "TASK_RESULT")]
    TaskResult,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("allOf" = [
    {
        "if": {"properties": {"status": {"const": "blocked"}}},
        "then": {"required": ["blocked_reason"], "properties": {"blocked_reason": {"type": "string"}}}
    },
    {
        "if": {"properties": {"status": {"const": "error"}}},
        "then": {"required": ["error"], "properties": {"error": {"type": "string", "pattern": "\\S"}}}
    },
    {
        "if": {"properties": {"status": {"const": "partial"}}},
        "then": {"required": ["remaining"], "properties": {"remaining": {"type": "array", "minItems": 1}}}
    }
]))]
pub struct TaskResult {
    #[serde(rename = "type")]
    pub kind: ResultType,
    pub protocol_version: Version,
    #[serde(default)]
    pub task_id: Option<String>,
    pub status: Status,
    /// Counted from the agent's own usage; null when nobody knows, never 0 for unknown.
    #[serde(default, deserialize_with = "whole")]
    pub tokens_spent: Option<u64>,
    #[serde(default, deserialize_with = "or_default")]
    pub next_steps: Vec<String>,
    #[serde(default)]
    pub blocked_reason: Option<BlockedReason>,
    #[serde(default, deserialize_with = "or_default")]
    pub artifacts: Made,
    /// Why the work failed; with `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What is still to be done; with `partial`.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub remaining: Vec<String>,
    /// The JSON that was asked for, as it was found to be valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Value>,
    /// In words, what was done, or what stands in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Whether the same work may succeed later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// Seconds until it may.
    #[serde(default, deserialize_with = "seconds", skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// What the agent itself says it spent.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub tokens_claimed: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What ended the work, where that was not the worker's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<EndedBy>,
    /// What of it is the worker's word alone, by its name: nobody looked.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub unverified: Vec<String>,
    /// The worker said nothing of the kind; the hub concluded it from how the work ended.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "std::ops::Not::not")]
    pub inferred: bool,
    #[serde(flatten)]
    pub more: More,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    #[default]
    Done,
    Blocked,
    Error,
    Partial,
}

/// What ends work without a word of its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// Nobody knows what the worker did: it went away, or the hub stopped.
    Lost,
    Canceled,
    DeadlinePassed,
    BudgetExhausted,
    /// The hub could not go on.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Made {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr: Option<String>,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub files_changed: Vec<String>,
    #[serde(flatten)]
    pub more: More,
}

/// What a model used; what is not known is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub cost_usd: Option<f64>,
    /// Of the hub's own word: what is that much or more, by its name, `tokens_spent` among them.
    #[serde(default, deserialize_with = "names", skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<String>,
    #[serde(flatten)]
    pub more: More,
}

impl Usage {
    /// What the ledger knows, as a result tells it.
    pub fn counted(ledger: &ledger::Usage) -> Self {
        let [input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost] = ledger.figures;
        let is_part = |index: &usize| ledger.figures[*index].is_some() && ledger.gaps & (1 << index) != 0;
        let parts = (0..ledger::FIGURES).filter(is_part).map(|index| ledger::TOLD[index]);
        let tokens = (ledger.tokens().is_some() && !ledger.has_all_tokens()).then_some("tokens_spent");
        Self {
            input_tokens,
            output_tokens,
            cache_read_tokens,
            cache_write_tokens,
            cost_usd: cost.map(ledger::dollars),
            incomplete: parts.chain(tokens).map(str::to_owned).collect(),
            more: More::default(),
        }
    }

    /// The block that puts it into the ledger; none if it says nothing.
    pub fn block(&self) -> Option<Block> {
        let told = Self { incomplete: Vec::new(), more: More::default(), ..self.clone() };
        if told == Self::default() {
            return None;
        }
        let mut json = serde_json::to_value(&told).ok()?;
        json["type"] = "usage".into();
        Block::new(Json::of(&json).ok()?).ok()
    }
}

/// Why work was not begun. Words of other programs are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockedReason {
    MissingMcp,
    MissingCapability,
    TierTooLow,
    DirtyTree,
    OverCapacity,
    DeadlinePassed,
    BudgetTooSmall,
    StaleProfile,
    UsageLimit,
    Other(String),
}

impl BlockedReason {
    pub const TYPED: [Self; 9] = [
        Self::MissingMcp,
        Self::MissingCapability,
        Self::TierTooLow,
        Self::DirtyTree,
        Self::OverCapacity,
        Self::DeadlinePassed,
        Self::BudgetTooSmall,
        Self::StaleProfile,
        Self::UsageLimit,
    ];

    pub fn name(&self) -> &str {
        match self {
            Self::MissingMcp => "missing_mcp",
            Self::MissingCapability => "missing_capability",
            Self::TierTooLow => "tier_too_low",
            Self::DirtyTree => "dirty_tree",
            Self::OverCapacity => "over_capacity",
            Self::DeadlinePassed => "deadline_passed",
            Self::BudgetTooSmall => "budget_too_small",
            Self::StaleProfile => "stale_profile",
            Self::UsageLimit => "usage_limit",
            Self::Other(text) => text,
        }
    }

    pub fn of(text: &str) -> Self {
        let folded = text.trim().to_lowercase().replace('-', "_");
        let typed = Self::TYPED.into_iter().find(|reason| reason.name() == folded);
        typed.unwrap_or_else(|| Self::Other(text.to_owned()))
    }

    /// Whether it is a word, and not whatever somebody wrote in its place.
    fn is_word(&self) -> bool {
        let Self::Other(text) = self else { return true };
        let mut letters = text.chars();
        letters.next().is_some_and(|first| first.is_ascii_alphabetic())
            && letters.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
            && text.len() <= LONGEST_WORD
    }
}

/// A reason is a word that programs know, or of a program's own.
const LONGEST_WORD: usize = 64;
const WORD: &str = "^[A-Za-z][A-Za-z0-9_-]{0,63}$";

impl Serialize for BlockedReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for BlockedReason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::of(&Cow::<'de, str>::deserialize(deserializer)?))
    }
}

impl JsonSchema for BlockedReason {
    fn schema_name() -> Cow<'static, str> {
        "BlockedReason".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let typed = Self::TYPED.map(|reason| reason.name().to_owned());
        schemars::json_schema!({ "type": "string", "anyOf": [{ "enum": typed }, { "pattern": WORD }] })
    }
}

/// Only the hub's own word counts; whatever else stands there does not make a result one that cannot be read.
fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

/// What is no number of seconds was not told: that a worker is blocked counts, whatever it says of when it is not.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(retry_after(&Value::deserialize(deserializer)?))
}

/// The seconds a worker says it is to be left alone, if that can be read.
pub fn retry_after(told: &Value) -> Option<u64> {
    let number = told.as_f64().or_else(|| told.as_str()?.trim().parse().ok());
    told.as_u64().or_else(|| number.filter(|number| *number >= 0.0).map(|number| number.ceil() as u64))
}

impl TaskResult {
    /// A reason in prose is what stands in the way, told without a word for it.
    pub fn with_a_word(mut self) -> Self {
        if let Some(BlockedReason::Other(told)) = self.blocked_reason.take_if(|reason| !reason.is_word()) {
            let told = told.trim().to_owned();
            let detail = [Some(told), self.detail.take()].into_iter().flatten().filter(|text| !text.is_empty());
            self.detail = Some(detail.collect::<Vec<_>>().join(": ")).filter(|detail| !detail.is_empty());
            self.blocked_reason = Some(BlockedReason::MissingCapability);
        }
        self
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let missing = match self.status {
            Status::Blocked if self.blocked_reason.is_none() => "blocked_reason: must say why the work was not begun",
            Status::Error if self.error.as_deref().is_none_or(|error| error.trim().is_empty()) => {
                "error: must say what went wrong"
            }
            Status::Partial if self.remaining.is_empty() => "remaining: must say what is still to be done",
            _ if self.usage.as_ref().and_then(|usage| usage.cost_usd).is_some_and(|cost| cost < 0.0) => {
                "usage.cost_usd: must be 0 or more; leave it out if it is not known"
            }
            _ => return Ok(()),
        };
        Err(missing.into())
    }
}
