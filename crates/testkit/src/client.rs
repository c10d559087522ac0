//! A caller of the hub through any binding: the same operations, the same answers.

use crate::grpc;
use crate::http::{self, Request, Response};
use crate::old;
use crate::socket::{Dial, Socket};
use crate::stream::Stream;
use serde_json::{Map, Value, json};
use std::net::SocketAddr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    JsonRpc,
    HttpJson,
    Grpc,
}

impl Binding {
    pub const ALL: [Self; 3] = [Self::JsonRpc, Self::HttpJson, Self::Grpc];
    /// Those whose requests are JSON over HTTP/1.1, which a test can write by hand.
    pub const JSON: [Self; 2] = [Self::JsonRpc, Self::HttpJson];
}

#[derive(Debug, Clone)]
pub struct Client {
    pub address: SocketAddr,
    pub binding: Binding,
    /// The agent named in the path.
    agent: Option<String>,
    headers: Vec<(String, String)>,
    query: String,
    /// Whether the socket is used instead of a request for each call.
    pub socket: bool,
    /// Whether it speaks 0.3.
    pub old: bool,
}

/// A refusal in the form all bindings share, and the numbers that are their own.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The HTTP status of the response.
    pub http: u16,
    /// `error.code`: of JSON-RPC, or the HTTP status again; the status code of gRPC.
    pub code: i64,
    /// `error.status` of HTTP+JSON, the status code's name of gRPC.
    pub status: Option<String>,
    pub message: String,
    pub reason: String,
    pub domain: String,
    pub metadata: Value,
    /// Fields and what is wrong with them.
    pub violations: Vec<(String, String)>,
}

impl Refusal {
    pub fn fields(&self) -> Vec<&str> {
        self.violations.iter().map(|(field, _)| field.as_str()).collect()
    }

    /// Reads a refusal and insists on its form (spec 9.5, 10.6, 11.6).
    pub fn of(response: &Response) -> Self {
        if let Some(refusal) = grpc::refusal_in(response).or_else(|| old::refusal(response)) {
            return refusal;
        }
        let body = response.json();
        let error = &body["error"];
        assert!(error.is_object(), "no error in {body}");
        let details = error.get("data").or_else(|| error.get("details")).and_then(Value::as_array);
        let details = details.unwrap_or_else(|| panic!("no details in {body}"));
        assert!(details.iter().all(|detail| detail["@type"].is_string()), "a detail without @type in {body}");
        let of_type = |name: &str| {
            let full = format!("type.googleapis.com/google.rpc.{name}");
            details.iter().find(move |detail| detail["@type"] == full.as_str())
        };
        let info = of_type("ErrorInfo").unwrap_or_else(|| panic!("no ErrorInfo in {body}"));
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("not a text in {body}")).to_owned();
        let fields = of_type("BadRequest").and_then(|detail| detail["fieldViolations"].as_array());
        Self {
            http: response.status,
            code: error["code"].as_i64().unwrap_or_else(|| panic!("no code in {body}")),
            status: error["status"].as_str().map(str::to_owned),
            message: text(&error["message"]),
            reason: text(&info["reason"]),
            domain: text(&info["domain"]),
            metadata: info["metadata"].clone(),
            violations: fields
                .map(|all| all.iter().map(|one| (text(&one["field"]), text(&one["description"]))).collect())
                .unwrap_or_default(),
        }
    }
}

impl Client {
    pub fn new(address: SocketAddr, binding: Binding) -> Self {
        let headers = vec![("a2a-version".to_owned(), "1.0".to_owned())];
        Self { address, binding, agent: None, headers, query: String::new(), socket: false, old: false }
    }

    /// The same caller in A2A 0.3, which has no other answers than this one.
    #[must_use]
    pub fn in_03(self) -> Self {
        Self { old: true, ..self.header("a2a-version", "0.3") }
    }

    #[must_use]
    pub fn key(self, key: &str) -> Self {
        self.header("authorization", &format!("Bearer {key}"))
    }

    #[must_use]
    pub fn agent(self, agent: &str) -> Self {
        Self { agent: Some(agent.to_owned()), ..self }
    }

    /// A header on every request, in the place of an earlier one of the same name.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Self {
        let mut client = self.without(name);
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// A query parameter on every request.
    #[must_use]
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.query = if self.query.is_empty() { String::new() } else { format!("{}&", self.query) };
        self.query.push_str(&format!("{name}={}", escape(value)));
        self
    }

    #[must_use]
    pub fn through(self, binding: Binding) -> Self {
        Self { binding, ..self }
    }

    /// A request with this client's headers.
    pub fn dress(&self, mut request: Request) -> Request {
        for (name, value) in &self.headers {
            if http::find(&request.headers, name).is_none() {
                request = request.header(name, value);
            }
        }
        if !self.query.is_empty() {
            let mark = if request.target.contains('?') { '&' } else { '?' };
            request.target = format!("{}{mark}{}", request.target, self.query);
        }
        request
    }

    /// Sends a request of the test's own making.
    pub fn send(&self, request: Request) -> Response {
        http::send(self.address, &self.dress(request))
    }

    pub fn get(&self, target: &str) -> Response {
        self.send(Request::get(target))
    }

    /// The metadata of a call of the test's own making.
    pub fn metadata_with(&self, name: &str, value: &str) -> Vec<(String, String)> {
        self.clone().header(name, value).metadata()
    }

    /// What goes into headers elsewhere goes into metadata, the agent's name too.
    fn metadata(&self) -> Vec<(String, String)> {
        assert!(self.query.is_empty(), "gRPC has no query");
        let agent = self.agent.iter().map(|agent| ("agent-name".to_owned(), agent.clone()));
        self.headers.iter().cloned().chain(agent).collect()
    }

    /// The path operations of this client start with.
    pub fn base(&self) -> String {
        self.agent.as_ref().map(|agent| format!("/agents/{agent}")).unwrap_or_default()
    }

    /// An operation as a request of this client's binding.
    pub fn request(&self, method: &str, params: &Value) -> Request {
        let request = match self.binding {
            _ if self.old => old::request(self.binding, self.agent.as_deref(), method, params),
            Binding::JsonRpc => {
                let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
                json_post(&format!("{}/a2a", self.base()), body.to_string())
            }
            Binding::HttpJson => rest(&self.base(), method, params),
            Binding::Grpc => panic!("gRPC has no form over HTTP/1.1"),
        };
        self.dress(request)
    }

    /// The same in a form that HTTP/2 can carry, which all bindings have.
    pub fn request_over_http2(&self, method: &str, params: &Value) -> Request {
        match self.binding {
            Binding::JsonRpc | Binding::HttpJson => self.request(method, params),
            Binding::Grpc => grpc::request(&self.metadata(), method, params),
        }
    }

    /// A send whose parameters are this text, right or wrong.
    pub fn request_text(&self, method: &str, params: &str) -> Request {
        let request = match self.binding {
            Binding::JsonRpc => {
                let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{params}}}");
                json_post(&format!("{}/a2a", self.base()), body)
            }
            Binding::HttpJson => json_post(&format!("{}{}", self.base(), send_path(method)), params),
            Binding::Grpc => panic!("gRPC takes no text"),
        };
        self.dress(request)
    }

    /// The same operations over the socket, as JSON-RPC.
    #[must_use]
    pub fn over_socket(self) -> Self {
        Self { binding: Binding::JsonRpc, socket: true, ..self }
    }

    /// A connection with this client's headers, on which one request is made.
    fn dialed(&self, method: &str, params: &Value) -> Result<Socket, Refusal> {
        let mut dial = Dial::new(self.address);
        for (name, value) in &self.headers {
            dial = dial.header(name, value);
        }
        let mut socket = dial.query("role", "caller").try_open().map_err(|refused| Refusal::of(&refused.response()))?;
        socket.read();
        let mut params = params.clone();
        if let (Some(agent), None) = (&self.agent, params.get("tenant")) {
            params["tenant"] = json!(agent);
        }
        let headers = self.headers.iter().filter(|(name, _)| name != "authorization" && name != "x-api-key");
        let service: Map<String, Value> = headers.map(|(name, value)| (name.clone(), json!(value))).collect();
        socket.send(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params, "serviceParams": service}));
        Ok(socket)
    }

    fn call_over_socket(&self, method: &str, params: &Value) -> Result<Value, Refusal> {
        let frame = self.dialed(method, params)?.read();
        answer(&Response { status: 200, headers: Vec::new(), body: frame.to_string().into_bytes() })
    }

    fn stream_over_socket(&self, method: &str, params: &Value) -> Result<Stream, Refusal> {
        let mut socket = self.dialed(method, params)?;
        let first = socket.read();
        if first.get("error").is_some() {
            let body = first.to_string().into_bytes();
            return Err(Refusal::of(&Response { status: 200, headers: Vec::new(), body }));
        }
        Ok(Stream::of_socket(socket, first))
    }

    pub fn call(&self, method: &str, params: &Value) -> Result<Value, Refusal> {
        if self.socket {
            return self.call_over_socket(method, params);
        }
        if self.binding == Binding::Grpc {
            return grpc::unary(self.address, &self.metadata(), method, params);
        }
        let response = http::send(self.address, &self.request(method, params));
        if self.old { old::answered(method, &response) } else { answer(&response) }
    }

    /// Whether these parameters can be sent at all through this binding.
    pub fn can_say(&self, method: &str, params: &str) -> bool {
        self.binding != Binding::Grpc || grpc::can_say(method, params)
    }

    pub fn call_text(&self, method: &str, params: &str) -> Result<Value, Refusal> {
        if self.binding == Binding::Grpc {
            return self.call(method, &serde_json::from_str(params).expect("JSON"));
        }
        answer(&http::send(self.address, &self.request_text(method, params)))
    }

    /// The raw response to an operation.
    pub fn response(&self, method: &str, params: &Value) -> Response {
        if self.binding == Binding::Grpc {
            return grpc::response(self.address, &self.metadata(), method, params);
        }
        http::send(self.address, &self.request(method, params))
    }

    pub fn stream(&self, method: &str, params: &Value) -> Result<Stream, Refusal> {
        if self.socket {
            return self.stream_over_socket(method, params);
        }
        if self.binding == Binding::Grpc {
            return grpc::stream(self.address, &self.metadata(), method, params).map(Stream::of_grpc);
        }
        let open = http::open(self.address, &self.request(method, params));
        if http::find(&open.headers, "content-type") == Some("text/event-stream") {
            return Stream::opened(open, self.old);
        }
        Err(Refusal::of(&open.whole()))
    }

    /// SendMessage with one text; the task it comes to.
    pub fn say(&self, id: &str, text: &str) -> Value {
        let sent = self.call("SendMessage", &message(id, text)).unwrap_or_else(|refusal| panic!("{refusal:?}"));
        sent["task"].clone()
    }

    /// SendMessage that does not wait.
    pub fn start(&self, id: &str, text: &str) -> Value {
        let mut params = message(id, text);
        params["configuration"] = json!({"returnImmediately": true});
        self.call("SendMessage", &params).unwrap_or_else(|refusal| panic!("{refusal:?}"))["task"].clone()
    }

    pub fn task(&self, id: &str) -> Value {
        self.call("GetTask", &json!({"id": id})).unwrap_or_else(|refusal| panic!("{refusal:?}"))
    }
}

/// The parameters of a send with one text.
pub fn message(id: &str, text: &str) -> Value {
    json!({"message": {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]}})
}

pub(crate) fn json_post(target: &str, body: impl Into<Vec<u8>>) -> Request {
    Request::post(target, body).header("content-type", "application/json")
}

fn answer(response: &Response) -> Result<Value, Refusal> {
    let body = response.json();
    if body.get("error").is_some() {
        return Err(Refusal::of(response));
    }
    assert_eq!(response.status, 200, "{body}");
    Ok(if body.get("jsonrpc").is_some() { body["result"].clone() } else { body })
}

fn send_path(method: &str) -> &'static str {
    match method {
        "SendMessage" => "/message:send",
        "SendStreamingMessage" => "/message:stream",
        other => panic!("{other} is no send"),
    }
}

/// The HTTP+JSON form of an operation (spec 5.3).
fn rest(base: &str, method: &str, params: &Value) -> Request {
    let mut rest = params.as_object().cloned().unwrap_or_default();
    let mut take = |name: &str| match rest.remove(name) {
        Some(Value::String(text)) => escape(&text),
        other => panic!("{method} needs {name} as a text, not {other:?}"),
    };
    let push = |task: String, config: String| format!("{base}/tasks/{task}/pushNotificationConfigs{config}");
    match method {
        "SendMessage" | "SendStreamingMessage" => {
            json_post(&format!("{base}{}", send_path(method)), params.to_string())
        }
        "GetTask" => Request::get(&with_query(format!("{base}/tasks/{}", take("id")), &rest)),
        "ListTasks" => Request::get(&with_query(format!("{base}/tasks"), &rest)),
        "CancelTask" | "SubscribeToTask" => {
            let verb = if method == "CancelTask" { "cancel" } else { "subscribe" };
            let target = format!("{base}/tasks/{}:{verb}", take("id"));
            json_post(&target, if rest.is_empty() { String::new() } else { Value::Object(rest).to_string() })
        }
        "CreateTaskPushNotificationConfig" => {
            let target = push(take("taskId"), String::new());
            json_post(&target, Value::Object(rest).to_string())
        }
        "ListTaskPushNotificationConfigs" => Request::get(&with_query(push(take("taskId"), String::new()), &rest)),
        "GetTaskPushNotificationConfig" => {
            Request::get(&with_query(push(take("taskId"), format!("/{}", take("id"))), &rest))
        }
        "DeleteTaskPushNotificationConfig" => {
            Request::new("DELETE", &with_query(push(take("taskId"), format!("/{}", take("id"))), &rest))
        }
        "GetExtendedAgentCard" => Request::get(&with_query(format!("{base}/extendedAgentCard"), &rest)),
        other => panic!("there is no operation {other}"),
    }
}

pub(crate) fn with_query(target: String, params: &Map<String, Value>) -> String {
    let pairs: Vec<String> = params
        .iter()
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name}={}", escape(text)),
            other => format!("{name}={other}"),
        })
        .collect();
    if pairs.is_empty() { target } else { format!("{target}?{}", pairs.join("&")) }
}

/// Percent-encodes all but the unreserved characters.
pub fn escape(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => (byte as char).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
