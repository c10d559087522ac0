//! The two versions gRPC is spoken in, each its own service: how requests are read and answers written.

use super::frame;
use crate::call::Answer;
use crate::dialect::Dialect;
use axum::body::Body;
use bytes::BytesMut;
use flotilla_grpc::{Reader, SERVICE, Status, v03};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::method::Method;
use flotilla_protocol::a2a::model::StreamResponse;
use flotilla_protocol::a2a::request::Request;
use flotilla_protocol::proto03::file::Files;
use flotilla_protocol::time::Millis;
use flotilla_protocol::v03::Form;
use http::header::USER_AGENT;
use http::{HeaderMap, Response};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speech {
    V10,
    /// With files as the caller reads them.
    V03(Files),
}

impl Speech {
    /// By the service that is called; none if it is not one of A2A.
    pub fn of(service: &str, headers: &HeaderMap) -> Option<Self> {
        let caller = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        match service {
            SERVICE => Some(Self::V10),
            v03::SERVICE => Some(Self::V03(Files::of_caller(caller))),
            _ => None,
        }
    }

    pub fn dialect(self) -> Dialect {
        match self {
            Self::V10 => Dialect::V10,
            Self::V03(_) => Dialect::V03(Form::Proto),
        }
    }

    pub fn method(self, name: &str) -> Option<Method> {
        match self {
            Self::V10 => Method::from_name(name),
            Self::V03(_) => v03::method(name),
        }
    }

    pub fn name(self, method: Method) -> Option<&'static str> {
        match self {
            Self::V10 => Some(method.name()),
            Self::V03(_) => v03::name(method),
        }
    }

    /// A message as what is asked for.
    pub fn request(self, method: Method, message: &[u8], json_depth: usize) -> Result<Request, Refusal> {
        match self {
            Self::V10 => Reader { json_depth }.request(method, message),
            Self::V03(files) => v03::Reader { json_depth, files }.request(method, message),
        }
    }

    /// The response to a call that is answered once.
    pub fn response(self, answer: Answer) -> Response<Body> {
        match (self, answer) {
            (Self::V10, Answer::Task(task)) => frame::whole(flotilla_grpc::task(&task)),
            (Self::V10, Answer::Sent(sent)) => frame::whole(flotilla_grpc::sent(&sent)),
            (Self::V10, Answer::PushConfig(config)) => frame::response(&flotilla_grpc::push_config(&config)),
            (Self::V10, Answer::PushConfigs(list)) => frame::response(&flotilla_grpc::push_list(&list)),
            (Self::V10, Answer::Card(signed)) => frame::response(&flotilla_grpc::card(&signed.card)),
            (Self::V03(_), Answer::Card(signed)) => frame::response(&v03::card(&signed.card)),
            (Self::V03(files), Answer::Task(task)) => frame::response(&v03::task(&task, files)),
            (Self::V03(files), Answer::Sent(sent)) => frame::response(&v03::sent(&sent, files)),
            (Self::V03(_), Answer::PushConfig(config)) => frame::response(&v03::push_config(&config)),
            (Self::V03(_), Answer::PushConfigs(list)) => frame::response(&v03::push_list(&list)),
            // Only 1.0 has a list, and a stream is written elsewhere.
            (_, Answer::List(list)) => frame::whole(flotilla_grpc::list(&list)),
            (_, Answer::Empty | Answer::Stream(..)) => frame::response(&()),
        }
    }

    /// One frame of a stream, behind what is there.
    pub fn append(self, out: &mut BytesMut, one: &StreamResponse) {
        match self {
            Self::V10 => out.extend_from_slice(&flotilla_grpc::frame(one)),
            Self::V03(files) => frame::append(out, &v03::frame(one, files)),
        }
    }

    pub fn status(self, refusal: &Refusal, now: Millis) -> Status {
        match self {
            Self::V10 => Status::of(refusal, now),
            Self::V03(_) => v03::status(refusal, now),
        }
    }
}
