//! `flotilla task push-config`: webhooks for a task's progress, at agents that send to them.

use super::failure::Failure;
use super::output::{Text, document};
use super::session::Session;
use super::settings::Setting;
use clap::{Args, Subcommand};
use flotilla_outbound::client::Client;
use flotilla_protocol::a2a::request::{AuthenticationInfo, ListPushConfigsRequest, PushConfig, PushConfigRequest};
use flotilla_protocol::wire::Int32;

#[derive(Debug, Subcommand)]
pub enum PushConfigCommand {
    /// Have the agent report a task's progress to a URL.
    Create(Create),
    /// Show one push config of a task.
    Get(One),
    /// List the push configs of a task.
    List {
        /// The task's id
        task: String,
        /// At most so many in one page
        #[arg(long, value_name = "N")]
        page_size: Option<i32>,
        /// Go on where the page before ended
        #[arg(long, value_name = "TOKEN")]
        page_token: Option<String>,
    },
    /// Remove one push config of a task.
    Delete(One),
}

#[derive(Debug, Args)]
pub struct Create {
    /// The task's id
    task: String,
    /// Where to report to
    #[arg(long)]
    url: String,
    /// An id for the config [default: the agent chooses one]
    #[arg(long)]
    id: Option<String>,
    /// A token the agent sends along, for the receiver to check. As visible to
    /// others as --bearer: better set A2ACLI_TOKEN
    #[arg(long, value_name = "TEXT")]
    token: Option<String>,
    /// Scheme the agent authenticates with at the URL, such as Bearer
    #[arg(long, value_name = "SCHEME")]
    auth_scheme: Option<String>,
    /// Credentials the agent authenticates with at the URL. As visible to others
    /// as --bearer: better set A2ACLI_AUTH_CREDENTIALS
    #[arg(long, value_name = "TEXT", requires = "auth_scheme")]
    auth_credentials: Option<String>,
}

#[derive(Debug, Args)]
pub struct One {
    /// The task's id
    task: String,
    /// The config's id
    id: String,
}

impl PushConfigCommand {
    /// The task it is about.
    pub fn task(&self) -> &str {
        match self {
            Self::Create(Create { task, .. }) | Self::Get(One { task, .. }) => task,
            Self::List { task, .. } | Self::Delete(One { task, .. }) => task,
        }
    }

    pub async fn run(self, session: &Session, client: &Client) -> Result<(), Failure> {
        match self {
            Self::Create(create) => {
                let made = client.create_push(create.config(session)?).await?;
                show(session, &made.json, &[made.value]);
            }
            Self::Get(one) => {
                let found = client.push(one.request()).await?;
                show(session, &found.json, &[found.value]);
            }
            Self::List { task, page_size, page_token } => {
                let page_token = page_token.unwrap_or_default();
                let page_size = page_size.map(Int32);
                let request = ListPushConfigsRequest { task_id: task, page_size, page_token, ..Default::default() };
                let page = client.pushes(request).await?;
                show(session, &page.json, &page.value.configs);
                if !session.is_json() {
                    let mut text = Text::default();
                    text.field("Total", &page.value.configs.len().to_string());
                    text.field("Next page token", &page.value.next_page_token).print();
                }
            }
            Self::Delete(one) => {
                let (task, id) = (one.task.clone(), one.id.clone());
                client.delete_push(one.request()).await?;
                // The protocol answers with nothing at all.
                if session.is_json() {
                    document("{}");
                } else {
                    Text::default().field("Task", &task).field("Deleted", &id).print();
                }
            }
        }
        Ok(())
    }
}

impl Create {
    fn config(self, session: &Session) -> Result<PushConfig, Failure> {
        let credentials = session.sources.value(Setting::AuthCredentials, self.auth_credentials);
        let authentication = match (self.auth_scheme, credentials) {
            (Some(scheme), Some(credentials)) => {
                Some(AuthenticationInfo { scheme, credentials, ..AuthenticationInfo::default() })
            }
            (Some(_), None) => {
                let failure = Failure::usage("--auth-scheme is nothing without the credentials to show");
                return Err(failure.hint("set A2ACLI_AUTH_CREDENTIALS, or name them with --auth-credentials"));
            }
            (None, _) => None,
        };
        Ok(PushConfig {
            id: self.id.unwrap_or_default(),
            task_id: self.task,
            url: self.url,
            token: session.sources.value(Setting::Token, self.token).unwrap_or_default(),
            authentication,
            ..PushConfig::default()
        })
    }
}

impl One {
    fn request(self) -> PushConfigRequest {
        PushConfigRequest { task_id: self.task, id: self.id, ..PushConfigRequest::default() }
    }
}

/// Of the secrets in a config, text only says that they are there.
fn show(session: &Session, json: &str, configs: &[PushConfig]) {
    if session.is_json() {
        return document(json);
    }
    let mut text = Text::default();
    for config in configs {
        let masked = |there: bool| if there { "(set)" } else { "" };
        text.field("Push config", &config.id).field("Task", &config.task_id).address("URL", &config.url);
        text.field("Token", masked(!config.token.is_empty()));
        if let Some(authentication) = &config.authentication {
            text.field("Authentication", &authentication.scheme);
        }
        text.gap();
    }
    text.print();
}
