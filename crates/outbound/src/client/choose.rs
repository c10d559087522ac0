//! Which of a card's interfaces to call, and in which version (spec 8.3, 3.6).

use super::card::{Card, Interface};
use super::error::ClientError;
use crate::net::address;
use flotilla_protocol::a2a::VERSION;
use flotilla_protocol::a2a::error::Reason;
use flotilla_protocol::v03;

/// The standard bindings this program speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    JsonRpc,
    HttpJson,
    Grpc,
}

impl Binding {
    pub const ALL: [Self; 3] = [Self::JsonRpc, Self::HttpJson, Self::Grpc];

    /// The name cards use.
    pub fn name(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::HttpJson => "HTTP+JSON",
            Self::Grpc => "GRPC",
        }
    }

    /// Reads a card's or a person's spelling.
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_uppercase().replace(['-', '_'], "").as_str() {
            "JSONRPC" => Some(Self::JsonRpc),
            "HTTP+JSON" | "HTTPJSON" | "REST" => Some(Self::HttpJson),
            "GRPC" => Some(Self::Grpc),
            _ => None,
        }
    }
}

/// Which versions of A2A an agent may be called in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Versions {
    /// 1.x alone.
    #[default]
    Current,
    /// The highest both sides speak, 0.3 among them.
    Any,
    /// 0.3 alone, also where the agent speaks a newer one.
    Old,
}

/// The two languages calls are made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// A2A 1.x.
    Current,
    /// A2A 0.3.
    Old,
}

impl Dialect {
    /// Of an interface. A card that says nothing is taken at its word that it is of now; what came before 0.3 is called
    /// in 0.3, which is the nearest.
    fn of(version: &str) -> Option<Self> {
        match version.split('.').next() {
            Some("" | "1") => Some(Self::Current),
            Some("0") => Some(Self::Old),
            _ => None,
        }
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Self::Current => Self::Old,
            Self::Old => Self::Current,
        }
    }

    /// The version that is signalled.
    pub fn version(self) -> &'static str {
        match self {
            Self::Current => VERSION,
            Self::Old => v03::VERSION,
        }
    }
}

/// What was chosen.
#[derive(Debug, Clone)]
pub struct Choice {
    pub binding: Binding,
    pub interface: Interface,
    pub dialect: Dialect,
    /// The version to signal with every call.
    pub version: String,
}

/// The highest version both speak; in it the first preferred binding the card has, else the first of the card's own
/// order that we speak.
pub fn choose(
    card: &Card,
    preferred: &[Binding],
    version: Option<&str>,
    versions: Versions,
) -> Result<Choice, ClientError> {
    let usable: Vec<(Binding, &Interface)> = card
        .supported_interfaces
        .iter()
        .filter_map(|interface| Some((Binding::parse(&interface.protocol_binding)?, interface)))
        .collect();
    if card.supported_interfaces.is_empty() && card.set_aside.is_empty() {
        let problem = "supportedInterfaces names nowhere to call it".to_owned();
        return Err(ClientError::CardInvalid { reference: address::shown(&card.source), problem });
    }
    if usable.is_empty() {
        let offered: Vec<&str> = card.supported_interfaces.iter().map(|i| i.protocol_binding.as_str()).collect();
        let offered = if offered.is_empty() { "no interface at all".to_owned() } else { offered.join(", ") };
        return Err(ClientError::NoInterface(offered + &set_aside(card)));
    }
    let spoken: &[Dialect] = match versions {
        Versions::Current => &[Dialect::Current],
        Versions::Any => &[Dialect::Current, Dialect::Old],
        Versions::Old => &[Dialect::Old],
    };
    for dialect in spoken {
        let fitting =
            |(_, interface): &&(Binding, &Interface)| Dialect::of(&interface.protocol_version) == Some(*dialect);
        let fitting: Vec<_> = usable.iter().filter(fitting).collect();
        let Some(first) = fitting.first() else { continue };
        let wanted = preferred.iter().find_map(|binding| fitting.iter().find(|(offered, _)| offered == binding));
        let (binding, interface) = *wanted.unwrap_or(first);
        let signalled = version.filter(|_| *dialect == Dialect::Current).unwrap_or(dialect.version()).to_owned();
        return Ok(Choice {
            binding: *binding,
            interface: (*interface).clone(),
            dialect: *dialect,
            version: signalled,
        });
    }
    Err(not_spoken(card, &usable, versions))
}

/// What else a card names, and why that does not count.
fn set_aside(card: &Card) -> String {
    card.unproven().iter().map(|told| format!("; the {told}")).collect()
}

fn not_spoken(card: &Card, usable: &[(Binding, &Interface)], versions: Versions) -> ClientError {
    let mut offered: Vec<&str> = usable.iter().map(|(_, interface)| interface.protocol_version.as_str()).collect();
    offered.dedup();
    let old = usable.iter().any(|(_, interface)| Dialect::of(&interface.protocol_version) == Some(Dialect::Old));
    let spoken = match versions {
        Versions::Current if old => format!("{VERSION} unless it is told to speak {}", v03::VERSION),
        Versions::Current => VERSION.to_owned(),
        Versions::Any => format!("{VERSION} and {}", v03::VERSION),
        Versions::Old => format!("{} here", v03::VERSION),
    };
    let offered = if offered == [""] { "a version its card does not name".to_owned() } else { offered.join(", ") };
    let message = format!("the agent speaks A2A {offered} and this program {spoken}{}", set_aside(card));
    ClientError::local(Reason::VersionNotSupported, message)
}

#[cfg(test)]
mod tests {
    use super::{Binding, Dialect, Versions, choose};
    use crate::client::card::Card;

    fn card(interfaces: &[(&str, &str)]) -> Card {
        let interfaces: Vec<_> = interfaces
            .iter()
            .map(|(binding, version)| {
                serde_json::json!({"url": "http://h", "protocolBinding": binding, "protocolVersion": version})
            })
            .collect();
        Card::parse(&serde_json::json!({"name": "a", "supportedInterfaces": interfaces}).to_string(), "x").unwrap()
    }

    fn chosen(interfaces: &[(&str, &str)], preferred: &[Binding]) -> Result<Binding, String> {
        chosen_in(Versions::Current, &card(interfaces), preferred).map(|(binding, _)| binding)
    }

    fn chosen_in(versions: Versions, card: &Card, preferred: &[Binding]) -> Result<(Binding, String), String> {
        let choice = choose(card, preferred, None, versions).map_err(|error| error.to_string())?;
        assert_eq!(choice.dialect == Dialect::Old, choice.version == "0.3");
        Ok((choice.binding, choice.version))
    }

    #[test]
    fn the_card_s_order_counts_unless_the_caller_has_one() {
        let both = [("SOAP", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "1.0")];
        assert_eq!(chosen(&both, &[]), Ok(Binding::HttpJson));
        assert_eq!(chosen(&both, &[Binding::JsonRpc]), Ok(Binding::JsonRpc));
        assert_eq!(chosen(&both[..2], &[Binding::JsonRpc]), Ok(Binding::HttpJson));
    }

    #[test]
    fn older_versions_are_passed_over_and_not_spoken_unasked() {
        assert_eq!(chosen(&[("JSONRPC", "0.3"), ("HTTP+JSON", "1.2")], &[Binding::JsonRpc]), Ok(Binding::HttpJson));
        assert!(chosen(&[("JSONRPC", "0.3")], &[]).unwrap_err().contains("unless it is told to speak 0.3"));
        assert!(chosen(&[("SOAP", "1.0")], &[]).unwrap_err().contains("SOAP"));
        assert!(chosen(&[("JSONRPC", "2.0")], &[]).unwrap_err().contains("speaks A2A 2.0 and this program 1.0"));
    }

    #[test]
    fn the_highest_version_comes_first_and_then_the_server_s_order() {
        let both = card(&[("GRPC", "0.3.0"), ("HTTP+JSON", "0.3"), ("JSONRPC", "1.0")]);
        assert_eq!(chosen_in(Versions::Any, &both, &[]), Ok((Binding::JsonRpc, "1.0".into())));
        assert_eq!(chosen_in(Versions::Any, &both, &[Binding::Grpc]), Ok((Binding::JsonRpc, "1.0".into())));
        assert_eq!(chosen_in(Versions::Old, &both, &[]), Ok((Binding::Grpc, "0.3".into())));
        assert_eq!(chosen_in(Versions::Old, &both, &[Binding::HttpJson]), Ok((Binding::HttpJson, "0.3".into())));
        let new = card(&[("JSONRPC", "1.0")]);
        assert!(chosen_in(Versions::Old, &new, &[]).unwrap_err().contains("speaks A2A 1.0"));
    }

    #[test]
    fn what_was_not_signed_is_not_chosen() {
        let signed = r#"{"name":"a","supportedInterfaces":
            [{"url":"http://h/new","protocolBinding":"HTTP+JSON","protocolVersion":"1.0"}]}"#;
        let whole = signed.replacen('{', r#"{"protocolVersion":"0.3.0","url":"http://h/old","#, 1);
        let proven = |signed: &str| Card::parse(&whole, "x").unwrap().proven(signed).unwrap();
        assert_eq!(chosen_in(Versions::Any, &proven(signed), &[]), Ok((Binding::HttpJson, "1.0".into())));
        let told = chosen_in(Versions::Old, &proven(signed), &[]).unwrap_err();
        assert!(told.contains("http://h/old") && told.contains("not covered by the signature"), "{told}");
        let all = proven(&whole);
        assert!(all.unproven().is_empty() && all.json == whole, "{all:?}");
        assert_eq!(chosen_in(Versions::Old, &all, &[]), Ok((Binding::JsonRpc, "0.3".into())));
    }

    #[test]
    fn cards_of_0_3_lead_to_their_interfaces() {
        let card = |text: &str| Card::parse(text, "x").unwrap();
        let four = card(r#"{"name":"a","description":"d","url":"http://h/","version":"1"}"#);
        assert_eq!(chosen_in(Versions::Any, &four, &[]), Ok((Binding::JsonRpc, "0.3".into())));
        let old = card(
            r#"{"name":"a","protocolVersion":"0.3.0","url":"http://h/g","preferredTransport":"GRPC",
            "additionalInterfaces":[{"url":"http://h/r","transport":"HTTP+JSON"}]}"#,
        );
        assert_eq!(chosen_in(Versions::Any, &old, &[]), Ok((Binding::Grpc, "0.3".into())));
        assert_eq!(chosen_in(Versions::Any, &old, &[Binding::HttpJson]), Ok((Binding::HttpJson, "0.3".into())));
        let hybrid = card(
            r#"{"name":"a","protocolVersion":"0.3.0","url":"http://h/old","supportedInterfaces":
            [{"url":"http://h/new","protocolBinding":"HTTP+JSON","protocolVersion":"1.0"}]}"#,
        );
        assert_eq!(chosen_in(Versions::Any, &hybrid, &[]), Ok((Binding::HttpJson, "1.0".into())));
        assert_eq!(chosen_in(Versions::Old, &hybrid, &[]), Ok((Binding::JsonRpc, "0.3".into())));
    }
}
