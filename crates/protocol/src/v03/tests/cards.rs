//! Cards in the forms of either version.

use crate::a2a::card::{
    AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Scopes, SecurityRequirement, SecurityScheme,
};
use crate::v03::card;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn sample(versions: &[&str]) -> AgentCard {
    let interface = |version: &&str| AgentInterface {
        url: format!("http://hub/{version}"),
        protocol_binding: "JSONRPC".into(),
        tenant: String::new(),
        protocol_version: (*version).into(),
    };
    AgentCard {
        name: "echo".into(),
        description: "Echoes.".into(),
        supported_interfaces: versions.iter().map(interface).collect(),
        provider: None,
        version: "1".into(),
        documentation_url: None,
        capabilities: AgentCapabilities { streaming: true, ..AgentCapabilities::default() },
        security_schemes: BTreeMap::from([
            ("bearer".into(), SecurityScheme::HttpAuthSecurityScheme { scheme: "Bearer".into() }),
            ("key".into(), SecurityScheme::ApiKeySecurityScheme { location: "header".into(), name: "X-Key".into() }),
        ]),
        security_requirements: vec![SecurityRequirement {
            schemes: BTreeMap::from([("bearer".into(), Scopes::default())]),
        }],
        default_input_modes: vec!["text/plain".into()],
        default_output_modes: vec!["text/plain".into()],
        skills: vec![AgentSkill {
            id: "s".into(),
            name: "s".into(),
            description: "s".into(),
            tags: vec!["s".into()],
            examples: Vec::new(),
            input_modes: Vec::new(),
            output_modes: Vec::new(),
        }],
        icon_url: None,
        signatures: Vec::new(),
    }
}

#[test]
fn a_card_of_0_3_names_the_interfaces_of_0_3() {
    let old = card::write(&sample(&["1.0", "0.3"])).expect("an interface of 0.3");
    assert_eq!(old["url"], "http://hub/0.3");
    assert_eq!(old["preferredTransport"], "JSONRPC");
    assert_eq!(old["additionalInterfaces"], json!([{"transport": "JSONRPC", "url": "http://hub/0.3"}]));
    assert_eq!(old["protocolVersion"], "0.3.0");
    assert_eq!(old["securitySchemes"]["bearer"], json!({"type": "http", "scheme": "Bearer"}));
    assert_eq!(old["securitySchemes"]["key"], json!({"type": "apiKey", "in": "header", "name": "X-Key"}));
    assert_eq!(old["security"], json!([{"bearer": []}]));
    assert!(old.get("supportedInterfaces").is_none());
    assert!(card::write(&sample(&["1.0"])).is_none(), "nothing is advertised that is not there");
}

#[test]
fn a_hybrid_card_holds_every_member_of_both() {
    let sample = sample(&["1.0", "0.3"]);
    let both = card::hybrid(&sample).expect("JSON");
    let new = serde_json::to_value(&sample).expect("JSON");
    let old = card::write(&sample).expect("an interface of 0.3");
    for one in [&new, &old] {
        for (name, value) in one.as_object().expect("an object").iter().filter(|(name, _)| *name != "securitySchemes") {
            if name != "capabilities" {
                assert_eq!(&both[name], value, "{name}");
            }
        }
    }
    assert_eq!(both["securitySchemes"]["bearer"]["type"], "http");
    assert_eq!(both["securitySchemes"]["bearer"]["httpAuthSecurityScheme"]["scheme"], "Bearer");
}

#[test]
fn a_card_of_0_3_is_read_as_one_of_1_0() {
    let old = card::write(&sample(&["0.3"])).expect("an interface of 0.3");
    let read: Value = serde_json::from_str(&card::upgraded(&old.to_string()).expect("JSON")).expect("JSON");
    let place = json!({"url": "http://hub/0.3", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"});
    assert_eq!(read["supportedInterfaces"], json!([place]), "the place that is named twice is one");
    assert_eq!(read["securityRequirements"], json!([{"schemes": {"bearer": {"list": []}}}]));
    assert_eq!(read["securitySchemes"]["key"]["apiKeySecurityScheme"], json!({"location": "header", "name": "X-Key"}));
}

#[test]
fn a_card_with_four_fields_is_enough() {
    let least = r#"{"name":"a","url":"http://a","version":"1","description":"d"}"#;
    let read: Value = serde_json::from_str(&card::upgraded(least).expect("JSON")).expect("JSON");
    let place = json!({"url": "http://a", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"});
    assert_eq!(read["supportedInterfaces"], json!([place]));
    let mixed = r#"{"url":"http://a","protocolVersion":"0.2.5","additionalInterfaces":[{"url":"http://b","transport":"GRPC"},7]}"#;
    let read: Value = serde_json::from_str(&card::upgraded(mixed).expect("JSON")).expect("JSON");
    assert_eq!(read["supportedInterfaces"][1]["protocolBinding"], "GRPC");
    assert_eq!(read["supportedInterfaces"][1]["protocolVersion"], "0.2");
}
