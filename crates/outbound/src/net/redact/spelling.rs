//! A secret however it is spelled: as it is, escaped for an address or for a JSON text, or one within the other.

use std::collections::BTreeSet;

/// How often escapes are looked for within escapes: an address in a JSON text, a JSON text in another.
const DEEPEST: u8 = 2;

/// Where what begins at `start` and spells `secret` ends. Of several ways to read it, the longest counts.
pub fn end_of(secret: &[u8], text: &[u8], start: usize) -> Option<usize> {
    let first = text.get(start)?;
    if secret.first() != Some(first) && !matches!(first, b'%' | b'\\' | b'+') {
        return None;
    }
    let mut end = None;
    let mut open = vec![(0, start)];
    // What was come to in two ways is gone on from once: a secret of backslashes would take for ever.
    let mut seen = BTreeSet::new();
    while let Some((known, at)) = open.pop() {
        if known == secret.len() {
            end = end.max(Some(at));
            continue;
        }
        for unit in units(text, at, DEEPEST) {
            if secret[known..].starts_with(unit.bytes()) {
                let next = (known + unit.length, unit.end);
                open.extend(seen.insert(next).then_some(next));
            }
        }
    }
    end
}

/// What may be meant at a place of a text: a character or a byte of one, and where its spelling ends.
struct Unit {
    meant: [u8; 4],
    length: usize,
    end: usize,
}

impl Unit {
    fn byte(byte: u8, end: usize) -> Self {
        Self { meant: [byte, 0, 0, 0], length: 1, end }
    }

    fn char(char: char, end: usize) -> Self {
        let mut meant = [0; 4];
        let length = char.encode_utf8(&mut meant).len();
        Self { meant, length, end }
    }

    fn bytes(&self) -> &[u8] {
        &self.meant[..self.length]
    }
}

fn units(text: &[u8], at: usize, depth: u8) -> Vec<Unit> {
    let Some(&byte) = text.get(at) else { return Vec::new() };
    let mut found = vec![Unit::byte(byte, at + 1)];
    if byte == b'+' {
        found.push(Unit::byte(b' ', at + 1));
    }
    if depth == 0 || !matches!(byte, b'%' | b'\\') {
        return found;
    }
    for lead in units(text, at, depth - 1) {
        match lead.bytes() {
            b"%" => {
                let byte = digits(text, lead.end, 2).and_then(|number| u8::try_from(number).ok());
                found.extend(byte.map(|byte| Unit::byte(byte, lead.end + 2)));
            }
            b"\\" => {
                found.extend(units(text, lead.end, depth - 1).into_iter().filter_map(|named| match named.bytes() {
                    b"u" => numbered(text, at, named.end),
                    [named_by] => Some(Unit::byte(escaped(*named_by)?, named.end)),
                    _ => None,
                }))
            }
            _ => {}
        }
    }
    found
}

fn digits(text: &[u8], at: usize, count: usize) -> Option<u32> {
    let digits = text.get(at..at + count).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// What a letter behind a backslash stands for in JSON.
fn escaped(letter: u8) -> Option<u8> {
    Some(match letter {
        b'"' | b'/' | b'\\' => letter,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        _ => return None,
    })
}

/// The character that is named from `start` by a number, or by two that are a surrogate pair.
fn numbered(text: &[u8], start: usize, at: usize) -> Option<Unit> {
    let (first, end) = (digits(text, at, 4)?, at + 4);
    if let Some(char) = char::from_u32(first) {
        return Some(Unit::char(char, end));
    }
    // The other half is introduced as the first one was.
    let again = text.get(start..at)?;
    text.get(end..)?.strip_prefix(again)?;
    let at = end + again.len();
    let second = digits(text, at, 4).filter(|second| (0xdc00..0xe000).contains(second))?;
    let number = 0x10000 + (first.checked_sub(0xd800)? << 10) + (second - 0xdc00);
    char::from_u32(number).map(|char| Unit::char(char, at + 4))
}

#[cfg(test)]
mod tests {
    use super::end_of;

    fn spells(text: &str, secret: &str) -> bool {
        end_of(secret.as_bytes(), text.as_bytes(), 0) == Some(text.len())
    }

    #[test]
    fn a_secret_is_known_in_every_spelling() {
        let secret = "sk/9f+A\"b=";
        for text in [
            secret,
            "sk%2F9f%2BA%22b%3D",
            "sk%2f9f%2ba%22b%3d".replace("%2ba", "%2bA").as_str(),
            "%73%6B%2F%39%66%2B%41%22%62%3D",
            r#"sk\/9f+A\"b="#,
            r"\u0073k/9f+A\u0022b=",
            r"sk\u002F9f\u002bA\u0022b\u003D",
            "sk%252F9f%252BA%2522b%253D",
            r#"sk\\/9f+A\\\"b="#,
            r"sk\\u002f9f+A\\u0022b=",
            r"sk\u00252F9f%2BA%22b%3D",
        ] {
            assert!(spells(text, secret), "{text}");
        }
        assert!(spells("a+%20%c3%a4\\u00E4ä\\ud83d\\uDE00", "a  äää😀"));
        assert!(spells(r"a%41\\b", r"a%41\b") && spells(r"a%41\b", r"a%41\b"), "it may look like an escape itself");
        for other in ["sk/9f+A", "sk%2F9f%2BA%22b%3", r"sk\x2f", "%", r"\u12", r"\ud83d\ud83d", "SK%2F9f+A\"b="] {
            assert!(end_of(secret.as_bytes(), other.as_bytes(), 0).is_none(), "{other}");
        }
    }

    #[test]
    fn a_text_made_to_take_long_does_not() {
        let secret = format!("{}x", "\\".repeat(24));
        let text = "\\".repeat(100);
        assert!((0..text.len()).all(|at| end_of(secret.as_bytes(), text.as_bytes(), at).is_none()));
    }
}
