//! Paths, queries and bodies of HTTP+JSON as 0.3 has them, in either form, as requests.

use super::decode::{from_body, from_query, same, tenant};
use super::form;
use super::path::Target;
use crate::parameters::query;
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::request::{CancelTaskRequest, PushConfig, Request, SendMessageRequest};
use flotilla_protocol::proto03::file::Files;
use flotilla_protocol::proto03::{json as proto, name};
use flotilla_protocol::v03::push::Bare;
use flotilla_protocol::v03::request::named;
use flotilla_protocol::v03::{Form, V03};
use flotilla_protocol::wire;
use flotilla_protocol::wire::Object;
use http::Uri;

wire! {
    /// What a cancel may say in either form.
    pub struct Cancel {
        /// No field of 0.3, but whoever names an agent means it.
        tenant: String = "tenant",
        id: String = "id",
        name: String = "name",
        metadata: Option<Object> = "metadata",
    }
}

wire! {
    /// Whether a config stands in something, or is all there is.
    pub struct Place {
        config: Option<wire::Json> = "pushNotificationConfig" | "push_notification_config",
    }
}

pub fn request(form: Form, target: &Target, uri: &Uri, body: &[u8]) -> Result<Request, Refusal> {
    Ok(match target {
        Target::Send => Request::SendMessage(send(form, uri, body)?),
        Target::Stream => Request::SendStreamingMessage(send(form, uri, body)?),
        Target::List => {
            let V03(request) = from_query(uri, &[])?;
            Request::ListTasks(request)
        }
        Target::Cancel(id) => Request::CancelTask(cancel(id, uri, body)?),
        Target::CreatePush(id) => Request::CreatePushConfig(create(form, id, uri, body)?),
        // What is in the path and the query has the same names in both versions.
        Target::Get(_)
        | Target::Subscribe(_)
        | Target::ListPush(_)
        | Target::GetPush(..)
        | Target::DeletePush(..)
        | Target::ExtendedCard => super::decode::request(target, uri, b"")?,
    })
}

fn send(form: Form, uri: &Uri, body: &[u8]) -> Result<SendMessageRequest, Refusal> {
    let mut request = match form {
        Form::Kind | Form::Bare => {
            form::check(body)?;
            from_body::<V03<SendMessageRequest>>(body)?.0
        }
        Form::Proto => proto::read_send(whole(body), Files::Text)?,
        Form::ProtoBytes => proto::read_send(whole(body), Files::Bytes)?,
    };
    tenant(uri, &mut request.tenant);
    Ok(request)
}

/// No body at all says as much as an empty object.
fn whole(body: &[u8]) -> &[u8] {
    if body.is_empty() { b"{}" } else { body }
}

fn cancel(id: &str, uri: &Uri, body: &[u8]) -> Result<CancelTaskRequest, Refusal> {
    let said: Cancel = from_body(body)?;
    let mut named = said.id;
    if !said.name.is_empty() {
        name::task("name", &said.name)?.clone_into(&mut named);
    }
    same("id", id, &mut named)?;
    let mut request =
        CancelTaskRequest { tenant: said.tenant, id: named, metadata: said.metadata, ..Default::default() };
    tenant(uri, &mut request.tenant);
    Ok(request)
}

/// The id of a config beside its body, as the proto file's annotations have it.
pub fn config_id(uri: &Uri) -> Option<String> {
    let mut named = query(uri).filter(|(name, _)| matches!(&**name, "configId" | "config_id"));
    named.next().map(|(_, id)| id.into_owned()).filter(|id| !id.is_empty())
}

fn create(form: Form, id: &str, uri: &Uri, body: &[u8]) -> Result<PushConfig, Refusal> {
    let mut config = match form {
        Form::Proto | Form::ProtoBytes => proto::read_create_push(id, whole(body))?,
        Form::Kind | Form::Bare => {
            let place: Place = from_body(body)?;
            if place.config.is_some() {
                from_body::<V03<PushConfig>>(body)?.0
            } else {
                let V03(Bare(config)) = from_body(body)?;
                config
            }
        }
    };
    same("taskId", id, &mut config.task_id)?;
    if let Some(asked) = config_id(uri) {
        if !config.id.is_empty() && config.id != asked {
            let text = format!("is '{asked}' in the query, but '{}' in the body", config.id);
            return Err(Refusal::invalid("configId", text));
        }
        config.id = asked;
    }
    tenant(uri, &mut config.tenant);
    Ok(named(config))
}
