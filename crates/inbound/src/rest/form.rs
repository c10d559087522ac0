//! In which of its two forms a caller speaks 0.3 over HTTP+JSON: told by the query, the body, or what they sent before.

use super::old;
use super::path::Target;
use crate::dialect::Dialect;
use crate::parameters::query;
use flotilla_core::ids::PrincipalId;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::proto03::file::Files;
use flotilla_protocol::v03::Form;
use flotilla_protocol::wire::Json;
use http::header::USER_AGENT;
use http::{HeaderMap, Uri};
use serde::Deserialize;
use std::collections::HashSet;
use std::sync::Mutex;

/// The published SDKs speak this one.
pub const DEFAULT: Form = Form::Proto;
/// Of how many callers the form is remembered, and how much of the name of their program.
const REMEMBERED: usize = 10_000;
const NAME: usize = 200;

/// Members that only one of the forms has.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Signs {
    message: Option<MessageSigns>,
    request: Option<Json>,
    // Of a push config, and of a cancel.
    parent: Option<Json>,
    config: Option<Json>,
    name: Option<Json>,
    #[serde(rename = "taskId", alias = "task_id")]
    task_id: Option<Json>,
    #[serde(rename = "pushNotificationConfig", alias = "push_notification_config")]
    push_config: Option<Json>,
    id: Option<Json>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct MessageSigns {
    kind: Option<Json>,
    parts: Option<Json>,
    content: Option<Json>,
    role: Option<String>,
}

/// The form of a request; none where it does not show.
pub fn of(target: &Target, uri: &Uri, body: &[u8]) -> Option<Form> {
    let signs: Signs = serde_json::from_slice(body).ok()?;
    let told = |kind: bool, proto: bool| match (kind, proto) {
        (true, _) => Some(Form::Kind),
        (false, true) => Some(Form::Proto),
        (false, false) => None,
    };
    match target {
        Target::Send | Target::Stream => {
            let message = signs.message.unwrap_or_default();
            let role = message.role.unwrap_or_default();
            let kind = message.kind.is_some() || message.parts.is_some() || matches!(role.as_str(), "user" | "agent");
            told(kind, message.content.is_some() || signs.request.is_some() || role.starts_with("ROLE_"))
        }
        Target::CreatePush(_) => {
            let proto = signs.parent.is_some() || signs.config.is_some() || signs.name.is_some();
            let proto = proto || old::config_id(uri).is_some();
            told(!proto && (signs.task_id.is_some() || signs.push_config.is_some()), proto)
        }
        Target::Cancel(_) | Target::Subscribe(_) => told(signs.id.is_some(), signs.name.is_some()),
        Target::List
        | Target::Get(_)
        | Target::ListPush(_)
        | Target::GetPush(..)
        | Target::DeletePush(..)
        | Target::ExtendedCard => None,
    }
}

/// Whether a message of 0.3 comes in the envelope of JSON-RPC, as Agno's clients send it to the paths of HTTP+JSON.
pub fn is_json_rpc(dialect: Dialect, target: &Target, body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Envelope {
        #[serde(rename = "jsonrpc")]
        _version: Json,
        #[serde(rename = "method")]
        _method: Json,
    }
    let sends = matches!(target, Target::Send | Target::Stream) && dialect != Dialect::V10;
    sends && serde_json::from_slice::<Envelope>(body).is_ok()
}

/// The form the query asks the answer to be in.
pub fn asked(uri: &Uri) -> Result<Option<Form>, Refusal> {
    let Some((_, form)) = query(uri).find(|(name, _)| name == "form") else { return Ok(None) };
    match &*form {
        "kind" => Ok(Some(Form::Kind)),
        "proto" => Ok(Some(Form::Proto)),
        _ => Err(Refusal::invalid("form", "must be 'kind' or 'proto', the two forms of 0.3, or left out")),
    }
}

/// A message with the members of one form and the role of the other is a mistake to tell.
pub fn check(body: &[u8]) -> Result<(), Refusal> {
    let signs: Signs = serde_json::from_slice(body).unwrap_or_default();
    let message = signs.message.unwrap_or_default();
    if message.content.is_none() || message.kind.is_some() || message.parts.is_some() {
        return Ok(());
    }
    let role = message.role.unwrap_or_default();
    let text = format!(
        "is '{role}', which goes with 'kind' and 'parts'; a message with 'content' is ProtoJSON, and has ROLE_USER there"
    );
    Err(Refusal::invalid("message.role", text))
}

/// How the caller's program calls itself.
pub fn user_agent(headers: &HeaderMap) -> &str {
    headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The form with files as this caller has them.
pub fn of_caller(form: Form, user_agent: &str) -> Form {
    match (form, Files::of_caller(user_agent)) {
        (Form::Proto, Files::Bytes) => Form::ProtoBytes,
        _ => form,
    }
}

/// Callers whose latest body was not in the default form. Programs that share a key are told apart by their names.
#[derive(Default)]
pub struct Forms(Mutex<HashSet<(PrincipalId, String)>>);

impl Forms {
    /// The form to answer in, which is remembered where a body told it.
    pub fn settle(&self, principal: PrincipalId, user_agent: &str, told: Option<Form>) -> Form {
        let caller = (principal, user_agent.chars().take(NAME).collect());
        let mut other = self.0.lock().expect("no panic while holding the forms");
        match told {
            None if other.contains(&caller) => Form::Kind,
            None => DEFAULT,
            Some(form @ (Form::Proto | Form::ProtoBytes)) => {
                other.remove(&caller);
                form
            }
            Some(Form::Kind | Form::Bare) => {
                if other.len() >= REMEMBERED {
                    other.clear();
                }
                other.insert(caller);
                Form::Kind
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT, Form, Forms, Target, asked, check, of};
    use flotilla_core::ids::PrincipalId;

    #[test]
    fn a_body_shows_its_form() {
        let uri = http::Uri::from_static("/v1");
        let send = |body: &str| of(&Target::Send, &uri, body.as_bytes());
        assert_eq!(send(r#"{"message":{"kind":"message","parts":[]}}"#), Some(Form::Kind));
        assert_eq!(send(r#"{"message":{"role":"user"}}"#), Some(Form::Kind));
        assert_eq!(send(r#"{"message":{"role":"ROLE_USER","content":[]}}"#), Some(Form::Proto));
        assert_eq!(send(r#"{"request":{}}"#), Some(Form::Proto));
        assert_eq!(send("{}"), None);
        let push = |body: &str| of(&Target::CreatePush("t".into()), &uri, body.as_bytes());
        assert_eq!(push(r#"{"taskId":"t","pushNotificationConfig":{}}"#), Some(Form::Kind));
        assert_eq!(push(r#"{"name":"tasks/t","pushNotificationConfig":{}}"#), Some(Form::Proto));
        assert_eq!(push(r#"{"parent":"tasks/t","config":{}}"#), Some(Form::Proto));
        assert_eq!(of(&Target::Cancel("t".into()), &uri, br#"{"name":"tasks/t"}"#), Some(Form::Proto));
        assert_eq!(of(&Target::Cancel("t".into()), &uri, b""), None);
    }

    #[test]
    fn what_shows_no_form_is_answered_in_the_callers_latest() {
        let forms = Forms::default();
        let (one, other) = (PrincipalId(1), PrincipalId(2));
        assert_eq!(forms.settle(one, "a", None), DEFAULT);
        assert_eq!(forms.settle(one, "a", Some(Form::Kind)), Form::Kind);
        assert_eq!(forms.settle(one, "a", None), Form::Kind);
        assert_eq!(forms.settle(one, "b", None), DEFAULT, "another program with the same key");
        assert_eq!(forms.settle(other, "a", None), DEFAULT);
        assert_eq!(forms.settle(one, "a", Some(Form::Proto)), Form::Proto);
        assert_eq!(forms.settle(one, "a", None), Form::Proto);
    }

    #[test]
    fn a_query_asks_for_a_form_and_no_other() {
        let of = |path: &'static str| asked(&http::Uri::from_static(path));
        assert_eq!(of("/v1/tasks/x?form=kind"), Ok(Some(Form::Kind)));
        assert_eq!(of("/v1/tasks/x?historyLength=1&form=proto"), Ok(Some(Form::Proto)));
        assert_eq!(of("/v1/tasks/x"), Ok(None));
        assert!(of("/v1/tasks/x?form=xml").unwrap_err().message.contains("'kind' or 'proto'"));
    }

    #[test]
    fn a_role_of_the_other_form_is_told() {
        let refusal = check(br#"{"message":{"role":"user","content":[]}}"#).unwrap_err();
        assert!(refusal.message.contains("ROLE_USER"), "{}", refusal.message);
        assert_eq!(check(br#"{"message":{"role":"user","parts":[],"content":[]}}"#), Ok(()));
        assert_eq!(check(br#"{"message":{"role":"user"}}"#), Ok(()));
    }
}
