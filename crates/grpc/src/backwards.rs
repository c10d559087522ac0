//! Protobuf written from its end to its beginning: what is nested is there before its length goes in front of it, so that
//! nothing has to be measured beforehand or copied into messages of its own.

use prost::Message;
use prost::bytes::{Buf as _, Bytes};

/// Room made at first: most answers fit.
const USUAL: usize = 1024;
/// How a field says that a length and so many bytes follow.
const LENGTH_DELIMITED: u64 = 2;
/// A flag for compression and the length go before a message of gRPC.
const PREFIX: usize = 5;

/// A message so far, at the end of its room.
pub struct Backwards {
    room: Vec<u8>,
    start: usize,
}

impl Backwards {
    pub fn new() -> Self {
        Self { room: vec![0; USUAL], start: USUAL }
    }

    fn len(&self) -> usize {
        self.room.len() - self.start
    }

    /// The next so many bytes before what is there.
    fn before(&mut self, count: usize) -> &mut [u8] {
        if self.start < count {
            self.grow(count);
        }
        self.start -= count;
        &mut self.room[self.start..self.start + count]
    }

    fn grow(&mut self, count: usize) {
        let filled = self.len();
        let mut room = vec![0; (filled + count).max(self.room.len() * 2)];
        let start = room.len() - filled;
        room[start..].copy_from_slice(&self.room[self.start..]);
        (self.room, self.start) = (room, start);
    }

    fn varint(&mut self, mut number: u64) {
        let length = prost::encoding::encoded_len_varint(number);
        for byte in self.before(length) {
            *byte = number as u8 | 0x80;
            number >>= 7;
        }
        self.room[self.start + length - 1] &= 0x7f;
    }

    fn delimit(&mut self, tag: u32, length: usize) {
        self.varint(length as u64);
        self.varint(u64::from(tag) << 3 | LENGTH_DELIMITED);
    }

    /// A field of bytes, also if there are none.
    pub fn bytes(&mut self, tag: u32, bytes: &[u8]) {
        self.before(bytes.len()).copy_from_slice(bytes);
        self.delimit(tag, bytes.len());
    }

    /// A text; an empty one is none.
    pub fn text(&mut self, tag: u32, text: &str) {
        if !text.is_empty() {
            self.bytes(tag, text.as_bytes());
        }
    }

    pub fn texts(&mut self, tag: u32, texts: &[String]) {
        texts.iter().rev().for_each(|text| self.bytes(tag, text.as_bytes()));
    }

    /// A number that is never below 0, or the code of an enumeration; 0 is none.
    pub fn number(&mut self, tag: u32, number: u64) {
        if number != 0 {
            self.varint(number);
            self.varint(u64::from(tag) << 3);
        }
    }

    /// A message within: `write` writes its fields, the last one first.
    pub fn nested(&mut self, tag: u32, write: impl FnOnce(&mut Self)) {
        let behind = self.len();
        write(self);
        self.delimit(tag, self.len() - behind);
    }

    /// A generated message within.
    pub fn generated(&mut self, tag: u32, message: &impl Message) {
        let length = message.encoded_len();
        let mut place = self.before(length);
        // There is room: it was measured.
        let _ = message.encode(&mut place);
        self.delimit(tag, length);
    }

    /// The message behind what gRPC puts before it.
    pub fn framed(mut self) -> Bytes {
        let length = u32::try_from(self.len()).unwrap_or(u32::MAX);
        let prefix = self.before(PREFIX);
        prefix[0] = 0;
        prefix[1..].copy_from_slice(&length.to_be_bytes());
        let mut bytes = Bytes::from(self.room);
        bytes.advance(self.start);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::{Backwards, PREFIX, USUAL};
    use prost::Message as _;
    use prost_types::{FileDescriptorProto, UninterpretedOption, uninterpreted_option::NamePart};

    /// The room is begun with `USUAL` bytes: with texts around that it grows at each of the steps.
    #[test]
    fn what_is_written_backwards_is_what_is_generated() {
        for length in [0, 1, 127, 128, USUAL - 9, USUAL, 16_383, 16_384, 5 * USUAL] {
            let text = "ä".repeat(length / 2) + &"x".repeat(length % 2);
            let names = vec![String::new(), text.clone()];
            let file = FileDescriptorProto {
                name: Some(text.clone()),
                public_dependency: Vec::new(),
                dependency: names.clone(),
                ..Default::default()
            };
            let mut out = Backwards::new();
            out.texts(3, &names);
            out.text(1, &text);
            // An empty text is none: generated code says the same of an optional one that is not there.
            let file = FileDescriptorProto { name: file.name.filter(|name| !name.is_empty()), ..file };
            assert_eq!(out.framed()[PREFIX..], file.encode_to_vec(), "{length}");
        }
    }

    #[test]
    fn numbers_and_nested_messages() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let part = NamePart { name_part: "a name".into(), is_extension: true };
            let option = UninterpretedOption {
                name: vec![part.clone(), part.clone()],
                positive_int_value: (number != 0).then_some(number),
                string_value: Some(vec![0, 255]),
                ..Default::default()
            };
            let mut out = Backwards::new();
            out.bytes(7, &[0, 255]);
            out.number(4, number);
            out.generated(2, &part);
            out.nested(2, |out| {
                out.number(2, 1);
                out.text(1, "a name");
            });
            let framed = out.framed();
            assert_eq!(framed[PREFIX..], option.encode_to_vec(), "{number}");
            assert_eq!(framed[..PREFIX], [0, 0, 0, 0, framed.len() as u8 - PREFIX as u8]);
        }
    }
}
