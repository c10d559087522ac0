//! Addresses: which may be called, and how they are shown. A password in one is refused, a secret in its query masked.

use super::redact::MASK;
use crate::client::error::ClientError;
use percent_encoding::percent_decode_str;
use reqwest::Url;

/// Parts of a query parameter's name that make its value a secret.
const SECRET_PARTS: [&str; 11] =
    ["token", "secret", "passw", "passphrase", "pwd", "signature", "credential", "apikey", "jwt", "bearer", "auth"];
/// Words of a name that do so only when they stand alone: `key` and `api-key`, but not `keyword`.
const SECRET_WORDS: [&str; 7] = ["key", "sig", "pass", "pw", "session", "sid", "sas"];

/// An address that may be called. A user name or a password in it would be sent as HTTP Basic to whoever is there, and
/// would stand in process lists, logs and hints.
pub fn check(text: &str) -> Result<Url, ClientError> {
    let url = Url::parse(text).map_err(|error| {
        let problem = error.to_string();
        ClientError::Address { address: shown(text), problem }
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ClientError::AddressWithPassword { address: shown(text) });
    }
    if !matches!(url.scheme(), "http" | "https") {
        let problem = format!("{} is not spoken here, http and https are", url.scheme());
        return Err(ClientError::Address { address: shown(text), problem });
    }
    Ok(url)
}

/// Text as it may be shown: every address in it without what is secret.
pub fn shown_in(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| !ends_word(c)) {
        out.push_str(&rest[..at]);
        let word = &rest[at..];
        let end = word.find(ends_word).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        addresses(word).into_iter().for_each(|address| out.push_str(&shown(address)));
        rest = after;
    }
    out.push_str(rest);
    out
}

fn ends_word(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '<' | '>')
}

/// A word split where addresses begin that have no space between them, as in `a,b`.
fn addresses(word: &str) -> Vec<&str> {
    let mut addresses = Vec::new();
    let mut rest = word;
    while let Some(next) = rest.rfind("://") {
        let scheme = rest[..next].trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "+-.".contains(c)).len();
        let (before, address) = rest.split_at(scheme);
        addresses.insert(0, address);
        rest = before;
    }
    addresses.insert(0, rest);
    addresses
}

/// One address, or a reference without a scheme, as it may be shown.
pub fn shown(address: &str) -> String {
    let (scheme, rest) = address.split_at(end_of_scheme(address));
    let start = scheme.len();
    // Without a scheme it may be a file, whose name may hold anything.
    let user = end_of_user(rest).filter(|end| start > 0 || rest[..*end].contains(':'));
    let rest = match user {
        Some(end) => format!("{MASK}{}", &rest[end..]),
        None => rest.to_owned(),
    };
    let Some(query) = rest.find(['?', '#']) else { return format!("{scheme}{rest}") };
    let (path, query) = rest.split_at(query);
    let pairs = query.split_inclusive(['?', '#', '&', ';']).map(masked_pair);
    format!("{scheme}{path}{}", pairs.collect::<String>())
}

/// Where the scheme and the slashes behind it end. Parsers take any number of them, of either kind, for two, and see no
/// control characters around them; a file has no user.
fn end_of_scheme(address: &str) -> usize {
    let usual = || address.find("://").map_or(0, |at| at + 3);
    let is_name = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c) || c <= ' ';
    let Some((name, rest)) = address.split_once(':').filter(|(name, _)| name.chars().all(is_name)) else {
        return usual();
    };
    let slashes = rest.len() - rest.trim_start_matches(|c: char| matches!(c, '/' | '\\') || c < ' ').len();
    match slashes {
        _ if name.trim().eq_ignore_ascii_case("file") => usual(),
        // What looks like a scheme may be a user; one that is none is masked with the user behind it.
        0 => 0,
        _ => name.len() + 1 + slashes,
    }
}

/// Where the `@` behind a user's name and password is.
fn end_of_user(rest: &str) -> Option<usize> {
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    if let Some(at) = authority.rfind('@') {
        return Some(at);
    }
    // A password that holds one of these ends the authority before its time: what is left of it is no port.
    let (_, port) = authority.rsplit_once(':').filter(|_| !authority.ends_with(']'))?;
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
    if is_port { None } else { rest.rfind('@') }
}

/// `name=value` and what follows it, the value masked if the name says that it is a secret.
fn masked_pair(pair: &str) -> String {
    let Some((name, value)) = pair.split_once('=') else { return pair.to_owned() };
    if !is_secret(name) {
        return pair.to_owned();
    }
    let end = value.strip_suffix(['?', '#', '&', ';']).map_or(value.len(), str::len);
    format!("{name}={MASK}{}", &value[end..])
}

/// Whether a parameter of this name holds a secret. Cursors are called tokens too, and are none.
fn is_secret(name: &str) -> bool {
    let name = percent_decode_str(name).decode_utf8_lossy().to_ascii_lowercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let has_part = SECRET_PARTS.iter().any(|part| name.contains(part));
    !name.contains("page") && (has_part || name == "code" || words.any(|word| SECRET_WORDS.contains(&word)))
}

#[cfg(test)]
mod tests {
    use super::{check, shown, shown_in};

    #[test]
    fn a_password_is_never_shown() {
        for (address, expected) in [
            ("http://user:pw@host/x", "http://[redacted]@host/x"),
            ("https://token@host", "https://[redacted]@host"),
            ("user:pw@host", "[redacted]@host"),
            ("http://user:p@w@host:80/@me", "http://[redacted]@host:80/@me"),
            ("http://user:p/w@host/x", "http://[redacted]@host/x"),
            ("http://user:p#w@host", "http://[redacted]@host"),
            ("http://host:80/@me?a=1", "http://host:80/@me?a=1"),
            ("http://[::1]:80/x@y", "http://[::1]:80/x@y"),
            ("http://[::1]/x@y", "http://[::1]/x@y"),
            ("http://user:p\\@host", "http://[redacted]@host"),
            ("http:///user:pw@host/x", "http:///[redacted]@host/x"),
            ("http:/user:pw@host", "http:/[redacted]@host"),
            ("\u{1f}http:/\n/user:pw@host", "\u{1f}http:/\n/[redacted]@host"),
            ("http:user:pw@host://x", "[redacted]@host://x"),
            ("http:user:pw@host", "[redacted]@host"),
            ("http:\\\\user:pw@host", "http:\\\\[redacted]@host"),
            ("file:///me@home.json", "file:///me@home.json"),
            ("./cards/me@home.json", "./cards/me@home.json"),
            ("me@home.json", "me@home.json"),
        ] {
            assert_eq!(shown(address), expected);
        }
    }

    #[test]
    fn secrets_of_a_query_are_masked_and_the_rest_is_left() {
        for (query, expected) in [
            ("token=abc&page=2", "token=[redacted]&page=2"),
            ("a=1&X-Amz-Signature=abc#access_token=d", "a=1&X-Amz-Signature=[redacted]#access_token=[redacted]"),
            ("api-key=a&apikey=b&key=c&keyword=d", "api-key=[redacted]&apikey=[redacted]&key=[redacted]&keyword=d"),
            ("code=a&user_code=b&to%6ben=c", "code=[redacted]&user_code=b&to%6ben=[redacted]"),
            ("pageToken=abc&nextPageToken=d", "pageToken=abc&nextPageToken=d"),
        ] {
            assert_eq!(shown(&format!("https://h/x?{query}")), format!("https://h/x?{expected}"));
        }
        let text = "see \"http://h/?token=abc\", then\n  http://u:p@h (twice)";
        assert_eq!(shown_in(text), "see \"http://h/?token=[redacted]\", then\n  http://[redacted]@h (twice)");
        let text = r#"{"a":"http://h\nhttp://u:p@h,https://k?sig=1","b":"x"}"#;
        assert_eq!(shown_in(text), r#"{"a":"http://h\nhttp://[redacted]@h,https://k?sig=[redacted]","b":"x"}"#);
    }

    #[test]
    fn an_address_with_a_password_is_not_called() {
        assert!(check("http://host/?token=abc").is_ok() && check("HTTPS://host").is_ok());
        assert!(check("ftp://host").is_err_and(|error| error.to_string().contains("http and https are")));
        for wrong in ["http://user:pw@host/", "http://user@host/", "https://:pw@host/", "http://user:p/w@host/"] {
            let told = check(wrong).expect_err("refused").to_string();
            assert!(!told.contains("pw") && !told.contains("p/w"), "{told}");
        }
    }
}
