//! The A2A client: any agent, by its card, over any binding this program speaks.

pub mod cache;
pub mod card;
pub mod check;
pub mod choose;
pub mod credential;
pub(crate) mod dialect;
pub mod error;
mod files;
pub mod fold;
pub mod follow;
mod found;
pub mod frame;
pub(crate) mod grpc;
pub(crate) mod jsonrpc;
mod operation;
pub mod resolve;
pub(crate) mod rest;
mod stated;
mod turn;

pub use rest::{escape, segment};

use crate::net::{Net, Outgoing, address};
use card::Card;
use choose::{Binding, Choice, Dialect, Versions, choose};
use credential::{Attached, Credentials, attach, is_any_carried};
use dialect::Writer;
use error::ClientError;
use flotilla_protocol::a2a::error::Reason;
use flotilla_protocol::a2a::model::{Task, TaskState};
use flotilla_protocol::a2a::request::{
    CancelTaskRequest, ExtendedCardRequest, GetTaskRequest, ListPushConfigsRequest, ListTasksRequest, PushConfig,
    PushConfigRequest, Request, SendMessageRequest, SubscribeToTaskRequest,
};
use flotilla_protocol::proto03::file::Files;
use flotilla_protocol::wire::Json;
use frame::{Frames, Sent};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use stated::Stated;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How an agent is to be called.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Bindings in the caller's order; empty leaves the choice to the card.
    pub transports: Vec<Binding>,
    /// The version of 1.x to signal; the highest both sides know if absent.
    pub version: Option<String>,
    /// Whether 0.3 is spoken too, or alone. An agent that speaks 0.3 is only called where this allows it.
    pub versions: Versions,
    pub credentials: Credentials,
    /// Where credentials go, for those who know it without the card; the credentials above are not looked at then.
    pub attached: Option<Attached>,
    /// How the agent has files in the proto of 0.3; found out if absent.
    pub files: Option<Files>,
    /// Service parameters (spec 3.2.6).
    pub parameters: Vec<(String, String)>,
}

/// An answer, read, and as the agent wrote it.
#[derive(Debug, Clone)]
pub struct Answer<T> {
    pub value: T,
    pub json: String,
}

/// A page of tasks.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskPage {
    #[serde(deserialize_with = "null_is_absent")]
    pub tasks: Vec<Task>,
    #[serde(deserialize_with = "null_is_absent")]
    pub next_page_token: String,
    #[serde(deserialize_with = "null_is_absent")]
    pub total_size: i64,
}

/// A page of push configs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PushConfigPage {
    #[serde(deserialize_with = "null_is_absent")]
    pub configs: Vec<PushConfig>,
    #[serde(deserialize_with = "null_is_absent")]
    pub next_page_token: String,
}

impl Stated for Task {
    fn state(&self) -> Option<TaskState> {
        Some(self.status.state)
    }
}

// Nobody acts on a task in a list before it was asked for.
impl Stated for TaskPage {}
impl Stated for PushConfig {}
impl Stated for PushConfigPage {}

/// As everywhere in ProtoJSON.
fn null_is_absent<'de, D: serde::Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// All members have a default, so that any object can be read as a task; one without an id is none.
fn a_task(answer: Answer<Task>) -> Result<Answer<Task>, ClientError> {
    if answer.value.id.is_empty() { Err(ClientError::malformed("it is no Task: id is missing")) } else { Ok(answer) }
}

/// The same of a push config, which is one for its URL.
fn a_push_config(answer: Answer<PushConfig>) -> Result<Answer<PushConfig>, ClientError> {
    let is_none = answer.value.url.is_empty();
    if is_none { Err(ClientError::malformed("it is no push config: url is missing")) } else { Ok(answer) }
}

#[derive(Clone)]
pub struct Client {
    net: Net,
    card: Arc<Card>,
    choice: Arc<Choice>,
    attached: Arc<Attached>,
    parameters: Arc<Vec<(String, String)>>,
    versions: Versions,
    /// Where the agent turned out to speak another dialect than its card says.
    other_dialect: Arc<AtomicBool>,
    /// Where it turned out to read the other form of HTTP+JSON of 0.3 than most do.
    kind_form: Arc<AtomicBool>,
    files: Option<Files>,
    /// How its answers show that it has files.
    shown_files: Arc<Mutex<Option<Files>>>,
    /// Where it turned out not to stream, whatever its card says.
    streamless: Arc<AtomicBool>,
    /// The extensions the agent says it activated, for those who listen.
    heard: Option<Arc<Mutex<Vec<String>>>>,
}

impl Client {
    /// Chooses an interface of the card and places the credentials its schemes take.
    pub fn new(net: Net, card: Card, options: Options) -> Result<Self, ClientError> {
        let choice = choose(&card, &options.transports, options.version.as_deref(), options.versions)?;
        if let Err(error) = address::check(&choice.interface.called_at(&card.source)) {
            let problem = format!("the url of its interface for {}: {error}", choice.binding.name());
            return Err(ClientError::CardInvalid { reference: address::shown(&card.source), problem });
        }
        let by_card = || attach(&card, &options.credentials, &options.parameters);
        let attached = options.attached.map_or_else(by_card, Ok)?;
        net.note(|| {
            let Choice { binding, interface, version, .. } = &choice;
            format!("* {} at {}, A2A-Version {version}", binding.name(), interface.url)
        });
        Ok(Self {
            net,
            card: Arc::new(card),
            choice: Arc::new(choice),
            attached: Arc::new(attached),
            parameters: Arc::new(options.parameters),
            versions: options.versions,
            other_dialect: Arc::default(),
            kind_form: Arc::default(),
            files: options.files,
            shown_files: Arc::default(),
            streamless: Arc::default(),
            heard: None,
        })
    }

    /// The language the agent is called in.
    pub fn dialect(&self) -> Dialect {
        let chosen = self.choice.dialect;
        if self.other_dialect.load(Ordering::Relaxed) { chosen.other() } else { chosen }
    }

    /// The version that is signalled.
    pub fn version(&self) -> String {
        let chosen = self.dialect() == self.choice.dialect;
        if chosen { self.choice.version.clone() } else { self.dialect().version().to_owned() }
    }

    /// The same agent, called with these headers beside the others.
    #[must_use]
    pub fn carrying(&self, headers: impl IntoIterator<Item = (String, String)>) -> Self {
        let parameters = self.parameters.iter().cloned().chain(headers).collect();
        Self { parameters: Arc::new(parameters), ..self.clone() }
    }

    /// The same agent, called over another network.
    #[must_use]
    pub fn over(self, net: Net) -> Self {
        Self { net, ..self }
    }

    pub fn card(&self) -> &Card {
        &self.card
    }

    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Where it is called, as a URL.
    pub fn called_at(&self) -> String {
        self.choice.interface.called_at(&self.card.source)
    }

    pub fn attached(&self) -> &Attached {
        &self.attached
    }

    /// Whether calls show who makes them.
    fn shows_credential(&self) -> bool {
        !self.attached.is_empty() || is_any_carried(&self.card, &self.parameters)
    }

    /// An error as it may be told, and with what the caller has to know of its own credentials.
    fn told(&self, error: ClientError) -> ClientError {
        error.masked(|text| self.clean(text)).withholding(&self.attached.unused)
    }

    /// Text with every credential of this client masked.
    pub fn clean(&self, text: &str) -> String {
        self.net.clean(text)
    }

    /// SendMessage (spec 3.1.1). Waits as long as the agent does.
    pub async fn send(&self, request: SendMessageRequest) -> Result<Answer<Sent>, ClientError> {
        self.call(Request::SendMessage(request), None).await
    }

    /// SendStreamingMessage (spec 3.1.2).
    pub async fn send_streaming(&self, request: SendMessageRequest) -> Result<Frames, ClientError> {
        self.must_stream()?;
        self.open(Request::SendStreamingMessage(request), None).await
    }

    /// A question about a task. Agents with an address for each operation find it only by its context, too.
    pub fn asking(&self, id: &str, context: &str) -> GetTaskRequest {
        let mut request = GetTaskRequest { id: id.to_owned(), ..GetTaskRequest::default() };
        let by_context = jsonrpc::base_of_operation(&self.choice.interface.url).is_some() && !context.is_empty();
        if let Some(context) = by_context.then(|| Json::of(context).ok()).flatten() {
            request.unknown.push(("contextId".to_owned(), context));
        }
        request
    }

    /// GetTask (spec 3.1.3).
    pub async fn task(&self, request: GetTaskRequest) -> Result<Answer<Task>, ClientError> {
        self.call(Request::GetTask(request), Some(self.net.limits.answer)).await.and_then(a_task)
    }

    /// ListTasks (spec 3.1.4).
    pub async fn tasks(&self, request: ListTasksRequest) -> Result<Answer<TaskPage>, ClientError> {
        self.call(Request::ListTasks(request), Some(self.net.limits.answer)).await
    }

    /// CancelTask (spec 3.1.5).
    pub async fn cancel(&self, request: CancelTaskRequest) -> Result<Answer<Task>, ClientError> {
        self.call(Request::CancelTask(request), Some(self.net.limits.answer)).await.and_then(a_task)
    }

    /// SubscribeToTask (spec 3.1.6), from the state of now or, where the agent keeps event ids, after one of them.
    pub async fn subscribe(&self, id: &str, after: Option<&str>) -> Result<Frames, ClientError> {
        self.must_stream()?;
        let request = SubscribeToTaskRequest { id: id.to_owned(), ..SubscribeToTaskRequest::default() };
        self.open(Request::SubscribeToTask(request), after).await
    }

    /// CreateTaskPushNotificationConfig (spec 3.1.7).
    pub async fn create_push(&self, config: PushConfig) -> Result<Answer<PushConfig>, ClientError> {
        self.must_push()?;
        self.call(Request::CreatePushConfig(config), Some(self.net.limits.answer)).await.and_then(a_push_config)
    }

    /// GetTaskPushNotificationConfig (spec 3.1.8).
    pub async fn push(&self, request: PushConfigRequest) -> Result<Answer<PushConfig>, ClientError> {
        self.must_push()?;
        self.call(Request::GetPushConfig(request), Some(self.net.limits.answer)).await.and_then(a_push_config)
    }

    /// ListTaskPushNotificationConfigs (spec 3.1.9).
    pub async fn pushes(&self, request: ListPushConfigsRequest) -> Result<Answer<PushConfigPage>, ClientError> {
        self.must_push()?;
        self.call(Request::ListPushConfigs(request), Some(self.net.limits.answer)).await
    }

    /// DeleteTaskPushNotificationConfig (spec 3.1.10).
    pub async fn delete_push(&self, request: PushConfigRequest) -> Result<(), ClientError> {
        self.must_push()?;
        self.raw(Request::DeletePushConfig(request), Some(self.net.limits.answer)).await.map(drop)
    }

    /// GetExtendedAgentCard (spec 3.1.11). Asked for only where the public card says how to be let in.
    pub async fn extended_card(&self) -> Result<Card, ClientError> {
        if !self.card.capabilities.extended_agent_card {
            let text = "the agent's card declares no extended card; its public card says all there is";
            return Err(ClientError::local(Reason::UnsupportedOperation, text));
        }
        let request = Request::GetExtendedAgentCard(ExtendedCardRequest::default());
        let json = self.raw(request, Some(self.net.limits.answer)).await?;
        Card::parse(&json, &self.card.source).map_err(ClientError::malformed)
    }

    fn must_stream(&self) -> Result<(), ClientError> {
        if self.card.capabilities.streaming {
            return Ok(());
        }
        Err(ClientError::local(Reason::UnsupportedOperation, "the agent's card says that it does not stream"))
    }

    fn must_push(&self) -> Result<(), ClientError> {
        if self.card.capabilities.push_notifications {
            return Ok(());
        }
        let text = "the agent's card says that it sends no push notifications";
        Err(ClientError::local(Reason::PushNotificationNotSupported, text))
    }

    async fn call<T: DeserializeOwned + Stated>(
        &self,
        request: Request,
        patience: Option<Duration>,
    ) -> Result<Answer<T>, ClientError> {
        let method = request.method();
        let json = self.raw(request, patience).await?;
        let is_as_written = self.choice.binding != Binding::Grpc && self.dialect() == Dialect::Current;
        let writer = if is_as_written { Writer::Agent } else { Writer::Here };
        let read = dialect::read(method, json, writer);
        let (value, json) = read.map_err(|error| error.masked(|text| self.clean(text)))?;
        Ok(Answer { value, json })
    }

    /// Performs an operation that answers once; the result's JSON as the agent wrote it.
    async fn raw(&self, mut request: Request, patience: Option<Duration>) -> Result<String, ClientError> {
        operation::set_tenant(&mut request, &self.choice.interface.tenant);
        if self.choice.binding != Binding::JsonRpc {
            Box::pin(self.learn_files(&request)).await?;
        }
        let answer = match self.choice.binding {
            Binding::JsonRpc => {
                let now = self.speaking(self.dialect());
                match jsonrpc::call(&now, &request, patience).await {
                    Ok(answer) => Ok(answer),
                    Err(error) => match Box::pin(self.other_way(&now, request.method(), &error)).await {
                        Some(other) => {
                            let again = Box::pin(jsonrpc::call(&other, &request, patience)).await;
                            self.turned(&other, again, error)
                        }
                        None => Err(error),
                    },
                }
            }
            Binding::HttpJson => Box::pin(rest::call(self, &request, patience)).await,
            Binding::Grpc => Box::pin(grpc::call(self, &request, patience)).await,
        };
        answer.map_err(|error| self.told(error))
    }

    /// Opens a stream.
    async fn open(&self, mut request: Request, after: Option<&str>) -> Result<Frames, ClientError> {
        operation::set_tenant(&mut request, &self.choice.interface.tenant);
        self.learn_files(&request).await?;
        let frames = match self.choice.binding {
            Binding::JsonRpc => {
                let now = self.speaking(self.dialect());
                match jsonrpc::open(&now, &request, after).await {
                    Ok(frames) => Ok(frames),
                    Err(error) => match self.other_way(&now, request.method(), &error).await {
                        Some(other) => self.turned(&other, jsonrpc::open(&other, &request, after).await, error),
                        None => Err(error),
                    },
                }
            }
            Binding::HttpJson => rest::open(self, &request, after).await,
            Binding::Grpc => grpc::open(self, &request, after).await,
        };
        frames.map_err(|error| self.told(error))
    }

    /// A request with all that every request to this agent carries.
    fn outgoing(&self, method: reqwest::Method, url: String, body: Option<String>, media_type: &str) -> Outgoing {
        let mut headers = vec![("A2A-Version".to_owned(), self.version())];
        if body.is_some() {
            headers.push(("Content-Type".to_owned(), media_type.to_owned()));
        }
        headers.extend(self.attached.headers.iter().cloned());
        headers.extend(self.parameters.iter().cloned());
        if self.dialect() == Dialect::Old {
            headers.extend(dialect::old_headers(&self.parameters));
        }
        Outgoing { method, url, headers, query: self.attached.query.clone(), body, grpc: None }
    }
}
