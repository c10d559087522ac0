//! Requests of the dialect, and how they are told from those of A2A.

use super::part::read_message;
use super::push::{read_config, read_new};
use crate::a2a::error::{Reason, Refusal};
use crate::a2a::method::Method;
use crate::a2a::model::{Message, Role};
use crate::a2a::request::{
    CancelTaskRequest, GetTaskRequest, ListPushConfigsRequest, ListTasksRequest, PushConfig, PushConfigRequest,
    SendMessageConfiguration, SendMessageRequest, TTL,
};
use crate::decode::message;
use crate::hub_frame::TaskResponse;
use crate::v03;
use crate::v03::V03;
use crate::wire::{Int32, Json};
use serde::Deserialize;
use std::collections::BTreeMap;

/// What is asked for.
#[derive(Debug)]
pub enum Asked {
    /// To another agent.
    Send {
        to: String,
        request: Box<SendMessageRequest>,
    },
    /// Without an agent: to the default one, or, from an agent, the answer to what it was asked in a context.
    Say {
        context: String,
        message: Box<Message>,
        configuration: Box<SendMessageConfiguration>,
    },
    Get(GetTaskRequest),
    List(Box<ListTasksRequest>),
    Cancel(CancelTaskRequest),
    CreatePush(Box<PushConfig>),
    GetPush(PushConfigRequest),
    ListPush(ListPushConfigsRequest),
    DeletePush(PushConfigRequest),
    /// An agent's answer, as a request.
    Respond(Box<TaskResponse>),
    Available(Search),
    Discover(Search),
}

/// Which agents are looked for.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Search {
    pub query: Option<String>,
    pub public: bool,
    pub tag: Option<String>,
    pub skill_tag: Option<String>,
    pub category: Option<String>,
    pub content_mode: Option<String>,
    pub verified: Option<bool>,
    pub owner: Option<String>,
    pub organization: Option<String>,
    pub limit: Option<usize>,
    pub offset: Option<usize>,
}

/// One of these is in every message of the dialect, or the beginning of a name that is written in another way. Nearly
/// all messages have none, and need not be read to know that.
const SIGNS: [&str; 5] = ["\"kind\"", "agentId", "contextId", "x-gopherhole", "\\u"];

/// What only this dialect has: an agent in the configuration, members of its own there, and parts that are named by kind
/// under the method names of 1.0.
pub fn is_dialect(method: &str, params: &str) -> bool {
    if method.starts_with("x-gopherhole/") || method == "task/respond" {
        return true;
    }
    #[derive(Deserialize)]
    struct Signs {
        #[serde(default)]
        configuration: Option<BTreeMap<String, Json>>,
        #[serde(default)]
        message: Option<Kinds>,
    }
    #[derive(Deserialize)]
    struct Kinds {
        #[serde(default)]
        parts: Vec<BTreeMap<String, Json>>,
    }
    let in_new_names =
        [Method::SendMessage, Method::SendStreamingMessage].into_iter().any(|known| known.name() == method);
    let sends = (in_new_names || method == v03::method::name(Method::SendMessage))
        && SIGNS.iter().any(|sign| params.contains(sign));
    let Some(signs) = sends.then(|| serde_json::from_str::<Signs>(params).ok()).flatten() else { return false };
    // No version of A2A has these there.
    let own = |name: &String| matches!(name.as_str(), "agentId" | "contextId") || name.starts_with("x-gopherhole");
    let configured = signs.configuration.is_some_and(|configuration| configuration.keys().any(own));
    let by_kind = |part: &BTreeMap<String, Json>| part.contains_key("kind");
    configured || in_new_names && signs.message.is_some_and(|message| message.parts.iter().any(by_kind))
}

/// What the parameters of a list of tasks say of the dialect they are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// A state is named as in this dialect, and not in A2A 1.0.
    Own,
    Either,
    /// There is something that its clients never send.
    Other,
}

/// Its clients have no tenants, and ask for no times; the order they ask for is the one there is, or passed over.
pub fn listing(params: &str) -> Listing {
    let Ok(said) = serde_json::from_str::<BTreeMap<String, Json>>(params) else { return Listing::Other };
    let known = ["contextId", "status", "pageSize", "pageToken", "historyLength", "includeArtifacts", "sortOrder"];
    if said.keys().any(|name| !known.contains(&name.as_str())) {
        return Listing::Other;
    }
    match said.get("status").map(Json::text) {
        None | Some("null") => Listing::Either,
        Some(status) if status.chars().any(|letter| letter.is_ascii_lowercase()) => Listing::Own,
        Some(_) => Listing::Other,
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Configuration {
    agent_id: Option<String>,
    context_id: Option<String>,
    task_id: Option<String>,
    history_length: Option<Int32>,
    accepted_output_modes: Vec<String>,
    push_notification_url: Option<String>,
    push_notification_config: Option<Json>,
    #[serde(rename = "x-ttl")]
    ttl: Option<Json>,
    #[serde(rename = "x-gopherhole-secrets")]
    secrets: Option<Json>,
}

#[derive(Deserialize)]
struct Sending {
    message: Json,
    #[serde(default)]
    configuration: Configuration,
}

/// Reads a request of the dialect; `fresh` is the id of a message that has none.
pub fn read(method: &str, params: &str, fresh: String) -> Result<Asked, Refusal> {
    let bytes = params.as_bytes();
    let named = Method::from_name(method).or_else(|| v03::method::from_name(method));
    Ok(match (named, method) {
        (Some(Method::SendMessage | Method::SendStreamingMessage), _) => sending(message(bytes)?, fresh)?,
        (Some(Method::GetTask), _) => Asked::Get(message(bytes)?),
        (Some(Method::ListTasks), _) => Asked::List(Box::new(message::<V03<ListTasksRequest>>(bytes)?.0)),
        (Some(Method::CancelTask), _) => Asked::Cancel(message(bytes)?),
        (Some(Method::CreatePushConfig), _) => Asked::CreatePush(Box::new(read_new(bytes)?)),
        (Some(Method::GetPushConfig), _) => Asked::GetPush(message(bytes)?),
        (Some(Method::ListPushConfigs), _) => Asked::ListPush(message(bytes)?),
        (Some(Method::DeletePushConfig), _) => Asked::DeletePush(message(bytes)?),
        (_, "task/respond") => Asked::Respond(Box::new(message(bytes)?)),
        (_, "x-gopherhole/agents.available") => Asked::Available(message(bytes)?),
        (_, "x-gopherhole/agents.discover") => Asked::Discover(message(bytes)?),
        _ => {
            let shown: String = method.chars().take(80).collect();
            let text = format!(
                "This hub does not have '{shown}'. Of GopherHole's methods it has SendMessage, GetTask, ListTasks, \
                 CancelTask, those of push configs, task/respond, x-gopherhole/agents.available and \
                 x-gopherhole/agents.discover."
            );
            return Err(Refusal::new(Reason::MethodNotFound, text));
        }
    })
}

fn sending(sending: Sending, fresh: String) -> Result<Asked, Refusal> {
    let Sending { message: said, configuration } = sending;
    if configuration.secrets.is_some() {
        let text = "is not taken: this hub keeps no secrets for agents. Send them to the agent by another way";
        return Err(Refusal::invalid("configuration.x-gopherhole-secrets", text));
    }
    let mut said = read_message(&said, Role::User)?;
    if said.message_id.is_empty() {
        said.message_id = fresh;
    } else {
        said.message_id = super::message_id(&said.message_id);
    }
    if let Some(task) = configuration.task_id {
        said.task_id = task;
    }
    let push_config = match (configuration.push_notification_url, configuration.push_notification_config) {
        (_, Some(config)) => Some(read_config(&config)?),
        (Some(url), None) => Some(PushConfig { url, ..PushConfig::default() }),
        (None, None) => None,
    };
    let own = SendMessageConfiguration {
        accepted_output_modes: configuration.accepted_output_modes,
        history_length: configuration.history_length,
        push_config,
        // Its clients poll: whoever waits would only run into their timeout.
        return_immediately: true,
        unknown: configuration.ttl.map(|ttl| (TTL.to_owned(), ttl)).into_iter().collect(),
    };
    let context = configuration.context_id.unwrap_or_default();
    match configuration.agent_id {
        Some(to) => {
            if said.context_id.is_empty() {
                said.context_id = context;
            }
            let request =
                SendMessageRequest { message: Some(said), configuration: Some(own), ..SendMessageRequest::default() };
            Ok(Asked::Send { to, request: Box::new(request) })
        }
        None => Ok(Asked::Say { context, message: Box::new(said), configuration: Box::new(own) }),
    }
}
