//! TASK_DISPATCH: work under a contract.

use super::More;
use super::lenient::{or_default, whole};
use super::result::BlockedReason;
use super::version::Version;
use crate::time::Millis;
use crate::wire::Json;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum DispatchType {
    #[default]
    #[serde(rename = "TASK_DISPATCH")]
    TaskDispatch,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Dispatch {
    #[serde(rename = "type")]
    pub kind: DispatchType,
    pub protocol_version: Version,
    #[serde(default, deserialize_with = "or_default")]
    pub task: Terms,
    #[serde(default, deserialize_with = "or_default")]
    pub requirements: Requirements,
    /// Absolute; work whose deadline has passed is not begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub deadline: Option<Millis>,
    /// What to do, in this order, while no worker can take the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_blocked: Option<Vec<OnBlocked>>,
    /// Who is to do it: `any` (the default), `label:L`, `skill:S` or a worker's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The announcement the hub decided on, told to the worker.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// Requirements nobody could check, told to the worker.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub unverified: Vec<String>,
    #[schemars(regex(pattern = r"\S"))]
    pub brief: String,
    #[serde(flatten)]
    pub more: More,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(extend(
    "if" = {"required": ["json_schema"], "properties": {"json_schema": {"not": {"type": "null"}}}},
    "then" = {"required": ["reply_schema"], "properties": {"reply_schema": {"const": "json"}}}
))]
pub struct Terms {
    /// The orchestrator's own number for the work, repeated in the result; never the A2A task's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub priority: Priority,
    #[serde(default, deserialize_with = "or_default")]
    pub reply_schema: ReplySchema,
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub token_budget: Option<u64>,
    /// What a `json` reply must be valid against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    #[serde(flatten)]
    pub more: More,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    Low,
    #[default]
    Normal,
    High,
    Urgent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReplySchema {
    #[default]
    Prose,
    Structured,
    Json,
}

/// Ceilings; without `hard` they are told of, with it the run is stopped.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_total_tokens: Option<u64>,
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_output_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_cost_usd: Option<f64>,
    #[serde(default, deserialize_with = "or_default")]
    pub hard: bool,
    #[serde(flatten)]
    pub more: More,
}

impl Budget {
    /// Takes over what another says; of two words on whether it is hard, the stricter counts.
    pub(super) fn join(&mut self, other: Self) {
        self.max_total_tokens = other.max_total_tokens.or(self.max_total_tokens);
        self.max_output_tokens = other.max_output_tokens.or(self.max_output_tokens);
        self.max_cost_usd = other.max_cost_usd.or(self.max_cost_usd);
        self.hard |= other.hard;
        self.more.extend(other.more);
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Requirements {
    #[serde(default, deserialize_with = "or_default")]
    pub required_mcp: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub required_capabilities: Vec<String>,
    /// The least tier of model that will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_tier: Option<String>,
    /// The least context window that will do, in tokens.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// The work changes files, so it wants a clean tree.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "is_false")]
    pub write: bool,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    #[serde(flatten)]
    pub more: More,
}

/// What is easily written for a requirement, and would hold nobody to anything.
const MISNAMED: [(&str, &str); 8] = [
    ("mcp", "required_mcp"),
    ("mcp_servers", "required_mcp"),
    ("required_mcp_servers", "required_mcp"),
    ("tools", "required_capabilities"),
    ("required_tools", "required_capabilities"),
    ("capabilities", "required_capabilities"),
    ("required_skills", "skills"),
    ("required_labels", "labels"),
];

fn is_false(value: &bool) -> bool {
    !value
}

/// What is done about work that no worker can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnBlocked {
    /// Another worker that qualifies.
    Reroute,
    /// Wait for one, until the deadline or an hour.
    Queue,
    /// Tell the owner.
    Alert,
}

impl OnBlocked {
    pub const DEFAULT: [Self; 3] = [Self::Reroute, Self::Queue, Self::Alert];
}

impl Dispatch {
    pub fn on_blocked(&self) -> &[OnBlocked] {
        self.on_blocked.as_deref().unwrap_or(&OnBlocked::DEFAULT)
    }

    /// The ceiling on all tokens, whichever way it was written; the lower one counts.
    pub fn most_tokens(&self) -> Option<u64> {
        let whole = self.task.budget.as_ref().and_then(|budget| budget.max_total_tokens);
        self.task.token_budget.into_iter().chain(whole).min()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.brief.trim().is_empty() {
            return Err("brief: must say what is to be done".into());
        }
        // A place where nobody looks for it would mean that it does not hold.
        for (place, more) in [("task", &self.task.more), ("requirements", &self.requirements.more)] {
            if let Some(name) = ["deadline", "on_blocked"].into_iter().find(|name| more.contains_key(*name)) {
                return Err(format!("{place}.{name}: stands beside '{place}', not in it: write it as '{name}'"));
            }
        }
        // Unknown requirements are kept, and told to be unverified; these are known by another name.
        for (name, meant) in MISNAMED {
            if self.requirements.more.contains_key(name) {
                return Err(format!("requirements.{name}: is called '{meant}'"));
            }
        }
        if self.task.token_budget == Some(0) {
            return Err("task.token_budget: nothing can be done with 0 tokens; leave it out for no ceiling".into());
        }
        if let Some(budget) = &self.task.budget {
            let zeros = [
                ("max_total_tokens", budget.max_total_tokens == Some(0)),
                ("max_output_tokens", budget.max_output_tokens == Some(0)),
                ("max_cost_usd", budget.max_cost_usd.is_some_and(|cost| !cost.is_finite() || cost <= 0.0)),
            ];
            if let Some((name, _)) = zeros.into_iter().find(|(_, wrong)| *wrong) {
                return Err(format!("task.budget.{name}: must be more than 0; leave it out for no ceiling"));
            }
        }
        if self.task.json_schema.is_some() && self.task.reply_schema != ReplySchema::Json {
            return Err("task.json_schema: goes with reply_schema \"json\" only".into());
        }
        Ok(())
    }

    /// How a worker that cannot be held to a form is told to end.
    pub fn ending(&self) -> String {
        let id = self.task.task_id.as_deref().map(|id| {
            format!(r#","task_id":{}"#, Json::of(id).map_or_else(|_| "null".into(), |json| json.text().to_owned()))
        });
        match self.task.reply_schema {
            ReplySchema::Prose => String::new(),
            ReplySchema::Structured => format!(
                "\n\nEnd with one JSON object and nothing after it:\n\
                 {{\"type\":\"TASK_RESULT\",\"protocol_version\":\"2.0\"{},\"status\":\"done|error|partial|blocked\",\
                 \"next_steps\":[],\"artifacts\":{{\"files_changed\":[]}}}}\n\
                 With error, say what went wrong in \"error\"; with partial, what is left in \"remaining\"; with blocked, \
                 why nothing was begun in \"blocked_reason\" ({}), and more of it in \"detail\".",
                id.unwrap_or_default(),
                BlockedReason::TYPED.map(|reason| reason.name().to_owned()).join(", ")
            ),
            ReplySchema::Json => match &self.task.json_schema {
                Some(schema) => {
                    format!("\n\nReply with one JSON value and nothing else, valid against this JSON Schema:\n{schema}")
                }
                None => "\n\nReply with one JSON value and nothing else.".into(),
            },
        }
    }
}
