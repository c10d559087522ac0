//! An agent that says exactly what a test wants, also what no good agent would.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request as it came.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The JSON-RPC method.
    pub fn method(&self) -> String {
        self.json()["method"].as_str().unwrap_or_default().to_owned()
    }
}

/// What to answer.
pub enum Says {
    Json(Value),
    Status(u16, Value),
    /// A status with headers of its own.
    Headed(u16, &'static str, Value),
    /// A JSON-RPC result.
    Result(Value),
    /// A JSON-RPC error.
    Error(i64, &'static str),
    /// Server-sent events with JSON-RPC results, then the end of the connection.
    Events(Vec<Value>),
}

type Answer = dyn Fn(&Asked, usize) -> Says + Send + Sync;

pub struct Agent {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    cards: Arc<Mutex<Vec<Asked>>>,
}

/// Headers a card may be sent with; with any, an unchanged card is not sent again.
pub type CardHeaders = &'static str;

impl Agent {
    /// `answer` gets every request that is not for the card, with how many came before it.
    pub fn start(card: Value, answer: impl Fn(&Asked, usize) -> Says + Send + Sync + 'static) -> Self {
        Self::start_cached(card, "", answer)
    }

    pub fn start_cached(
        card: Value,
        headers: CardHeaders,
        answer: impl Fn(&Asked, usize) -> Says + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (asked, cards) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
        let (card, log, answer): (_, _, Arc<Answer>) = (place(card, &url), Arc::clone(&asked), Arc::new(answer));
        let card_log = Arc::clone(&cards);
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let (card, log, answer) = (card.clone(), Arc::clone(&log), Arc::clone(&answer));
                let card_log = Arc::clone(&card_log);
                std::thread::spawn(move || serve(connection, (&card, headers, &card_log), &log, answer.as_ref()));
            }
        });
        Self { url, asked, cards }
    }

    /// How the card was asked for.
    pub fn cards(&self) -> Vec<Asked> {
        self.cards.lock().expect("no panic").clone()
    }

    /// What was asked, cards left out.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no panic").clone()
    }
}

/// A card with one JSON-RPC interface, `${URL}` standing for the agent's address.
pub fn card(more: Value) -> Value {
    let mut card = json!({
        "name": "Odd", "description": "Says what it is told.", "version": "1",
        "supportedInterfaces": [{"url": "${URL}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {}, "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "s", "description": "s", "tags": []}],
    });
    for (name, value) in more.as_object().cloned().unwrap_or_default() {
        card[name] = value;
    }
    card
}

pub fn streaming() -> Value {
    card(json!({"capabilities": {"streaming": true}}))
}

/// A task in a state.
pub fn task(state: &str) -> Value {
    json!({"id": "t-1", "contextId": "c-1", "status": {"state": format!("TASK_STATE_{state}")}})
}

fn place(card: Value, url: &str) -> String {
    card.to_string().replace("${URL}", url)
}

type Card<'a> = (&'a str, CardHeaders, &'a Mutex<Vec<Asked>>);

fn serve(mut connection: TcpStream, card: Card<'_>, log: &Mutex<Vec<Asked>>, answer: &Answer) {
    let Some(asked) = read(&connection) else { return };
    if asked.path.contains("agent-card.json") || asked.path.ends_with("/card") {
        let (card, headers, card_log) = card;
        let known = asked.header("if-none-match").is_some();
        card_log.lock().expect("no panic").push(asked);
        let (status, body) = if known { (304, "") } else { (200, card) };
        return respond_with(&mut connection, status, "application/json", headers, body);
    }
    let before = {
        let mut log = log.lock().expect("no panic");
        log.push(asked.clone());
        log.len() - 1
    };
    let id = asked.json()["id"].clone();
    match answer(&asked, before) {
        Says::Json(body) => respond(&mut connection, 200, "application/json", &body.to_string()),
        Says::Status(status, body) => respond(&mut connection, status, "application/json", &body.to_string()),
        Says::Headed(status, headers, body) => {
            respond_with(&mut connection, status, "application/json", headers, &body.to_string());
        }
        Says::Result(result) => {
            let body = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
            respond(&mut connection, 200, "application/json", &body);
        }
        Says::Error(code, message) => {
            let body = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string();
            respond(&mut connection, 200, "application/json", &body);
        }
        Says::Events(events) => {
            let event = |event: &Value| format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": id, "result": event}));
            let body: String = events.iter().map(event).collect();
            respond(&mut connection, 200, "text/event-stream", &body);
        }
    }
}

fn read(connection: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let mut asked = Asked { path: words.nth(1)?.into(), ..Asked::default() };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        asked.headers.push((name.to_owned(), value.to_owned()));
    }
    let length = asked.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    asked.body = String::from_utf8(body).ok()?;
    Some(asked)
}

fn respond(connection: &mut TcpStream, status: u16, kind: &str, body: &str) {
    respond_with(connection, status, kind, "", body);
}

fn respond_with(connection: &mut TcpStream, status: u16, kind: &str, more: &str, body: &str) {
    let head = format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nconnection: close\r\n{more}");
    let length =
        if kind == "text/event-stream" { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    let _ = connection.write_all(format!("{head}{length}\r\n{body}").as_bytes());
}
