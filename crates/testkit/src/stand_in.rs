//! A stand-in for an agent elsewhere: it answers JSON-RPC as a script says, and keeps what it was asked.

use crate::wait::until;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// One request as it came.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The JSON-RPC method, or the path of what was got.
    pub method: String,
    pub path: String,
    pub params: Value,
    /// All of the body, where it is JSON.
    pub body: Value,
    pub headers: Vec<(String, String)>,
    /// How many of the same method came before.
    pub nth: usize,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// A step of an answer.
#[derive(Debug, Clone)]
pub enum Act {
    /// A JSON-RPC result in one piece.
    Answer(Value),
    /// A JSON-RPC error: code and text.
    Refuse(i64, &'static str),
    /// A body as it is, with its status.
    Body(u16, String),
    /// Not now: a status, and `Retry-After`.
    Later(u16, &'static str),
    /// A line in the head of the answer that comes next.
    Header(&'static str),
    /// Names an extension in the head of the answer that comes next.
    Activate(&'static str),
    /// An event of a stream; the first begins it.
    Event(Value),
    /// An event's data as it is.
    Line(String),
    /// Bytes of a stream that has begun, as they are.
    Raw(String),
    /// An event's data as it is, which need not be text.
    Garbled(Vec<u8>),
    /// A comment, again and again, until the other side hangs up.
    Hold,
    /// The connection is closed, whatever was sent so far.
    HangUp,
    /// Bytes of a stream without end.
    Flood,
}

type Script = Arc<dyn Fn(&Asked) -> Vec<Act> + Send + Sync>;

pub struct StandIn {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    gone: Arc<AtomicBool>,
}

impl StandIn {
    /// With a card that says whether it streams.
    pub fn start(streaming: bool, script: impl Fn(&Asked) -> Vec<Act> + Send + Sync + 'static) -> Self {
        Self::with_card(move |url| card(url, streaming), script)
    }

    /// `card` is told the stand-in's own address.
    pub fn with_card(
        card: impl Fn(&str) -> Value + Send + Sync + 'static,
        script: impl Fn(&Asked) -> Vec<Act> + Send + Sync + 'static,
    ) -> Self {
        Self::at("127.0.0.1:0", card, script)
    }

    /// At an address of the test's choice: where one was that is gone now, or is yet to come.
    pub fn at(
        address: &str,
        card: impl Fn(&str) -> Value + Send + Sync + 'static,
        script: impl Fn(&Asked) -> Vec<Act> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).expect("a port is free");
        let address = listener.local_addr().expect("an address");
        let card = card(&format!("http://{address}"));
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (script, kept): (Script, _) = (Arc::new(script), Arc::clone(&asked));
        let gone = Arc::new(AtomicBool::new(false));
        let left = Arc::clone(&gone);
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok).take_while(|_| !left.load(Ordering::SeqCst)) {
                let (script, kept, card) = (Arc::clone(&script), Arc::clone(&kept), card.clone());
                std::thread::spawn(move || serve(socket, &card, &script, &kept));
            }
        });
        Self { address, asked, gone }
    }

    /// Nobody listens at its address any more.
    pub fn leave(&self) {
        self.gone.store(true, Ordering::SeqCst);
        // Whoever waits for the next connection finds out with it.
        while TcpStream::connect(self.address).is_ok() {}
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests of one method.
    pub fn asked(&self, method: &str) -> Vec<Asked> {
        let all = self.asked.lock().expect("no panic while answering");
        all.iter().filter(|asked| asked.method == method).cloned().collect()
    }

    /// Waits until so many requests of a method have come.
    pub fn wait(&self, method: &str, count: usize) -> Vec<Asked> {
        until(&format!("{count} calls of {method}"), || {
            let asked = self.asked(method);
            (asked.len() >= count).then_some(asked)
        })
    }
}

/// A card with one JSON-RPC interface.
pub fn card(url: &str, streaming: bool) -> Value {
    json!({
        "name": "stand-in", "description": "Stands in.", "version": "1",
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": streaming}, "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "s", "description": "s", "tags": ["t"]}],
    })
}

fn serve(socket: TcpStream, card: &Value, script: &Script, kept: &Mutex<Vec<Asked>>) {
    let Ok(mut writer) = socket.try_clone() else { return };
    let mut reader = BufReader::new(socket);
    while let Some((mut asked, id)) = read(&mut reader) {
        if asked.method.contains("/.well-known/") {
            if answer(&mut writer, 200, &card.to_string()).is_err() {
                return;
            }
            continue;
        }
        {
            let mut kept = kept.lock().expect("no panic while answering");
            asked.nth = kept.iter().filter(|before| before.method == asked.method).count();
            kept.push(asked.clone());
        }
        if !perform(&mut writer, &mut reader, script(&asked), &id) {
            return;
        }
    }
}

/// Whether the connection goes on.
fn perform(writer: &mut TcpStream, reader: &mut BufReader<TcpStream>, acts: Vec<Act>, id: &Value) -> bool {
    let mut streaming = false;
    let mut more = String::new();
    for act in acts {
        let done = match act {
            Act::Answer(result) => {
                let body = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
                answer_with(writer, 200, &more, &body)
            }
            Act::Header(line) => {
                more.push_str(&format!("{line}\r\n"));
                continue;
            }
            Act::Activate(uri) => {
                more = format!("a2a-extensions: {uri}\r\n");
                continue;
            }
            Act::Refuse(code, message) => {
                let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
                answer(writer, 200, &error.to_string())
            }
            Act::Body(status, body) => answer_with(writer, status, &more, &body),
            Act::Later(status, when) => {
                write!(writer, "HTTP/1.1 {status} x\r\nretry-after: {when}\r\ncontent-length: 0\r\n\r\n")
            }
            Act::Event(result) => {
                let data = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
                event(writer, &mut streaming, &data)
            }
            Act::Line(data) => event(writer, &mut streaming, &data),
            Act::Raw(bytes) => chunk(writer, &bytes),
            Act::Garbled(bytes) => garbled(writer, &mut streaming, &bytes),
            Act::Hold => {
                // Until the other side gives up.
                let _ = reader.read(&mut [0]);
                return false;
            }
            Act::HangUp => return false,
            Act::Flood => {
                let mut done = event(writer, &mut streaming, "");
                while done.is_ok() {
                    done = chunk(writer, &"x".repeat(64 * 1024));
                }
                return false;
            }
        };
        if done.is_err() {
            return false;
        }
    }
    !streaming || writer.write_all(b"0\r\n\r\n").is_ok()
}

fn answer(writer: &mut TcpStream, status: u16, body: &str) -> std::io::Result<()> {
    answer_with(writer, status, "", body)
}

fn answer_with(writer: &mut TcpStream, status: u16, more: &str, body: &str) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 {status} x\r\ncontent-type: application/json\r\n{more}");
    write!(writer, "{head}content-length: {}\r\n\r\n{body}", body.len())
}

fn event(writer: &mut TcpStream, streaming: &mut bool, data: &str) -> std::io::Result<()> {
    if !*streaming {
        *streaming = true;
        writer.write_all(b"HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")?;
    }
    if data.is_empty() { chunk(writer, "data: ") } else { chunk(writer, &format!("data: {data}\n\n")) }
}

fn garbled(writer: &mut TcpStream, streaming: &mut bool, data: &[u8]) -> std::io::Result<()> {
    event(writer, streaming, "")?;
    write!(writer, "{:x}\r\n", data.len() + 2)?;
    writer.write_all(&[data, b"\n\n\r\n"].concat())
}

fn chunk(writer: &mut TcpStream, text: &str) -> std::io::Result<()> {
    write!(writer, "{:x}\r\n{text}\r\n", text.len())
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<(Asked, Value)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let mut body = vec![0; length.and_then(|(_, text)| text.parse().ok()).unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let call: Value = serde_json::from_slice(&body).unwrap_or_default();
    let method = call["method"].as_str().map_or_else(|| path.clone(), str::to_owned);
    let (id, params) = (call["id"].clone(), call["params"].clone());
    Some((Asked { method, path, params, body: call, headers, nth: 0 }, id))
}
