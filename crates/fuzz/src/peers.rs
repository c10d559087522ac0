//! What others answer when we call: cards, streams, gRPC messages and statuses, tokens.

use crate::{headers, lines, text};
use flotilla_core::log::Cursor;
use flotilla_outbound::client::card::Card;
use flotilla_outbound::client::check;
use flotilla_outbound::client::fold::Fold;
use flotilla_outbound::client::frame::Frame;
use flotilla_outbound::fuzz;
use flotilla_outbound::net::sse::{Decoder, Event, NotText};
use flotilla_outbound::oauth::{Invitation, Token};
use flotilla_outbound::signature::jwk::KeySet;
use flotilla_outbound::signature::verify::{OutOfReach, Trust, Word, signatures, verify};
use flotilla_protocol::a2a::request as ask;
use flotilla_protocol::a2a::request::Request;
use flotilla_protocol::canonical;
use std::time::{Duration, Instant};
use url::Url;

/// An agent's card.
pub fn agent_card(bytes: &[u8]) {
    let Some(json) = text(bytes) else { return };
    let problems = check::problems(json);
    match Card::parse(json, "https://agent.example") {
        Ok(card) => {
            assert_eq!(card.json, json, "a card is shown as it came");
            card.security_schemes.values().for_each(|scheme| assert!(!scheme.describe().is_empty()));
        }
        Err(problem) => assert!(!problem.is_empty(), "a card that is refused is told why"),
    }
    assert!(problems.iter().all(|problem| !problem.trim().is_empty()));
}

/// A key set on the first line, and behind it a card that is judged with it.
pub fn card_signature(bytes: &[u8]) {
    let ([set], rest) = lines::<1>(bytes);
    let (Some(set), Some(json)) = (text(set), text(rest)) else { return };
    let keys = KeySet::read(set).unwrap_or_default();
    let origin = Url::parse("https://agent.example").expect("an address");
    for trust in
        [Trust::Pinned(&keys, OutOfReach::default()), Trust::Origin(&keys, &origin), Trust::None("no keys are known")]
    {
        let outcome = verify(json, trust);
        assert!(!outcome.reason.is_empty(), "a word has its reason");
        assert_eq!(outcome.word == Word::Absent, signatures(json).is_empty());
        let Some(proof) = outcome.proof else {
            assert_ne!(outcome.word, Word::Verified, "nothing is verified without a proof");
            continue;
        };
        assert!(outcome.word == Word::Verified && !matches!(trust, Trust::None(_)));
        assert!(keys.0.iter().any(|key| key.thumbprint == proof.thumbprint), "a key that is trusted");
        let again = canonical::read(&proof.payload).expect("what was signed is JSON of one meaning");
        assert_eq!(canonical::write(&again), proof.payload, "and canonical");
    }
}

/// Pieces of a body; the first byte says how long they are.
fn pieces(bytes: &[u8]) -> (std::slice::Chunks<'_, u8>, &[u8]) {
    let (size, body) = bytes.split_first().map_or((1, bytes), |(size, body)| (usize::from(*size).max(1), body));
    (body.chunks(size), body)
}

fn events<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Result<Event, NotText>> {
    let mut decoder = Decoder::default();
    let (mut events, mut pushed) = (Vec::new(), 0);
    for piece in pieces {
        decoder.push(piece);
        pushed += piece.len();
        while let Some(event) = decoder.take().transpose() {
            events.push(event);
        }
        assert!(decoder.held() <= pushed, "more is held than came");
    }
    events.extend(decoder.finish().ok().flatten().map(Ok));
    events
}

/// A stream of server-sent events: however it is cut into pieces, it brings the same.
pub fn sse(bytes: &[u8]) {
    let (pieces, body) = pieces(bytes);
    let whole = events(std::iter::once(body));
    assert_eq!(events(pieces), whole);
    for event in whole.into_iter().flatten() {
        assert!(!event.data.contains('\r'), "a line ends there");
        assert!(!event.id.is_some_and(|id| id.contains(['\r', '\n', '\0'])), "an id goes into a header");
    }
}

/// An event of a stream, and what a stream of such events adds up to.
pub fn stream_frame(bytes: &[u8]) {
    let Some(data) = text(bytes) else { return };
    let mut fold = Fold::default();
    for line in data.lines() {
        let found = fuzz::json_rpc_event(line).into_iter().chain(fuzz::http_json_event(line));
        for json in found {
            let Ok(frame) = Frame::read(None, &json) else { continue };
            assert!(!frame.json.contains(['\n', '\r']), "a frame is one line");
            Frame::made(None, &frame.json).expect("a frame that was written can be read");
            let _ = (frame.sent.ids(), frame.sent.is_last());
            fold.take(&frame.sent);
        }
    }
    if let Some(task) = fold.task() {
        serde_json::to_string(&task).expect("a task that was read can be written");
    }
}

fn requests() -> [Request; 9] {
    [
        Request::SendMessage(ask::SendMessageRequest::default()),
        Request::SendStreamingMessage(ask::SendMessageRequest::default()),
        Request::GetTask(ask::GetTaskRequest::default()),
        Request::ListTasks(ask::ListTasksRequest::default()),
        Request::CreatePushConfig(ask::PushConfig::default()),
        Request::ListPushConfigs(ask::ListPushConfigsRequest::default()),
        Request::DeletePushConfig(ask::PushConfigRequest::default()),
        Request::GetExtendedAgentCard(ask::ExtendedCardRequest::default()),
        Request::SubscribeToTask(ask::SubscribeToTaskRequest::default()),
    ]
}

/// The answer to each operation; the first byte picks one.
pub fn grpc_answer(bytes: &[u8]) {
    let Some((first, message)) = bytes.split_first() else { return };
    let requests = requests();
    let request = &requests[usize::from(*first) % requests.len()];
    let Ok(json) = fuzz::grpc_answer(request, message) else { return };
    serde_json::from_str::<serde_json::Value>(&json).expect("an answer is shown as JSON");
    let before = Some(Cursor { epoch: "e".into(), peer_seq: u64::MAX });
    if let Ok(Some(cursor)) = fuzz::grpc_cursor(before, &json) {
        assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor));
    }
    if matches!(request, Request::SendMessage(_) | Request::SendStreamingMessage(_) | Request::SubscribeToTask(_)) {
        Frame::made(None, &json).expect("what gRPC brings is a frame as in JSON");
    }
}

/// The body of a gRPC answer: however it is cut into pieces, it brings the same, and nothing above the limit.
pub fn grpc_messages(bytes: &[u8]) {
    const LIMIT: usize = 64;
    let (pieces, body) = pieces(bytes);
    let whole = fuzz::grpc_messages(std::iter::once(body), LIMIT);
    assert!(whole.iter().flatten().all(|message| message.len() <= LIMIT));
    assert_eq!(fuzz::grpc_messages(pieces, LIMIT), whole);
}

/// Trailers.
pub fn grpc_status(bytes: &[u8]) {
    if let Some(Err(error)) = fuzz::grpc_status(&headers(bytes)) {
        assert!(!error.to_string().is_empty());
    }
}

/// What OAuth 2 servers say; times that a clock can bear.
pub fn oauth(bytes: &[u8]) {
    let ([first], _) = lines::<1>(bytes);
    if let Ok(invitation) = serde_json::from_slice::<Invitation>(first) {
        assert!(invitation.pause() >= Duration::from_secs(1));
        assert!(Instant::now().checked_add(invitation.lasts() + invitation.pause()).is_some());
    }
    if let Ok(token) = serde_json::from_slice::<Token>(first) {
        assert!(token.lasts().is_none_or(|millis| millis >= 0));
    }
}
