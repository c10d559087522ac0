//! A gRPC client made of the descriptors alone: JSON in, JSON out, through none of the hub's own conversions.

mod raw;

pub use raw::{Health, Raised, compressed, converse, health, refused, watch_health};

use crate::client::Refusal;
use crate::http::{self as http1, Request, Response};
use crate::sse::Event;
use crate::wait::PATIENCE;
use bytes::{Buf as _, BufMut as _, Bytes};
use flotilla_grpc::{Code, DESCRIPTORS, SERVICE, rpc};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use prost_reflect::{
    DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor, MethodDescriptor, SerializeOptions,
};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder, Streaming};
use tonic::metadata::{MetadataKey, MetadataMap};
use tower::Service;

/// Calls an operation that has one answer.
pub fn unary(
    address: SocketAddr,
    metadata: &[(String, String)],
    method: &str,
    params: &Value,
) -> Result<Value, Refusal> {
    let call = Call::new(address, metadata, method, params);
    let answer = call.wait(async {
        let mut client = call.client().await?;
        client.unary(call.request(), call.path(), Raw).await
    });
    let answer = answer.map_err(|status| refusal(&status))?.into_inner();
    Ok(complete(method, to_json(call.method.output(), &answer)))
}

/// The same with what came around it, as if it had been JSON over HTTP.
pub fn response(address: SocketAddr, metadata: &[(String, String)], method: &str, params: &Value) -> Response {
    let call = Call::new(address, metadata, method, params);
    let answer = call.wait(async {
        let mut client = call.client().await?;
        client.unary(call.request(), call.path(), Raw).await
    });
    match answer {
        Ok(answer) => {
            let headers = texts(answer.metadata());
            let body = complete(method, to_json(call.method.output(), answer.get_ref()));
            Response { status: 200, headers, body: body.to_string().into_bytes() }
        }
        Err(status) => {
            let body = error_json(&refusal(&status)).to_string().into_bytes();
            Response { status: 200, headers: texts(status.metadata()), body }
        }
    }
}

/// A call as HTTP/2 sees it.
pub(crate) fn request(metadata: &[(String, String)], method: &str, params: &Value) -> Request {
    let message = encoded(method, params);
    let length = u32::try_from(message.len()).expect("a message that can be framed");
    let body = [&[0][..], &length.to_be_bytes(), &message].concat();
    let request = Request::post(&format!("/{SERVICE}/{method}"), body).header("content-type", "application/grpc");
    metadata.iter().fold(request.header("te", "trailers"), |request, (name, value)| request.header(name, value))
}

/// The refusal an answer's headers or trailers tell, if it is one of gRPC.
pub(crate) fn refusal_in(response: &Response) -> Option<Refusal> {
    http1::find(&response.headers, "grpc-status")?;
    let mut headers = http::HeaderMap::new();
    for (name, value) in &response.headers {
        let name: http::HeaderName = name.parse().expect("a header's name");
        headers.insert(name, value.parse().expect("a header's value"));
    }
    tonic::Status::from_header_map(&headers)
        .filter(|status| status.code() != tonic::Code::Ok)
        .map(|told| refusal(&told))
}

/// Whether a request can be said at all: types that are wrong have no form here.
pub fn can_say(method: &str, params: &str) -> bool {
    let Ok(params) = serde_json::from_str::<Value>(params) else { return false };
    encode(&described(method), &params, true).is_ok()
}

/// Opens a stream. A refusal comes instead of its first message.
pub fn stream(
    address: SocketAddr,
    metadata: &[(String, String)],
    method: &str,
    params: &Value,
) -> Result<Reading, Refusal> {
    let call = Call::new(address, metadata, method, params);
    let opened = call.wait(async {
        let mut client = call.client().await?;
        client.server_streaming(call.request(), call.path(), Raw).await
    });
    let opened = opened.map_err(|status| refusal(&status))?;
    let headers = texts(opened.metadata());
    let cursor = headers.iter().find(|(name, _)| name == "last-event-id").map(|(_, cursor)| cursor.clone());
    let cursor = cursor.expect("a stream says where it begins");
    let (epoch, number) = cursor.rsplit_once('.').expect("a cursor is <epoch>.<number>");
    let number = number.parse().expect("a cursor ends in a number");
    let output = call.method.output();
    let Call { runtime, .. } = call;
    let messages = opened.into_inner();
    Ok(Reading {
        headers,
        epoch: epoch.to_owned(),
        number,
        output,
        messages,
        over: false,
        cut: false,
        ended: None,
        runtime,
    })
}

/// A request's bytes, made from its JSON.
pub fn encoded(method: &str, params: &Value) -> Vec<u8> {
    encode(&described(method), params, false).expect("it can be said").to_vec()
}

/// The operation of this name, of A2A 1.0 unless a service stands before it: `a2a.v1.A2AService/GetTask`.
fn described(method: &str) -> MethodDescriptor {
    let pool = DescriptorPool::decode(DESCRIPTORS).expect("the descriptors are sound");
    let (service, name) = method.split_once('/').unwrap_or((SERVICE, method));
    let service = pool.get_service_by_name(service).expect("the service is described");
    let found = service.methods().find(|known| known.name() == name);
    found.unwrap_or_else(|| panic!("there is no operation {method}"))
}

/// JSON as the bytes of a request; names nobody knows are an error or dropped.
fn encode(method: &MethodDescriptor, params: &Value, strict: bool) -> Result<Bytes, serde_json::Error> {
    let options = DeserializeOptions::new().deny_unknown_fields(strict);
    let message = DynamicMessage::deserialize_with_options(method.input(), params, &options)?;
    Ok(Bytes::from(message.encode_to_vec()))
}

pub(crate) fn dress(request: &mut tonic::Request<Bytes>, metadata: &[(String, String)]) {
    for (name, value) in metadata {
        let key: MetadataKey<_> = name.to_ascii_lowercase().parse().expect("a name of metadata");
        request.metadata_mut().append(key, value.parse().expect("a value of metadata"));
    }
}

struct Call {
    runtime: Runtime,
    address: SocketAddr,
    metadata: Vec<(String, String)>,
    method: MethodDescriptor,
    message: Bytes,
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// One HTTP/2 connection and nothing around it: no retries, and no deadline but the hub's own.
#[derive(Clone)]
pub(crate) struct Connection(SendRequest<tonic::body::Body>);

impl Service<http::Request<tonic::body::Body>> for Connection {
    type Response = http::Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, hyper::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

pub(crate) async fn connect(address: SocketAddr) -> Result<Grpc<Connection>, tonic::Status> {
    let gone = |error: &dyn std::error::Error| tonic::Status::unavailable(error.to_string());
    let stream = TcpStream::connect(address).await.map_err(|error| gone(&error))?;
    stream.set_nodelay(true).map_err(|error| gone(&error))?;
    let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .map_err(|error| gone(&error))?;
    tokio::spawn(connection);
    let origin = format!("http://{address}").parse().expect("an address");
    let mut client = Grpc::with_origin(Connection(sender), origin).max_decoding_message_size(usize::MAX);
    client.ready().await.map_err(|error| gone(&error))?;
    Ok(client)
}

impl Call {
    fn new(address: SocketAddr, metadata: &[(String, String)], method: &str, params: &Value) -> Self {
        let method = described(method);
        let message = encode(&method, params, false).unwrap_or_else(|error| panic!("{params} cannot be said: {error}"));
        Self { runtime: runtime(), address, metadata: metadata.to_vec(), method, message }
    }

    fn wait<T>(&self, call: impl Future<Output = Result<T, tonic::Status>>) -> Result<T, tonic::Status> {
        let waited = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, call).await });
        waited.unwrap_or_else(|_| panic!("waited {PATIENCE:?} for the hub to answer"))
    }

    async fn client(&self) -> Result<Grpc<Connection>, tonic::Status> {
        connect(self.address).await
    }

    fn path(&self) -> http::uri::PathAndQuery {
        format!("/{}/{}", self.method.parent_service().full_name(), self.method.name()).parse().expect("a path")
    }

    fn request(&self) -> tonic::Request<Bytes> {
        let mut request = tonic::Request::new(self.message.clone());
        dress(&mut request, &self.metadata);
        request
    }
}

/// A stream that is being read; dropping it hangs up.
pub struct Reading {
    pub(crate) headers: Vec<(String, String)>,
    epoch: String,
    /// The number of the last message.
    number: u64,
    output: MessageDescriptor,
    messages: Streaming<Bytes>,
    over: bool,
    pub(crate) cut: bool,
    /// The refusal that ended it.
    pub(crate) ended: Option<Refusal>,
    runtime: Runtime,
}

impl Reading {
    pub(crate) fn next(&mut self) -> Option<Event> {
        if self.over {
            return None;
        }
        let Self { runtime, messages, .. } = self;
        let next = runtime.block_on(async { tokio::time::timeout(PATIENCE, messages.message()).await });
        match next.unwrap_or_else(|_| panic!("waited {PATIENCE:?} for the hub to say something")) {
            Ok(Some(message)) => {
                let frame = to_json(self.output.clone(), &message);
                self.number = jumped_to(&frame).unwrap_or(self.number + 1);
                let data = frame.to_string();
                let id = format!("{}.{}", self.epoch, self.number);
                Some(Event { id: Some(id), data: Some(data), ..Event::default() })
            }
            Ok(None) => {
                self.over = true;
                None
            }
            Err(status) => {
                self.over = true;
                self.failed(&status)
            }
        }
    }

    fn failed(&mut self, status: &tonic::Status) -> Option<Event> {
        self.ended = (!status.details().is_empty()).then(|| refusal(status));
        let stopping = status.message().starts_with("The hub is stopping");
        let in_order = stopping || status.code() == tonic::Code::DeadlineExceeded;
        if let Some(refusal) = self.ended.as_ref().filter(|_| !in_order) {
            return Some(Event { data: Some(error_json(refusal).to_string()), ..Event::default() });
        }
        self.cut = !in_order;
        Some(Event { comment: Some(status.message().to_owned()), ..Event::default() })
    }
}

/// A frame that stands for events which are gone says where it stands.
fn jumped_to(frame: &Value) -> Option<u64> {
    let resume = frame["task"]["metadata"].get("urn:flotilla:ext:stream-resume:1.0")?;
    resume["cursor"].as_str()?.rsplit_once('.')?.1.parse().ok()
}

/// A refusal in the form HTTP+JSON has for it.
fn error_json(refusal: &Refusal) -> Value {
    let fields: Vec<Value> =
        refusal.violations.iter().map(|(field, why)| json!({"field": field, "description": why})).collect();
    json!({"error": {"code": refusal.code, "status": refusal.status, "message": refusal.message, "details": [
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": refusal.reason, "domain": refusal.domain, "metadata": refusal.metadata,
        },
        {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": fields},
    ]}})
}

/// A double that is a whole number is written as one.
fn whole(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(double) if number.is_f64() && double.fract() == 0.0 && double.abs() <= 9_007_199_254_740_992.0 => {
                json!(double as i64)
            }
            _ => Value::Number(number),
        },
        Value::Array(all) => Value::Array(all.into_iter().map(whole).collect()),
        Value::Object(all) => Value::Object(all.into_iter().map(|(name, value)| (name, whole(value))).collect()),
        other => other,
    }
}

fn to_json(descriptor: MessageDescriptor, bytes: &Bytes) -> Value {
    let message = DynamicMessage::decode(descriptor, bytes.clone()).expect("the hub sends what it describes");
    let options = SerializeOptions::new();
    let json = message.serialize_with_options(serde_json::value::Serializer, &options);
    whole(json.expect("a message has a JSON form"))
}

/// ProtoJSON leaves out what is empty or zero; a page of tasks always has its four fields in JSON.
fn complete(method: &str, mut answer: Value) -> Value {
    if method == "ListTasks" {
        for (name, empty) in
            [("tasks", json!([])), ("nextPageToken", json!("")), ("pageSize", json!(0)), ("totalSize", json!(0))]
        {
            if answer.get(name).is_none() {
                answer[name] = empty;
            }
        }
    }
    answer
}

pub(crate) fn texts(metadata: &MetadataMap) -> Vec<(String, String)> {
    let headers = metadata.clone().into_headers();
    headers.iter().filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned()))).collect()
}

/// Reads a refusal and insists on its form (spec 10.6).
fn refusal(status: &tonic::Status) -> Refusal {
    let code = Code::ALL[i32::from(status.code()) as usize];
    let sent = rpc::Status::decode(status.details()).expect("details are a google.rpc.Status");
    assert!(!sent.details.is_empty(), "no details in {status:?}");
    assert_eq!((sent.code, sent.message.as_str()), (code as i32, status.message()), "the details repeat the status");
    let of_type = |name: &str| {
        let full = format!("type.googleapis.com/google.rpc.{name}");
        sent.details.iter().find(|detail| detail.type_url == full).map(|detail| detail.value.as_slice())
    };
    let info = of_type("ErrorInfo").expect("an ErrorInfo");
    let info = rpc::ErrorInfo::decode(info).expect("an ErrorInfo");
    let fields = of_type("BadRequest").map(|bytes| rpc::BadRequest::decode(bytes).expect("a BadRequest"));
    Refusal {
        http: 200,
        code: code as i64,
        status: Some(code.name().to_owned()),
        message: status.message().to_owned(),
        reason: info.reason,
        domain: info.domain,
        metadata: json!(info.metadata),
        violations: fields
            .map(|bad| bad.field_violations.into_iter().map(|one| (one.field, one.description)).collect())
            .unwrap_or_default(),
    }
}

/// Messages as bytes: encoding and decoding happen around it.
pub(crate) struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;
    fn encoder(&mut self) -> Self {
        Self
    }
    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = tonic::Status;
    fn encode(&mut self, item: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), tonic::Status> {
        out.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = tonic::Status;
    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, tonic::Status> {
        let length = bytes.remaining();
        Ok(Some(bytes.copy_to_bytes(length)))
    }
}
