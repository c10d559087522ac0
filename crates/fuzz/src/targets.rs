//! Where webhooks go and how they prove themselves: URLs, ranges, secrets, signatures.

use crate::{lines, text};
use flotilla_inbound::Network;
use flotilla_outbound::guard::{Cidr, Guard, Rules};
use flotilla_outbound::net::address;
use flotilla_outbound::net::redact::Redactor;
use flotilla_outbound::webhook::sign::{Proof, Secret, Signed, Verifier, keys_in, v1};
use flotilla_protocol::a2a::push::PushOptions;
use flotilla_protocol::a2a::request::{AuthenticationInfo, PushConfig};
use http::HeaderValue;
use std::net::IpAddr;
use url::{Host, Url};

/// A URL somebody gave for a webhook.
pub fn webhook_url(bytes: &[u8]) {
    let Some(given) = text(bytes) else { return };
    let guard = Guard::new(Rules::default());
    match guard.parse(given) {
        Ok(url) => {
            // A name may lead to what the operator admits in the clear; an address does not.
            assert!(url.scheme() == "https" || url.domain().is_some(), "what is public is called over TLS");
            assert!(url.username().is_empty() && url.password().is_none());
            check_host(&url);
            assert_eq!(guard.parse(url.as_str()).as_ref(), Ok(&url), "the same URL in its normal form");
        }
        Err(_) => {
            // Refused for its address, it stays refused however it is written.
            let Ok(url) = Url::parse(given) else { return };
            if url.host().is_some_and(|host| !is_public(&host)) {
                assert!(guard.parse(url.as_str()).is_err(), "{url} is let in by another spelling");
            }
        }
    }
}

fn check_host(url: &Url) {
    let host = url.host().expect("a host was asked for");
    assert!(is_public(&host), "{url} leads inside");
    if let Host::Domain(name) = host {
        let bare = name.trim_end_matches('.');
        assert!(bare.parse::<IpAddr>().is_err(), "an address that passes for a name");
        assert!(bare != "localhost" && !bare.ends_with(".localhost"));
    }
}

/// What the standard library knows of private addresses, as a second opinion.
fn is_public(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(_) => true,
        Host::Ipv4(v4) => {
            !(v4.is_loopback() || v4.is_private() || v4.is_link_local() || v4.is_unspecified() || v4.is_multicast())
        }
        Host::Ipv6(v6) => {
            let plain = v6.to_ipv4_mapped().is_none_or(|v4| is_public(&Host::Ipv4(v4)));
            let local = v6.is_unique_local() || v6.is_unicast_link_local();
            plain && !(v6.is_loopback() || v6.is_unspecified() || v6.is_multicast() || local)
        }
    }
}

/// Text that is shown or logged: no password and no known secret is left in it.
pub fn address_shown(bytes: &[u8]) {
    let Some(given) = text(bytes) else { return };
    let shown = address::shown(given);
    let _ = address::shown_in(given);
    if let Ok(url) = address::check(given) {
        assert!(url.username().is_empty() && url.password().is_none());
    } else if let Ok(url) = Url::parse(given)
        && let Some(password) = url.password().filter(|password| password.len() > 6)
        && given.matches(password).count() == 1
    {
        assert!(!shown.contains(password), "{shown} tells a password");
    }
    let redactor = Redactor::new(["a-known-secret".to_owned()]);
    let cleaned = redactor.clean(&format!("{given} a-known-secret {given}"));
    assert!(!cleaned.contains("a-known-secret"), "a secret is logged: {cleaned}");
}

/// Ranges of addresses, in both places that take them.
pub fn ranges(bytes: &[u8]) {
    let Some(given) = text(bytes) else { return };
    if let Ok(range) = given.parse::<Cidr>() {
        assert_eq!(range.to_string().parse(), Ok(range));
        let first = given.split('/').next().and_then(|address| address.parse::<IpAddr>().ok());
        assert!(first.is_some_and(|first| range.contains(first)), "a range holds its first address");
        assert!(given.parse::<Network>().is_ok(), "one of the two does not take {given}");
    }
    let _ = given.parse::<Network>();
}

/// A signing secret signs, and what it signs is proved by it.
pub fn webhook_secret(bytes: &[u8]) {
    let Some(given) = text(bytes) else { return };
    let Ok(secret) = Secret::parse(given) else { return };
    assert_eq!(secret.text(), given);
    let signature = v1(&secret, "id", 7, b"{}");
    let verifier = Verifier { secrets: vec![secret], keys: Vec::new() };
    let signed = Signed { id: "id", timestamp: "7", signature: &signature };
    assert_eq!(verifier.verify(signed, b"{}", 7), Ok(Proof::Secret));
    assert!(verifier.verify(signed, b"{ }", 7).is_err());
}

/// Token, scheme and credentials, one a line: what is taken can be sent as headers, now and after a restart.
pub fn webhook_credentials(bytes: &[u8]) {
    let ([token, scheme, credentials], _) = lines::<3>(bytes);
    let (Some(token), Some(scheme), Some(credentials)) = (text(token), text(scheme), text(credentials)) else { return };
    let authentication =
        AuthenticationInfo { scheme: scheme.into(), credentials: credentials.into(), ..AuthenticationInfo::default() };
    let config = PushConfig { token: token.into(), authentication: Some(authentication), ..PushConfig::default() };
    let Ok([given, again]) = flotilla_outbound::fuzz::credentials(&config, PushOptions::default()) else { return };
    assert_eq!(given, again);
    for (name, value) in given {
        assert!(HeaderValue::from_str(&value).is_ok(), "{name} cannot be sent");
        let signing =
            value.split(' ').skip(usize::from(name == "authorization")).any(|word| word.starts_with("whsec_"));
        assert!(!signing, "a signing secret is shown");
    }
}

/// Id, time and signature, one a line, then the body. Nobody but the secret's owner can sign.
pub fn webhook_headers(bytes: &[u8]) {
    let ([id, timestamp, signature], body) = lines::<3>(bytes);
    let (Some(id), Some(timestamp), Some(signature)) = (text(id), text(timestamp), text(signature)) else { return };
    let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret");
    let verifier = Verifier { secrets: vec![secret.clone()], keys: vec![vec![7; 32], Vec::new()] };
    let now = 1_614_265_330;
    if verifier.verify(Signed { id, timestamp, signature }, body, now) == Ok(Proof::Secret) {
        let seconds: i64 = timestamp.parse().expect("a time that was taken is a number");
        assert!((now - seconds).abs() <= 300);
        assert!(signature.contains(v1(&secret, id, seconds, body).trim_end_matches('=')), "a signature of nobody");
    }
}

/// The hub's public keys as a receiver reads them.
pub fn key_set(bytes: &[u8]) {
    let Some(keys) = text(bytes).and_then(|text| keys_in(text).ok()) else { return };
    let verifier = Verifier { secrets: Vec::new(), keys };
    let signed = Signed { id: "id", timestamp: "7", signature: "v1a,bm90IHRoaXM=" };
    assert!(verifier.verify(signed, b"{}", 7).is_err(), "a signature of nobody");
}
