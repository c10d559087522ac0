//! A stream on the wire in HTTP/1: chunks that end, on a connection that is there for other requests before and after.

use crate::cast::{hub, hub_with};
use flotilla_testkit::client::message;
use flotilla_testkit::process::OWNER;
use flotilla_testkit::{HubProcess, until, wait::PATIENCE};
use serde_json::json;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

/// A connection of which every byte is seen.
struct Wire(BufReader<TcpStream>);

/// An answer, whether it came in chunks or whole.
struct Answer {
    head: String,
    body: String,
}

impl Wire {
    fn to(hub: &HubProcess) -> Self {
        let stream = TcpStream::connect(hub.address()).expect("the hub takes connections");
        stream.set_read_timeout(Some(PATIENCE)).expect("a deadline can be set");
        Self(BufReader::new(stream))
    }

    fn write(&mut self, bytes: &str) {
        self.0.get_mut().write_all(bytes.as_bytes()).expect("the hub listens");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("the hub answers");
        line
    }

    fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let line = self.line();
            assert!(!line.is_empty(), "cut off after {head:?}");
            head += &line;
        }
        head
    }

    fn take(&mut self, count: usize) -> String {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).expect("what was announced");
        String::from_utf8(bytes).expect("text")
    }

    /// One chunk; empty if it is the last.
    fn chunk(&mut self) -> String {
        let size = self.line();
        let size = usize::from_str_radix(size.trim_end(), 16).expect("a size");
        let chunk = self.take(size);
        assert_eq!(self.take(2), "\r\n");
        chunk
    }

    fn answer(&mut self) -> Answer {
        let head = self.head();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let body = match length {
            Some(length) => self.take(length),
            None => std::iter::repeat_with(|| self.chunk()).take_while(|chunk| !chunk.is_empty()).collect(),
        };
        Answer { head, body }
    }

    fn is_closed(&mut self) -> bool {
        self.0.read(&mut [0]).expect("closed in good order") == 0
    }
}

/// A message whose stream is wanted, as it is written; `more` are lines of its head.
fn asks(version: &str, more: &str, id: &str, text: &str) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": message(id, text)});
    let body = body.to_string();
    format!(
        "POST /a2a HTTP/{version}\r\nhost: hub\r\nauthorization: Bearer {OWNER}\r\na2a-version: 1.0\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n{more}\r\n{body}",
        body.len()
    )
}

const HEALTH: &str = "GET /healthz HTTP/1.1\r\nhost: hub\r\n\r\n";

#[test]
fn a_connection_is_for_other_requests_again_when_its_stream_has_ended() {
    let hub = hub();
    let mut wire = Wire::to(&hub);
    for round in 0..3 {
        wire.write(&asks("1.1", "", &format!("again-{round}"), "chunks 5"));
        let answer = wire.answer();
        for words in ["HTTP/1.1 200 OK\r\n", "content-type: text/event-stream", "transfer-encoding: chunked", "date: "]
        {
            assert!(answer.head.contains(words), "no {words:?} in {}", answer.head);
        }
        assert!(answer.body.contains("chunk 5;") && answer.body.contains("COMPLETED"), "{}", answer.body);
        wire.write(HEALTH);
        assert!(wire.answer().head.starts_with("HTTP/1.1 200"));
    }
}

#[test]
fn what_is_sent_ahead_is_answered_after_the_stream() {
    let hub = hub();
    let mut wire = Wire::to(&hub);
    let early = asks("1.1", "", "early", "chunks 3");
    wire.write(&format!("{early}{}{HEALTH}", asks("1.1", "", "second", "trickle 5")));
    assert!(wire.answer().body.contains("chunk 3;"));
    // And while the stream runs, in two parts.
    let head = wire.head();
    assert!(head.contains("event-stream"), "{head}");
    wire.chunk();
    let (first, second) = HEALTH.split_at(10);
    wire.write(first);
    wire.chunk();
    wire.write(second);
    while !wire.chunk().is_empty() {}
    for _ in 0..2 {
        assert!(wire.answer().head.starts_with("HTTP/1.1 200"));
    }
}

#[test]
fn who_wants_one_answer_only_is_closed_after_the_stream() {
    let hub = hub();
    let mut wire = Wire::to(&hub);
    wire.write(&asks("1.1", "Connection: keep-alive, Close\r\n", "one", "chunks 2"));
    let answer = wire.answer();
    assert!(answer.head.contains("connection: close") && answer.body.contains("COMPLETED"), "{}", answer.head);
    assert!(wire.is_closed());
}

#[test]
fn older_clients_and_careful_ones_have_their_streams_too() {
    let hub = hub();
    let mut old = Wire::to(&hub);
    old.write(&asks("1.0", "", "old", "chunks 2"));
    let head = old.head();
    assert!(!head.contains("chunked"), "HTTP/1.0 knows no chunks: {head}");
    let mut body = String::new();
    old.0.read_to_string(&mut body).expect("to the end");
    assert!(body.contains("COMPLETED"), "{body}");

    let mut careful = Wire::to(&hub);
    careful.write(&asks("1.1", "Expect: 100-continue\r\n", "careful", "chunks 2"));
    let mut head = careful.head();
    if head.starts_with("HTTP/1.1 100") {
        head = careful.head();
    }
    assert!(head.contains("event-stream"), "{head}");
    while !careful.chunk().is_empty() {}
}

#[test]
fn a_client_that_left_a_quiet_stream_makes_room_at_once() {
    let hub = hub_with("limits: {streams_per_caller: 1}");
    let mut wire = Wire::to(&hub);
    wire.write(&asks("1.1", "", "left", "hold"));
    assert!(wire.head().contains("event-stream"));
    let refused = |round: usize| {
        let mut other = Wire::to(&hub);
        other.write(&asks("1.1", "Connection: close\r\n", &format!("next-{round}"), "chunks 1"));
        !other.answer().body.contains("COMPLETED")
    };
    assert!(refused(0), "one stream is all there may be");
    drop(wire);
    let mut round = 0;
    until("there is room", || {
        round += 1;
        (!refused(round)).then_some(())
    });
}
