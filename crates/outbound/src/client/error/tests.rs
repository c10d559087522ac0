//! One name for each error, whatever it came over.

use super::{ClientError, Told, name_of};

fn name(told: Told) -> String {
    match told.into_error(true) {
        ClientError::Refused { reason, .. } => name_of(reason).to_owned(),
        other => format!("{other:?}").split([' ', '{', '(']).next().unwrap_or_default().to_owned(),
    }
}

#[test]
fn the_same_error_has_one_name_in_every_binding() {
    let reason = || Some("TASK_NOT_FOUND".to_owned());
    assert_eq!(name(Told { rpc: Some(-32001), ..Told::default() }), "TaskNotFoundError");
    assert_eq!(name(Told { http: Some(404), reason: reason(), ..Told::default() }), "TaskNotFoundError");
    let bare = |grpc: Option<&str>| Told { http: Some(404), grpc: grpc.map(str::to_owned), ..Told::default() };
    assert_eq!(name(bare(Some("NOT_FOUND"))), "TaskNotFoundError", "the same as over gRPC");
    assert_eq!(name(bare(None)), "MethodNotFoundError", "somebody else's page");
    assert_eq!(name(Told { grpc: Some("NOT_FOUND".into()), reason: reason(), ..Told::default() }), "TaskNotFoundError");
    assert_eq!(name(Told { http: Some(401), ..Told::default() }), "AuthFailed");
    let too_large = || Some("PAYLOAD_TOO_LARGE".to_owned());
    assert_eq!(name(Told { rpc: Some(-32600), reason: too_large(), ..Told::default() }), "InvalidRequestError");
    assert_eq!(name(Told { http: Some(413), ..Told::default() }), "InvalidRequestError");
    assert_eq!(name(Told { http: Some(422), ..Told::default() }), "InvalidParamsError", "it is not understood");
    assert_eq!(name(Told { http: Some(500), ..Told::default() }), "InternalError");
    assert_eq!(name(Told { http: Some(502), ..Told::default() }), "Broken");
    let later = Some("in 5 s".to_owned());
    assert_eq!(name(Told { http: Some(503), retry: later, ..Told::default() }), "Exhausted");
    for told in [
        Told { rpc: Some(-32013), ..Told::default() },
        Told { http: Some(429), ..Told::default() },
        Told { grpc: Some("RESOURCE_EXHAUSTED".into()), ..Told::default() },
    ] {
        assert_eq!(name(told), "Exhausted");
    }
}

#[test]
fn a_message_that_is_too_large_for_grpc_is_so_later_too() {
    let told = |message: &str| {
        name(Told { grpc: Some("RESOURCE_EXHAUSTED".into()), message: message.into(), ..Told::default() })
    };
    for message in [
        "SERVER: Received message larger than max (5000244 vs. 4194304)",
        "grpc: received message larger than max (5000244 vs. 4194304)",
        "gRPC message exceeds maximum size 4194304: 5000244",
        "Received message exceeds the maximum configured message size.",
    ] {
        assert_eq!(told(message), "InvalidRequestError", "{message}");
    }
    assert_eq!(told("Sent message larger than max (5 vs. 4)"), "InternalError", "the work may be done");
    assert_eq!(told("the number of messages exceeds the quota"), "Exhausted");
}

#[test]
fn a_refusal_in_plain_text_is_told_with_its_words() {
    assert_eq!(Told::words(400, " too much\r\nof it\n"), "HTTP 400: too much  of it");
    assert_eq!(Told::words(422, r#"{"detail":"no such field"}"#), "HTTP 422: no such field");
    let missing = r#"{"loc":["body","parts",0],"msg":"field required","type":"missing"}"#;
    let several = format!(r#"{{"detail":[{missing},{{"msg":"too many"}},7]}}"#);
    assert_eq!(Told::words(422, &several), "HTTP 422: body.parts.0: field required; too many");
    for page in ["", " \n", "<html>no</html>", "{\"detail\":1}", "{\"detail\":[1]}", "[]"] {
        assert_eq!(Told::words(500, page), "HTTP 500", "{page}");
    }
    let long = Told::words(413, &format!("{} s3cret", "ä".repeat(496)));
    assert_eq!(long, format!("HTTP 413: {}…", "ä".repeat(496)), "no half of a word, which may be a secret");
    let fits = Told::words(413, &"ä".repeat(500));
    assert!(fits.ends_with("ää") && fits.chars().count() == 510, "{fits}");
}

#[test]
fn a_refused_stranger_lacks_a_credential() {
    for status in [401, 403] {
        let told = || Told { http: Some(status), ..Told::default() };
        assert!(matches!(told().into_error(false), ClientError::CredentialsMissing { .. }));
        assert!(matches!(told().into_error(true), ClientError::AuthFailed { .. }));
    }
}
