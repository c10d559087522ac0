//! Masking of credentials in everything that is shown; no setting turns it off.

use super::address::shown_in;

pub(super) const MASK: &str = "[redacted]";
/// Shorter secrets would mask half of every text; they are masked where they stand as a header.
const SHORTEST: usize = 4;

/// Headers that hold nothing secret; of all others the value is masked.
const OPEN_HEADERS: [&str; 25] = [
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
    "host",
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

/// JSON members whose text is a credential.
const SECRET_MEMBERS: [&str; 9] = [
    "token",
    "credentials",
    "access_token",
    "refresh_token",
    "id_token",
    "client_secret",
    "device_code",
    "password",
    "apiKey",
];

/// Whether a header of this name is known to hold nothing secret.
pub fn is_open(name: &str) -> bool {
    OPEN_HEADERS.iter().any(|open| open.eq_ignore_ascii_case(name))
}

#[derive(Debug, Default, Clone)]
pub struct Redactor {
    secrets: Vec<String>,
}

impl Redactor {
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> = secrets.into_iter().filter(|secret| secret.len() >= SHORTEST).collect();
        // The longest first: a secret may contain another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets }
    }

    /// The value of a header as it may be shown.
    pub fn header(&self, name: &str, value: &str) -> String {
        if is_open(name) { self.clean(value) } else { MASK.to_owned() }
    }

    /// Text with known secrets, secret JSON members and what is secret in addresses masked.
    pub fn clean(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for secret in &self.secrets {
            if clean.contains(secret.as_str()) {
                clean = clean.replace(secret.as_str(), MASK);
            }
        }
        for member in SECRET_MEMBERS {
            clean = mask_member(&clean, member);
        }
        shown_in(&clean)
    }
}

/// Masks the text of every `"name": "…"`.
fn mask_member(text: &str, name: &str) -> String {
    let key = format!("\"{name}\"");
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(&key) {
        let (before, after) = rest.split_at(at + key.len());
        out.push_str(before);
        rest = after;
        let value = rest.trim_start();
        let Some(value) = value.strip_prefix(':').map(str::trim_start).and_then(|value| value.strip_prefix('"')) else {
            continue;
        };
        out.push_str(":\"");
        out.push_str(MASK);
        rest = &value[end_of_text(value)..];
    }
    out.push_str(rest);
    out
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
    use super::Redactor;

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        let redactor = Redactor::new(["s3cret".to_owned(), "abc".to_owned()]);
        assert_eq!(redactor.clean("got s3cret, abc"), "got [redacted], abc");
        assert_eq!(redactor.header("Authorization", "Bearer x"), "[redacted]");
        assert_eq!(redactor.header("X-Whatever", "x"), "[redacted]");
        assert_eq!(redactor.header("A2A-Version", "1.0"), "1.0");
        assert_eq!(redactor.header("TE", "trailers"), "trailers");
    }

    #[test]
    fn secret_members_are_masked_and_the_rest_is_left() {
        let redactor = Redactor::default();
        assert_eq!(
            redactor.clean(r#"{"token": "a\"b","nextPageToken":"c","authentication":{"credentials":"d"}}"#),
            r#"{"token":"[redacted]","nextPageToken":"c","authentication":{"credentials":"[redacted]"}}"#
        );
        assert_eq!(redactor.clean(r#"{"token": 7}"#), r#"{"token": 7}"#);
    }
}
