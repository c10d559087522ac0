//! How an agent of 0.3 has files where the proto has bytes: as its settings or its card say, or its answers show.

use super::choose::{Binding, Dialect};
use super::error::ClientError;
use super::turn::NOBODYS;
use super::{Client, grpc, rest};
use flotilla_protocol::a2a::request::{GetTaskRequest, Request};
use flotilla_protocol::lineage::ANCESTRY;
use flotilla_protocol::proto03::file::Files;
use http::{HeaderMap, StatusCode};

/// What an answer's head shows. The SDK for JavaScript has the bytes, and is known by the libraries it is served with;
/// those of the others have base64 text. What somebody before the agent says shows nothing.
fn shown(binding: Binding, status: StatusCode, headers: &HeaderMap) -> Option<Files> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = text("content-type").split(';').next().unwrap_or_default().trim();
    match binding {
        Binding::JsonRpc => None,
        Binding::HttpJson if text("x-powered-by").eq_ignore_ascii_case("express") => Some(Files::Bytes),
        Binding::HttpJson => {
            let is_agents = !status.is_server_error() && (kind.ends_with("json") || kind == "text/event-stream");
            is_agents.then_some(Files::Text)
        }
        Binding::Grpc => match kind {
            "application/grpc+proto" => Some(Files::Bytes),
            "application/grpc" => Some(Files::Text),
            _ => None,
        },
    }
}

fn holds_file(request: &Request) -> bool {
    let (Request::SendMessage(send) | Request::SendStreamingMessage(send)) = request else { return false };
    send.message.iter().flat_map(|message| &message.parts).any(|part| part.raw.is_some())
}

impl Client {
    /// How the agent has files in the proto of 0.3. Most are made with an SDK that has base64 text there.
    pub(super) fn files(&self) -> Files {
        self.known_files().unwrap_or(Files::Text)
    }

    /// The same, as far as anything is known. A hub of ours is known by what every card of it declares.
    fn known_files(&self) -> Option<Files> {
        let is_ours = || self.card.capabilities.extensions.iter().any(|extension| extension.uri == ANCESTRY);
        let shown = || *self.shown_files.lock().expect("no panic while holding what was shown");
        self.files.or_else(|| is_ours().then_some(Files::Bytes)).or_else(shown)
    }

    /// Looks at an answer's head for how its sender has files.
    pub(super) fn note_files(&self, status: StatusCode, headers: &HeaderMap) {
        if self.dialect() != Dialect::Old {
            return;
        }
        if let Some(files) = shown(self.choice.binding, status, headers) {
            *self.shown_files.lock().expect("no panic while holding what was shown") = Some(files);
        }
    }

    /// Before the first file goes to an agent that has not answered anything yet, it is asked something that begins
    /// nothing: any answer shows what it is served with.
    pub(super) async fn learn_files(&self, request: &Request) -> Result<(), ClientError> {
        let is_plain = self.choice.binding == Binding::JsonRpc || self.dialect() != Dialect::Old;
        if is_plain || !holds_file(request) || self.known_files().is_some() {
            return Ok(());
        }
        let asked = Request::GetTask(GetTaskRequest { id: NOBODYS.into(), ..GetTaskRequest::default() });
        let patience = Some(self.net.limits.answer);
        let answered = match self.choice.binding {
            Binding::Grpc => grpc::call(self, &asked, patience).await,
            Binding::JsonRpc | Binding::HttpJson => rest::call(self, &asked, patience).await,
        };
        match answered {
            // Nor would the message get there now.
            Err(error @ ClientError::Unconnected { .. }) => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Binding, Files, HeaderMap, StatusCode, shown};

    #[test]
    fn an_agent_shows_what_it_is_served_with() {
        let head = |pairs: &[(&'static str, &'static str)]| -> HeaderMap {
            pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
        };
        let json = ("content-type", "application/json; charset=utf-8");
        for (binding, status, pairs, expected) in [
            (Binding::HttpJson, 404, &[json, ("x-powered-by", "Express")][..], Some(Files::Bytes)),
            (Binding::HttpJson, 404, &[json, ("server", "uvicorn")], Some(Files::Text)),
            (Binding::HttpJson, 200, &[("content-type", "text/event-stream")], Some(Files::Text)),
            (Binding::HttpJson, 503, &[json], None),
            (Binding::HttpJson, 404, &[("content-type", "text/html")], None),
            (Binding::Grpc, 200, &[("content-type", "application/grpc+proto")], Some(Files::Bytes)),
            (Binding::Grpc, 200, &[("content-type", "application/grpc")], Some(Files::Text)),
            (Binding::Grpc, 502, &[("content-type", "text/html")], None),
            (Binding::JsonRpc, 200, &[json, ("x-powered-by", "Express")], None),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(shown(binding, status, &head(pairs)), expected, "{binding:?} {status} {pairs:?}");
        }
    }
}
