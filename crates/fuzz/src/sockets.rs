//! What comes over a socket: frames are told apart the same way twice, and what is read of them can be written again.

use crate::lines;
use crate::text;
use flotilla_protocol::a2a::model::Role;
use flotilla_protocol::a2a::profile::{MOST, Profile};
use flotilla_protocol::channel::{self, Frame};
use flotilla_protocol::gopherhole::{self, Asked};
use flotilla_protocol::hub_frame::Said;
use flotilla_protocol::hub_frame::worker::Told;
use flotilla_protocol::wire::Json;

fn told(frame: &Frame<'_>) -> String {
    match frame {
        Frame::Request { envelope, service } => format!("request {:?} {service:?}", envelope.method_name().ok()),
        Frame::CancelStream { id } => format!("cancel {id}"),
        Frame::Result { id, result } => format!("result {id} {result}"),
        Frame::Error { id, error } => format!("error {id} {}", error.code),
        Frame::StreamEnd { id } => format!("end {id}"),
        Frame::NoAnswer { id, refusal } => format!("nothing {id} {}", refusal.message),
        Frame::Hub { kind } => format!("hub {kind}"),
    }
}

/// A frame, as a connection reads it.
pub fn socket_frame(bytes: &[u8]) {
    let Ok(frame) = Frame::parse(bytes) else { return };
    match &frame {
        Frame::Hub { kind } => hub_frame(kind, bytes),
        Frame::StreamEnd { id } => assert_eq!(told(&parsed(&channel::stream_end(id))), told(&frame)),
        Frame::Result { id, result } => {
            let json = Json::new((*result).to_owned()).expect("what was read is JSON");
            let written = channel::result(id, &json, Some("e.1")).expect("it can be written");
            assert_eq!(told(&parsed(&written)), told(&frame));
        }
        _ => {}
    }
}

fn parsed(text: &str) -> Frame<'_> {
    Frame::parse(text.as_bytes()).expect("what was written can be read")
}

fn hub_frame(kind: &str, bytes: &[u8]) {
    match Said::parse(kind, bytes) {
        Ok(Said::UpdateCard(card)) => {
            if let Ok(profile) = Profile::read(&card) {
                assert!(card.text().len() <= MOST && !profile.skills("a", "").is_empty());
                let json = serde_json::to_string(&profile).expect("a profile can be written");
                assert_eq!(serde_json::from_str::<Profile>(&json).expect("and read"), profile);
            }
        }
        Ok(Said::TaskResponse(response)) => {
            if let Ok(reports) = gopherhole::reports(&response, |_, _| true) {
                assert!(!reports.is_empty());
            }
        }
        Ok(Said::Report(told)) => {
            let frame = told.frame();
            assert_eq!(*told, Told::read(frame.as_bytes()).expect("what was written can be read"));
        }
        Ok(Said::Message(sending)) => {
            if let Ok(message) = gopherhole::read_message(&sending.payload, Role::User) {
                let again = Json::of(&gopherhole::payload(&message)).expect("it can be written");
                let again = gopherhole::read_message(&again, Role::User).expect("and read");
                assert_eq!(again.parts.len(), message.parts.len());
            }
        }
        _ => {}
    }
}

/// A request of GopherHole's: the method in the first line, its parameters behind it.
pub fn gopherhole_request(bytes: &[u8]) {
    let ([method], params) = lines(bytes);
    let (Some(method), Some(params)) = (text(method), text(params)) else { return };
    if let Ok(Asked::Send { request, .. }) = gopherhole::read(method, params, gopherhole::message_id("1")) {
        let message = request.message.as_ref().expect("a message");
        assert!(message.role == Role::User && message.message_id.starts_with("gph-"));
        let _ = request.ttl();
    }
}
