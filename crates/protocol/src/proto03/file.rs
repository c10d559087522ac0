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

/// How those programs call themselves whose files are base64 text.
const TEXT_READERS: [&str; 5] = ["grpc-python-asyncio", "python-httpx", "grpc-go", "grpc-java", "java-http-client"];

impl Files {
    /// Those of a caller, by the name its `user-agent` gives. Nothing else tells the two apart.
    pub fn of_caller(user_agent: &str) -> Self {
        let name = user_agent.to_ascii_lowercase();
        if TEXT_READERS.iter().any(|reader| name.contains(reader)) { Self::Text } else { Self::Bytes }
    }

    /// What the field holds. Base64 text in its canonical form is taken for that, also where bytes are expected: many
    /// callers do not give their name. Not so, then, if the file is said to be a text and would decode to something else.
    pub fn read(self, field: &[u8], media_type: &str) -> Base64 {
        let text = std::str::from_utf8(field).ok().filter(|text| !text.is_empty());
        let decoded = text.and_then(|text| Base64::parse(text).ok().filter(|parsed| parsed.text() == text));
        let fits = |decoded: &Base64| {
            self == Self::Text || !is_text(media_type) || String::from_utf8(decoded.decode()).is_ok()
        };
        decoded.filter(fits).unwrap_or_else(|| Base64::encode(field))
    }

    pub fn write(self, file: &Base64) -> Vec<u8> {
        match self {
            Self::Text => file.text().as_bytes().to_vec(),
            Self::Bytes => file.decode(),
        }
    }
}

fn is_text(media_type: &str) -> bool {
    media_type.trim_start().get(..5).is_some_and(|kind| kind.eq_ignore_ascii_case("text/"))
}

#[cfg(test)]
mod tests {
    use super::Files;
    use crate::wire::Base64;

    #[test]
    fn both_ways_to_put_a_file_there_are_read() {
        let file = Base64::encode(b"\x89PNG\r\n");
        for files in [Files::Text, Files::Bytes] {
            assert_eq!(files.read(&files.write(&file), "image/png"), file);
            assert_eq!(files.read(b"hello", ""), Base64::encode(b"hello"));
            assert_eq!(files.read(b"", ""), Base64::encode(b""));
        }
    }

    #[test]
    fn a_text_that_looks_like_base64_by_chance_stays_a_text() {
        assert_eq!(Files::Bytes.read(b"test", "text/plain"), Base64::encode(b"test"));
        assert_eq!(Files::Bytes.read(b"aGVsbG8=", "text/plain").decode(), b"hello");
        let latin = Base64::encode(b"caf\xe9");
        assert_eq!(Files::Text.read(&Files::Text.write(&latin), "text/plain"), latin, "a text need not be UTF-8");
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
            ("node", Files::Bytes),
            ("", Files::Bytes),
        ] {
            assert_eq!(Files::of_caller(name), files, "{name}");
        }
    }
}
