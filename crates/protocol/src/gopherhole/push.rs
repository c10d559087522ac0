//! Push configs as clients of the dialect send and read them: flat, and beside their task's id where one is made.

use crate::a2a::error::Refusal;
use crate::a2a::push::ListPushConfigsResponse;
use crate::a2a::request::PushConfig;
use crate::decode::message;
use crate::wire::Json;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Creating {
    #[serde(default)]
    task_id: String,
    #[serde(default)]
    config: Option<Json>,
}

/// A config for a task; one that stands beside the task's id instead of below `config` is meant all the same.
pub(super) fn read_new(params: &[u8]) -> Result<PushConfig, Refusal> {
    let Creating { task_id, config } = message(params)?;
    let config: PushConfig = match config {
        Some(config) => read_config(&config)?,
        None => message(params)?,
    };
    Ok(PushConfig { tenant: String::new(), task_id, ..config })
}

/// A config as it stands in a message's configuration.
pub(super) fn read_config(config: &Json) -> Result<PushConfig, Refusal> {
    message(config.text().as_bytes())
}

/// A config as its caller may see it.
pub fn push_config(config: &PushConfig) -> Value {
    serde_json::to_value(config).unwrap_or_default()
}

pub fn push_configs(list: &ListPushConfigsResponse) -> Value {
    let configs: Vec<Value> = list.configs.iter().map(push_config).collect();
    json!({"configs": configs, "nextPageToken": list.next_page_token})
}
