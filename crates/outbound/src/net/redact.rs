//! Masking of credentials in everything that is shown; no setting turns it off.

mod spelling;

use super::address::shown_in;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, RwLock};

/// What stands in the place of a secret.
pub const MASK: &str = "[redacted]";
/// Shorter secrets would mask half of every text; they are masked where they stand alone.
pub const SHORTEST: usize = 4;
/// Secrets that are kept of those learned: tokens are replaced, and an old one may still be repeated.
const LEARNED: usize = 32;

/// Headers that hold nothing secret; of all others the value is masked.
const OPEN_HEADERS: [&str; 28] = [
    "a2a-version",
    "a2a-extensions",
    "accept",
    "allow",
    "cache-control",
    "connection",
    "content-length",
    "content-type",
    "date",
    "etag",
    "grpc-accept-encoding",
    "grpc-status",
    "host",
    "if-none-match",
    "last-event-id",
    "last-modified",
    "location",
    "retry-after",
    "server",
    "te",
    "traceparent",
    "transfer-encoding",
    "user-agent",
    "vary",
    "www-authenticate",
    "x-accel-buffering",
    "x-request-id",
    "x-trace-id",
];

/// How the names of JSON members end whose text is a credential, in small letters and without what stands between words.
const SECRET_ENDS: [&str; 14] = [
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "credentials",
    "authorization",
    "bearer",
    "cookie",
    "devicecode",
];
/// What is as long as this is no word.
const LONG_WORD: usize = 20;
/// The longest name that is looked at.
const LONGEST_NAME: usize = 100;
/// What stands before a credential where one is the value of a header.
const SCHEMES: [&str; 2] = ["bearer ", "basic "];

/// Whether a header of this name is known to hold nothing secret.
pub fn is_open(name: &str) -> bool {
    OPEN_HEADERS.iter().any(|open| open.eq_ignore_ascii_case(name))
}

/// A clone learns what the other learns.
#[derive(Debug, Default, Clone)]
pub struct Redactor {
    secrets: Vec<String>,
    /// Those that came to be known while it was in use, the oldest first.
    learned: Arc<RwLock<VecDeque<String>>>,
}

impl Redactor {
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let secrets = secrets.into_iter().filter(|secret| !secret.is_empty()).collect();
        Self { secrets, learned: Arc::default() }
    }

    /// Masks this too from now on, such as a token that was fetched.
    pub fn learn(&self, secret: &str) {
        let mut learned = self.learned.write().expect("no panic while holding secrets");
        if secret.is_empty() || learned.iter().any(|known| known == secret) {
            return;
        }
        learned.push_back(secret.to_owned());
        if learned.len() > LEARNED {
            learned.pop_front();
        }
    }

    /// The value of a header as it may be shown.
    pub fn header(&self, name: &str, value: &str) -> String {
        if is_open(name) { self.clean(value) } else { MASK.to_owned() }
    }

    /// Text with known secrets, secret JSON members and what is secret in addresses masked.
    pub fn clean(&self, text: &str) -> String {
        shown_in(&mask_told(&mask_json(&self.mask_known(text))))
    }

    fn mask_known(&self, text: &str) -> String {
        let learned = self.learned.read().expect("no panic while holding secrets");
        let secrets: Vec<&[u8]> = self.secrets.iter().chain(&*learned).map(String::as_bytes).collect();
        let mut out = String::with_capacity(text.len());
        let (mut shown, mut at) = (0, 0);
        while at < text.len() {
            match end_of_secret(&secrets, text.as_bytes(), at) {
                Some(end) => {
                    out.push_str(&text[shown..at]);
                    out.push_str(MASK);
                    (shown, at) = (end, end);
                }
                None => at += 1,
            }
        }
        out.push_str(&text[shown..]);
        out
    }
}

/// Where a secret ends that begins here, in whatever spelling. One may contain another: the longest counts.
fn end_of_secret(secrets: &[&[u8]], text: &[u8], start: usize) -> Option<usize> {
    let ends = secrets.iter().filter_map(|secret| {
        let end = spelling::end_of(secret, text, start)?;
        (secret.len() >= SHORTEST || stands_alone(text, start..end)).then_some(end)
    });
    ends.max()
}

fn stands_alone(text: &[u8], word: Range<usize>) -> bool {
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
    let before = word.start.checked_sub(1).and_then(|before| text.get(before));
    !before.is_some_and(goes_on) && !text.get(word.end).is_some_and(goes_on)
}

/// Masks the text of every `"name": "…"` whose name says that it is a secret, and of every `"Bearer …"`.
fn mask_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // What is shown may be part of a document: each quote may be one that opens.
    while let Some(at) = rest.find('"') {
        let (before, after) = rest.split_at(at + 1);
        out.push_str(before);
        rest = after;
        if let Some(secret) = secret_member(after).or_else(|| after_scheme(after)) {
            out.push_str(&after[..secret.start]);
            out.push_str(MASK);
            rest = &after[secret.end..];
        }
    }
    out.push_str(rest);
    out
}

/// Where the secret is in `name": "secret"`.
fn secret_member(text: &str) -> Option<Range<usize>> {
    let (name, rest) = text.split_at(text.find('"').filter(|end| *end <= LONGEST_NAME)?);
    let value = rest[1..].trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    let start = text.len() - value.len();
    is_secret_member(name).then(|| start..start + end_of_text(value))
}

/// Cursors are called tokens too, and are none.
fn is_secret_member(name: &str) -> bool {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    SECRET_ENDS.iter().any(|end| name.ends_with(end)) && !name.ends_with("pagetoken")
}

/// Where the secret is in `Bearer secret"`; words that go on are prose.
fn after_scheme(text: &str) -> Option<Range<usize>> {
    let is_there = |scheme: &&&str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    let start = SCHEMES.iter().find(is_there)?.len();
    let end = end_of_text(text);
    (start < end && !text[start..end].contains(char::is_whitespace)).then_some(start..end)
}

/// Masks what stands behind `Bearer` or `Basic` in the midst of words, where it looks like no word itself.
fn mask_told(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = end_of_scheme(rest) {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let end = after.find(|c: char| !is_of_token(c)).unwrap_or(after.len());
        out.push_str(if is_no_word(&after[..end]) { MASK } else { &after[..end] });
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}

/// Where the first scheme's name ends.
fn end_of_scheme(text: &str) -> Option<usize> {
    let begins = text.match_indices(['b', 'B']).map(|(at, _)| at);
    let mut words = begins.filter(|at| !text[..*at].ends_with(char::is_alphanumeric));
    words.find_map(|at| {
        let is_there = |scheme: &&&str| text.get(at..at + scheme.len()).is_some_and(|s| s.eq_ignore_ascii_case(scheme));
        SCHEMES.iter().find(is_there).map(|scheme| at + scheme.len())
    })
}

/// The characters of RFC 6750 and of Base64.
fn is_of_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~+/=".contains(c)
}

/// Prose goes on with words, such as "Bearer authentication"; credentials have digits, or are longer than words are.
fn is_no_word(text: &str) -> bool {
    let has_digit = text.contains(|c: char| c.is_ascii_digit());
    text.len() >= LONG_WORD || (text.len() >= SHORTEST && has_digit)
}

/// Where a JSON text's closing quote is.
fn end_of_text(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::{LEARNED, Redactor};

    #[test]
    fn what_is_learned_is_masked_from_then_on_and_the_last_ones_are_kept() {
        let redactor = Redactor::new(["token".to_owned()]);
        let other = redactor.clone();
        assert_eq!(redactor.clean("Bearer token-1"), "Bearer [redacted]-1");
        redactor.learn("token-1");
        redactor.learn("token-1");
        redactor.learn("");
        assert_eq!(other.clean("Bearer token-1, token%2D1"), "Bearer [redacted], [redacted]", "also by a clone");
        (2..=LEARNED).for_each(|number| redactor.learn(&format!("token-of-{number}")));
        assert_eq!(redactor.clean("token-1 token-of-2"), "[redacted] [redacted]");
        redactor.learn("token-of-now");
        assert_eq!(redactor.clean("token-1 token-of-2 token-of-now"), "[redacted]-1 [redacted] [redacted]");
    }

    #[test]
    fn what_stands_behind_a_scheme_is_masked_in_words_too() {
        let redactor = Redactor::default();
        for (text, shown) in [
            ("log: Authorization: Bearer ghp_Ab12Cd34 sent", "log: Authorization: Bearer [redacted] sent"),
            ("twice: bearer a1b2c3, BASIC dXNlcjpwYXNzd29yZA==", "twice: bearer [redacted], BASIC [redacted]"),
            ("Bearer abcdefghijklmnopqrst.", "Bearer [redacted]"),
            ("Bearer authentication is required", "Bearer authentication is required"),
            ("the basic 4 rules, bearer x1, forbearer a1b2c3", "the basic 4 rules, bearer x1, forbearer a1b2c3"),
            ("Bearer ", "Bearer "),
        ] {
            assert_eq!(redactor.clean(text), shown);
        }
    }

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        let redactor = Redactor::new(["s3cret".to_owned(), "s3cret-2".to_owned(), "abc".to_owned(), String::new()]);
        assert_eq!(redactor.clean("got s3crets3cret-2, abcd"), "got [redacted][redacted], abcd");
        assert_eq!(
            redactor.clean("k=abc&ä=abc; xabc äabc"),
            "k=[redacted]&ä=[redacted]; xabc äabc",
            "a short one alone"
        );
        assert_eq!(redactor.header("Authorization", "Bearer x"), "[redacted]");
        assert_eq!(redactor.header("X-Whatever", "x"), "[redacted]");
        assert_eq!(redactor.header("A2A-Version", "1.0"), "1.0");
        assert_eq!(redactor.header("TE", "trailers"), "trailers");
    }

    #[test]
    fn a_secret_that_comes_back_escaped_is_masked() {
        let redactor = Redactor::new(["sk-live/9f+Ab==".to_owned(), "dä\"y".to_owned()]);
        for told in [
            "no route POST /rpc?k=sk-live%2F9f%2BAb%3D%3D",
            r#"{"error":"sk-live\/9f+Ab== or \u0073k-live/9f\u002bAb== or d\u00e4\"y"}"#,
            "sk-live%252F9f%252BAb%253D%253D&d%C3%A4%22y",
        ] {
            let shown = redactor.clean(told);
            assert!(!shown.contains("9f") && !shown.contains('y') && shown.contains("[redacted]"), "{shown}");
        }
        assert_eq!(redactor.clean("100 %, a\\b + ü %zz"), "100 %, a\\b + ü %zz");
    }

    #[test]
    fn secret_members_are_masked_and_the_rest_is_left() {
        let redactor = Redactor::default();
        assert_eq!(
            redactor.clean(r#"{"token": "a\"b","nextPageToken":"c","authentication":{"credentials":"d"}}"#),
            r#"{"token": "[redacted]","nextPageToken":"c","authentication":{"credentials":"[redacted]"}}"#
        );
        assert_eq!(
            redactor.clean(r#"{"Authorization":"x","x-api-key" : "y","proxy_password":"","myAPIKey":"z"}"#),
            r#"{"Authorization":"[redacted]","x-api-key" : "[redacted]","proxy_password":"[redacted]","myAPIKey":"[redacted]"}"#
        );
        let open = r#"{"tokenUrl":"u","keyword":"k","tokens":"9","scheme":"Bearer","about":"Bearer tokens are taken"}"#;
        assert_eq!(redactor.clean(open), open);
        assert_eq!(redactor.clean(r#"e": 1, "note":"bearer a\"b", "x""#), r#"e": 1, "note":"bearer [redacted]", "x""#);
        assert_eq!(redactor.clean(r#"{"token": 7}"#), r#"{"token": 7}"#);
    }
}
