//! `flotilla agents`: the hub's registry. Agents are added, found, shown, checked, changed and removed.

mod view;

use super::args::ClientArgs;
use super::card::signature::sent_pin;
use super::deliveries::hub;
use super::failure::{Failure, Local};
use super::output::{document, line};
use super::owner::{Hints, Listing, OwnerArgs};
use super::session::Session;
use clap::{Args, Subcommand};
use flotilla_outbound::client::error::ClientError;
use flotilla_outbound::hub::Hub;
use serde_json::{Map, Value, json};

#[derive(Debug, Args)]
pub struct AgentsArgs {
    #[command(subcommand)]
    command: AgentsCommand,
    #[command(flatten)]
    owner: OwnerArgs,
}

#[derive(Debug, Subcommand)]
enum AgentsCommand {
    /// Add an agent that is elsewhere; it is there at once.
    Add(Add),
    /// List the agents you see, and whether each can be counted on.
    List(List),
    /// Show one agent: what it can do, and, to its owner, how it is reached.
    Show {
        /// The agent's name
        name: String,
    },
    /// Change an agent that was added: what is named is set, the rest stays.
    Change(Change),
    /// Remove an agent that was added, or registered itself. Its tasks stay.
    Remove {
        /// The agent's name
        name: String,
        /// Also if tasks with it have not ended
        #[arg(long)]
        force: bool,
    },
    /// Look for an agent at an address, and say what its card is worth.
    Discover(Discover),
    /// Look now whether an agent is there.
    Check {
        /// The agent's name
        name: String,
    },
}

#[derive(Debug, Args)]
struct Add {
    /// What it is to be called at this hub
    name: String,
    /// Where it is; its card is at a well-known path below
    #[arg(required_unless_present = "card")]
    url: Option<String>,
    /// Where its card is, if that is elsewhere
    #[arg(long, value_name = "URL", conflicts_with = "url")]
    card: Option<String>,
    #[command(flatten)]
    more: More,
}

#[derive(Debug, Args)]
struct Change {
    /// The agent's name
    name: String,
    /// Where it is now; its card is at a well-known path below
    url: Option<String>,
    /// Where its card is now, if that is elsewhere
    #[arg(long, value_name = "URL", conflicts_with = "url")]
    card: Option<String>,
    #[command(flatten)]
    more: More,
    /// Take a setting back: auth, pins, visibility or description (may be
    /// repeated)
    #[arg(long, value_name = "SETTING", hide_possible_values = true, value_parser = ["auth", "pins", "visibility", "description"])]
    unset: Vec<String>,
}

#[derive(Debug, Args)]
struct Discover {
    /// Its address, or its card's
    url: String,
    /// Add it to the hub under this name
    #[arg(long, value_name = "NAME")]
    register: Option<String>,
    #[command(flatten)]
    more: More,
}

/// Settings of an agent that is added.
#[derive(Debug, Args)]
struct More {
    /// What proves to the agent who calls, by the place of the secret on the
    /// hub's machine: bearer=env:NAME, api-key=file:PATH,
    /// header:X-Token=env:NAME, basic:USER=env:NAME
    #[arg(long, value_name = "KIND=PLACE", value_parser = auth)]
    auth: Option<Value>,
    /// A key that must have signed its card: its thumbprint, or a file here with
    /// a JSON Web Key or a set of them (may be repeated)
    #[arg(long = "pin", value_name = "KEY", allow_hyphen_values = true, value_parser = sent_pin)]
    pins: Vec<String>,
    /// Who it is there for: private, workspace or public
    #[arg(long, value_name = "WHO")]
    visibility: Option<String>,
    /// Who owns it, if not you: NAME or WORKSPACE/NAME
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// What its card here says, in the place of its own description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

#[derive(Debug, Args)]
struct List {
    /// Only those that hold all these words
    #[arg(value_name = "WORDS")]
    words: Vec<String>,
    /// Only those with this skill, by its id or name
    #[arg(long)]
    skill: Option<String>,
    /// Only those with a skill of this tag
    #[arg(long)]
    tag: Option<String>,
    /// Only those that take or make this media type
    #[arg(long, value_name = "TYPE")]
    mode: Option<String>,
    /// Only those that can: streaming, pushNotifications, or an extension's URI
    #[arg(long, value_name = "WHAT")]
    capability: Option<String>,
    /// Only those that speak this version of A2A themselves
    #[arg(long, value_name = "VERSION")]
    protocol: Option<String>,
    /// Only those that are live, stale, unreachable, unchecked, absent or gone
    #[arg(long)]
    state: Option<String>,
}

const LISTING: Listing = Listing { path: "/api/agents", name: "agents", next: ("nextPageToken", "pageToken") };

const HINTS: Hints = Hints {
    key: "set FLOTILLA_KEY to a key of the hub: agents:read to look, agents:write to change, admin for all",
    missing: "flotilla agents list shows all there are for you",
};

/// Reads `KIND[:NAME]=PLACE`. A secret itself is not taken, and not sent anywhere.
fn auth(text: &str) -> Result<Value, String> {
    let wrong = || {
        "write bearer=env:NAME, api-key=env:NAME, header:X-NAME=env:NAME or basic:USER=env:NAME (or file:PATH), which \
         are places on the hub's machine; a secret itself is not taken"
            .to_owned()
    };
    let (kind, place) = text.split_once('=').ok_or_else(wrong)?;
    if !["env:", "file:"].iter().any(|start| place.strip_prefix(start).is_some_and(|rest| !rest.is_empty())) {
        return Err(wrong());
    }
    match kind.split_once(':') {
        None if kind == "bearer" => Ok(json!({ "bearer": place })),
        None if matches!(kind, "api-key" | "api_key") => Ok(json!({ "apiKey": place })),
        Some(("header", name)) if !name.is_empty() => Ok(json!({"header": {"name": name, "value": place}})),
        Some(("basic", user)) => Ok(json!({"basic": {"user": user, "password": place}})),
        _ => Err(wrong()),
    }
}

impl More {
    /// All of them.
    fn whole(&self) -> Map<String, Value> {
        let mut settings = self.settings();
        if let Some(auth) = &self.auth {
            settings.insert("auth".into(), auth.clone());
        }
        if !self.pins.is_empty() {
            settings.insert("cardKeys".into(), self.pins.clone().into());
        }
        settings
    }

    /// Those that are the same where an agent is looked for.
    fn settings(&self) -> Map<String, Value> {
        let said = [("visibility", &self.visibility), ("owner", &self.owner), ("description", &self.description)];
        let said = said.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?.into())));
        said.collect()
    }
}

impl Add {
    fn body(&self) -> String {
        let mut settings = self.more.whole();
        let places = [("name", Some(&self.name)), ("url", self.url.as_ref()), ("card", self.card.as_ref())];
        settings.extend(places.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.clone().into()))));
        Value::Object(settings).to_string()
    }
}

impl Change {
    /// A merge patch (RFC 7396): what is null is taken back.
    fn patch(&self) -> Option<String> {
        let mut patch = self.more.whole();
        // An agent is found by the one or the other.
        for (place, other, value) in [("url", "card", &self.url), ("card", "url", &self.card)] {
            if let Some(value) = value {
                patch.insert(place.into(), value.clone().into());
                patch.insert(other.into(), Value::Null);
            }
        }
        for setting in &self.unset {
            patch.insert(if setting == "pins" { "cardKeys".into() } else { setting.clone() }, Value::Null);
        }
        (!patch.is_empty()).then(|| Value::Object(patch).to_string())
    }
}

impl Discover {
    fn body(&self) -> String {
        let mut asked = json!({"url": self.url, "settings": self.more.settings(), "cardKeys": self.more.pins});
        if let Some(name) = &self.register {
            asked["register"] = name.clone().into();
        }
        if let Some(auth) = &self.more.auth {
            asked["auth"] = auth.clone();
        }
        asked.to_string()
    }
}

impl AgentsArgs {
    pub fn client(&self) -> ClientArgs {
        self.owner.client()
    }

    pub async fn run(self, session: &Session) -> Result<(), Failure> {
        let hub = hub(session);
        let told = match &self.command {
            AgentsCommand::Add(add) => hub.add_agent(add.body()).await.and_then(|json| show(session, &json)),
            AgentsCommand::Change(change) => {
                let Some(patch) = change.patch() else {
                    let text = "nothing is to be changed: name an address, or an option such as --description";
                    return Err(Failure::usage(text));
                };
                hub.change_agent(&change.name, patch).await.and_then(|json| show(session, &json))
            }
            AgentsCommand::List(list) => list.run(session, &hub).await,
            AgentsCommand::Show { name } => hub.agent(name).await.and_then(|json| show(session, &json)),
            AgentsCommand::Check { name } => hub.check_agent(name).await.and_then(|json| show(session, &json)),
            AgentsCommand::Remove { name, force } => {
                hub.remove_agent(name, *force).await.map(|()| match session.is_json() {
                    true => document(&json!({ "removed": name }).to_string()),
                    false => line(&format!("The agent '{name}' is removed.")),
                })
            }
            AgentsCommand::Discover(discover) => match hub.discover(discover.body()).await {
                Ok(json) => return discovered(session, &json, !discover.more.pins.is_empty()),
                Err(error) => Err(error),
            },
        };
        told.map_err(|error| HINTS.failure(error))
    }
}

impl List {
    async fn run(&self, session: &Session, hub: &Hub) -> Result<(), ClientError> {
        let words = self.words.join(" ");
        let asked = [
            ("q", Some(words.as_str())),
            ("skill", self.skill.as_deref()),
            ("tag", self.tag.as_deref()),
            ("mode", self.mode.as_deref()),
            ("capability", self.capability.as_deref()),
            ("version", self.protocol.as_deref()),
            ("state", self.state.as_deref()),
        ];
        LISTING.print(session, hub, &asked, view::fields).await
    }
}

fn show(session: &Session, json: &str) -> Result<(), ClientError> {
    if session.is_json() {
        document(json);
        return Ok(());
    }
    view::agent(&serde_json::from_str(json).map_err(ClientError::malformed)?);
    Ok(())
}

/// A report of what was found. Where that is of no use, the report and the failure are one document.
fn discovered(session: &Session, json: &str, is_pinned: bool) -> Result<(), Failure> {
    let mut report: Value = serde_json::from_str(json).map_err(|error| Failure::from(ClientError::malformed(error)))?;
    if !report.is_object() {
        return Err(ClientError::malformed("it is no report of what was found").into());
    }
    let failure = useless(&report, is_pinned);
    if !session.is_json() {
        view::report(&report);
        return failure.map_or(Ok(()), Err);
    }
    let Some(failure) = failure else {
        document(json);
        return Ok(());
    };
    report["error"] = failure.envelope()["error"].take();
    document(&report.to_string());
    Err(Failure::silent(failure.exit))
}

/// Why what was found cannot be used, if it cannot.
fn useless(report: &Value, is_pinned: bool) -> Option<Failure> {
    if report["usable"] == true {
        return None;
    }
    if report["found"] != true {
        let hint = "name the address of the agent or of its card; 'Tried' says what is there instead";
        return Some(Failure::new(Local::CardNotFound, "no agent card was found there").hint(hint));
    }
    let problem = report["problem"].as_str().unwrap_or("it cannot be called");
    let text = format!("the agent that was found cannot be used: {problem}");
    Some(match report["signature"]["word"].as_str() {
        Some("verified") => Failure::new(Local::CardInvalid, text),
        _ if is_pinned => Failure::unverified(text)
            .hint("ask whoever runs the agent which key signs its card, and pin that one (--pin)"),
        Some("failed") => Failure::unverified(text).hint("whoever runs the agent has to sign its card anew"),
        _ => Failure::new(Local::CardInvalid, text),
    })
}

#[cfg(test)]
mod tests {
    use super::{Change, auth};
    use clap::Parser as _;
    use serde_json::json;

    #[test]
    fn a_change_says_what_is_new_and_what_is_taken_back() {
        #[derive(clap::Parser)]
        struct Program {
            #[command(flatten)]
            change: Change,
        }
        let patch = |words: &[&str]| {
            let words = ["program", "far"].into_iter().chain(words.iter().copied());
            let patch = Program::try_parse_from(words).unwrap().change.patch();
            patch.map(|patch| serde_json::from_str::<serde_json::Value>(&patch).unwrap())
        };
        assert_eq!(patch(&[]), None);
        assert_eq!(patch(&["https://a"]), Some(json!({"url": "https://a", "card": null})));
        let all = ["--card", "https://a/c", "--auth", "bearer=env:A", "--unset", "pins", "--unset", "description"];
        let expected = json!({"card": "https://a/c", "url": null, "auth": {"bearer": "env:A"}, "cardKeys": null,
                              "description": null});
        assert_eq!(patch(&all), Some(expected));
        let dashed = "-Zz3p9Yk0uU5m1r2s3t4u5v6w7x8y9z0A1B2C3D4E5F";
        assert_eq!(patch(&["--pin", dashed]), Some(json!({"cardKeys": [dashed]})), "one in 64 begins so");
    }

    #[test]
    fn a_secret_is_named_by_its_place() {
        for (text, read) in [
            ("bearer=env:A", json!({"bearer": "env:A"})),
            ("api-key=file:/run/k", json!({"apiKey": "file:/run/k"})),
            ("header:X-Token=env:A", json!({"header": {"name": "X-Token", "value": "env:A"}})),
            ("basic:me=env:A", json!({"basic": {"user": "me", "password": "env:A"}})),
        ] {
            assert_eq!(auth(text), Ok(read));
        }
        for text in ["bearer=hunter2", "hunter2", "bearer=env:", "other=env:A", "header:=env:A"] {
            let told = auth(text).unwrap_err();
            assert!(told.contains("is not taken") && !told.contains("hunter2"), "{told}");
        }
    }
}
