//! The bytes of a file in 0.3's `file_with_bytes`, which its SDKs fill with base64 text.

use crate::wire::Base64;

/// What somebody has there. The published SDKs put the base64 text of a file where the proto has bytes; others put the
/// bytes themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// Base64 text: the SDKs for Python, Go and Java cannot read anything else.
    Text,
    /// The bytes, which is what the proto file says.
    Bytes,
}

/// How those SDKs call themselves: nobody else begins a `user-agent` so, but programs that use the same libraries.
const TEXT_READERS: [&str; 5] =
    ["grpc-python-asyncio/", "python-httpx/", "grpc-go/", "grpc-java-", "java-http-client/"];

impl Files {
    /// Those of a caller, by what its `user-agent` begins with. Tools that name themselves first, as grpcurl does before
    /// its library, follow the proto file.
    pub fn of_caller(user_agent: &str) -> Self {
        let name = user_agent.trim_start().to_ascii_lowercase();
        if TEXT_READERS.iter().any(|reader| name.starts_with(reader)) { Self::Text } else { Self::Bytes }
    }

    /// What the field holds. Bytes are never taken for base64 text, however much they look like it. Where base64 text is
    /// expected, what is none can only be the bytes.
    pub fn read(self, field: &[u8]) -> Base64 {
        let text = std::str::from_utf8(field).ok().filter(|text| self == Self::Text && !text.is_empty());
        let decoded = text.and_then(|text| Base64::parse(text).ok().filter(|parsed| parsed.text() == text));
        decoded.unwrap_or_else(|| Base64::encode(field))
    }

    pub fn write(self, file: &Base64) -> Vec<u8> {
        match self {
            Self::Text => file.text().as_bytes().to_vec(),
            Self::Bytes => file.decode(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Files;
    use crate::wire::Base64;

    #[test]
    fn what_is_written_is_read_again() {
        for files in [Files::Text, Files::Bytes] {
            for file in [&b"\x89PNG\r\n"[..], b"true", b"caf\xe9", b""] {
                assert_eq!(files.read(&files.write(&Base64::encode(file))).decode(), file, "{files:?}");
            }
        }
        assert_eq!(Files::Text.read(b"hello").decode(), b"hello", "no base64 text, so the bytes");
    }

    #[test]
    fn bytes_are_never_taken_for_base64_text() {
        for file in [&b"true"[..], b"deadbeef", b"aGVsbG8="] {
            assert_eq!(Files::Bytes.read(file), Base64::encode(file));
        }
        assert_eq!(Files::Text.read(b"aGVsbG8=").decode(), b"hello");
    }

    #[test]
    fn a_reader_is_known_by_its_name() {
        for (name, files) in [
            ("grpc-python-asyncio/1.76.0 grpc-c/51.0.0 (linux; chttp2)", Files::Text),
            ("grpc-python/1.76.0 grpc-c/51.0.0 (linux; chttp2)", Files::Bytes),
            ("python-httpx/0.28.1", Files::Text),
            ("grpc-java-netty/1.66.0", Files::Text),
            ("Java-http-client/21", Files::Text),
            ("grpc-node-js/1.14.0", Files::Bytes),
            ("grpc-go/1.76.0", Files::Text),
            ("grpcurl/v1.9.3 grpc-go/1.61.0", Files::Bytes),
            ("node", Files::Bytes),
            ("", Files::Bytes),
        ] {
            assert_eq!(Files::of_caller(name), files, "{name}");
        }
    }
}
