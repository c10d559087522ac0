//! Parts and messages of the dialect: `kind`, and file and data flat beside it.

use crate::a2a::error::Refusal;
use crate::a2a::model::{Message, Part, Role};
use crate::decode::message;
use crate::v03::V03;
use crate::wire::{AnyValue, Base64, Json, Object};
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Flat {
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    data: Option<Json>,
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default, alias = "mime_type")]
    mime_type: Option<String>,
    #[serde(default)]
    file: Option<Json>,
    #[serde(default)]
    metadata: Option<Object>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload {
    #[serde(default)]
    message_id: Option<String>,
    #[serde(default)]
    context_id: Option<String>,
    #[serde(default)]
    task_id: Option<String>,
    #[serde(default)]
    parts: Vec<Json>,
    #[serde(default)]
    metadata: Option<Object>,
}

/// Reads a part of this dialect, of 0.3 or of 1.0.
pub(super) fn read_part(json: &Json) -> Result<Part, Refusal> {
    let wrong = |text: &str| Refusal::invalid("parts", text);
    let flat: Flat = message(json.text().as_bytes())?;
    let Flat { name, mime_type, metadata, .. } = flat;
    let part = Part {
        filename: name.unwrap_or_default(),
        media_type: mime_type.unwrap_or_default(),
        metadata,
        ..Part::default()
    };
    match flat.kind.as_deref() {
        Some("text") => {
            let text = flat.text.ok_or_else(|| wrong("a part of kind text must hold a text"))?;
            Ok(Part { text: Some(text), filename: String::new(), ..part })
        }
        Some("file") if flat.file.is_none() => {
            let bytes = flat.data.map(|data| serde_json::from_str::<Base64>(data.text())).transpose();
            let raw = bytes.map_err(|_| wrong("the data of a file must be base64"))?;
            match (raw, flat.uri) {
                (Some(raw), _) => Ok(Part { raw: Some(raw), ..part }),
                (None, Some(uri)) => Ok(Part { url: Some(uri), ..part }),
                (None, None) => Err(wrong("a part of kind file must hold data or a uri")),
            }
        }
        Some("data") => {
            let data = flat.data.ok_or_else(|| wrong("a part of kind data must hold data"))?;
            Ok(Part { data: AnyValue(Some(unquoted(data))), ..part })
        }
        _ => Ok(message::<V03<Part>>(json.text().as_bytes())?.0),
    }
}

/// Structured data comes as JSON in a text; what is no JSON stays the text it is.
fn unquoted(data: Json) -> Json {
    let text = serde_json::from_str::<String>(data.text()).ok();
    text.and_then(|text| Json::new(text).ok()).unwrap_or(data)
}

/// Reads a message; whatever role it claims, whoever sends it is the caller.
pub fn read_message(json: &Json, role: Role) -> Result<Message, Refusal> {
    let payload: Payload = message(json.text().as_bytes())?;
    let parts = payload.parts.iter().map(read_part).collect::<Result<_, _>>()?;
    Ok(Message {
        message_id: payload.message_id.unwrap_or_default(),
        context_id: payload.context_id.unwrap_or_default(),
        task_id: payload.task_id.unwrap_or_default(),
        role,
        parts,
        metadata: payload.metadata,
        ..Message::default()
    })
}

pub(super) fn write_part(part: &Part) -> Value {
    let mut out = Map::new();
    let mut put = |name: &str, value: &str| {
        if !value.is_empty() {
            out.insert(name.to_owned(), value.into());
        }
    };
    if let Some(text) = &part.text {
        put("kind", "text");
        out.insert("text".into(), text.as_str().into());
    } else if let Some(data) = &part.data.0 {
        put("kind", "data");
        put("mimeType", if part.media_type.is_empty() { "application/json" } else { &part.media_type });
        out.insert("data".into(), data.text().into());
    } else {
        put("kind", "file");
        put("name", &part.filename);
        put("mimeType", &part.media_type);
        if let Some(raw) = &part.raw {
            put("data", raw.text());
        }
        if let Some(url) = &part.url {
            put("uri", url);
        }
    }
    if let Some(metadata) = &part.metadata {
        out.insert("metadata".into(), opaque(&metadata.0));
    }
    Value::Object(out)
}

pub(super) fn opaque(json: &Json) -> Value {
    serde_json::from_str(json.text()).unwrap_or(Value::Null)
}

/// A message as a client of the dialect reads it.
pub fn payload(message: &Message) -> Value {
    let role = if message.role == Role::Agent { "agent" } else { "user" };
    let parts: Vec<Value> = message.parts.iter().map(write_part).collect();
    let mut out = json!({"role": role, "parts": parts, "messageId": message.message_id});
    if let Some(metadata) = &message.metadata {
        out["metadata"] = opaque(&metadata.0);
    }
    out
}

/// The texts of a message, which is all its clients take of one that comes with a status.
pub(super) fn text_of(message: &Message) -> String {
    let texts: Vec<&str> = message.parts.iter().filter_map(|part| part.text.as_deref()).collect();
    texts.join("\n")
}
