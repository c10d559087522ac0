//! `flotilla auth`: tokens from an agent's OAuth 2 server.

use super::args::ClientArgs;
use super::failure::{Failure, Local};
use super::output::{Text, document, say};
use super::session::{Session, quoted};
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
        let wanted = self.flow.unwrap_or(FlowName::default_with(secret.is_some()));
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

/// What somebody does who has no token for this agent yet.
pub fn advice(session: &Session, card: &Card) -> String {
    let id = session.sources.value(Setting::ClientId, None);
    way_in(session, card, id.is_none().then_some("ID"), "sign in with")
}

/// The same for somebody who had a token, under a client id that is known.
pub fn again(session: &Session, card: &Card, id: &str) -> String {
    let known = session.sources.value(Setting::ClientId, None);
    way_in(session, card, (known.as_deref() != Some(id)).then_some(id), "sign in again with")
}

/// The command, with all that it asks for.
fn way_in(session: &Session, card: &Card, id: Option<&str>, words: &str) -> String {
    let has_secret = session.sources.value(Setting::ClientSecret, None).is_some();
    let default = FlowName::default_with(has_secret);
    let flows = [default, FlowName::DeviceCode, FlowName::ClientCredentials];
    let Some(flow) = flows.into_iter().find(|flow| declared(card, *flow).is_some()) else {
        return "set A2ACLI_BEARER to a token for this agent: its card declares no OAuth 2 flow that this program can do"
            .into();
    };
    let mut command = session.command("auth login");
    if let Some(id) = id {
        command.push_str(&format!(" --client-id {}", quoted(id)));
    }
    if flow != default {
        command.push_str(&format!(" --flow {}", flow.name()));
    }
    let needs_secret = flow == FlowName::ClientCredentials && !has_secret;
    let first = if needs_secret { "set A2ACLI_CLIENT_SECRET to the client's secret, and " } else { "" };
    format!("{first}{words}: {command}")
}

impl FlowName {
    fn default_with(has_secret: bool) -> Self {
        if has_secret { Self::ClientCredentials } else { Self::DeviceCode }
    }

    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// The flow as the card declares it, if it does.
fn declared(card: &Card, wanted: FlowName) -> Option<&Flow> {
    let mut flows =
        card.security_schemes.values().filter_map(|scheme| Some(&scheme.oauth2_security_scheme.as_ref()?.flows));
    flows.find_map(|flows| match wanted {
        FlowName::DeviceCode => flows.device_code.as_ref(),
        FlowName::ClientCredentials => flows.client_credentials.as_ref(),
    })
}

fn find(card: &Card, wanted: FlowName) -> Result<Flow, Failure> {
    declared(card, wanted).cloned().ok_or_else(|| {
        let name = wanted.name();
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
