//! A receiver of webhooks that does as it is told: answers, hangs, drips, floods or hangs up.

use crate::wait::{PATIENCE, until};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// One webhook as it came.
#[derive(Debug, Clone)]
pub struct Received {
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub at: Instant,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a webhook's body is JSON")
    }

    pub fn id(&self) -> &str {
        self.header("webhook-id").expect("a webhook has an id")
    }

    /// The number of the last event it tells of.
    pub fn number(&self) -> u64 {
        let (_, number) = self.id().rsplit_once('_').expect("an id ends in a number");
        number.parse().expect("a number")
    }

    /// What it tells: `task`, a state, or the name of an artifact.
    pub fn told(&self) -> String {
        let json = self.json();
        let kind = json.as_object().and_then(|members| members.keys().next()).expect("a payload");
        let text = match kind.as_str() {
            "statusUpdate" => &json["statusUpdate"]["status"]["state"],
            "artifactUpdate" => &json["artifactUpdate"]["artifact"]["artifactId"],
            other => return other.to_owned(),
        };
        text.as_str().unwrap_or_default().trim_start_matches("TASK_STATE_").to_owned()
    }
}

/// What to do with a webhook.
#[derive(Debug, Clone)]
pub enum Reaction {
    Status(u16),
    /// A status and another header.
    With(u16, &'static str, String),
    /// Never an answer.
    Hang,
    /// A head that comes a byte at a time, and never whole.
    Drip,
    /// Success, and a body without end.
    Flood,
    HangUp,
}

type Behaviour = Arc<dyn Fn(usize, &Received) -> Reaction + Send + Sync>;

pub struct Receiver {
    pub address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Receiver {
    /// Accepts everything.
    pub fn start() -> Self {
        Self::doing(|_, _| Reaction::Status(204))
    }

    /// `behaviour` is told the number of the webhook, from zero.
    pub fn doing(behaviour: impl Fn(usize, &Received) -> Reaction + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1:0", behaviour)
    }

    /// Accepts everything, at every address of this machine.
    pub fn everywhere() -> Self {
        Self::at("0.0.0.0:0", |_, _| Reaction::Status(204))
    }

    fn at(address: &str, behaviour: impl Fn(usize, &Received) -> Reaction + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).expect("a port is free");
        let address = listener.local_addr().expect("an address");
        let received = Arc::new(Mutex::new(Vec::new()));
        let (behaviour, kept): (Behaviour, _) = (Arc::new(behaviour), Arc::clone(&received));
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let (behaviour, kept) = (Arc::clone(&behaviour), Arc::clone(&kept));
                std::thread::spawn(move || serve(socket, &behaviour, &kept));
            }
        });
        Self { address, received }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().expect("no panic while receiving").clone()
    }

    pub fn count(&self) -> usize {
        self.received.lock().expect("no panic while receiving").len()
    }

    /// Waits until so many webhooks have come.
    pub fn wait(&self, count: usize) -> Vec<Received> {
        until(&format!("{count} webhooks"), || (self.count() >= count).then(|| self.received()))
    }
}

fn serve(socket: TcpStream, behaviour: &Behaviour, kept: &Mutex<Vec<Received>>) {
    let Ok(mut writer) = socket.try_clone() else { return };
    let mut reader = BufReader::new(socket);
    while let Some(received) = read(&mut reader) {
        let number = {
            let mut kept = kept.lock().expect("no panic while receiving");
            kept.push(received.clone());
            kept.len() - 1
        };
        let written = match behaviour(number, &received) {
            Reaction::Status(status) => write!(writer, "HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n"),
            Reaction::With(status, name, value) => {
                write!(writer, "HTTP/1.1 {status} x\r\ncontent-length: 0\r\n{name}: {value}\r\n\r\n")
            }
            Reaction::Hang => {
                // Until the other side gives up.
                let _ = reader.read(&mut [0]);
                return;
            }
            Reaction::Drip => return drip(&mut writer),
            Reaction::Flood => {
                let _ = writer.write_all(b"HTTP/1.1 200 x\r\ncontent-length: 100000000000\r\n\r\n");
                while writer.write_all(&[b'x'; 4096]).is_ok() {}
                return;
            }
            Reaction::HangUp => return,
        };
        if written.is_err() {
            return;
        }
    }
}

fn drip(writer: &mut TcpStream) {
    let deadline = Instant::now() + PATIENCE;
    let _ = writer.write_all(b"HTTP/1.1 200 x\r\nx-slow: ");
    while Instant::now() < deadline && writer.write_all(b"a").is_ok() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Received> {
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
    Some(Received { path, headers, body, at: Instant::now() })
}
