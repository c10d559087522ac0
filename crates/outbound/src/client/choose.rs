//! Which of a card's interfaces to call, and in which version (spec 8.3, 3.6).

use super::card::{Card, Interface};
use super::error::ClientError;
use flotilla_protocol::a2a::VERSION;
use flotilla_protocol::a2a::error::Reason;

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

/// What was chosen.
#[derive(Debug, Clone)]
pub struct Choice {
    pub binding: Binding,
    pub interface: Interface,
    /// The version to signal with every call.
    pub version: String,
}

/// The first preferred binding the card has, else the first of the card's own order that we speak.
pub fn choose(card: &Card, preferred: &[Binding], version: Option<&str>) -> Result<Choice, ClientError> {
    let usable: Vec<(Binding, &Interface)> = card
        .supported_interfaces
        .iter()
        .filter_map(|interface| Some((Binding::parse(&interface.protocol_binding)?, interface)))
        .collect();
    if usable.is_empty() {
        let offered: Vec<&str> = card.supported_interfaces.iter().map(|i| i.protocol_binding.as_str()).collect();
        let offered = if offered.is_empty() { "no interface at all".to_owned() } else { offered.join(", ") };
        return Err(ClientError::NoInterface(offered));
    }
    let current: Vec<_> = usable.iter().filter(|(_, interface)| is_current(&interface.protocol_version)).collect();
    if current.is_empty() {
        let versions: Vec<&str> = usable.iter().map(|(_, interface)| interface.protocol_version.as_str()).collect();
        let message = format!(
            "the agent speaks A2A {} and this program {VERSION}; versions before 1.0 are not spoken",
            versions.join(", ")
        );
        return Err(ClientError::local(Reason::VersionNotSupported, message));
    }
    let wanted = preferred.iter().find_map(|binding| current.iter().find(|(offered, _)| offered == binding));
    let (binding, interface) = wanted.unwrap_or(&current[0]);
    let version = version.map_or_else(|| VERSION.to_owned(), str::to_owned);
    Ok(Choice { binding: *binding, interface: (*interface).clone(), version })
}

/// Any 1.x: we signal the highest we both know. A card that says nothing is taken at its word that it is of now.
fn is_current(version: &str) -> bool {
    version.is_empty() || version.split('.').next() == Some("1")
}

#[cfg(test)]
mod tests {
    use super::{Binding, choose};
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
        choose(&card(interfaces), preferred, None).map(|choice| choice.binding).map_err(|error| error.to_string())
    }

    #[test]
    fn the_card_s_order_counts_unless_the_caller_has_one() {
        let both = [("SOAP", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "1.0")];
        assert_eq!(chosen(&both, &[]), Ok(Binding::HttpJson));
        assert_eq!(chosen(&both, &[Binding::JsonRpc]), Ok(Binding::JsonRpc));
        assert_eq!(chosen(&both[..2], &[Binding::JsonRpc]), Ok(Binding::HttpJson));
    }

    #[test]
    fn older_versions_are_passed_over_and_never_spoken() {
        assert_eq!(chosen(&[("JSONRPC", "0.3"), ("HTTP+JSON", "1.2")], &[Binding::JsonRpc]), Ok(Binding::HttpJson));
        assert!(chosen(&[("JSONRPC", "0.3")], &[]).unwrap_err().contains("0.3"));
        assert!(chosen(&[("SOAP", "1.0")], &[]).unwrap_err().contains("SOAP"));
    }
}
