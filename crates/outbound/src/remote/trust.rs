//! Where an agent's card may lead: to what its operator named, and to what any caller may name. Nowhere else; and
//! credentials go only where they were given for.

use super::options::{Options, Place};
use crate::client::card::{Card, Interface};
use crate::client::choose::Binding;
use crate::client::error::ClientError;
use crate::guard::{Guard, Resolver};
use crate::net::{address, origin};
use std::sync::Arc;

/// Whether the operator named this place: by its origin, or in a card that is a file of theirs.
fn is_named(url: &str, place: Option<&Place>) -> bool {
    match place {
        None => false,
        Some(Place::File(_)) => true,
        Some(Place::Base(named) | Place::Card(named)) => origin(url) == origin(named),
    }
}

/// The card with those of its interfaces that may be called.
pub async fn permitted(guard: &Guard, mut card: Card, place: Option<&Place>) -> Result<Card, ClientError> {
    let mut kept = Vec::new();
    let mut refused = Vec::new();
    let mut broken = Vec::new();
    for interface in std::mem::take(&mut card.supported_interfaces) {
        let url = interface.called_at(&card.source);
        if !url::Url::parse(&url).is_ok_and(|url| url.has_host()) {
            broken.push(format!("'{}'", address::shown(&interface.url)));
            continue;
        }
        if is_named(&url, place) || Binding::parse(&interface.protocol_binding).is_none() {
            kept.push(interface);
            continue;
        }
        match guard.check(&url).await {
            Ok(_) => kept.push(interface),
            Err(problem) => refused.push(format!("{}: {problem}", address::shown(&interface.url))),
        }
    }
    let is_lost = kept.iter().all(|interface| Binding::parse(&interface.protocol_binding).is_none());
    if is_lost && refused.is_empty() && !broken.is_empty() {
        let problem = format!("the address of its interface is no URL: {}", broken.join(", "));
        return Err(ClientError::CardInvalid { reference: address::shown(&card.source), problem });
    }
    if is_lost && !refused.is_empty() {
        let text = format!(
            "the card leads to addresses its operator did not name ({}); admit them in targets.allow, or write a card \
             of your own and name it as 'card: FILE'",
            refused.join("; ")
        );
        return Err(ClientError::CardInvalid { reference: address::shown(&card.source), problem: text });
    }
    if !refused.is_empty() {
        let (source, refused) = (address::shown(&card.source), refused.join("; "));
        tracing::warn!(card = %source, %refused, "interfaces of a card are passed over: its operator did not name them");
    }
    card.supported_interfaces = kept;
    Ok(card)
}

/// The card with those of its interfaces that may be shown what this agent is shown. Whoever changes a card is not to be
/// told its agent's secrets by that.
pub fn entrusted(mut card: Card, options: &Options) -> Result<Card, ClientError> {
    if !options.has_credentials() {
        return Ok(card);
    }
    let is_called = |interface: &Interface| Binding::parse(&interface.protocol_binding).is_some();
    let may_see = |interface: &Interface| options.entrusts(&interface.called_at(&card.source));
    let (kept, others): (Vec<_>, Vec<_>) = std::mem::take(&mut card.supported_interfaces)
        .into_iter()
        .partition(|interface| !is_called(interface) || may_see(interface));
    let (source, own) = (address::shown(&card.source), options.address());
    let others: Vec<String> = others.iter().map(|interface| address::shown(&interface.url)).collect();
    if !others.is_empty() && !kept.iter().any(is_called) {
        let text = format!(
            "the card leads to {}, and the credentials and headers of this agent are for the origin of {own} alone; if \
             they may go there, write that address under 'credentials_for', and if it needs none, leave 'auth' and \
             'headers' out",
            others.join(", ")
        );
        return Err(ClientError::CardInvalid { reference: source, problem: text });
    }
    if !others.is_empty() {
        let others = others.join(", ");
        tracing::warn!(card = %source, %others, "interfaces of a card are passed over: its agent's credentials are not for there (credentials_for)");
    }
    card.supported_interfaces = kept;
    Ok(card)
}

/// Who resolves the name of an interface that was not named: only what the guard admits, also at the moment of calling.
pub fn resolver(guard: &Guard, url: &str, place: Option<&Place>) -> Option<Arc<Resolver>> {
    (!is_named(url, place)).then(|| guard.resolver(url.starts_with("https://")))
}

/// The token endpoint a card names, if a secret may be sent there.
pub async fn token_url(guard: &Guard, card: &Card, options: &Options) -> Result<String, ClientError> {
    let flows = card.security_schemes.values().filter_map(|scheme| scheme.oauth2_security_scheme.as_ref());
    let url =
        flows.filter_map(|oauth| oauth.flows.client_credentials.as_ref()).map(|flow| flow.token_url.clone()).next();
    let Some(url) = url.filter(|url| !url.is_empty()) else {
        let text = "the card names no token address for client credentials; write auth.oauth2.token_url";
        return Err(ClientError::Setting(text.into()));
    };
    if !options.entrusts(&url) {
        let text = format!(
            "the card's token address {} is of another origin than {}, and the client's secret is not sent there on the \
             card's word; write it as auth.oauth2.token_url",
            address::shown(&url),
            options.address()
        );
        return Err(ClientError::Setting(text));
    }
    if !is_named(&url, options.named()) {
        guard.check(&url).await.map_err(|problem| {
            ClientError::Setting(format!("the card's token address {}: {problem}", address::shown(&url)))
        })?;
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::permitted;
    use crate::client::card::Card;
    use crate::guard::{Guard, Rules};
    use crate::remote::options::Place;
    use serde_json::json;

    fn card(urls: &[&str]) -> Card {
        let interface = |url: &&str| json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
        let interfaces: Vec<_> = urls.iter().map(interface).collect();
        Card::parse(&json!({"name": "a", "supportedInterfaces": interfaces}).to_string(), "http://here").unwrap()
    }

    #[tokio::test]
    async fn a_card_does_not_lead_where_its_operator_did_not() {
        let guard = Guard::new(Rules::default());
        let place = Place::Base("http://10.0.0.7:9000/agent".into());
        for (urls, kept) in [
            (vec!["http://10.0.0.7:9000/rpc", "http://10.0.0.7:22"], Ok(vec!["http://10.0.0.7:9000/rpc"])),
            (vec!["https://8.8.8.8/a"], Ok(vec!["https://8.8.8.8/a"])),
            (vec!["http://127.0.0.1:9000/rpc"], Err("http://127.0.0.1:9000")),
            (vec!["http://169.254.169.254/latest"], Err("targets.allow")),
        ] {
            let permitted = permitted(&guard, card(&urls), Some(&place)).await;
            match (permitted, kept) {
                (Ok(card), Ok(kept)) => {
                    let urls: Vec<_> = card.supported_interfaces.iter().map(|i| i.url.as_str()).collect();
                    assert_eq!(urls, kept);
                }
                (Err(error), Err(told)) => assert!(error.to_string().contains(told), "{error}"),
                (got, _) => panic!("{urls:?}: {:?}", got.map(|card| card.supported_interfaces)),
            }
        }
        let grpc = |urls: &[&str]| {
            let mut card = card(urls);
            card.supported_interfaces.iter_mut().for_each(|interface| interface.protocol_binding = "GRPC".into());
            card
        };
        let admitting = Guard::new(Rules { allow: vec!["10.0.0.0/8".parse().unwrap()], ..Rules::default() });
        for (guard, url, told) in [
            (&guard, "10.0.0.7:9000", None),
            (&guard, "10.0.0.7:9001", Some("targets.allow")),
            (&guard, "localhost:9000", Some("targets.allow")),
            (&guard, "grpc://169.254.169.254", Some("targets.allow")),
            (&admitting, "10.0.0.8:9001", None),
        ] {
            let problem = permitted(guard, grpc(&[url]), Some(&place)).await.err().map(|error| error.to_string());
            assert_eq!(problem.is_some(), told.is_some(), "{url}: {problem:?}");
            assert!(problem.unwrap_or_default().contains(told.unwrap_or_default()), "{url}");
        }
        let file = Place::File("card.json".into());
        assert!(
            permitted(&guard, card(&["http://127.0.0.1:9000"]), Some(&file)).await.is_ok(),
            "a card of the operator's own"
        );
        assert!(permitted(&guard, card(&["http://10.0.0.7:9000/rpc"]), None).await.is_err(), "nobody named it");
    }
}
