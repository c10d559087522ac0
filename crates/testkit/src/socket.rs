//! A WebSocket to the hub, with a deadline on every wait: as an agent that dials in, or as a caller.

use crate::http::{Request, Response, find};
use crate::wait::PATIENCE;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Instant;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Role};
use tungstenite::{Message, WebSocket};

/// How a connection is to be opened.
#[derive(Debug, Clone)]
pub struct Dial {
    address: SocketAddr,
    target: String,
    headers: Vec<(String, String)>,
}

/// What the hub said instead of opening one.
#[derive(Debug, Clone)]
pub struct Refused {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Refused {
    /// As an answer over HTTP, which it is.
    pub fn response(&self) -> Response {
        Response { status: self.status, headers: self.headers.clone(), body: self.body.clone().into_bytes() }
    }
}

impl Dial {
    pub fn new(address: SocketAddr) -> Self {
        Self { address, target: "/ws".into(), headers: Vec::new() }
    }

    /// Another path than `/ws`.
    #[must_use]
    pub fn path(mut self, path: &str) -> Self {
        self.target = path.to_owned();
        self
    }

    #[must_use]
    pub fn key(self, key: &str) -> Self {
        self.header("authorization", &format!("Bearer {key}"))
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds `name=value` to the query.
    #[must_use]
    pub fn query(mut self, name: &str, value: &str) -> Self {
        let mark = if self.target.contains('?') { '&' } else { '?' };
        self.target = format!("{}{mark}{name}={value}", self.target);
        self
    }

    #[must_use]
    pub fn subprotocol(self, name: &str) -> Self {
        self.header("sec-websocket-protocol", name)
    }

    /// Opens it, and reads the welcome.
    pub fn open(self) -> Socket {
        let mut socket = self.try_open().unwrap_or_else(|refused| panic!("the hub refused: {refused:?}"));
        socket.welcome = socket.read();
        assert_eq!(socket.welcome["type"], "welcome", "the first frame");
        socket
    }

    pub fn refused(self) -> Refused {
        match self.try_open() {
            Ok(_) => panic!("the hub was expected to refuse the connection"),
            Err(refused) => refused,
        }
    }

    pub fn try_open(self) -> Result<Socket, Refused> {
        let failed = |error: std::io::Error| Refused { status: 0, headers: Vec::new(), body: error.to_string() };
        let stream = TcpStream::connect_timeout(&self.address, PATIENCE).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).expect("a deadline can be set");
        stream.set_write_timeout(Some(PATIENCE)).expect("a deadline can be set");
        stream.set_nodelay(true).expect("small frames go at once");
        let mut request = Request::get(&self.target)
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let mut reader = BufReader::with_capacity(1, stream.try_clone().expect("a socket can be shared"));
        (&stream).write_all(&request.bytes(self.address, "Upgrade")).map_err(failed)?;
        let (status, headers) = head(&mut reader).map_err(failed)?;
        if status != 101 {
            let length = find(&headers, "content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
            let mut body = vec![0; length];
            reader.read_exact(&mut body).map_err(failed)?;
            return Err(Refused { status, headers, body: String::from_utf8_lossy(&body).into_owned() });
        }
        assert_eq!(find(&headers, "sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        let inner = WebSocket::from_raw_socket(stream, Role::Client, None);
        Ok(Socket { inner, headers, welcome: Value::Null, kept: VecDeque::new() })
    }
}

fn head(reader: &mut BufReader<TcpStream>) -> std::io::Result<(u16, Vec<(String, String)>)> {
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).map(|_| line.trim_end().to_owned())
    };
    let status = line()?.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let mut headers = Vec::new();
    loop {
        let line = line()?;
        let Some((name, value)) = line.split_once(':') else { return Ok((status, headers)) };
        headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
}

pub struct Socket {
    inner: WebSocket<TcpStream>,
    headers: Vec<(String, String)>,
    /// The first frame.
    pub welcome: Value,
    /// Frames that came before one that was waited for, still to be read.
    kept: VecDeque<Value>,
}

impl Socket {
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    pub fn send(&mut self, frame: &Value) {
        self.send_text(&frame.to_string());
    }

    pub fn send_text(&mut self, text: &str) {
        self.inner.send(Message::text(text)).expect("the hub takes the frame");
    }

    /// The next frame that is text.
    pub fn read(&mut self) -> Value {
        self.try_read().unwrap_or_else(|ended| panic!("the connection ended: {ended}"))
    }

    /// The next frame, or how the connection ended: `code reason`.
    pub fn try_read(&mut self) -> Result<Value, String> {
        if let Some(frame) = self.kept.pop_front() {
            return Ok(frame);
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            // Pings keep a connection busy on which nothing is said.
            if Instant::now() > deadline {
                return Err(format!("nothing was said within {PATIENCE:?}"));
            }
            match self.inner.read() {
                Ok(Message::Text(text)) => {
                    return Ok(serde_json::from_str(text.as_str()).expect("the hub writes JSON"));
                }
                Ok(Message::Close(Some(CloseFrame { code, reason }))) => return Err(format!("{code} {reason}")),
                Ok(Message::Close(None)) => return Err("closed".into()),
                Ok(_) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// The next frame that fits; others are passed over.
    pub fn wait_for(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let frame = self.read();
            if fits(&frame) {
                return frame;
            }
            assert!(Instant::now() < deadline, "waited in vain: {what}");
        }
    }

    /// The next frame of a type.
    pub fn kind(&mut self, kind: &str) -> Value {
        self.wait_for(kind, |frame| frame["type"] == kind)
    }

    /// The next frame of a type; others that come before it are read after it.
    pub fn kind_first(&mut self, kind: &str) -> Value {
        let mut before = VecDeque::new();
        let found = loop {
            let frame = self.read();
            if frame["type"] == kind {
                break frame;
            }
            before.push_back(frame);
        };
        before.append(&mut self.kept);
        self.kept = before;
        found
    }

    /// Calls a method and returns its answer.
    pub fn call(&mut self, id: u64, method: &str, params: &Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.wait_for("an answer", |frame| frame["id"] == id && frame["jsonrpc"] == "2.0")
    }

    /// Ends the connection without a word, as a cut does.
    pub fn cut(self) {
        let _ = self.inner.get_ref().shutdown(Shutdown::Both);
    }

    /// Says good-bye, and returns the code it was answered with.
    pub fn close(mut self) -> Option<u16> {
        let _ = self.inner.close(Some(CloseFrame { code: CloseCode::Normal, reason: "".into() }));
        let mut answered = None;
        while let Ok(message) = self.inner.read() {
            if let Message::Close(frame) = message {
                answered = frame.map(|frame| frame.code.into());
            }
        }
        answered
    }
}
