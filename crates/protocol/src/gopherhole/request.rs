//! Requests of the dialect.

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

/// Methods that A2A does not have.
pub const OWN_METHODS: [&str; 3] = ["task/respond", "x-gopherhole/agents.available", "x-gopherhole/agents.discover"];
const OWN_PREFIX: &str = "x-gopherhole/";

/// Whether only clients of this dialect call a method of this name.
pub fn is_own_method(method: &str) -> bool {
    method.starts_with(OWN_PREFIX) || OWN_METHODS.contains(&method)
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
                "This hub does not have '{shown}'. Of GopherHole's methods it has SendMessage, SendStreamingMessage, \
                 GetTask, ListTasks, CancelTask, SubscribeToTask, GetExtendedAgentCard, those of push configs, {}.",
                OWN_METHODS.join(", ")
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
