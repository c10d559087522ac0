//! Clients that do what no honest one does: requests that are never finished, answers that are never read; and what the
//! hub's memory and another caller's waiting come to meanwhile.

use crate::client::{Binding, Client, message};
use crate::wait::{PATIENCE, until};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;
const LARGEST: u32 = 0x7fff_ffff;
const FIRST_WINDOW: i64 = 65_535;

/// What the hub has said on a connection that is read.
#[derive(Default)]
struct Heard {
    connection: i64,
    /// What a new stream may be sent.
    initial: i64,
    /// By stream: more than the first window that may be sent, and whether the hub has ended it.
    streams: std::collections::HashMap<u32, (i64, bool)>,
    over: bool,
}

/// An HTTP/2 connection, frame by frame. It lets the hub send all it likes, and reads none of it unless it is told to.
pub struct RawHttp2 {
    stream: TcpStream,
    next: u32,
    heard: Arc<(Mutex<Heard>, Condvar)>,
}

impl RawHttp2 {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("the hub takes connections");
        stream.set_write_timeout(Some(PATIENCE)).expect("a deadline can be set");
        let heard = Heard { connection: FIRST_WINDOW, initial: FIRST_WINDOW, ..Heard::default() };
        let mut raw = Self { stream, next: 1, heard: Arc::new((Mutex::new(heard), Condvar::new())) };
        let mut opening = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        // The window of every stream, then that of the connection.
        let mut settings = 4u16.to_be_bytes().to_vec();
        settings.extend_from_slice(&LARGEST.to_be_bytes());
        opening.extend_from_slice(&frame(SETTINGS, 0, 0, &settings));
        opening.extend_from_slice(&frame(WINDOW_UPDATE, 0, 0, &(LARGEST - 65_535).to_be_bytes()));
        let _ = raw.stream.write_all(&opening);
        raw
    }

    /// Begins to read what the hub sends, which is kept nowhere: only what it lets this side send counts.
    pub fn read_on(&self) {
        let (mut stream, heard) = (self.stream.try_clone().expect("a socket can be shared"), Arc::clone(&self.heard));
        std::thread::spawn(move || {
            while let Some((kind, flags, id, payload)) = read_frame(&mut stream) {
                let mut now = heard.0.lock().expect("no panic while holding what was heard");
                let number = |bytes: &[u8]| i64::from(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
                match kind {
                    SETTINGS if flags & ACK == 0 => {
                        for setting in payload.chunks_exact(6).filter(|setting| setting[..2] == [0, 4]) {
                            now.initial = number(&setting[2..]);
                        }
                        let _ = (&stream).write_all(&frame(SETTINGS, ACK, 0, &[]));
                    }
                    WINDOW_UPDATE if id == 0 => now.connection += number(&payload),
                    WINDOW_UPDATE => now.streams.entry(id).or_default().0 += number(&payload),
                    RST_STREAM => now.streams.entry(id).or_default().1 = true,
                    HEADERS | DATA if flags & END_STREAM != 0 => now.streams.entry(id).or_default().1 = true,
                    GOAWAY => now.over = true,
                    _ => {}
                }
                drop(now);
                heard.1.notify_all();
            }
            heard.0.lock().expect("no panic while holding what was heard").over = true;
            heard.1.notify_all();
        });
    }

    /// Asks for something; the number of the stream. False `ends` leaves a body open.
    pub fn ask(&mut self, verb: &str, path: &str, headers: &[(&str, &str)], ends: bool) -> u32 {
        let id = self.next;
        self.next += 2;
        let mut block = Vec::new();
        let pseudo = [(":method", verb), (":scheme", "http"), (":path", path), (":authority", "127.0.0.1")];
        for (name, value) in pseudo.iter().chain(headers) {
            // A literal that nobody remembers.
            block.push(0);
            put_text(&mut block, name);
            put_text(&mut block, value);
        }
        let flags = END_HEADERS | if ends { END_STREAM } else { 0 };
        let _ = self.stream.write_all(&frame(HEADERS, flags, id, &block));
        id
    }

    /// Sends a whole body, whatever the windows say: it must be small.
    pub fn say(&mut self, id: u32, body: &[u8]) {
        let _ = self.stream.write_all(&frame(DATA, END_STREAM, id, body));
    }

    /// Sends up to `size` bytes of each body, as far as the hub lets it, and never the end. What it was let to send in all.
    pub fn fill(&mut self, ids: &[u32], size: usize, time: Duration) -> usize {
        let until = Instant::now() + time;
        let mut sent: Vec<(u32, i64)> = ids.iter().map(|id| (*id, 0)).collect();
        let mut on_connection = 0;
        let piece = [b'x'; 16 * 1024];
        while Instant::now() < until {
            let mut moved = false;
            for (id, sent) in &mut sent {
                let now = self.heard.0.lock().expect("no panic while holding what was heard");
                let (more, ended) = now.streams.get(id).copied().unwrap_or_default();
                let room = (now.initial + more - *sent).min(now.connection - on_connection).min(size as i64 - *sent);
                let over = now.over;
                drop(now);
                if over {
                    return sent_in_all(&[on_connection]);
                }
                let count = usize::try_from(room.min(piece.len() as i64)).unwrap_or(0);
                if ended || count == 0 {
                    continue;
                }
                if self.stream.write_all(&frame(DATA, 0, *id, &piece[..count])).is_err() {
                    return sent_in_all(&[on_connection]);
                }
                *sent += count as i64;
                on_connection += count as i64;
                moved = true;
            }
            if !moved {
                let now = self.heard.0.lock().expect("no panic while holding what was heard");
                let _ = self.heard.1.wait_timeout(now, Duration::from_millis(20));
            }
        }
        sent_in_all(&[on_connection])
    }
}

fn sent_in_all(sent: &[i64]) -> usize {
    usize::try_from(sent.iter().sum::<i64>()).unwrap_or(0)
}

fn frame(kind: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame that can be sent").to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&id.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

fn read_frame(stream: &mut TcpStream) -> Option<(u8, u8, u32, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).ok()?;
    let id = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
    Some((head[3], head[4], id, payload))
}

/// A text of HPACK: its length in seven bits and more, and its bytes.
fn put_text(block: &mut Vec<u8>, text: &str) {
    let mut length = text.len();
    if length < 127 {
        block.push(length as u8);
    } else {
        block.push(127);
        length -= 127;
        while length >= 128 {
            block.push((length % 128) as u8 | 128);
            length /= 128;
        }
        block.push(length as u8);
    }
    block.extend_from_slice(text.as_bytes());
}

/// A WebSocket, frame by frame.
pub struct RawSocket(pub TcpStream);

impl RawSocket {
    pub fn open(address: SocketAddr, key: &str) -> Self {
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE).expect("the hub takes connections");
        stream.set_read_timeout(Some(PATIENCE)).expect("a deadline can be set");
        let request = format!(
            "GET /ws?role=caller HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Authorization: Bearer {key}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).expect("a request");
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).expect("an answer");
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
        Self(stream)
    }

    /// The head of a client's frame with a mask of zeros, which leaves the payload as it is.
    pub fn head(code: u8, length: usize) -> Vec<u8> {
        let mut head = vec![0x80 | code];
        match length {
            0..=125 => head.push(0x80 | length as u8),
            126..=0xffff => {
                head.push(0x80 | 126);
                head.extend_from_slice(&(length as u16).to_be_bytes());
            }
            _ => {
                head.push(0x80 | 127);
                head.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        head.extend_from_slice(&[0; 4]);
        head
    }

    pub fn text(&mut self, text: &str) -> std::io::Result<()> {
        let mut frame = Self::head(1, text.len());
        frame.extend_from_slice(text.as_bytes());
        self.0.write_all(&frame)
    }

    /// Whether the hub has closed the connection, or does within a time; all it says meanwhile is read.
    pub fn is_closed_within(&mut self, time: Duration) -> bool {
        self.0.set_read_timeout(Some(time)).expect("a deadline can be set");
        let (until, mut bytes) = (Instant::now() + time, [0; 16 * 1024]);
        while Instant::now() < until {
            match self.0.read(&mut bytes) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return !matches!(error.kind(), std::io::ErrorKind::WouldBlock),
            }
        }
        false
    }
}

/// A hub that takes a worker's connection, welcomes it, sends pings as fast as they are taken and reads no answer. How
/// many bytes of pings were taken until the worker hung up, or the time was over.
pub fn ping_a_worker(listener: &TcpListener, time: Duration) -> (usize, bool) {
    let (mut stream, _) = listener.accept().expect("the worker connects");
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("the worker asks");
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let value = |name: &str| {
        let line =
            head.lines().find_map(|line| line.split_once(": ").filter(|(key, _)| key.eq_ignore_ascii_case(name)));
        line.unwrap_or_else(|| panic!("no {name} in {head}")).1
    };
    let accept = tungstenite::handshake::derive_accept_key(value("sec-websocket-key").as_bytes());
    let protocol = value("sec-websocket-protocol");
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n"
    );
    let welcome = br#"{"type":"welcome","agentId":"a","heartbeatSeconds":30,"frameBytes":1000000,"resumeToken":"t"}"#;
    let mut opening = answer.into_bytes();
    opening.extend_from_slice(&[0x81, welcome.len() as u8]);
    opening.extend_from_slice(welcome);
    stream.write_all(&opening).expect("the worker is welcomed");
    stream.set_write_timeout(Some(Duration::from_millis(500))).expect("a deadline can be set");
    let mut ping = vec![0x89, 125];
    ping.extend_from_slice(&[b'p'; 125]);
    let (many, until, mut taken) = (ping.repeat(100), Instant::now() + time, 0);
    while Instant::now() < until {
        match stream.write(&many) {
            Ok(count) => taken += count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return (taken, true),
        }
    }
    (taken, false)
}

/// Another caller who goes on with small requests; what it waited.
pub struct Bystander {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Duration>>,
}

impl Bystander {
    /// Sends to the agent `echo` and lists its tasks, over and over, one request after the other.
    pub fn begin(address: SocketAddr, key: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (asked, client) = (Arc::clone(&stop), Client::new(address, Binding::JsonRpc).agent("echo").key(key));
        let thread = std::thread::spawn(move || {
            let (mut waited, mut sent) = (Vec::new(), 0);
            while !asked.load(Ordering::Relaxed) {
                let mut timed = |method: &str, params: &Value| {
                    let begun = Instant::now();
                    client.call(method, params).expect("an answer");
                    waited.push(begun.elapsed());
                };
                sent += 1;
                timed("SendMessage", &message(&format!("b{sent}"), "hi"));
                timed("ListTasks", &json!({"pageSize": 5}));
            }
            waited
        });
        Self { stop, thread }
    }

    /// How long 99 of 100 requests took at most, and how many there were.
    pub fn end(self) -> (Duration, usize) {
        self.stop.store(true, Ordering::Relaxed);
        let mut waited = self.thread.join().expect("the other caller is served all the while");
        waited.sort();
        let index = (waited.len() * 99 / 100).min(waited.len().saturating_sub(1));
        (waited.get(index).copied().unwrap_or_default(), waited.len())
    }
}

/// Waits until a process has taken no more memory for a second.
pub fn until_memory_rests(process: u32) {
    let (mut most, mut since) = (most_resident(process), Instant::now());
    until("the process takes no more memory", || {
        let now = most_resident(process);
        if now > most {
            (most, since) = (now, Instant::now());
        }
        (since.elapsed() > Duration::from_secs(1)).then_some(())
    });
}

/// The most memory a process had resident, in bytes.
pub fn most_resident(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("the process is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a process has memory");
    let kilobytes: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kilobytes * 1024
}
