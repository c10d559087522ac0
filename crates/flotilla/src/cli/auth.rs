//! `flotilla auth`: tokens from an agent's OAuth 2 server.

use super::args::ClientArgs;
use super::failure::{Failure, Local};
use super::output::{Text, document, say};
use super::session::Session;
use super::settings::Setting;
use clap::{Args, Subcommand, ValueEnum};
use flotilla_outbound::client::card::{Card, Flow};
use flotilla_outbound::net::address;
use flotilla_outbound::oauth::{self, Requester};

#[derive(Debug, Args)]
pub struct AuthArgs {
    #[command(subcommand)]
    command: AuthCommand,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Debug, Subcommand)]
enum AuthCommand {
    /// Get a token for an agent and keep it for later calls.
    Login(Login),
    /// Forget the token of an agent.
    Logout,
}

#[derive(Debug, Args)]
struct Login {
    /// How [default: client credentials if a secret is given, else device code]
    #[arg(long, value_enum)]
    flow: Option<FlowName>,
    /// The client id this program is registered under
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// The client's secret. Visible to others on this machine while it runs:
    /// better set A2ACLI_CLIENT_SECRET
    #[arg(long, value_name = "SECRET")]
    client_secret: Option<String>,
    /// Ask for this scope (may be repeated) [default: all in the card]
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FlowName {
    DeviceCode,
    ClientCredentials,
}

impl AuthArgs {
    pub async fn run(self, session: &Session) -> Result<(), Failure> {
        match self.command {
            AuthCommand::Login(login) => login.run(session).await,
            AuthCommand::Logout => {
                let card = session.reference()?.to_string();
                let found = session.tokens.clone().forget(&card)?;
                let word = if found { "forgotten" } else { "there was none" };
                result(session, &[("Card", &address::shown(&card)), ("Token", word)]);
                Ok(())
            }
        }
    }
}

impl Login {
    async fn run(self, session: &Session) -> Result<(), Failure> {
        let card = session.card().await?;
        let id = session.sources.value(Setting::ClientId, self.client_id.clone()).unwrap_or_default();
        let secret = session.sources.value(Setting::ClientSecret, self.client_secret.clone());
        secret.iter().for_each(|secret| session.net.learn(secret));
        if id.is_empty() {
            let failure = Failure::usage("auth login needs a client id");
            return Err(
                failure.hint("--client-id ID, or A2ACLI_CLIENT_ID; whoever runs the agent's login server gives one")
            );
        }
        let default = if secret.is_some() { FlowName::ClientCredentials } else { FlowName::DeviceCode };
        let wanted = self.flow.unwrap_or(default);
        let flow = find(&card, wanted)?;
        let scopes = if self.scope.is_empty() { flow.scopes.keys().cloned().collect() } else { self.scope.clone() };
        let requester = Requester { id, secret, scopes, ..Requester::default() };
        let token = match wanted {
            FlowName::ClientCredentials => {
                oauth::client_credentials(&session.net, &flow.token_url, &requester).await?.0
            }
            FlowName::DeviceCode => by_device(session, &flow, &requester).await?,
        };
        let lasts = token.expires_in.map_or_else(|| "unknown".to_owned(), |seconds| format!("{seconds} s"));
        let renewal = if flow.refresh_url.is_empty() { &flow.token_url } else { &flow.refresh_url };
        session.tokens.clone().store(&card.source, token, renewal, &requester.id)?;
        let file = session.tokens.file().map(|file| file.display().to_string()).unwrap_or_default();
        let source = address::shown(&card.source);
        result(session, &[("Card", &source), ("Token", "stored"), ("File", &file), ("Lasts", &lasts)]);
        Ok(())
    }
}

async fn by_device(session: &Session, flow: &Flow, requester: &Requester) -> Result<oauth::Token, Failure> {
    let invitation = oauth::invite(&session.net, &flow.device_authorization_url, requester).await?;
    say(&format!("Open: {}\nCode: {}", invitation.verification_uri, invitation.user_code));
    if let Some(whole) = &invitation.verification_uri_complete {
        say(&format!("Or open: {whole}"));
    }
    Ok(oauth::await_consent(&session.net, &flow.token_url, requester, &invitation).await?)
}

/// The flow as the card declares it.
fn find(card: &Card, wanted: FlowName) -> Result<Flow, Failure> {
    let mut flows =
        card.security_schemes.values().filter_map(|scheme| Some(&scheme.oauth2_security_scheme.as_ref()?.flows));
    let found = flows.find_map(|flows| match wanted {
        FlowName::DeviceCode => flows.device_code.clone(),
        FlowName::ClientCredentials => flows.client_credentials.clone(),
    });
    found.ok_or_else(|| {
        let name = wanted.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let schemes: Vec<String> = card.security_schemes.values().map(|scheme| scheme.describe()).collect();
        let declared = if schemes.is_empty() { "no security scheme at all".to_owned() } else { schemes.join(", ") };
        Failure::new(Local::AuthFailed, format!("the agent's card declares no OAuth 2 flow {name}; it has {declared}"))
            .hint("choose another --flow, or pass a credential as A2ACLI_BEARER or A2ACLI_API_KEY")
    })
}

fn result(session: &Session, fields: &[(&str, &str)]) {
    if session.is_json() {
        let object: serde_json::Map<_, _> =
            fields.iter().map(|(name, value)| (name.to_lowercase(), serde_json::json!(value))).collect();
        return document(&serde_json::Value::Object(object).to_string());
    }
    let mut text = Text::default();
    for (name, value) in fields {
        text.field(name, value);
    }
    text.print();
}
