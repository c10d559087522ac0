//! What a caller gave a webhook to prove itself with: checked once, sealed, and opened only to be sent.

use super::TOKEN;
use super::sign::{PREFIX, Secret};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flotilla_protocol::a2a::error::{Refusal, Violation};
use flotilla_protocol::a2a::push::PushOptions;
use flotilla_protocol::a2a::request::PushConfig;
use reqwest::header::{AUTHORIZATION, HeaderName};

/// The longest token or credential.
const LONGEST: usize = 4096;
/// Separates the three texts in their sealed form; none of them can hold it.
const SEPARATOR: char = '\n';

#[derive(Default)]
pub struct Secrets {
    token: String,
    scheme: String,
    credentials: String,
    signing: Vec<Secret>,
}

impl Secrets {
    /// Checks what can be wrong with them, so that no webhook fails over it later.
    pub fn of(config: &PushConfig, options: PushOptions) -> Result<Self, Refusal> {
        let (scheme, credentials) = match &config.authentication {
            Some(authentication) => (authentication.scheme.as_str(), authentication.credentials.as_str()),
            None => ("", ""),
        };
        let texts = [
            ("token", config.token.as_str()),
            ("authentication.scheme", scheme),
            ("authentication.credentials", credentials),
        ];
        let mut wrong = Vec::new();
        for (field, text) in texts {
            if let Some(description) = problem(field, text) {
                wrong.push(Violation { field: field.into(), description });
            }
        }
        if !wrong.is_empty() {
            return Err(Refusal::violations(wrong));
        }
        let secrets = Self::from_texts(&config.token, scheme, credentials);
        let secrets = secrets.map_err(|(field, problem)| Refusal::invalid(field, problem))?;
        if options.hub_signature && secrets.hub_secret().is_none() {
            let text = "hubSignature needs a secret: give one as token or credentials, 'whsec_' and base64";
            return Err(Refusal::invalid("metadata", text));
        }
        Ok(secrets)
    }

    fn from_texts(token: &str, scheme: &str, credentials: &str) -> Result<Self, (&'static str, String)> {
        let mut signing = Vec::new();
        for (field, text) in [("token", token), ("authentication.credentials", credentials)] {
            if is_signing(text) {
                for one in text.split(' ') {
                    signing.push(Secret::parse(one).map_err(|problem| (field, problem))?);
                }
            }
        }
        Ok(Self { token: token.into(), scheme: scheme.into(), credentials: credentials.into(), signing })
    }

    /// Whether there is nothing to seal: such a webhook needs no key.
    pub fn is_empty(&self) -> bool {
        self.token.is_empty() && self.scheme.is_empty() && self.credentials.is_empty()
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        [self.token.as_str(), &self.scheme, &self.credentials].join("\n").into_bytes()
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let broken = || "the sealed credentials cannot be read".to_owned();
        let text = std::str::from_utf8(bytes).map_err(|_| broken())?;
        let mut parts = text.split(SEPARATOR);
        let (Some(token), Some(scheme), Some(credentials)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(broken());
        };
        Self::from_texts(token, scheme, credentials).map_err(|(_, problem)| problem)
    }

    /// The secrets to sign with, if the caller gave any.
    pub fn signing(&self) -> &[Secret] {
        &self.signing
    }

    /// The first of them, as its receiver knows it.
    pub fn hub_secret(&self) -> Option<&str> {
        self.signing.first().map(Secret::text)
    }

    /// The headers that show what the caller gave; a signing secret is never shown to anybody.
    pub fn headers(&self) -> Vec<(HeaderName, String)> {
        let mut headers = Vec::new();
        if !self.token.is_empty() && !is_signing(&self.token) {
            headers.push((TOKEN, self.token.clone()));
        }
        if self.scheme.is_empty() || is_signing(&self.credentials) {
            return headers;
        }
        let basic = self.scheme.eq_ignore_ascii_case("basic");
        let value = match (basic, self.credentials.as_str()) {
            (_, "") => self.scheme.clone(),
            // `user:password` is what people give; base64 is what the scheme sends.
            (true, pair) if pair.contains(':') => format!("{} {}", self.scheme, STANDARD.encode(pair)),
            (_, credentials) => format!("{} {credentials}", self.scheme),
        };
        headers.push((AUTHORIZATION, value));
        headers
    }
}

/// Whether a text is one of signing secrets. One among other words makes it one: it would be shown with them otherwise.
fn is_signing(text: &str) -> bool {
    text.split(' ').any(|word| word.starts_with(PREFIX))
}

fn problem(field: &str, text: &str) -> Option<String> {
    if text.len() > LONGEST {
        return Some(format!("must be at most {LONGEST} bytes long, got {}", text.len()));
    }
    if !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Some("must hold printable ASCII only: it is sent as a header".into());
    }
    if field == "authentication.scheme" && text.contains(' ') {
        return Some("must be one word, such as Bearer; the rest belongs into credentials".into());
    }
    None
}
