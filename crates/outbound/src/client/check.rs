//! A card against the specification's schema (spec 4.4): every required member, every type, every name that is used.

use super::choose::Binding;
use super::grpc;
use crate::net::address;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// What a member must be.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    /// Text that is not empty.
    Words,
    Url,
    Flag,
    Texts,
    Object,
    Objects,
}

struct Checker {
    problems: Vec<String>,
}

/// Which readers a card is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A2A 1.0.
    Current,
    /// A2A 0.3.
    Old,
    /// Both.
    Hybrid,
    /// Nothing but a name and an address, as some agents of 0.3 have it.
    Minimal,
}

impl Form {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Current => "1.0",
            Self::Old => "0.3",
            Self::Hybrid => "hybrid",
            Self::Minimal => "minimal",
        }
    }

    fn of(card: &Map<String, Value>) -> Self {
        let has = |names: &[&str]| names.iter().any(|name| card.get(*name).is_some_and(|value| !value.is_null()));
        match (has(&["supportedInterfaces", "supported_interfaces"]), has(&["url"])) {
            (true, true) => Self::Hybrid,
            (false, true) if !has(&["skills", "capabilities", "protocolVersion", "protocol_version"]) => Self::Minimal,
            (false, true) => Self::Old,
            (_, false) => Self::Current,
        }
    }
}

/// A card's form, and what is wrong with it by the specification of that form.
pub fn findings(json: &str) -> (Form, Vec<String>) {
    let card: Value = serde_json::from_str(json).unwrap_or_default();
    match card.as_object().map(|card| (Form::of(card), card)) {
        Some((form @ (Form::Old | Form::Minimal), card)) => {
            let mut checker = Checker { problems: Vec::new() };
            checker.old_card(card);
            (form, checker.problems)
        }
        found => (found.map_or(Form::Current, |(form, _)| form), problems(json)),
    }
}

/// Everything that is wrong with a card of 1.0, each with its place. Empty if the card is valid.
pub fn problems(json: &str) -> Vec<String> {
    let card: Value = match serde_json::from_str(json) {
        Ok(card) => card,
        Err(error) => return vec![format!("it is not JSON: {error}")],
    };
    let Some(card) = card.as_object() else { return vec!["it is not a JSON object".into()] };
    let mut checker = Checker { problems: Vec::new() };
    checker.card(card);
    checker.problems
}

impl Checker {
    fn problem(&mut self, place: &str, name: &str, text: impl std::fmt::Display) {
        self.problems.push(format!("{place}{name} {text}"));
    }

    /// A member of the right kind; missing ones are a problem only if they are required.
    fn member<'a>(
        &mut self,
        object: &'a Map<String, Value>,
        place: &str,
        name: &str,
        kind: Kind,
        required: bool,
    ) -> Option<&'a Value> {
        let Some(value) = object.get(name).filter(|value| !value.is_null()) else {
            if required {
                self.problem(place, name, "is missing");
            }
            return None;
        };
        let texts = |value: &Value| value.as_array().is_some_and(|list| list.iter().all(Value::is_string));
        let objects = |value: &Value| value.as_array().is_some_and(|list| list.iter().all(Value::is_object));
        let (fits, wanted) = match kind {
            Kind::Text => (value.is_string(), "a text"),
            Kind::Words => (value.as_str().is_some_and(|text| !text.is_empty()), "a text that is not empty"),
            Kind::Url => (value.as_str().is_some_and(is_url), "an absolute URL"),
            Kind::Flag => (value.is_boolean(), "true or false"),
            Kind::Texts => (texts(value), "a list of texts"),
            Kind::Object => (value.is_object(), "an object"),
            Kind::Objects => (objects(value), "a list of objects"),
        };
        if !fits {
            self.problem(place, name, format_args!("must be {wanted}"));
            return None;
        }
        Some(value)
    }

    fn all(&mut self, object: &Map<String, Value>, place: &str, members: &[(&str, Kind, bool)]) {
        for (name, kind, required) in members {
            self.member(object, place, name, *kind, *required);
        }
    }

    /// The objects of a list, each with its place.
    fn each(&mut self, object: &Map<String, Value>, place: &str, name: &str, required: bool) -> Vec<(String, Value)> {
        let list = self.member(object, place, name, Kind::Objects, required).cloned().unwrap_or_default();
        let list = list.as_array().cloned().unwrap_or_default();
        list.into_iter().enumerate().map(|(index, item)| (format!("{place}{name}[{index}]."), item)).collect()
    }

    fn card(&mut self, card: &Map<String, Value>) {
        self.all(
            card,
            "",
            &[
                ("name", Kind::Words, true),
                ("description", Kind::Words, true),
                ("version", Kind::Words, true),
                ("documentationUrl", Kind::Url, false),
                ("iconUrl", Kind::Url, false),
                ("defaultInputModes", Kind::Texts, true),
                ("defaultOutputModes", Kind::Texts, true),
            ],
        );
        let interfaces = self.each(card, "", "supportedInterfaces", true);
        if interfaces.is_empty() && card.contains_key("supportedInterfaces") {
            self.problem("", "supportedInterfaces", "must name at least one interface");
        }
        for (place, interface) in interfaces {
            if let Some(interface) = interface.as_object() {
                self.interface(interface, &place);
            }
        }
        if let Some(provider) = self.member(card, "", "provider", Kind::Object, false).and_then(Value::as_object) {
            self.all(provider, "provider.", &[("url", Kind::Url, true), ("organization", Kind::Words, true)]);
        }
        if let Some(able) = self.member(card, "", "capabilities", Kind::Object, true).and_then(Value::as_object) {
            let flags = ["streaming", "pushNotifications", "extendedAgentCard"].map(|name| (name, Kind::Flag, false));
            self.all(able, "capabilities.", &flags);
            for (place, extension) in self.each(able, "capabilities.", "extensions", false) {
                if let Some(extension) = extension.as_object() {
                    self.all(extension, &place, &[("uri", Kind::Words, true), ("required", Kind::Flag, false)]);
                }
            }
        }
        self.skills(card);
        self.security(card);
        for (place, signature) in self.each(card, "", "signatures", false) {
            if let Some(signature) = signature.as_object() {
                self.all(signature, &place, &[("protected", Kind::Words, true), ("signature", Kind::Words, true)]);
            }
        }
    }

    fn old_card(&mut self, card: &Map<String, Value>) {
        let words = ["name", "description", "version", "protocolVersion"].map(|name| (name, Kind::Words, true));
        self.all(card, "", &words);
        self.all(card, "", &[("url", Kind::Url, true), ("preferredTransport", Kind::Words, false)]);
        self.all(card, "", &["defaultInputModes", "defaultOutputModes"].map(|name| (name, Kind::Texts, true)));
        self.member(card, "", "capabilities", Kind::Object, true);
        for (place, interface) in self.each(card, "", "additionalInterfaces", false) {
            if let Some(interface) = interface.as_object() {
                self.all(interface, &place, &[("url", Kind::Words, true), ("transport", Kind::Words, true)]);
            }
        }
        self.skills(card);
    }

    fn interface(&mut self, interface: &Map<String, Value>, place: &str) {
        let members = [
            ("protocolBinding", Kind::Words, true),
            ("protocolVersion", Kind::Words, true),
            ("tenant", Kind::Text, false),
        ];
        self.all(interface, place, &members);
        let binding = interface.get("protocolBinding").and_then(Value::as_str).and_then(Binding::parse);
        let kind = if binding.is_some() { Kind::Words } else { Kind::Url };
        let url = self.member(interface, place, "url", kind, true).and_then(Value::as_str);
        let called = url.zip(binding).map(|(url, binding)| match binding {
            // It may be a bare HOST:PORT.
            Binding::Grpc => grpc::address(url, ""),
            Binding::JsonRpc | Binding::HttpJson => url.to_owned(),
        });
        if let Some(Err(error)) = called.map(|called| address::check(&called)) {
            self.problem(place, "url", format_args!("must be an absolute URL that can be called: {error}"));
        }
    }

    fn skills(&mut self, card: &Map<String, Value>) {
        for (place, skill) in self.each(card, "", "skills", true) {
            let Some(skill) = skill.as_object() else { continue };
            let texts = ["id", "name", "description"].map(|name| (name, Kind::Words, true));
            self.all(skill, &place, &texts);
            self.member(skill, &place, "tags", Kind::Texts, true);
            self.all(skill, &place, &["examples", "inputModes", "outputModes"].map(|name| (name, Kind::Texts, false)));
        }
    }

    fn security(&mut self, card: &Map<String, Value>) {
        let schemes = self.member(card, "", "securitySchemes", Kind::Object, false).and_then(Value::as_object);
        let names: BTreeSet<&String> = schemes.into_iter().flatten().map(|(name, _)| name).collect();
        for (name, scheme) in schemes.into_iter().flatten() {
            let place = format!("securitySchemes.{name}.");
            match scheme.as_object() {
                Some(scheme) => self.scheme(scheme, &place),
                None => self.problem("securitySchemes.", name, "must be an object"),
            }
        }
        for (place, requirement) in self.each(card, "", "securityRequirements", false) {
            let Some(requirement) = requirement.as_object() else { continue };
            let used = self.member(requirement, &place, "schemes", Kind::Object, false).and_then(Value::as_object);
            for (name, scopes) in used.into_iter().flatten() {
                if !names.contains(name) {
                    let text = format!("names '{name}', which securitySchemes does not have");
                    self.problem(&place, "schemes", text);
                }
                match scopes.as_object() {
                    Some(scopes) => {
                        self.all(scopes, &format!("{place}schemes.{name}."), &[("list", Kind::Texts, false)]);
                    }
                    None => self.problem(&format!("{place}schemes."), name, "must be an object"),
                }
            }
        }
    }

    fn scheme(&mut self, scheme: &Map<String, Value>, place: &str) {
        let kinds = [
            "apiKeySecurityScheme",
            "httpAuthSecurityScheme",
            "oauth2SecurityScheme",
            "openIdConnectSecurityScheme",
            "mtlsSecurityScheme",
        ];
        let present: Vec<&str> = kinds.into_iter().filter(|kind| scheme.contains_key(*kind)).collect();
        let [kind] = present.as_slice() else {
            return self.problem(place, "", format_args!("must have exactly one of {}", kinds.join(", ")));
        };
        let inner = self.member(scheme, place, kind, Kind::Object, true).and_then(Value::as_object);
        let Some(inner) = inner else { return };
        let place = format!("{place}{kind}.");
        match *kind {
            "apiKeySecurityScheme" => {
                self.member(inner, &place, "name", Kind::Words, true);
                let location = self.member(inner, &place, "location", Kind::Words, true).and_then(Value::as_str);
                if location.is_some_and(|location| !["header", "query", "cookie"].contains(&location)) {
                    self.problem(&place, "location", "must be header, query or cookie");
                }
            }
            "httpAuthSecurityScheme" => drop(self.member(inner, &place, "scheme", Kind::Words, true)),
            "oauth2SecurityScheme" => {
                let flows = self.member(inner, &place, "flows", Kind::Object, true).and_then(Value::as_object);
                for (name, flow) in flows.into_iter().flatten() {
                    self.flow(flow, &format!("{place}flows."), name);
                }
            }
            "openIdConnectSecurityScheme" => drop(self.member(inner, &place, "openIdConnectUrl", Kind::Url, true)),
            _ => {}
        }
    }

    fn flow(&mut self, flow: &Value, place: &str, name: &str) {
        let Some(flow) = flow.as_object() else { return self.problem(place, name, "must be an object") };
        let place = format!("{place}{name}.");
        // Of the flows that 1.0 has deprecated, implicit and password, nothing is required.
        let needed: &[&str] = match name {
            "authorizationCode" => &["authorizationUrl", "tokenUrl"],
            "clientCredentials" => &["tokenUrl"],
            "deviceCode" => &["deviceAuthorizationUrl", "tokenUrl"],
            _ => &[],
        };
        for url in ["authorizationUrl", "deviceAuthorizationUrl", "tokenUrl", "refreshUrl"] {
            let is_needed = needed.contains(&url);
            self.member(flow, &place, url, if is_needed { Kind::Url } else { Kind::Text }, is_needed);
        }
        let scopes = self.member(flow, &place, "scopes", Kind::Object, !needed.is_empty()).and_then(Value::as_object);
        for (scope, _) in scopes.into_iter().flatten().filter(|(_, about)| !about.is_string()) {
            self.problem(&format!("{place}scopes."), scope, "must be a text");
        }
    }
}

fn is_url(text: &str) -> bool {
    reqwest::Url::parse(text).is_ok_and(|url| url.has_host())
}

#[cfg(test)]
mod tests {
    use super::{findings, problems};

    const GOOD: &str = r#"{"name":"a","description":"b","version":"1","capabilities":{"streaming":true},
        "supportedInterfaces":[{"url":"http://h/x","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],
        "securitySchemes":{"k":{"apiKeySecurityScheme":{"location":"header","name":"X"}}},
        "securityRequirements":[{"schemes":{"k":{"list":[]}}}],
        "defaultInputModes":["text/plain"],"defaultOutputModes":[],
        "skills":[{"id":"i","name":"n","description":"d","tags":[]}]}"#;

    const GRPC: (&str, &str) =
        (r#""url":"http://h/x","protocolBinding":"JSONRPC""#, r#""url":"dns:///h","protocolBinding":"GRPC""#);

    #[test]
    fn a_whole_card_has_no_problems() {
        assert_eq!(problems(GOOD), [""; 0]);
        assert_eq!(problems(&GOOD.replace(GRPC.0, &GRPC.1.replace("dns:///h", "h:50051"))), [""; 0]);
        assert_eq!(problems(&GOOD.replace("http://h/x", "wss://h").replace("JSONRPC", "ODD")), [""; 0]);
    }

    #[test]
    fn each_problem_is_told_with_its_place() {
        for (from, to, told) in [
            ("\"name\":\"a\",", "", "name is missing"),
            ("http://h/x", "h", "supportedInterfaces[0].url must be an absolute URL"),
            ("http://h/x", "", "supportedInterfaces[0].url must be a text that is not empty"),
            ("http://h/x", "ftp://h", "supportedInterfaces[0].url must be an absolute URL that can be called: ftp://h"),
            (GRPC.0, GRPC.1, "supportedInterfaces[0].url must be an absolute URL that can be called: dns:///h"),
            ("\"header\"", "\"body\"", "securitySchemes.k.apiKeySecurityScheme.location must be header"),
            ("\"schemes\":{\"k\"", "\"schemes\":{\"z\"", "securityRequirements[0].schemes names 'z'"),
            ("\"tags\":[]", "\"tags\":[1]", "skills[0].tags must be a list of texts"),
            ("{\"list\":[]}", "{\"list\":[1]}", "securityRequirements[0].schemes.k.list must be a list of texts"),
            ("{\"streaming\":true}", "{\"streaming\":1}", "capabilities.streaming must be true or false"),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let found = problems(&GOOD.replace(from, to));
            assert!(found.iter().any(|problem| problem.starts_with(told)), "{told}: {found:?}");
        }
        assert_eq!(problems("[]"), ["it is not a JSON object"]);
    }

    #[test]
    fn a_flow_has_what_signing_in_with_it_takes() {
        let told = |flows: &str| {
            let oauth = format!(r#"{{"oauth2SecurityScheme":{{"flows":{flows}}}}}"#);
            let card = GOOD.replace(r#"{"apiKeySecurityScheme":{"location":"header","name":"X"}}"#, &oauth);
            problems(&card).join("; ").replace("securitySchemes.k.oauth2SecurityScheme.flows.", "")
        };
        for (flow, needed) in [
            ("deviceCode", &["deviceAuthorizationUrl", "tokenUrl", "scopes"][..]),
            ("clientCredentials", &["tokenUrl", "scopes"]),
            ("authorizationCode", &["authorizationUrl", "tokenUrl", "scopes"]),
            ("implicit", &[]),
            ("password", &[]),
        ] {
            let missing: Vec<String> = needed.iter().map(|name| format!("{flow}.{name} is missing")).collect();
            assert_eq!(told(&format!(r#"{{"{flow}":{{}}}}"#)), missing.join("; "));
        }
        let whole = r#"{"clientCredentials":{"tokenUrl":"https://h/token","scopes":{}}}"#;
        assert_eq!(told(whole), "");
        let empty = told(&whole.replace("https://h/token", ""));
        assert_eq!(empty, "clientCredentials.tokenUrl must be an absolute URL");
    }

    #[test]
    fn a_card_is_judged_by_its_own_version() {
        let hybrid = GOOD.replacen('{', r#"{"url":"http://h/x","protocolVersion":"0.3.0","#, 1);
        let old = r#"{"name":"a","description":"b","version":"1","protocolVersion":"0.3.0","url":"http://h/x",
            "capabilities":{},"defaultInputModes":[],"defaultOutputModes":[],"skills":[{"id":"i","name":"n"}]}"#;
        let minimal = r#"{"name":"a","description":"b","version":"1","url":"nowhere"}"#;
        let told = |json: &str| {
            let (form, found) = findings(json);
            (form.name(), found.join("; "))
        };
        assert_eq!(told(GOOD), ("1.0", String::new()));
        assert_eq!(told(&hybrid), ("hybrid", String::new()));
        assert_eq!(told(old), ("0.3", "skills[0].description is missing; skills[0].tags is missing".into()));
        let (form, found) = told(minimal);
        assert!(form == "minimal" && found.contains("url must be an absolute URL"), "{form}: {found}");
        assert!(found.contains("skills is missing"), "{found}");
    }
}
