//! JSON that is right as a text, and says what protobuf has no way to say: made to fit, and no more of it than needed.

/// The largest number there is, for one beyond it.
const LARGEST: &str = "1.7976931348623157e308";
/// What stands for half a character.
const UNREADABLE: &str = "\\ufffd";

/// The same JSON with numbers beyond all doubles cut to the largest, and halves of characters replaced.
pub fn mend(json: &str) -> String {
    let mut mended = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '"' => text(rest, &mut mended),
            '-' | '0'..='9' => number(rest, &mut mended),
            other => {
                mended.push(other);
                other.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    mended
}

/// Copies a text with its quotes; how long it was.
fn text(rest: &str, mended: &mut String) -> usize {
    mended.push('"');
    let mut at = 1;
    while let Some(next) = rest[at..].chars().next() {
        let taken = match next {
            '\\' => escape(&rest[at..], mended),
            other => {
                mended.push(other);
                other.len_utf8()
            }
        };
        at += taken;
        if next == '"' {
            break;
        }
    }
    at
}

fn escape(rest: &str, mended: &mut String) -> usize {
    match unit(rest) {
        Some(0xD800..=0xDBFF) if matches!(rest.get(6..).and_then(unit), Some(0xDC00..=0xDFFF)) => {
            mended.push_str(&rest[..12]);
            12
        }
        Some(0xD800..=0xDFFF) => {
            mended.push_str(UNREADABLE);
            6
        }
        _ => {
            let taken = rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at);
            mended.push_str(&rest[..taken]);
            taken
        }
    }
}

/// The UTF-16 unit that an escape at the beginning stands for.
fn unit(rest: &str) -> Option<u16> {
    u16::from_str_radix(rest.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

fn number(rest: &str, mended: &mut String) -> usize {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
    let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    match rest[..end].parse::<f64>() {
        Ok(number) if number.is_infinite() => {
            mended.push_str(if number < 0.0 { "-" } else { "" });
            mended.push_str(LARGEST);
        }
        _ => mended.push_str(&rest[..end]),
    }
    end
}

#[cfg(test)]
mod tests {
    use super::mend;

    #[test]
    fn only_what_does_not_fit_is_changed() {
        for (json, mended) in [
            (
                r#"{"a":1e309,"b":[-2e400, 1e2],"1e999":"1e999"}"#,
                r#"{"a":1.7976931348623157e308,"b":[-1.7976931348623157e308, 1e2],"1e999":"1e999"}"#,
            ),
            (r#"{"a":"x\ud800y","b":2}"#, r#"{"a":"x\ufffdy","b":2}"#),
            (
                r#"["\ud83d\ude00", "\udc00\ud800", "\\ud800", "\"", "é\n"]"#,
                r#"["\ud83d\ude00", "\ufffd\ufffd", "\\ud800", "\"", "é\n"]"#,
            ),
        ] {
            assert_eq!(mend(json), mended);
        }
    }
}
