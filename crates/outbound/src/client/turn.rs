//! Agents that speak another dialect than their card says: found out without sending anything twice that may have begun.

use super::choose::{Dialect, Versions};
use super::error::{ClientError, Code};
use super::{Client, jsonrpc};
use flotilla_protocol::a2a::error::Reason;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::request::{GetTaskRequest, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A task that no agent has.
pub(super) const NOBODYS: &str = "00000000-0000-0000-0000-000000000000";

/// Whether the agent knows neither the method nor the version. Nothing was begun by such a call.
fn is_unknown(error: &ClientError) -> bool {
    error.is(Reason::MethodNotFound) || error.is(Reason::VersionNotSupported)
}

/// Whether the agent broke over a request: HTTP tells of it, and no JSON-RPC does.
fn is_broken(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { code: Some(Code::Number(500)), .. })
}

impl Client {
    /// The same agent in the other dialect, where that is the one it speaks. Only calls that begin work ask: to another
    /// method the same words mean that the agent does not offer that method.
    pub(super) async fn other_way(&self, now: &Self, asked: Method, error: &ClientError) -> Option<Self> {
        let begins = matches!(asked, Method::SendMessage | Method::SendStreamingMessage);
        if !begins || self.versions != Versions::Any {
            return None;
        }
        let other = self.speaking(now.dialect().other());
        // Some break over every method they do not know. A question that begins nothing tells: it is asked both ways.
        let is_other =
            is_unknown(error) || (is_broken(error) && !now.is_understood().await && other.is_understood().await);
        is_other.then_some(other)
    }

    /// Whether a question about a task that nobody has is answered as one.
    async fn is_understood(&self) -> bool {
        let asked = Request::GetTask(GetTaskRequest { id: NOBODYS.into(), ..GetTaskRequest::default() });
        match jsonrpc::call(self, &asked, Some(self.net.limits.answer)).await {
            Ok(_) => true,
            Err(ClientError::Refused { code: Some(Code::Number(code)), .. }) => code < 0 && code != -32601,
            Err(_) => false,
        }
    }

    /// The same agent in one dialect, whatever other calls find out meanwhile.
    pub(super) fn speaking(&self, dialect: Dialect) -> Self {
        Self { other_dialect: Arc::new(AtomicBool::new(dialect != self.choice.dialect)), ..self.clone() }
    }

    /// What came of a call made again in the other dialect, which is spoken from now on if the agent took it.
    pub(super) fn turned<T>(
        &self,
        other: &Self,
        outcome: Result<T, ClientError>,
        first: ClientError,
    ) -> Result<T, ClientError> {
        match outcome {
            Ok(answer) => {
                self.other_dialect.store(other.other_dialect.load(Ordering::Relaxed), Ordering::Relaxed);
                Ok(answer)
            }
            Err(error) if is_unknown(&error) || error.is_unusable() => Err(first),
            // It may have begun something.
            Err(error) => Err(error),
        }
    }
}
