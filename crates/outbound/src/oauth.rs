//! OAuth 2: tokens by device code (RFC 8628), by client credentials, and by refresh.

use crate::client::error::ClientError;
use crate::client::escape;
use crate::net::{Net, Outgoing};
use reqwest::Method;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Who asks for a token.
#[derive(Debug, Clone, Default)]
pub struct Requester {
    pub id: String,
    pub secret: Option<String>,
    pub scopes: Vec<String>,
}

/// What a token endpoint gives.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Token {
    pub access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    /// Seconds from when it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
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

async fn post(net: &Net, url: &str, form: &[(&str, &str)]) -> Result<(bool, String), ClientError> {
    must_be_private(url)?;
    let body: Vec<String> = form.iter().map(|(name, value)| format!("{name}={}", escape(value))).collect();
    let headers = vec![
        ("Content-Type".to_owned(), "application/x-www-form-urlencoded".to_owned()),
        ("Accept".to_owned(), "application/json".to_owned()),
    ];
    // The form holds secrets, so the wire log is told of the request without it.
    net.note(|| format!("> POST {url} (a form with {} fields, not shown)", form.len()));
    let outgoing = Outgoing { method: Method::POST, url: url.to_owned(), headers, ..Outgoing::default() };
    let response = net.send_unseen(outgoing, body.join("&")).await?;
    let good = response.status().is_success();
    Ok((good, net.text(response).await?))
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

async fn ask(net: &Net, url: &str, form: &[(&str, &str)]) -> Result<Said, ClientError> {
    let (good, text) = post(net, url, form).await?;
    if good {
        return serde_json::from_str(&text).map(Said::Token).map_err(|error| strange(url, &error));
    }
    serde_json::from_str(&text).map(Said::Refused).map_err(|error| strange(url, &error))
}

fn strange(url: &str, error: &serde_json::Error) -> ClientError {
    let problem = format!("it does not answer as an OAuth 2 server: {error}");
    ClientError::Unreachable { url: url.to_owned(), problem }
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

fn form<'a>(requester: &'a Requester, scope: &'a str, kind: &'a str) -> Vec<(&'static str, &'a str)> {
    let mut form = vec![("grant_type", kind), ("client_id", requester.id.as_str())];
    if let Some(secret) = &requester.secret {
        form.push(("client_secret", secret));
    }
    if !scope.is_empty() {
        form.push(("scope", scope));
    }
    form
}

/// The client-credentials grant: no person involved.
pub async fn client_credentials(net: &Net, token_url: &str, requester: &Requester) -> Result<Token, ClientError> {
    let scope = requester.scopes.join(" ");
    whole(ask(net, token_url, &form(requester, &scope, "client_credentials")).await?)
}

/// Asks for a code that a person enters elsewhere.
pub async fn invite(net: &Net, device_url: &str, requester: &Requester) -> Result<Invitation, ClientError> {
    let scope = requester.scopes.join(" ");
    let mut fields = vec![("client_id", requester.id.as_str())];
    if !scope.is_empty() {
        fields.push(("scope", scope.as_str()));
    }
    let (good, text) = post(net, device_url, &fields).await?;
    if good {
        return serde_json::from_str(&text).map_err(|error| strange(device_url, &error));
    }
    Err(denied(&serde_json::from_str(&text).map_err(|error| strange(device_url, &error))?))
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
    let mut fields = form(requester, "", "urn:ietf:params:oauth:grant-type:device_code");
    fields.push(("device_code", &invitation.device_code));
    loop {
        tokio::time::sleep(pause).await;
        match ask(net, token_url, &fields).await? {
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
    let mut fields = form(requester, "", "refresh_token");
    fields.push(("refresh_token", old));
    let mut token = whole(ask(net, url, &fields).await?)?;
    // A server that keeps the old refresh token does not repeat it.
    token.refresh_token.get_or_insert_with(|| old.to_owned());
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::{Invitation, LONGEST_PAUSE, LONGEST_WAIT, Token};
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
}
