//! What proves to an agent elsewhere who calls, and the places of the secrets that takes.

use super::remote::{check_header, check_url};
use anyhow::{Context, Result, bail};
use flotilla_outbound::oauth::{Requester, Shows};
use flotilla_outbound::remote::options::Auth;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A secret's place: `env:NAME` or `file:PATH`. The secret itself is never written into the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SecretPlace(pub(super) String);

impl SecretPlace {
    /// What is wrong with it is told without repeating it: it may be the secret.
    pub(super) fn check(&self, name: &str) -> Result<()> {
        match self.0.split_once(':') {
            Some(("env" | "file", place)) if !place.is_empty() => Ok(()),
            _ => bail!("{name}: write env:NAME or file:PATH; a secret does not stand in the configuration itself"),
        }
    }

    pub(super) fn read(&self, name: &str) -> Result<String> {
        self.check(name)?;
        let value = match self.0.split_once(':') {
            Some(("file", path)) => {
                std::fs::read_to_string(path).with_context(|| format!("{name}: reading {path}"))?.trim_end().to_owned()
            }
            _ => {
                let variable = self.0.trim_start_matches("env:");
                std::env::var(variable).with_context(|| format!("{name}: the environment variable {variable}"))?
            }
        };
        if value.is_empty() || value.chars().any(char::is_control) {
            bail!("{name}: {} holds nothing that can stand in a header", self.0);
        }
        Ok(value)
    }
}

/// What proves to the agent who calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AuthConfig {
    /// `Authorization: Bearer …`.
    Bearer(SecretPlace),
    /// `X-API-Key: …`; a key that goes elsewhere is a `header`.
    ApiKey(SecretPlace),
    Header(HeaderConfig),
    Basic(BasicConfig),
    /// Tokens by client credentials.
    #[serde(rename = "oauth2")]
    OAuth2(OAuth2Config),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeaderConfig {
    pub name: String,
    pub value: SecretPlace,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BasicConfig {
    pub user: String,
    pub password: SecretPlace,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OAuth2Config {
    /// Where tokens are given; from the agent's card if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_url: Option<String>,
    pub client_id: String,
    pub client_secret: SecretPlace,
    #[serde(default)]
    pub scopes: Vec<String>,
    /// How the secret is shown: `auto` (default), by HTTP `basic`, or in the form that is `post`ed.
    #[serde(default)]
    pub client_auth: ClientAuth,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClientAuth {
    /// In the form, and by HTTP Basic where the server does not know the client so.
    #[default]
    Auto,
    Basic,
    Post,
}

impl From<ClientAuth> for Shows {
    fn from(auth: ClientAuth) -> Self {
        match auth {
            ClientAuth::Auto => Self::Either,
            ClientAuth::Basic => Self::Basic,
            ClientAuth::Post => Self::Post,
        }
    }
}

impl AuthConfig {
    /// The place of the secret it is about.
    pub fn reference(&self) -> &str {
        let (Self::Bearer(place)
        | Self::ApiKey(place)
        | Self::Header(HeaderConfig { value: place, .. })
        | Self::Basic(BasicConfig { password: place, .. })
        | Self::OAuth2(OAuth2Config { client_secret: place, .. })) = self;
        &place.0
    }

    /// The kind and the place of the secret.
    pub(super) fn described(&self) -> String {
        let kind = match self {
            Self::Bearer(_) => "bearer",
            Self::ApiKey(_) => "api_key",
            Self::Header(_) => "header",
            Self::Basic(_) => "basic",
            Self::OAuth2(_) => "oauth2",
        };
        format!("{kind} {}", self.reference())
    }

    pub fn check(&self) -> Result<()> {
        match self {
            Self::Bearer(place) => place.check("auth.bearer"),
            Self::ApiKey(place) => place.check("auth.api_key"),
            Self::Header(HeaderConfig { name, value }) => {
                check_header(name).context("auth.header.name")?;
                value.check("auth.header.value")
            }
            Self::Basic(BasicConfig { user, password }) => {
                if user.contains(':') {
                    bail!("auth.basic.user: must not hold a colon");
                }
                password.check("auth.basic.password")
            }
            Self::OAuth2(OAuth2Config { token_url, client_secret, .. }) => {
                if let Some(url) = token_url {
                    check_url("auth.oauth2.token_url", url)?;
                }
                client_secret.check("auth.oauth2.client_secret")
            }
        }
    }

    pub fn auth(&self) -> Result<Auth> {
        let header = |name: &str, value: String| Auth::Header { name: name.to_owned(), value };
        Ok(match self {
            Self::Bearer(place) => header("Authorization", format!("Bearer {}", place.read("auth.bearer")?)),
            Self::ApiKey(place) => header("X-API-Key", place.read("auth.api_key")?),
            Self::Header(HeaderConfig { name, value }) => header(name, value.read("auth.header.value")?),
            Self::Basic(BasicConfig { user, password }) => {
                let pair = format!("{user}:{}", password.read("auth.basic.password")?);
                let encoded = flotilla_protocol::wire::Base64::encode(pair.as_bytes());
                header("Authorization", format!("Basic {}", encoded.text()))
            }
            Self::OAuth2(config) => Auth::OAuth2 {
                token_url: config.token_url.clone(),
                requester: Requester {
                    id: config.client_id.clone(),
                    secret: Some(config.client_secret.read("auth.oauth2.client_secret")?),
                    scopes: config.scopes.clone(),
                    shows: config.client_auth.into(),
                },
            },
        })
    }
}
