//! Requests that come over a connection: the same operations as on every binding, several of them at once.

use super::connection::{Connection, Manner, say};
use super::lines::{Line, Outgoing};
use crate::app::App;
use crate::call::{Answer, perform};
use crate::dialect::{self, Dialect};
use crate::gopherhole;
use crate::jsonrpc::decode;
use crate::meters::Binding;
use crate::parameters::Parameters;
use crate::reading::{Reading, Turn};
use crate::spoken::Spoken;
use flotilla_core::caller::Caller;
use flotilla_core::error::{Error, Fault};
use flotilla_core::held_bytes::{Account, Held};
use flotilla_core::hub::Framed;
use flotilla_core::log::Cursor;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::channel::{self, Service};
use flotilla_protocol::jsonrpc::{self, Envelope};
use flotilla_protocol::v03;
use http::{HeaderName, HeaderValue};
use std::collections::{BTreeMap, HashMap};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// Requests under way. They end with the connection; the tasks they began do not.
pub struct Calls {
    most: usize,
    running: JoinSet<String>,
    by_id: HashMap<String, AbortHandle>,
}

impl Calls {
    pub fn new(most: usize) -> Self {
        Self { most, running: JoinSet::new(), by_id: HashMap::new() }
    }

    /// Waits until one has ended; none if there are none.
    pub async fn ended(&mut self) -> Option<()> {
        // One that was aborted has been forgotten already.
        if let Ok(id) = self.running.join_next().await? {
            self.by_id.remove(&id);
        }
        Some(())
    }

    fn start(&mut self, id: &str, call: impl Future<Output = ()> + Send + 'static) -> Result<(), Refusal> {
        if self.running.len() >= self.most {
            let text = format!(
                "This connection has as many requests under way as it may ({}). Wait for one to end, or open another.",
                self.most
            );
            return Err(Refusal::new(Reason::ResourceExhausted, text));
        }
        if self.by_id.contains_key(id) && id != "null" {
            let text = "A request of this id is under way on this connection. Give each one an id of its own.";
            return Err(Refusal::new(Reason::InvalidRequest, text));
        }
        let own = id.to_owned();
        let handle = self.running.spawn(async move {
            call.await;
            own
        });
        self.by_id.insert(id.to_owned(), handle);
        Ok(())
    }
}

/// What one request needs of its connection.
struct Call {
    app: Arc<App>,
    caller: Caller,
    outgoing: Line,
    parameters: Parameters,
    id: String,
    method: String,
    params: String,
    dialect: Dialect,
    in_gopherhole: bool,
    /// For what it asks, until it is answered.
    held: Held,
}

impl Connection {
    /// Begins a request; its answer comes when it comes. One without an id wants none (JSON-RPC 2.0, 4.1).
    pub fn call(&mut self, envelope: &Envelope<'_>, service: Service<'_>) {
        let (id, wants_answer) = (envelope.answer_id().unwrap_or("null").to_owned(), envelope.id.is_some());
        let begun = self.read_call(&id, envelope, service).and_then(|mut call| {
            if !wants_answer {
                // Nobody reads this line.
                call.outgoing = mpsc::channel(1).0;
            }
            self.calls.start(&id, call.run())
        });
        if let Err(refusal) = begun {
            self.app.meters.refused(Binding::Channel, &refusal);
            if wants_answer {
                self.say(channel::error(&id, &refusal, self.app.now()));
            }
        }
    }

    fn read_call(&self, id: &str, envelope: &Envelope<'_>, service: Service<'_>) -> Result<Box<Call>, Refusal> {
        let (method, params) = (envelope.method_name()?, envelope.params_text()?.to_owned());
        let parameters = self.parameters(&service.read()?)?;
        self.app.hub.count_request(self.caller.principal)?;
        let dialect = Dialect::by_version(&parameters);
        let mut held = self.app.hub.held_bytes().open(Account::Caller(self.caller.principal));
        held.grow(params.len())?;
        let (app, caller, outgoing) = (Arc::clone(&self.app), self.caller.clone(), self.outgoing.clone());
        let (id, in_gopherhole) = (id.to_owned(), self.manner == Manner::GopherHole);
        Ok(Box::new(Call { app, caller, outgoing, parameters, id, method, params, dialect, in_gopherhole, held }))
    }

    /// Those of the connection, and over them those of the request.
    fn parameters(&self, service: &BTreeMap<String, String>) -> Result<Parameters, Refusal> {
        let (headers, uri) = &self.service;
        let mut headers = headers.clone();
        for (name, value) in service {
            let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) else {
                let text = "must have names and values as HTTP headers have them";
                return Err(Refusal::invalid("serviceParams", text));
            };
            headers.insert(name, value);
        }
        let version = match self.manner {
            Manner::V10 => Some("1.0"),
            Manner::V03 => Some("0.3"),
            Manner::Frames | Manner::GopherHole | Manner::Worker => None,
        };
        if let Some(version) = version.filter(|_| !headers.contains_key("a2a-version")) {
            headers.insert("a2a-version", HeaderValue::from_static(version));
        }
        Ok(Parameters::of(&headers, uri))
    }

    /// A stream that is not wanted any more ends; so does the wait for an answer.
    pub fn cancel_stream(&mut self, id: &str) {
        if let Some(handle) = self.calls.by_id.remove(id) {
            handle.abort();
            self.say(channel::stream_end(id));
        }
    }
}

impl Call {
    async fn run(mut self: Box<Self>) {
        let started = Instant::now();
        if let Err(error) = self.answer(started).await {
            let refusal = self.app.refusal(error);
            self.app.meters.refused(Binding::Channel, &refusal);
            let text = self.refusal(&refusal);
            say(&self.outgoing, text).await;
        }
    }

    async fn answer(&mut self, started: Instant) -> Result<(), Error> {
        if self.in_gopherhole && !gopherhole::leaves_to_a2a(&self.method) {
            let answered = gopherhole::answer(&self.app, &self.caller, &self.method, &self.params).await?;
            let text = channel::result(&self.id, &answered.result, None).map_err(encoding)?;
            // What is answered is gone before its text waits to be read.
            drop(answered.result);
            self.say(text).await?;
            // Its news come after the answer, so that its caller knows the task they are about.
            drop(answered.news);
            return Ok(());
        }
        let (dialect, method) = dialect::of_method(&self.method, &self.parameters);
        self.dialect = dialect;
        let method = method?;
        let request = decode::request(dialect, method, &self.params)?;
        let answered = perform(&self.app, &self.caller, None, dialect, &self.parameters, request).await?;
        self.app.meters.served(Binding::Channel, method, started);
        // What is answered is gone before its text waits to be read.
        let text = match answered.answer {
            Answer::Task(task) => self.result(&*task),
            Answer::Sent(sent) => self.result(&sent),
            Answer::List(list) => self.result(&list),
            Answer::PushConfig(config) => self.result(&*config),
            Answer::PushConfigs(list) => self.result(&list),
            Answer::Card(card) => self.written(&card.json),
            Answer::Empty => self.written(if dialect == Dialect::V10 { b"{}" } else { b"null" }),
            Answer::Stream(follow, leave) => return self.stream(Reading::new(&self.app, leave, follow)).await,
        }?;
        Ok(self.say(text).await?)
    }

    /// An answer, if there is room for it among those that are not read yet.
    async fn say(&self, text: String) -> Result<(), Refusal> {
        let mut held = self.held.budget().open(self.held.account());
        held.grow(text.len())?;
        say(&self.outgoing, Outgoing { text, held: Some(held) }).await;
        Ok(())
    }

    /// Waits until there is room for the next frame of a stream.
    async fn room(&self) {
        let (budget, account) = (self.held.budget(), self.held.account());
        poll_fn(|context| if budget.has_room(account, context.waker()) { Poll::Ready(()) } else { Poll::Pending })
            .await;
    }

    /// A frame of a stream, for which there was room.
    async fn say_next(&self, text: String) {
        let mut held = self.held.budget().open(self.held.account());
        held.grow_anyway(text.len());
        say(&self.outgoing, Outgoing { text, held: Some(held) }).await;
    }

    fn refusal(&self, refusal: &Refusal) -> String {
        match self.dialect {
            Dialect::V10 => channel::error(&self.id, refusal, self.app.now()),
            Dialect::V03(_) => {
                String::from_utf8(v03::error::json_rpc(&self.id, refusal, self.app.now())).unwrap_or_default()
            }
        }
    }

    fn result<T: Spoken>(&self, value: &T) -> Result<String, Fault> {
        text(jsonrpc::result(&self.id, |out| value.write(self.dialect, out)).map_err(encoding)?)
    }

    /// A result that is JSON already.
    fn written(&self, json: &[u8]) -> Result<String, Fault> {
        let body = jsonrpc::result(&self.id, |out| {
            out.extend_from_slice(json);
            Ok(())
        });
        text(body.map_err(encoding)?)
    }

    /// Frame after frame, each with where its reader then stands; then a word that there are no more.
    async fn stream(&self, mut reading: Reading) -> Result<(), Error> {
        let (patience, epoch) = (self.app.settings().keep_alive, reading.epoch());
        while !self.outgoing.is_closed() {
            match reading.next(patience).await? {
                Turn::Frames => loop {
                    self.room().await;
                    let Some(Framed { peer_seq, frame }) = reading.take() else { break };
                    let mut body = jsonrpc::result(&self.id, |out| frame.write(self.dialect, out)).map_err(encoding)?;
                    let cursor = Cursor { epoch: epoch.clone(), peer_seq };
                    body.pop();
                    body.extend_from_slice(format!(",\"cursor\":\"{cursor}\"}}").as_bytes());
                    self.say_next(text(body)?).await;
                    if self.dialect.ends_with(&frame) {
                        say(&self.outgoing, channel::stream_end(&self.id)).await;
                        return Ok(());
                    }
                },
                Turn::Quiet => {}
                Turn::Stopping => {
                    let text = "The hub is stopping. Connect again, and subscribe with the last cursor.";
                    return Err(Refusal::new(Reason::Unavailable, text).into());
                }
                Turn::End => {
                    say(&self.outgoing, channel::stream_end(&self.id)).await;
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

fn text(body: Vec<u8>) -> Result<String, Fault> {
    String::from_utf8(body).map_err(|error| Fault::new(format!("encoding an answer: {error}")))
}

fn encoding(error: serde_json::Error) -> Fault {
    Fault::new(format!("encoding an answer: {error}"))
}
