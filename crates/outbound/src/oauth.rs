//! OAuth 2: tokens by device code (RFC 8628), by client credentials, and by refresh.

use crate::client::error::ClientError;
use crate::client::escape;
use crate::net::{Net, Outgoing};
use flotilla_protocol::wire::Base64;
use reqwest::{Method, StatusCode};
use serde::{Deserialize, Deserializer, Serialize};
use std::time::Duration;

/// Who asks for a token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requester {
    pub id: String,
    pub secret: Option<String>,
    pub scopes: Vec<String>,
    pub shows: Shows,
}

/// How the secret is shown (RFC 6749, 2.3.1): servers must take it by HTTP Basic, and many take it in the form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shows {
    /// In the form, and by HTTP Basic to a server that does not know the client so.
    #[default]
    Either,
    Basic,
    Post,
}

impl Requester {
    /// What a token request shows by HTTP Basic: both halves are escaped, as a colon stands between them.
    pub fn basic(&self) -> Option<String> {
        let secret = self.secret.as_ref()?;
        let pair = format!("{}:{}", escape(&self.id), escape(secret));
        Some(format!("Basic {}", Base64::encode(pair.as_bytes()).text()))
    }
}

/// What a token endpoint gives.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Token {
    pub access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    /// Seconds from when it was given.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    pub expires_in: Option<u64>,
}

/// A number, also as a text. What is none says nothing.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(value.as_u64().or_else(|| value.as_str().and_then(|text| text.trim().parse().ok())))
}

/// What a person has to do to let this device in.
#[derive(Debug, Clone, Deserialize)]
pub struct Invitation {
    pub device_code: String,
    pub user_code: String,
    pub verification_uri: String,
    #[serde(default)]
    pub verification_uri_complete: Option<String>,
    #[serde(default = "ten_minutes")]
    pub expires_in: u64,
    #[serde(default = "five_seconds")]
    pub interval: u64,
}

/// The longest a person is waited for, and the longest pause between two questions: a server may say any number.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

impl Token {
    /// How long it lasts, in milliseconds.
    pub fn lasts(&self) -> Option<i64> {
        let millis = |seconds: u64| i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX);
        self.expires_in.map(millis)
    }
}

impl Invitation {
    pub fn lasts(&self) -> Duration {
        Duration::from_secs(self.expires_in).min(LONGEST_WAIT)
    }

    pub fn pause(&self) -> Duration {
        Duration::from_secs(self.interval).clamp(Duration::from_secs(1), LONGEST_PAUSE)
    }
}

fn ten_minutes() -> u64 {
    600
}

fn five_seconds() -> u64 {
    5
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
    #[serde(default)]
    error_description: String,
}

/// What a token endpoint said.
enum Said {
    Token(Token),
    Refused(Refusal),
}

/// What is asked for: a form, and by HTTP Basic who asks.
struct Form<'a> {
    fields: Vec<(&'static str, &'a str)>,
    basic: Option<String>,
}

async fn post(net: &Net, url: &str, form: &Form<'_>) -> Result<(StatusCode, String), ClientError> {
    must_be_private(url)?;
    let body: Vec<String> = form.fields.iter().map(|(name, value)| format!("{name}={}", escape(value))).collect();
    let mut headers = vec![
        ("Content-Type".to_owned(), "application/x-www-form-urlencoded".to_owned()),
        ("Accept".to_owned(), "application/json".to_owned()),
    ];
    headers.extend(form.basic.iter().map(|value| ("Authorization".to_owned(), value.clone())));
    // The form holds secrets, so the wire log is told of the request without it.
    net.note(|| format!("> POST {url} (a form with {} fields, not shown)", form.fields.len()));
    let outgoing = Outgoing { method: Method::POST, url: url.to_owned(), headers, ..Outgoing::default() };
    let response = net.send_unseen(outgoing, body.join("&")).await?;
    let status = response.status();
    Ok((status, net.text(response).await?))
}

/// A secret over plain HTTP is no secret; on this machine it stays on this machine.
fn must_be_private(url: &str) -> Result<(), ClientError> {
    let parsed = reqwest::Url::parse(url)
        .map_err(|error| ClientError::Setting(format!("the card's token address '{url}' is not a URL: {error}")))?;
    let local = matches!(parsed.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    if parsed.scheme() == "https" || local {
        return Ok(());
    }
    Err(ClientError::Setting(format!("{url} is not https: a credential would travel in the clear")))
}

async fn ask(net: &Net, url: &str, form: &Form<'_>) -> Result<(StatusCode, Said), ClientError> {
    let (status, text) = post(net, url, form).await?;
    let said = match status.is_success() {
        true => serde_json::from_str(&text).map(|token: Token| {
            // Whoever it is shown to may repeat it.
            std::iter::once(&token.access_token).chain(&token.refresh_token).for_each(|secret| net.learn(secret));
            Said::Token(token)
        }),
        false => serde_json::from_str(&text).map(|Refusal { error, error_description }| {
            Said::Refused(Refusal { error: net.clean(&error), error_description: net.clean(&error_description) })
        }),
    };
    // Some say no more than HTTP does.
    if said.is_err() && status == StatusCode::UNAUTHORIZED {
        let refusal = Refusal { error: "invalid_client".into(), error_description: "HTTP 401".into() };
        return Ok((status, Said::Refused(refusal)));
    }
    said.map(|said| (status, said)).map_err(|error| strange(url, status, &error))
}

/// Another try does not help a server that speaks of something else, unless it is one that stands before it.
fn strange(url: &str, status: StatusCode, error: &serde_json::Error) -> ClientError {
    let problem = format!("it does not answer as an OAuth 2 server (HTTP {}): {error}", status.as_u16());
    match status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        true => ClientError::Unreachable { url: url.to_owned(), problem },
        false => ClientError::NoToken { url: url.to_owned(), problem },
    }
}

fn denied(refusal: &Refusal) -> ClientError {
    let about = if refusal.error_description.is_empty() { "no reason given" } else { &refusal.error_description };
    let message = format!("{} ({about})", refusal.error);
    ClientError::AuthFailed { message, code: crate::client::error::Code::Name(refusal.error.clone()) }
}

fn whole(said: Said) -> Result<Token, ClientError> {
    match said {
        Said::Token(token) => Ok(token),
        Said::Refused(refusal) => Err(denied(&refusal)),
    }
}

/// A form of the requester's, its secret shown in one way.
fn form<'a>(requester: &'a Requester, shows: Shows, kind: &'a str) -> Form<'a> {
    let basic = requester.basic().filter(|_| shows == Shows::Basic);
    let mut fields = vec![("grant_type", kind)];
    if basic.is_none() {
        fields.push(("client_id", requester.id.as_str()));
        fields.extend(requester.secret.iter().map(|secret| ("client_secret", secret.as_str())));
    }
    Form { fields, basic }
}

/// Asks for a token, and says in which way the secret was shown to get it.
async fn token(
    net: &Net,
    url: &str,
    requester: &Requester,
    (kind, fields): (&str, &[(&'static str, &str)]),
) -> Result<(Token, Shows), ClientError> {
    let asked = async |shows: Shows| {
        let mut form = form(requester, shows, kind);
        form.fields.extend_from_slice(fields);
        ask(net, url, &form).await
    };
    let first = if requester.shows == Shows::Basic { Shows::Basic } else { Shows::Post };
    let (status, said) = asked(first).await?;
    let is_unknown = |refusal: &Refusal| status == StatusCode::UNAUTHORIZED || refusal.error == "invalid_client";
    let may_be_other = requester.shows == Shows::Either && requester.secret.is_some();
    match said {
        Said::Refused(refusal) if may_be_other && is_unknown(&refusal) => match asked(Shows::Basic).await {
            Ok((_, Said::Token(token))) => Ok((token, Shows::Basic)),
            Ok((_, Said::Refused(_))) | Err(_) => Err(denied(&refusal)),
        },
        said => Ok((whole(said)?, first)),
    }
}

/// The client-credentials grant: no person involved. Says too in which way the server took the secret.
pub async fn client_credentials(net: &Net, url: &str, requester: &Requester) -> Result<(Token, Shows), ClientError> {
    let scope = requester.scopes.join(" ");
    let fields = [("scope", scope.as_str())];
    let fields = if scope.is_empty() { &[][..] } else { &fields[..] };
    token(net, url, requester, ("client_credentials", fields)).await
}

/// Asks for a code that a person enters elsewhere.
pub async fn invite(net: &Net, device_url: &str, requester: &Requester) -> Result<Invitation, ClientError> {
    let scope = requester.scopes.join(" ");
    let mut fields = vec![("client_id", requester.id.as_str())];
    if !scope.is_empty() {
        fields.push(("scope", scope.as_str()));
    }
    let (status, text) = post(net, device_url, &Form { fields, basic: None }).await?;
    let strange = |error| strange(device_url, status, &error);
    if status.is_success() {
        let invitation: Invitation = serde_json::from_str(&text).map_err(strange)?;
        net.learn(&invitation.device_code);
        return Ok(invitation);
    }
    Err(denied(&serde_json::from_str(&text).map_err(strange)?))
}

/// Asks again and again, as slowly as the server wants, until the person has decided or the code has expired.
pub async fn await_consent(
    net: &Net,
    token_url: &str,
    requester: &Requester,
    invitation: &Invitation,
) -> Result<Token, ClientError> {
    let mut pause = invitation.pause();
    let deadline = tokio::time::Instant::now() + invitation.lasts();
    let mut form = form(requester, requester.shows, "urn:ietf:params:oauth:grant-type:device_code");
    form.fields.push(("device_code", &invitation.device_code));
    loop {
        tokio::time::sleep(pause).await;
        match ask(net, token_url, &form).await?.1 {
            Said::Token(token) => return Ok(token),
            Said::Refused(refusal) if refusal.error == "authorization_pending" => {}
            Said::Refused(refusal) if refusal.error == "slow_down" => pause += Duration::from_secs(5),
            Said::Refused(refusal) => return Err(denied(&refusal)),
        }
        if tokio::time::Instant::now() > deadline {
            let refusal =
                Refusal { error: "expired_token".into(), error_description: "nobody entered the code".into() };
            return Err(denied(&refusal));
        }
    }
}

/// A new token for an old one.
pub async fn refresh(net: &Net, url: &str, requester: &Requester, old: &str) -> Result<Token, ClientError> {
    let (mut token, _) = token(net, url, requester, ("refresh_token", &[("refresh_token", old)])).await?;
    // A server that keeps the old refresh token does not repeat it.
    token.refresh_token.get_or_insert_with(|| old.to_owned());
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::{Invitation, LONGEST_PAUSE, LONGEST_WAIT, Requester, Token};
    use std::time::Duration;

    #[test]
    fn a_server_that_says_any_number_is_waited_for_within_reason() {
        let invitation = |times: &str| -> Invitation {
            let text = format!(r#"{{"device_code":"d","user_code":"u","verification_uri":"v"{times}}}"#);
            serde_json::from_str(&text).unwrap()
        };
        let usual = invitation("");
        assert_eq!((usual.pause(), usual.lasts()), (Duration::from_secs(5), Duration::from_secs(600)));
        let endless = invitation(r#","interval":18446744073709551615,"expires_in":18446744073709551615"#);
        assert_eq!((endless.pause(), endless.lasts()), (LONGEST_PAUSE, LONGEST_WAIT));
        assert_eq!(invitation(r#","interval":0"#).pause(), Duration::from_secs(1));
        let token = |seconds| Token { expires_in: seconds, ..Token::default() }.lasts();
        assert_eq!((token(None), token(Some(60)), token(Some(u64::MAX))), (None, Some(60_000), Some(i64::MAX)));
    }

    #[test]
    fn a_time_may_be_a_text() {
        for (said, read) in [("3600", Some(3600)), ("\"3600\"", Some(3600)), ("\"soon\"", None), ("null", None)] {
            let text = format!(r#"{{"access_token":"t","expires_in":{said}}}"#);
            assert_eq!(serde_json::from_str::<Token>(&text).unwrap().expires_in, read, "{said}");
        }
    }

    #[test]
    fn what_basic_shows_is_escaped() {
        let requester = Requester { id: "a:b".into(), secret: Some("c d%".into()), ..Requester::default() };
        // a%3Ab:c%20d%25
        assert_eq!(requester.basic().as_deref(), Some("Basic YSUzQWI6YyUyMGQlMjU="));
    }
}
