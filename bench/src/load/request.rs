//! Pre-built HTTP requests; those that send a message have their message id patched in place.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::http::Target;

/// Digits of the message id that change from request to request.
const DIGITS: usize = 16;

#[derive(Clone)]
pub struct Request {
    bytes: Vec<u8>,
    /// Where the changing digits start.
    id_at: Option<usize>,
}

impl Request {
    /// A JSON-RPC request that is the same each time.
    pub fn fixed(target: &Target, key: Option<&str>, body: &str) -> Request {
        let authorization = key.map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\n\
             {authorization}Content-Length: {}\r\n\r\n",
            target.path,
            target.authority,
            body.len()
        );
        Request { bytes: [head.as_bytes(), body.as_bytes()].concat(), id_at: None }
    }

    /// A `SendMessage` or `SendStreamingMessage` with one text part.
    pub fn message(target: &Target, key: Option<&str>, method: &str, text: &str) -> Request {
        // The first half of the id tells this run from earlier ones against the same store.
        let run = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let prefix = format!(r#""messageId":"{run:016x}"#);
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"message":{{{prefix}{:0DIGITS$}","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}}}}}"#,
            0
        );
        let mut request = Request::fixed(target, key, &body);
        request.id_at = memchr::memmem::find(&request.bytes, prefix.as_bytes()).map(|start| start + prefix.len());
        request
    }

    /// The request's bytes, with message id number `sequence` if it holds one.
    pub fn stamp(&mut self, sequence: u64) -> &[u8] {
        if let Some(start) = self.id_at {
            let mut digits = &mut self.bytes[start..start + DIGITS];
            // Sixteen hex digits hold any u64, so this cannot run out of room.
            let _ = write!(digits, "{sequence:0DIGITS$x}");
        }
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamping_changes_only_the_message_id() {
        let target = Target::parse("http://localhost:1/x").unwrap();
        let mut request = Request::message(&target, Some("k"), "SendMessage", "hi");
        let first = String::from_utf8(request.stamp(1).to_vec()).unwrap();
        let second = String::from_utf8(request.stamp(u64::MAX).to_vec()).unwrap();
        assert_eq!(first.len(), second.len());
        assert!(first.contains("0000000000000001\",\"role\""));
        assert!(second.contains("ffffffffffffffff\",\"role\""));
        let (head, body) = first.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("Authorization: Bearer k\r\n"));
        assert!(head.contains(&format!("Content-Length: {}", body.len())));
        serde_json::from_str::<serde_json::Value>(body).unwrap();
    }
}
