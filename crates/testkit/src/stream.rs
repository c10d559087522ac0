//! A stream through any binding: events with their numbers, until it ends or breaks off.

use crate::client::Refusal;
use crate::grpc;
use crate::http::{Open, Response, find};
use crate::socket::Socket;
use crate::sse::{Blocks, Event};
use serde_json::Value;

enum Source {
    Sse(Blocks),
    Grpc(Box<grpc::Reading>),
    /// The socket, and a frame of it that was read already.
    Socket(Box<Socket>, Option<Value>),
}

pub struct Stream {
    source: Source,
    /// Whether it is one of 0.3, whose frames are read as 1.0 has them.
    old: bool,
    /// An event that was looked at already.
    first: Option<Event>,
    /// Whether the connection broke off instead of being closed in order.
    pub cut: bool,
}

impl Stream {
    pub(crate) fn new(open: Open) -> Self {
        Self { source: Source::Sse(Blocks::new(open)), old: false, first: None, cut: false }
    }

    /// A stream, or the refusal that is all there is of one in 0.3.
    pub(crate) fn opened(open: Open, old: bool) -> Result<Self, Refusal> {
        let (status, headers) = (open.status, open.headers.clone());
        let mut stream = Self { old, ..Self::new(open) };
        if old {
            stream.first = stream.block();
            if let Some(data) = stream.first.as_ref().and_then(|event| event.data.clone()) {
                let response = Response { status, headers, body: data.into_bytes() };
                if let Some(refusal) = crate::old::refusal(&response) {
                    return Err(refusal);
                }
            }
        }
        Ok(stream)
    }

    pub(crate) fn of_grpc(reading: grpc::Reading) -> Self {
        Self { source: Source::Grpc(Box::new(reading)), old: false, first: None, cut: false }
    }

    pub(crate) fn of_socket(socket: Socket, first: Value) -> Self {
        Self { source: Source::Socket(Box::new(socket), Some(first)), old: false, first: None, cut: false }
    }

    /// A header of the answer, or metadata before its first message.
    pub fn header(&self, name: &str) -> Option<&str> {
        match &self.source {
            Source::Sse(blocks) => find(blocks.headers(), name),
            Source::Grpc(reading) => find(&reading.headers, name),
            Source::Socket(socket, _) => socket.header(name),
        }
    }

    /// The status a gRPC stream was ended with, if it was no good one.
    pub fn status(&self) -> Option<&Refusal> {
        match &self.source {
            Source::Sse(_) | Source::Socket(..) => None,
            Source::Grpc(reading) => reading.ended.as_ref(),
        }
    }

    /// The next block, comments included; none when the stream has ended.
    pub fn block(&mut self) -> Option<Event> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        match &mut self.source {
            Source::Sse(blocks) => {
                let block = blocks.next();
                self.cut = blocks.cut;
                if self.old { block.map(crate::old::event) } else { block }
            }
            Source::Socket(socket, first) => {
                let frame = first.take().map_or_else(|| socket.try_read(), Ok);
                self.cut = frame.is_err();
                let frame = frame.ok().filter(|frame| frame["streamEnd"] != true)?;
                let id = frame["cursor"].as_str().map(str::to_owned);
                Some(Event { id, data: Some(frame.to_string()), ..Event::default() })
            }
            Source::Grpc(reading) => {
                let block = reading.next();
                self.cut = reading.cut;
                block
            }
        }
    }

    /// The next event that carries data.
    pub fn event(&mut self) -> Option<Event> {
        loop {
            let block = self.block()?;
            if block.data.is_some() {
                return Some(block);
            }
        }
    }

    /// The next event, which must be there.
    pub fn expect(&mut self) -> Event {
        self.event().expect("the stream goes on")
    }

    /// All events that are left.
    pub fn rest(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.event()).collect()
    }

    /// Reads until an event fits, that one included.
    pub fn through(&mut self, mut fits: impl FnMut(&Event) -> bool) -> Vec<Event> {
        let mut read = Vec::new();
        loop {
            let event = self.expect();
            let found = fits(&event);
            read.push(event);
            if found {
                return read;
            }
        }
    }
}
