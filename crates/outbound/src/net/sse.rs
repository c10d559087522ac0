//! Server-sent events, read as they come and never without a bound.

use super::{Net, innermost};
use crate::client::error::ClientError;
use reqwest::Response;
use serde::de::IgnoredAny;

/// A stream may begin with the mark of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub id: Option<String>,
    pub data: String,
}

/// A stream ended within an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfinished;

/// What an event holds is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotText;

/// Turns bytes into events, whatever pieces they come in.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// How much of the buffer is known to hold no end of a line.
    searched: usize,
    began: bool,
    /// The last line ended with a carriage return, to which a line feed that comes next belongs.
    returned: bool,
    id: Option<String>,
    data: Option<Vec<u8>>,
}

impl Decoder {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// How much is held that is not an event yet.
    pub fn held(&self) -> usize {
        self.buffer.len() + self.data.as_ref().map_or(0, Vec::len)
    }

    /// The next whole event among what was pushed.
    pub fn take(&mut self) -> Result<Option<Event>, NotText> {
        loop {
            if self.returned && !self.buffer.is_empty() {
                self.returned = false;
                if self.buffer[0] == b'\n' {
                    self.buffer.drain(..1);
                }
            }
            let ends = |byte: &u8| matches!(byte, b'\n' | b'\r');
            let Some(end) = self.buffer[self.searched..].iter().position(ends).map(|at| self.searched + at) else {
                self.searched = self.buffer.len();
                return Ok(None);
            };
            // Nothing is waited for: the byte after it may be long in coming.
            self.returned = self.buffer[end] == b'\r';
            let mut line = &self.buffer[..end];
            if !std::mem::replace(&mut self.began, true) {
                line = line.strip_prefix(MARK).unwrap_or(line);
            }
            let line = line.to_vec();
            self.buffer.drain(..=end);
            self.searched = 0;
            if let Some(event) = self.line(&line)? {
                return Ok(Some(event));
            }
        }
    }

    /// What the stream ended in, if that was no end of an event: the event all the same, where it holds all of a JSON
    /// object. Some servers leave the empty line after their last event out.
    pub fn finish(&mut self) -> Result<Option<Event>, Unfinished> {
        // Any other line that was cut, as one with an id, says something else than it was to say.
        if self.buffer.strip_prefix(MARK).unwrap_or(&self.buffer).starts_with(b"data") {
            self.push(b"\n");
            self.take().map_err(|NotText| Unfinished)?;
        }
        (self.buffer, self.searched) = (Vec::new(), 0);
        let Some(data) = self.data.take() else { return Ok(None) };
        // What was cut within a character is no text.
        let data = String::from_utf8(data).map_err(|_| Unfinished)?;
        if data.trim().is_empty() {
            return Ok(None);
        }
        let is_whole = data.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(&data).is_ok();
        if is_whole { Ok(Some(Event { id: self.id.clone(), data })) } else { Err(Unfinished) }
    }

    fn line(&mut self, line: &[u8]) -> Result<Option<Event>, NotText> {
        if line.is_empty() {
            let Some(data) = self.data.take() else { return Ok(None) };
            let data = String::from_utf8(data).map_err(|_| NotText)?;
            return Ok(Some(Event { id: self.id.clone(), data }));
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match (field, &mut self.data) {
            (b"data", Some(data)) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            (b"data", none) => *none = Some(value.to_vec()),
            // The standard asks to pass over an id with a zero in it, and no header could hold it.
            (b"id", _) if !value.contains(&0) => {
                self.id = std::str::from_utf8(value).ok().map(str::to_owned).or(self.id.take());
            }
            _ => {}
        }
        Ok(None)
    }
}

/// An open stream of events.
pub struct Events {
    net: Net,
    response: Response,
    decoder: Decoder,
}

impl Events {
    /// What the stream came over.
    pub(crate) fn net(&self) -> &Net {
        &self.net
    }

    pub fn new(net: Net, response: Response) -> Self {
        Self { net, response, decoder: Decoder::default() }
    }

    /// The next event; none when the other side has closed the stream.
    pub async fn next(&mut self) -> Result<Option<Event>, ClientError> {
        loop {
            let garbled = |NotText| ClientError::malformed("an event of the stream is not UTF-8 text");
            if let Some(event) = self.decoder.take().map_err(garbled)? {
                self.net.note(|| format!("< {}", event.data));
                self.net.limits.check_depth(&event.data)?;
                return Ok(Some(event));
            }
            if self.decoder.held() > self.net.limits.bytes {
                return Err(ClientError::TooLarge { limit: self.net.limits.bytes });
            }
            let chunk = self.response.chunk().await;
            match chunk.map_err(|error| ClientError::Broken(innermost(&error.without_url())))? {
                Some(chunk) => self.decoder.push(&chunk),
                None => return self.last(),
            }
        }
    }

    fn last(&mut self) -> Result<Option<Event>, ClientError> {
        let cut = |_| ClientError::Broken("the stream ended within an event".into());
        let last = self.decoder.finish().map_err(cut)?;
        if let Some(event) = &last {
            self.net.note(|| format!("< {}", event.data));
            self.net.limits.check_depth(&event.data)?;
        }
        Ok(last)
    }
}

#[cfg(test)]
mod tests {
    use super::{Decoder, Event, NotText, Unfinished};

    fn events(pieces: &[&str]) -> Vec<String> {
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        for piece in pieces {
            decoder.push(piece.as_bytes());
            while let Some(event) = decoder.take().expect("text") {
                events.push(format!("{}={}", event.id.unwrap_or_default(), event.data));
            }
        }
        events
    }

    #[test]
    fn an_event_without_its_empty_line_is_one_if_it_is_whole() {
        for (rest, expected) in [
            ("", Ok(None)),
            ("data: {\"a\": 1}", Ok(Some("{\"a\": 1}"))),
            ("data: {\"a\": 1}\n", Ok(Some("{\"a\": 1}"))),
            ("data: {\"a\":\r\ndata: 1}\r", Ok(Some("{\"a\":\n1}"))),
            ("data: {\"a\": 1}\nid: 2", Ok(Some("{\"a\": 1}"))),
            ("data: {\"a\": ", Err(Unfinished)),
            ("data: {\"a\":\ndata: 1", Err(Unfinished)),
            ("data: 1", Err(Unfinished)),
            ("data: ", Ok(None)),
            (": aliv", Ok(None)),
            ("id: 7", Ok(None)),
        ] {
            let mut decoder = Decoder::default();
            decoder.push(format!("data: first\n\n{rest}").as_bytes());
            assert_eq!(decoder.take().expect("text").expect("the first").data, "first");
            assert_eq!(decoder.take(), Ok(None));
            let last = decoder.finish().map(|event| event.map(|event| event.data));
            assert_eq!(last, expected.map(|data: Option<&str>| data.map(str::to_owned)), "{rest:?}");
            assert_eq!((decoder.finish(), decoder.take()), (Ok(None), Ok(None)), "once");
            assert_eq!(decoder.id, None, "it may be cut");
        }
    }

    #[test]
    fn what_is_no_text_is_no_event() {
        let mut decoder = Decoder::default();
        decoder.push(b": \xff\nid: \xff\ndata: \xc3\xa9\n\ndata: \xff\xfe\n\ndata: b\n\n");
        let data = |taken: Result<Option<Event>, NotText>| taken.map(|event| event.map(|event| event.data));
        assert_eq!(data(decoder.take()), Ok(Some("é".to_owned())), "what nobody reads may be anything");
        assert_eq!(data(decoder.take()), Err(NotText));
        assert_eq!(data(decoder.take()), Ok(Some("b".to_owned())), "and the next is one again");
        decoder.push(b"data: {\"a\":\"\xff\"}");
        assert_eq!(decoder.finish(), Err(Unfinished));
    }

    #[test]
    fn reads_what_the_standard_allows() {
        assert_eq!(events(&["id: 1\nda", "ta: a\n", "\n: alive\n\ndata:b\n\n"]), ["1=a", "1=b"]);
        assert_eq!(events(&["data: a\r\ndata: b\r", "\n\r\n"]), ["=a\nb"]);
        assert_eq!(events(&["id: 1\rdata: a\r\r"]), ["1=a"], "before anything else comes");
        assert_eq!(events(&["data: a\r", "data: b\r", "\r", "data: c\r\n", "\r", "\n"]), ["=a\nb", "=c"]);
        assert_eq!(events(&["event: x\nretry: 5\n\n", "data\n\n", "data: unfinished\n"]), ["="]);
        assert_eq!(events(&["\u{feff}id: 1\ndata: \u{feff}a\n\nid: 2\0\ndata: b\n\n"]), ["1=\u{feff}a", "1=b"]);
    }
}
