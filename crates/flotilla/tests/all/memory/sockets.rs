//! Sockets: messages that are never finished, pongs and answers that are never read.

use flotilla_testkit::client::message;
use flotilla_testkit::hostile::{RawSocket, until_memory_rests};
use flotilla_testkit::{Binding, Client, HubProcess};
use std::io::Write as _;
use std::time::{Duration, Instant};

pub fn unfinished_messages(hub: &HubProcess, key: &str) {
    let mut sockets: Vec<RawSocket> = (0..200).map(|_| RawSocket::open(hub.address(), key)).collect();
    let piece = vec![b'x'; 1_000_000];
    for socket in &mut sockets {
        socket.0.set_write_timeout(Some(Duration::from_millis(500))).expect("a deadline can be set");
        let _ = socket.0.write_all(&RawSocket::head(1, 16_000_000));
        for _ in 0..15 {
            if socket.0.write_all(&piece).is_err() {
                break;
            }
        }
    }
}

pub fn unread_pongs(hub: &HubProcess, key: &str) {
    let mut socket = RawSocket::open(hub.address(), key);
    socket.0.set_write_timeout(Some(Duration::from_secs(2))).expect("a deadline can be set");
    let mut ping = RawSocket::head(9, 125);
    ping.extend_from_slice(&[b'p'; 125]);
    let many = ping.repeat(1_000);
    let until = Instant::now() + Duration::from_secs(5);
    while Instant::now() < until && socket.0.write_all(&many).is_ok() {}
}

pub fn unread_answers(hub: &HubProcess, key: &str) {
    let client = Client::new(hub.address(), Binding::JsonRpc).agent("echo").key(key);
    let task = client.call("SendMessage", &message("socket", &"x".repeat(3_500_000)));
    let Ok(task) = task else { return };
    let ask = |index| {
        let id = &task["task"]["id"];
        format!(
            r#"{{"jsonrpc":"2.0","id":{index},"method":"GetTask","params":{{"id":{id},"tenant":"echo"}},"serviceParams":{{"A2A-Version":"1.0"}}}}"#
        )
    };
    let mut sockets: Vec<RawSocket> = (0..20).map(|_| RawSocket::open(hub.address(), key)).collect();
    for socket in &mut sockets {
        socket.0.set_write_timeout(Some(Duration::from_secs(1))).expect("a deadline can be set");
        for index in 0..60 {
            let _ = socket.text(&ask(index));
        }
    }
    until_memory_rests(hub.process());
}
