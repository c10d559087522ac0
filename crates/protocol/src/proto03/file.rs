//! The bytes of a file in 0.3's `file_with_bytes`, which its SDKs fill with base64 text.

use crate::wire::Base64;

/// What the field holds. The published SDKs put the base64 text of a file where the proto has bytes; others put the
/// bytes themselves. Base64 text in its canonical form is taken for the former, unless the file says that it is text
/// and what it would decode to is none.
pub fn read(field: &[u8], media_type: &str) -> Base64 {
    let text = std::str::from_utf8(field).ok().filter(|text| !text.is_empty());
    let decoded = text.and_then(|text| Base64::parse(text).ok().filter(|parsed| parsed.text() == text));
    match decoded {
        Some(decoded) if !is_text(media_type) || String::from_utf8(decoded.decode()).is_ok() => decoded,
        _ => Base64::encode(field),
    }
}

/// As the published SDKs read it: those in use cannot read anything else.
pub fn write(file: &Base64) -> Vec<u8> {
    file.text().as_bytes().to_vec()
}

fn is_text(media_type: &str) -> bool {
    media_type.trim_start().get(..5).is_some_and(|kind| kind.eq_ignore_ascii_case("text/"))
}

#[cfg(test)]
mod tests {
    use super::{read, write};
    use crate::wire::Base64;

    #[test]
    fn both_ways_to_put_a_file_there_are_read() {
        let file = Base64::encode(b"\x89PNG\r\n");
        assert_eq!(read(&write(&file), "image/png"), file);
        assert_eq!(read(b"\x89PNG\r\n", "image/png"), file);
        assert_eq!(read(b"hello", ""), Base64::encode(b"hello"));
        assert_eq!(read(b"", ""), Base64::encode(b""));
    }

    #[test]
    fn a_text_that_looks_like_base64_by_chance_stays_a_text() {
        assert_eq!(read(b"test", "text/plain"), Base64::encode(b"test"));
        assert_eq!(read(b"aGVsbG8=", "text/plain").decode(), b"hello");
    }
}
