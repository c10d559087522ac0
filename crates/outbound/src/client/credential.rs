//! Credentials, shown only where the agent's card declares a scheme that takes them (spec 7.3).

use super::card::{Card, Scheme};
use super::error::ClientError;

/// What the caller has.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// A token for HTTP Bearer, OAuth 2 and OpenID Connect.
    pub bearer: Option<String>,
    pub api_key: Option<String>,
}

impl Credentials {
    pub fn is_empty(&self) -> bool {
        self.bearer.is_none() && self.api_key.is_none()
    }

    /// As the headers a hub of our own kind takes, where no card says it.
    pub fn for_hub(&self) -> Vec<(String, String)> {
        let bearer = self.bearer.iter().map(|token| ("Authorization".to_owned(), format!("Bearer {token}")));
        bearer.chain(self.api_key.iter().map(|key| ("X-API-Key".to_owned(), key.clone()))).collect()
    }
}

/// Where credentials go in each request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attached {
    pub headers: Vec<(String, String)>,
    pub query: Vec<(String, String)>,
    /// Credentials the caller has and the agent declares no use for.
    pub unused: Vec<&'static str>,
}

impl Attached {
    pub fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.query.is_empty()
    }
}

/// Which credential a scheme takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Bearer,
    ApiKey,
    Nothing,
}

fn takes(scheme: &Scheme) -> Takes {
    let bearer = scheme.http_auth_security_scheme.as_ref().is_some_and(|h| h.scheme.eq_ignore_ascii_case("bearer"));
    if bearer || scheme.oauth2_security_scheme.is_some() || scheme.open_id_connect_security_scheme.is_some() {
        Takes::Bearer
    } else if scheme.api_key_security_scheme.is_some() {
        Takes::ApiKey
    } else {
        Takes::Nothing
    }
}

/// Whether one of these service parameters is the header that a scheme wants.
fn is_carried(scheme: &Scheme, parameters: &[(String, String)]) -> bool {
    let named = |name: &str| {
        let is = move |(known, _): &&(String, String)| known.eq_ignore_ascii_case(name);
        parameters.iter().filter(is).map(|(_, value)| value.as_str()).collect::<Vec<_>>()
    };
    let authorizes = |word: &str| {
        let words = named("authorization").into_iter().filter_map(|value| value.split_once(' '));
        words.into_iter().any(|(first, _)| first.eq_ignore_ascii_case(word))
    };
    if let Some(key) = &scheme.api_key_security_scheme {
        return match key.location.as_str() {
            "query" => false,
            "cookie" => named("cookie").into_iter().any(|value| value.contains(&format!("{}=", key.name))),
            _ => !named(&key.name).is_empty(),
        };
    }
    match &scheme.http_auth_security_scheme {
        Some(http) => authorizes(&http.scheme),
        None => takes(scheme) == Takes::Bearer && authorizes("bearer"),
    }
}

/// Whether a call with these service parameters shows who makes it, as far as names tell.
pub fn is_any_carried(card: &Card, parameters: &[(String, String)]) -> bool {
    let usual = |name: &str| ["authorization", "cookie", "x-api-key"].iter().any(|one| one.eq_ignore_ascii_case(name));
    parameters.iter().any(|(name, _)| usual(name))
        || card.security_schemes.values().any(|scheme| is_carried(scheme, parameters))
}

/// Finds a requirement that is met, by the credentials or by service parameters, and says where each credential goes.
pub fn attach(
    card: &Card,
    credentials: &Credentials,
    parameters: &[(String, String)],
) -> Result<Attached, ClientError> {
    let has = |takes: Takes| match takes {
        Takes::Bearer => credentials.bearer.is_some(),
        Takes::ApiKey => credentials.api_key.is_some(),
        Takes::Nothing => false,
    };
    let is_met = |scheme: &Scheme| has(takes(scheme)) || is_carried(scheme, parameters);
    let met = card
        .security_requirements
        .iter()
        .find(|requirement| requirement.schemes.keys().all(|name| card.security_schemes.get(name).is_some_and(is_met)));
    let required = !card.security_requirements.is_empty();
    let names: Vec<&String> = match met {
        Some(requirement) if !requirement.schemes.is_empty() => requirement.schemes.keys().collect(),
        None if required => return Err(missing(card)),
        // Nothing is required, so whatever the agent declares to understand may be shown.
        _ => {
            let understood =
                |wanted: Takes| card.security_schemes.iter().find(|(_, scheme)| takes(scheme) == wanted && has(wanted));
            [Takes::Bearer, Takes::ApiKey].into_iter().filter_map(understood).map(|(name, _)| name).collect()
        }
    };
    let schemes = names.into_iter().filter_map(|name| card.security_schemes.get(name));
    let schemes = schemes.filter(|scheme| has(takes(scheme)));
    let mut attached = Attached::default();
    let mut used = (false, false);
    for scheme in schemes {
        match (takes(scheme), &scheme.api_key_security_scheme) {
            (Takes::Bearer, _) => {
                let token = credentials.bearer.as_deref().unwrap_or_default();
                attached.headers.push(("Authorization".into(), format!("Bearer {token}")));
                used.0 = true;
            }
            (Takes::ApiKey, Some(place)) => {
                let key = credentials.api_key.clone().unwrap_or_default();
                match place.location.as_str() {
                    "query" => attached.query.push((place.name.clone(), key)),
                    "cookie" => attached.headers.push(("Cookie".into(), format!("{}={key}", place.name))),
                    _ => attached.headers.push((place.name.clone(), key)),
                }
                used.1 = true;
            }
            _ => {}
        }
    }
    if credentials.bearer.is_some() && !used.0 {
        attached.unused.push("a bearer token");
    }
    if credentials.api_key.is_some() && !used.1 {
        attached.unused.push("an API key");
    }
    Ok(attached)
}

fn missing(card: &Card) -> ClientError {
    let describe = |name: &String| match card.security_schemes.get(name) {
        Some(scheme) => scheme.describe(),
        None => format!("'{name}', which its card does not explain"),
    };
    let schemes = card.security_requirements.iter().map(|requirement| {
        let all: Vec<String> = requirement.schemes.keys().map(describe).collect();
        all.join(" and ")
    });
    ClientError::CredentialsMissing { schemes: schemes.collect(), code: None, withheld: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::{Attached, Credentials, attach};
    use crate::client::card::Card;
    use crate::client::error::ClientError;
    use serde_json::{Value, json};

    fn shown(required: &Value, bearer: Option<&str>, api_key: Option<&str>) -> Result<Attached, ClientError> {
        let credentials = Credentials { bearer: bearer.map(Into::into), api_key: api_key.map(Into::into) };
        attach(&card(required), &credentials, &[])
    }

    fn card(required: &Value) -> Card {
        let card = json!({
            "name": "a",
            "securitySchemes": {
                "b": {"httpAuthSecurityScheme": {"scheme": "bearer"}},
                "q": {"apiKeySecurityScheme": {"location": "query", "name": "k"}},
                "c": {"apiKeySecurityScheme": {"location": "cookie", "name": "k"}},
                "m": {"mtlsSecurityScheme": {}},
                "h": {"apiKeySecurityScheme": {"location": "header", "name": "X-Odd"}},
                "w": {"httpAuthSecurityScheme": {"scheme": "Basic"}},
                "o": {"oauth2SecurityScheme": {"flows": {}}},
            },
            "securityRequirements": required,
        });
        Card::parse(&card.to_string(), "x").unwrap()
    }

    #[test]
    fn a_service_parameter_that_is_a_scheme_s_header_counts() {
        for (scheme, name, value, counts) in [
            ("w", "authorization", "Basic dTpw", true),
            ("w", "Authorization", "Bearer t", false),
            ("b", "Authorization", "bearer t", true),
            ("o", "Authorization", "Bearer t", true),
            ("h", "x-odd", "k", true),
            ("h", "x-other", "k", false),
            ("c", "Cookie", "a=b; k=1", true),
            ("q", "k", "1", false),
            ("m", "Authorization", "Basic dTpw", false),
        ] {
            let parameters = [(name.to_owned(), value.to_owned())];
            let met = attach(&card(&json!([needs(&[scheme])])), &Credentials::default(), &parameters);
            assert_eq!(met.is_ok(), counts, "{scheme}: {name}: {value}");
            // It goes as what it is, and nothing goes twice.
            assert!(met.unwrap_or_default().is_empty());
        }
    }

    fn needs(names: &[&str]) -> Value {
        let schemes: serde_json::Map<String, Value> =
            names.iter().map(|n| ((*n).into(), json!({"list": []}))).collect();
        json!({ "schemes": schemes })
    }

    #[test]
    fn a_credential_goes_where_its_scheme_says() {
        let attached = shown(&json!([needs(&["b"])]), Some("t"), None).unwrap();
        assert_eq!(attached.headers, [("Authorization".to_owned(), "Bearer t".to_owned())]);
        let attached = shown(&json!([needs(&["m"]), needs(&["q"])]), None, Some("s")).unwrap();
        assert_eq!(attached.query, [("k".to_owned(), "s".to_owned())]);
        let attached = shown(&json!([needs(&["c", "b"])]), Some("t"), Some("s")).unwrap();
        assert_eq!(attached.headers.len(), 2);
    }

    #[test]
    fn what_is_missing_is_named_and_what_is_not_declared_is_not_shown() {
        let error = shown(&json!([needs(&["b", "m"]), needs(&["q"])]), Some("t"), None).unwrap_err().to_string();
        assert!(error.contains("HTTP bearer and mutual TLS, or API key (query k)"), "{error}");
        let attached = attach(&Card::default(), &Credentials { bearer: Some("t".into()), api_key: None }, &[]).unwrap();
        assert!(attached.is_empty() && attached.unused == ["a bearer token"]);
    }
}
