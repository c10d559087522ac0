//! A small HTTP/1.1 client: one connection per request, nothing added behind the test's back, a deadline on everything.

use crate::stream::Stream;
use crate::wait::PATIENCE;
use serde_json::Value;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

/// How the length of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Length,
    Chunked,
    /// A length that is claimed, whatever is sent.
    Claimed(usize),
}

#[derive(Debug, Clone)]
pub struct Request {
    pub verb: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub framing: Framing,
}

impl Request {
    pub fn new(verb: &str, target: &str) -> Self {
        let (verb, target) = (verb.to_owned(), target.to_owned());
        Self { verb, target, headers: Vec::new(), body: Vec::new(), framing: Framing::Length }
    }

    pub fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    pub fn post(target: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..Self::new("POST", target) }
    }

    /// Sets a header, in the place of an earlier one of the same name.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Self {
        let mut request = self.without(name);
        request.headers.push((name.to_owned(), value.to_owned()));
        request
    }

    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    #[must_use]
    pub fn framed(self, framing: Framing) -> Self {
        Self { framing, ..self }
    }

    /// The name the hub is called by: its address, if the test says nothing else.
    pub(crate) fn host(&self, address: SocketAddr) -> String {
        find(&self.headers, "host").map_or_else(|| address.to_string(), str::to_owned)
    }

    pub(crate) fn bytes(&self, address: SocketAddr, connection: &str) -> Vec<u8> {
        let (verb, target) = (&self.verb, &self.target);
        let host = self.host(address);
        let mut head = format!("{verb} {target} HTTP/1.1\r\nhost: {host}\r\nconnection: {connection}\r\n");
        for (name, value) in self.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host")) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        match self.framing {
            Framing::Length if self.body.is_empty() && self.verb != "POST" => {}
            Framing::Length => head.push_str(&format!("content-length: {}\r\n", self.body.len())),
            Framing::Claimed(length) => head.push_str(&format!("content-length: {length}\r\n")),
            Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n"),
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        if self.framing == Framing::Chunked {
            for piece in self.body.chunks(4096) {
                bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                bytes.extend_from_slice(piece);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
        } else {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}

#[derive(Debug, Clone)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("an answer is UTF-8")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.text()))
    }
}

pub(crate) fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// Sends a request and reads the whole answer.
pub fn send(address: SocketAddr, request: &Request) -> Response {
    open(address, request).whole()
}

/// The same, where the hub may not be there or may go away.
pub fn try_send(address: SocketAddr, request: &Request) -> io::Result<Response> {
    try_open(address, request)?.try_whole()
}

/// A stream, where the hub may not be there.
pub fn try_stream(address: SocketAddr, request: &Request) -> io::Result<Stream> {
    try_open(address, request).map(Stream::new)
}

/// Sends a request and reads nothing: whoever drops the connection has hung up.
pub fn shout(address: SocketAddr, request: &Request) -> TcpStream {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).expect("the hub takes connections");
    stream.set_write_timeout(Some(PATIENCE)).expect("a deadline can be set");
    stream.write_all(&request.bytes(address, "close")).expect("the hub takes the request");
    stream
}

/// Sends a request and reads only the head of the answer.
pub fn open(address: SocketAddr, request: &Request) -> Open {
    try_open(address, request).unwrap_or_else(|error| panic!("{} {}: {error}", request.verb, request.target))
}

fn try_open(address: SocketAddr, request: &Request) -> io::Result<Open> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // A hub that refuses early need not take the rest of the body; its answer is what counts.
    let written = stream.write_all(&request.bytes(address, "close"));
    let timed = Timed { stream, deadline: Instant::now() + PATIENCE };
    match Open::read(BufReader::new(timed), request.verb == "HEAD") {
        Ok(open) => Ok(open),
        Err(error) => Err(written.err().unwrap_or(error)),
    }
}

/// A connection that is used for one request after another.
pub struct KeptAlive {
    address: SocketAddr,
    stream: TcpStream,
}

impl KeptAlive {
    pub fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("the hub takes connections");
        stream.set_read_timeout(Some(PATIENCE)).expect("a deadline can be set");
        Self { address, stream }
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the hub listens");
    }

    pub fn send(&mut self, request: &Request) -> Response {
        self.write(&request.bytes(self.address, "keep-alive"));
        let stream = self.stream.try_clone().expect("a socket can be shared");
        let timed = Timed { stream, deadline: Instant::now() + PATIENCE };
        Open::read(BufReader::new(timed), request.verb == "HEAD").expect("an answer").whole()
    }

    /// Waits for the hub to close the connection; false if it does not, or says something first.
    pub fn is_closed(&mut self) -> bool {
        match self.stream.read(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    /// The same, whatever the hub says first.
    pub fn is_closed_at_last(&mut self) -> bool {
        match self.stream.read_to_end(&mut Vec::new()) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}

/// A connection whose reads end at a deadline.
struct Timed {
    stream: TcpStream,
    deadline: Instant,
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "waited {PATIENCE:?} for the hub to say something");
        self.stream.set_read_timeout(Some(left))?;
        match self.stream.read(buffer) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                panic!("waited {PATIENCE:?} for the hub to say something")
            }
            other => other,
        }
    }
}

enum Left {
    Bytes(usize),
    Chunked,
    UntilClosed,
    Nothing,
}

/// An answer whose body is still to be read.
pub struct Open {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    reader: BufReader<Timed>,
    left: Left,
}

impl Open {
    fn read(mut reader: BufReader<Timed>, headless: bool) -> io::Result<Self> {
        let first = line(&mut reader)?;
        let status = first.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("not an HTTP answer: {first:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = line(&mut reader)?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let length = find(&headers, "content-length").and_then(|length| length.parse().ok());
        let chunked = find(&headers, "transfer-encoding").is_some_and(|coding| coding.contains("chunked"));
        let left = match (length, chunked) {
            _ if headless || matches!(status, 204 | 304) => Left::Nothing,
            (_, true) => Left::Chunked,
            (Some(length), _) => Left::Bytes(length),
            (None, false) => Left::UntilClosed,
        };
        Ok(Self { status, headers, reader, left })
    }

    /// The next piece of the body: empty when there is no more, an error when it broke off.
    pub(crate) fn piece(&mut self) -> io::Result<Vec<u8>> {
        self.reader.get_mut().deadline = Instant::now() + PATIENCE;
        match self.left {
            Left::Nothing => Ok(Vec::new()),
            Left::UntilClosed => {
                let mut all = Vec::new();
                self.reader.read_to_end(&mut all)?;
                Ok(all)
            }
            Left::Bytes(length) => {
                self.left = Left::Nothing;
                self.exactly(length)
            }
            Left::Chunked => {
                let size = line(&mut self.reader)?;
                let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
                let piece = self.exactly(size)?;
                line(&mut self.reader)?;
                if piece.is_empty() {
                    self.left = Left::Nothing;
                }
                Ok(piece)
            }
        }
    }

    fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut piece = vec![0; length];
        self.reader.read_exact(&mut piece)?;
        Ok(piece)
    }

    /// Reads the whole body.
    pub fn whole(self) -> Response {
        self.try_whole().unwrap_or_else(|error| panic!("the answer broke off: {error}"))
    }

    fn try_whole(mut self) -> io::Result<Response> {
        let mut body = Vec::new();
        loop {
            let piece = self.piece()?;
            if piece.is_empty() {
                return Ok(Response { status: self.status, headers: self.headers, body });
            }
            body.extend(piece);
        }
    }
}

fn line(reader: &mut BufReader<Timed>) -> io::Result<String> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
