//! Server-sent events, and the older way of MCP over HTTP: one stream of them, and messages posted beside it.

use super::definition::Place;
use super::http::{MUCH, admitted, failed, prepare};
use super::talk::{Answer, Problem};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Response, Url};
use serde_json::Value;

#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    pub kind: String,
    pub data: String,
}

impl Event {
    pub fn answer(&self, id: u64) -> Option<Answer> {
        Answer::of(&serde_json::from_str(&self.data).ok()?, id)
    }
}

/// Takes the whole events off what was read.
pub fn take(read: &mut Vec<u8>) -> impl Iterator<Item = Event> + use<> {
    let (mut events, mut event, mut start, mut whole) =
        (Vec::new(), Event { kind: String::new(), data: String::new() }, 0, 0);
    while let Some(length) = read[start..].iter().position(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(&read[start..start + length]).into_owned();
        start += length + 1;
        let line = line.trim_end_matches('\r');
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" if line.is_empty() => {
                whole = start;
                events.push(std::mem::replace(&mut event, Event { kind: String::new(), data: String::new() }));
            }
            "event" => event.kind = value.to_owned(),
            "data" => {
                if !event.data.is_empty() {
                    event.data.push('\n');
                }
                event.data.push_str(value);
            }
            _ => {}
        }
    }
    read.drain(..whole);
    events.into_iter().filter(|event| !event.data.is_empty())
}

pub struct Stream {
    client: Client,
    headers: HeaderMap,
    response: Response,
    read: Vec<u8>,
    /// Where messages are posted to.
    place: Url,
}

impl Stream {
    pub async fn open(place: &Place) -> Result<Self, Problem> {
        let (client, url, headers) = prepare(place)?;
        let request = client.get(url.clone()).headers(headers.clone()).header(ACCEPT, "text/event-stream");
        let response = admitted(request.send().await.map_err(|error| failed(&error))?)?;
        if !response.status().is_success() {
            return Err(Problem::Failed(format!("it answered {}", response.status())));
        }
        let mut opened = Self { client, headers, response, read: Vec::new(), place: url.clone() };
        let place = opened.next(|event| (event.kind == "endpoint").then(|| event.data.clone())).await?;
        let place = url.join(&place).ok().filter(|place| place.origin() == url.origin());
        opened.place = place.ok_or_else(|| Problem::Failed("it wants its messages at another place".into()))?;
        Ok(opened)
    }

    pub async fn tell(&mut self, message: &Value) -> Result<(), Problem> {
        let request = self.client.post(self.place.clone()).headers(self.headers.clone());
        let request = request.header(CONTENT_TYPE, "application/json").body(message.to_string());
        let response = admitted(request.send().await.map_err(|error| failed(&error))?)?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(Problem::Failed(format!("it answered {status} to a message"))),
        }
    }

    pub async fn ask(&mut self, message: &Value, id: u64) -> Result<Answer, Problem> {
        self.tell(message).await?;
        self.next(|event| event.answer(id)).await
    }

    async fn next<T>(&mut self, wanted: impl Fn(&Event) -> Option<T>) -> Result<T, Problem> {
        loop {
            let Some(more) = self.response.chunk().await.map_err(|error| failed(&error))? else {
                return Err(Problem::Failed("it ended its stream".into()));
            };
            self.read.extend_from_slice(&more);
            if self.read.len() > MUCH {
                return Err(Problem::Failed(format!("it sent an event of more than {MUCH} bytes")));
            }
            if let Some(found) = take(&mut self.read).find_map(|event| wanted(&event)) {
                return Ok(found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::take;

    #[test]
    fn events_are_taken_when_they_are_whole() {
        let mut read =
            b"id: 1\ndata: \n\nevent: message\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\n: aside\ndata: ha".to_vec();
        let taken: Vec<_> = take(&mut read).map(|event| (event.kind, event.data)).collect();
        assert_eq!(taken, [("message".to_owned(), "{\"a\":\n1}".to_owned())]);
        read.extend_from_slice(b"lf\n\n");
        let taken: Vec<_> = take(&mut read).map(|event| event.data).collect();
        assert_eq!((taken.as_slice(), read.len()), (&["half".to_owned()][..], 0));
    }
}
