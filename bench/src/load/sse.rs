//! Reading server-sent events: one connection, one stream.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::call::{Endpoint, stream_request};
use super::http::Connection;

pub struct Stream {
    connection: Connection,
    pending: Vec<u8>,
    /// Artifact updates seen so far.
    pub updates: usize,
    /// The last event says that the task is completed.
    pub completed: bool,
    /// The last event's data.
    pub last: Vec<u8>,
}

impl Stream {
    /// SendStreamingMessage with this text.
    pub async fn send(endpoint: &Endpoint, id: &str, text: &str) -> Result<Stream> {
        let message = json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]});
        Stream::open(endpoint, "SendStreamingMessage", &json!({"message": message})).await
    }

    pub async fn subscribe(endpoint: &Endpoint, task: &str) -> Result<Stream> {
        Stream::open(endpoint, "SubscribeToTask", &json!({"id": task})).await
    }

    async fn open(endpoint: &Endpoint, method: &str, params: &Value) -> Result<Stream> {
        let mut connection = Connection::open(&endpoint.address).await?;
        let status = connection.send(&stream_request(endpoint, method, params)).await?;
        let mut stream = Stream { connection, pending: Vec::new(), updates: 0, completed: false, last: Vec::new() };
        if status != 200 {
            while stream.advance().await? {}
            anyhow::bail!("{method} was answered with {status}: {}", stream.said());
        }
        Ok(stream)
    }

    /// Takes in what arrives next; false at the end.
    pub async fn advance(&mut self) -> Result<bool> {
        if !self.connection.piece(&mut self.pending).await.context("the stream broke off")? {
            // An answer that is no event stream is an error worth showing.
            self.last.append(&mut self.pending);
            return Ok(false);
        }
        let mut start = 0;
        while let Some(length) = memchr::memchr(b'\n', &self.pending[start..]) {
            let line = &self.pending[start..start + length];
            start += length + 1;
            if let Some(data) = line.strip_prefix(b"data:") {
                let update = memchr::memmem::find(data, br#""artifactUpdate""#).is_some();
                self.updates += usize::from(update);
                self.completed = !update && memchr::memmem::find(data, b"TASK_STATE_COMPLETED").is_some();
                self.last.clear();
                self.last.extend_from_slice(data);
            }
        }
        self.pending.drain(..start);
        Ok(true)
    }

    /// Reads on until the first event is there.
    pub async fn first(&mut self) -> Result<Value> {
        while self.last.is_empty() {
            ensure!(self.advance().await?, "a stream without an event: {}", self.said());
        }
        serde_json::from_slice(&self.last).context("an event is not JSON")
    }

    /// Reads to the end, which must be that of a completed task after so many updates.
    pub async fn finish(&mut self, updates: usize) -> Result<()> {
        while self.advance().await? {}
        ensure!(
            self.updates == updates && self.completed,
            "a stream ended after {} of {updates} updates: {}",
            self.updates,
            self.said()
        );
        Ok(())
    }

    fn said(&self) -> String {
        let text = String::from_utf8_lossy(&self.last);
        text.trim().chars().take(300).collect()
    }
}

/// The id of the task that a stream's first event is about.
pub fn task_id(event: &Value) -> Result<String> {
    let result = &event["result"];
    let id = [&result["task"]["id"], &result["statusUpdate"]["taskId"], &result["artifactUpdate"]["taskId"]];
    let id = id.into_iter().find_map(Value::as_str);
    Ok(id.with_context(|| format!("no task id in {event}"))?.to_owned())
}
