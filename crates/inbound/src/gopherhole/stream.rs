//! Streams of the dialect, over HTTP alone: the frames of 1.0, with the states and parts of 0.3 in them.

use super::{conversation, parties};
use crate::app::App;
use crate::call::{Answer, perform};
use crate::dialect::Dialect;
use crate::meters::Binding;
use crate::parameters::Parameters;
use crate::reading::Reading;
use crate::sse::{self, Dress};
use axum::body::Body;
use flotilla_core::caller::Caller;
use flotilla_core::error::{Error, Fault};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::model::StreamResponse;
use flotilla_protocol::a2a::request::{Request, SubscribeToTaskRequest};
use flotilla_protocol::gopherhole::{self, Asked, Parties};
use flotilla_protocol::jsonrpc;
use flotilla_protocol::v03::V03;
use http::Response;
use serde_json::json;
use std::sync::Arc;

/// A request of the dialect that asks for a stream.
pub struct Streaming<'a> {
    pub id: &'a str,
    pub method: Method,
    pub params: &'a str,
    pub parameters: &'a Parameters,
}

impl Streaming<'_> {
    /// The stream, or the refusal in one: its clients read none elsewhere.
    pub async fn open(self, app: &Arc<App>, caller: &Caller) -> Response<Body> {
        let opened = match self.method {
            Method::SendStreamingMessage => Box::pin(self.send(app, caller)).await,
            _ => Box::pin(self.subscribe(app, caller)).await,
        };
        let id = self.id.to_owned();
        match opened {
            Ok((reading, parties)) => sse::respond(reading, Told { id, parties }),
            Err(error) => {
                let refusal = app.refusal(error);
                app.meters.refused(Binding::JsonRpc, &refusal);
                sse::single(&Told { id, parties: Parties::default() }.refusal(app, &refusal))
            }
        }
    }

    async fn send(&self, app: &Arc<App>, caller: &Caller) -> Result<(Reading, Parties), Error> {
        let fresh = gopherhole::message_id(&uuid::Uuid::now_v7().to_string());
        let (to, request) = match gopherhole::read(self.method.name(), self.params, fresh)? {
            Asked::Send { to, request } => {
                let request = conversation::to_agent(app, caller, &to, *request).await?;
                (to, request)
            }
            Asked::Say { context, message, configuration } => {
                conversation::to_nobody(app, caller, context, *message, *configuration).await?
            }
            _ => return Err(Fault::new("a message is read as one").into()),
        };
        let reading = self.follow(app, caller, &to, Request::SendStreamingMessage(request)).await?;
        let parties = Parties { client: caller.shown_as().to_owned(), server: to };
        Ok((reading, parties))
    }

    async fn subscribe(&self, app: &Arc<App>, caller: &Caller) -> Result<(Reading, Parties), Error> {
        let request: SubscribeToTaskRequest = flotilla_protocol::decode::message(self.params.as_bytes())?;
        let agent = app.hub.agent_of(caller, &request.id).await?.ok_or_else(|| Refusal::no_task(&request.id))?;
        let reading = self.follow(app, caller, &agent.name, Request::SubscribeToTask(request)).await?;
        Ok((reading, parties(caller, &agent)))
    }

    async fn follow(&self, app: &Arc<App>, caller: &Caller, agent: &str, request: Request) -> Result<Reading, Error> {
        let answered = Box::pin(perform(app, caller, Some(agent), Dialect::V10, self.parameters, request)).await?;
        match answered.answer {
            Answer::Stream(follow, leave) => Ok(Reading::new(app, leave, follow)),
            _ => Err(Fault::new("a stream was asked for").into()),
        }
    }
}

struct Told {
    id: String,
    parties: Parties,
}

impl Dress for Told {
    fn frame(&self, out: &mut Vec<u8>, frame: &StreamResponse) -> Result<(), serde_json::Error> {
        let told = match frame {
            StreamResponse::Task(task) => json!({"task": gopherhole::task(task, &self.parties)}),
            StreamResponse::Message(message) => json!({"message": gopherhole::payload(message)}),
            StreamResponse::StatusUpdate(_) => json!({"statusUpdate": V03(frame)}),
            StreamResponse::ArtifactUpdate(_) => json!({"artifactUpdate": V03(frame)}),
        };
        jsonrpc::write_result(out, &self.id, |out| serde_json::to_writer(out, &told))
    }

    fn refusal(&self, app: &App, refusal: &Refusal) -> Vec<u8> {
        jsonrpc::error(&self.id, refusal, app.now())
    }

    fn is_last(&self, frame: &StreamResponse) -> bool {
        // Whoever must answer first waits for the end of the stream to do so.
        matches!(frame, StreamResponse::StatusUpdate(update) if update.status.state.is_settled())
    }
}
