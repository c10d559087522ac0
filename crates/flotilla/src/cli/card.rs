//! `flotilla card`: an agent's card, read and checked.

pub mod signature;

use super::args::ClientArgs;
use super::failure::{Failure, Local};
use super::output::{Text, object};
use super::session::Session;
use clap::{Args, Subcommand};
use flotilla_outbound::client::card::Card;
use flotilla_outbound::client::check;
use flotilla_outbound::client::choose::{Binding, Versions, choose};
use flotilla_outbound::signature::verify::Outcome;

#[derive(Debug, Args)]
pub struct CardArgs {
    #[command(subcommand)]
    command: CardCommand,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Debug, Subcommand)]
enum CardCommand {
    /// Fetch an agent's card and show it.
    Get {
        /// Check the card against the schema of A2A 1.0
        #[arg(long)]
        validate: bool,
        /// Fetch the extended card, for callers the agent knows
        #[arg(long)]
        extended: bool,
        /// Show what the card's signatures are worth, in the place of the card
        #[arg(long)]
        signature: bool,
        /// Take the card only if this key signed it: a thumbprint, or a file with a
        /// JSON Web Key or a set of them (may be given several times)
        #[arg(long = "pin", value_name = "KEY", allow_hyphen_values = true)]
        pins: Vec<String>,
        /// With -o json: print the card on one line
        #[arg(long)]
        stream: bool,
    },
}

impl CardArgs {
    pub async fn run(self, session: &Session) -> Result<(), Failure> {
        let CardCommand::Get { validate, extended, signature, pins, stream } = self.command;
        let transports = session.transports()?;
        let pins = signature::pins(&pins)?;
        let card = if extended { session.client().await?.extended_card().await? } else { session.card().await? };
        if validate {
            let problems = check::problems(&card.json);
            if !problems.is_empty() {
                let text = format!("the card at {} is not valid: {}", card.source, problems.join("; "));
                return Err(Failure::new(Local::CardInvalid, text).hint("whoever runs the agent has to mend its card"));
            }
        }
        let outcome = signature::judged(session, &card, &pins).await?;
        let card = match &outcome.proof {
            Some(proof) => card.proven(&proof.payload).map_err(|problem| Failure::new(Local::CardInvalid, problem))?,
            None => card,
        };
        if signature {
            signature::show(session, &outcome, stream);
        } else if session.is_json() {
            object(&card.json, stream);
            signature::beside(&outcome);
        } else {
            show(session, &card, &transports, &outcome, validate);
        }
        Ok(())
    }
}

fn show(session: &Session, card: &Card, transports: &[Binding], outcome: &Outcome, validated: bool) {
    let mut text = Text::default();
    text.field("Name", &card.name).field("Description", &card.description).field("Version", &card.version);
    if let Some(provider) = &card.provider {
        text.address("Provider", &format!("{} ({})", provider.organization, provider.url));
    }
    text.address("Documentation", card.documentation_url.as_deref().unwrap_or_default());
    text.address("Card", &card.source);
    for interface in &card.supported_interfaces {
        let tenant = if interface.tenant.is_empty() { String::new() } else { format!(", tenant {}", interface.tenant) };
        let about =
            format!("{} {} (A2A {}{tenant})", interface.protocol_binding, interface.url, interface.protocol_version);
        text.address("Interface", &about);
    }
    for told in card.unproven() {
        text.address("Not used", &told);
    }
    let versions = session.versions().map_or(Versions::default(), |(versions, _)| versions);
    let used = choose(card, transports, None, versions);
    let used = used.map_or_else(|error| error.to_string(), |choice| choice.binding.name().to_owned());
    text.field("Transport", &used);
    let yes = |able: bool| if able { "yes" } else { "no" };
    text.field("Streaming", yes(card.capabilities.streaming));
    text.field("Push notifications", yes(card.capabilities.push_notifications));
    text.field("Extended card", yes(card.capabilities.extended_agent_card));
    for extension in &card.capabilities.extensions {
        let required = if extension.required { " (required)" } else { "" };
        text.field("Extension", &format!("{}{required}", extension.uri));
    }
    for (name, scheme) in &card.security_schemes {
        text.field("Security scheme", &format!("{name}: {}", scheme.describe()));
    }
    for requirement in &card.security_requirements {
        let names: Vec<&str> = requirement.schemes.keys().map(String::as_str).collect();
        text.field("Requires", &names.join(" and "));
    }
    text.field("Input modes", &card.default_input_modes.join(", "));
    text.field("Output modes", &card.default_output_modes.join(", "));
    for skill in &card.skills {
        text.field("Skill", &format!("{} ({})", skill.name, skill.id));
        if session.verbose {
            text.field("Skill description", &skill.description).field("Skill tags", &skill.tags.join(", "));
        }
    }
    signature::field(&mut text, outcome);
    if validated {
        text.field("Valid", "yes");
    }
    text.print();
}
