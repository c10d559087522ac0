//! Content blocks, shaped like MCP content: the owner's view of what an agent says and does.

use crate::a2a::model::Part;
use crate::wire::{AnyValue, Base64, Json, Object};
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize, Serializer};

/// What a block is. Kinds we do not know are kept, and only the owner sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    Image,
    Audio,
    Resource,
    ResourceLink,
    Data,
    ToolUse,
    ToolResult,
    Thinking,
    RedactedThinking,
    ServerToolUse,
    WebSearchToolResult,
    Progress,
    Usage,
    Unknown,
}

/// Each kind's name on the wire and the members it cannot do without.
const KINDS: [(Kind, &str, &[&str]); 14] = [
    (Kind::Text, "text", &["text"]),
    (Kind::Image, "image", &["data", "mimeType"]),
    (Kind::Audio, "audio", &["data", "mimeType"]),
    (Kind::Resource, "resource", &["resource"]),
    (Kind::ResourceLink, "resource_link", &["uri"]),
    (Kind::Data, "data", &["data"]),
    (Kind::ToolUse, "tool_use", &["id", "name", "input"]),
    (Kind::ToolResult, "tool_result", &["tool_use_id"]),
    (Kind::Thinking, "thinking", &["thinking"]),
    (Kind::RedactedThinking, "redacted_thinking", &["data"]),
    (Kind::ServerToolUse, "server_tool_use", &["id", "name", "input"]),
    (Kind::WebSearchToolResult, "web_search_tool_result", &["tool_use_id", "content"]),
    (Kind::Progress, "progress", &["progress"]),
    (Kind::Usage, "usage", &[]),
];

/// One block, exactly as the agent wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    kind: Kind,
    json: Json,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Media {
    data: String,
    mime_type: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Link {
    uri: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    mime_type: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Embedded {
    #[serde(default)]
    uri: String,
    #[serde(default)]
    mime_type: String,
    text: Option<String>,
    blob: Option<String>,
}

impl Block {
    /// Takes a JSON object with a `type`; a known kind must have its members.
    pub fn new(json: Json) -> Result<Self, String> {
        let value: serde_json::Value = serde_json::from_str(json.text()).map_err(|e| e.to_string())?;
        let name = value.get("type").and_then(|t| t.as_str()).ok_or("a content block needs a \"type\"")?;
        let Some((kind, _, members)) = KINDS.iter().find(|(_, known, _)| *known == name) else {
            return Ok(Self { kind: Kind::Unknown, json });
        };
        if let Some(missing) = members.iter().find(|member| value.get(**member).is_none()) {
            return Err(format!("a content block of type {name} needs \"{missing}\""));
        }
        Ok(Self { kind: *kind, json })
    }

    pub fn text(text: &str) -> Self {
        let json = serde_json::json!({"type": "text", "text": text}).to_string();
        Self { kind: Kind::Text, json: Json::new(json).expect("a serialized value is JSON") }
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn json(&self) -> &Json {
        &self.json
    }

    /// What a peer sees of this block, if anything: text, files and structured data, never how they came about.
    pub fn to_part(&self) -> Option<Part> {
        match self.kind {
            Kind::Text => self.member("text").map(|text: String| Part::text(text)),
            Kind::Image | Kind::Audio => self.whole().and_then(media_part),
            Kind::Resource => self.member("resource").and_then(embedded_part),
            Kind::ResourceLink => self.whole().and_then(link_part),
            Kind::Data => {
                let data: Json = self.member("data")?;
                Some(Part { data: AnyValue(Some(data)), metadata: self.part_metadata(), ..Part::default() })
            }
            _ => None,
        }
    }

    fn whole<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.json.text()).ok()
    }

    fn member<T: serde::de::DeserializeOwned>(&self, name: &str) -> Option<T> {
        let members: std::collections::HashMap<String, Json> = self.whole()?;
        serde_json::from_str(members.get(name)?.text()).ok()
    }

    fn part_metadata(&self) -> Option<Object> {
        self.member("metadata")
    }
}

fn media_part(media: Media) -> Option<Part> {
    let raw = Some(Base64::parse(&media.data).ok()?);
    Some(Part { raw, media_type: media.mime_type, ..Part::default() })
}

/// The name of a file alone: who is asked for it, and what with, may be a secret.
fn file_name(uri: &str) -> &str {
    let whole = uri.split(['?', '#']).next().unwrap_or_default();
    let path = match whole.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None if whole.starts_with("data:") => "",
        None => whole,
    };
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    name.split(';').next().unwrap_or_default()
}

fn embedded_part(resource: Embedded) -> Option<Part> {
    let raw = match (resource.blob, resource.text) {
        (Some(blob), _) => Base64::parse(&blob).ok()?,
        (None, Some(text)) => Base64::encode(text.as_bytes()),
        (None, None) => return None,
    };
    let filename = file_name(&resource.uri).to_owned();
    Some(Part { raw: Some(raw), filename, media_type: resource.mime_type, ..Part::default() })
}

/// Only links a peer could follow are shown: a `file:` path would tell of the owner's machine.
fn link_part(link: Link) -> Option<Part> {
    if !(link.uri.starts_with("https://") || link.uri.starts_with("http://")) {
        return None;
    }
    Some(Part { url: Some(link.uri), filename: link.name, media_type: link.mime_type, ..Part::default() })
}

impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Json::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, Kind};
    use crate::wire::Json;

    fn block(text: &str) -> Result<Block, String> {
        Block::new(Json::new(text.into()).unwrap())
    }

    fn part(text: &str) -> String {
        block(text).unwrap().to_part().map_or("hidden".into(), |p| serde_json::to_string(&p).unwrap())
    }

    #[test]
    fn content_becomes_parts() {
        assert_eq!(part(r#"{"type":"text","text":"hi"}"#), r#"{"text":"hi"}"#);
        assert_eq!(
            part(r#"{"type":"image","data":"AAAA","mimeType":"image/png"}"#),
            r#"{"raw":"AAAA","mediaType":"image/png"}"#
        );
        assert_eq!(
            part(r#"{"type":"resource","resource":{"uri":"mem://a/b.txt","text":"hi","mimeType":"text/plain"}}"#),
            r#"{"raw":"aGk=","filename":"b.txt","mediaType":"text/plain"}"#
        );
        for (uri, name) in [
            ("https://x.example/p.bin?token=s#f", "p.bin"),
            ("https://u:secret@x.example", ""),
            ("https://x.example/a/p.bin;jsessionid=secret", "p.bin"),
            ("data:text/plain,secret", ""),
            (r"C:\\secret\\p.bin", "p.bin"),
        ] {
            let resource = format!(r#"{{"type":"resource","resource":{{"uri":"{uri}","blob":"aGk="}}}}"#);
            let expected = if name.is_empty() { String::new() } else { format!(r#","filename":"{name}""#) };
            assert_eq!(part(&resource), format!(r#"{{"raw":"aGk="{expected}}}"#), "{uri}");
        }
        assert_eq!(
            part(r#"{"type":"resource_link","uri":"https://x.example/y","name":"y"}"#),
            r#"{"url":"https://x.example/y","filename":"y"}"#
        );
        assert_eq!(part(r#"{"type":"data","data":{"n": 1.0}}"#), r#"{"data":{"n": 1.0}}"#);
    }

    #[test]
    fn how_it_came_about_stays_hidden() {
        for hidden in [
            r#"{"type":"tool_use","id":"1","name":"Bash","input":{}}"#,
            r#"{"type":"tool_result","tool_use_id":"1","is_error":true,"content":"text"}"#,
            r#"{"type":"thinking","thinking":"hm"}"#,
            r#"{"type":"usage","input_tokens":1}"#,
            r#"{"type":"hologram","text":"new"}"#,
            r#"{"type":"resource_link","uri":"file:///etc/passwd"}"#,
        ] {
            assert_eq!(part(hidden), "hidden", "{hidden}");
        }
        assert_eq!(block(r#"{"type":"hologram"}"#).unwrap().kind(), Kind::Unknown);
    }

    #[test]
    fn a_known_kind_needs_its_members() {
        assert!(block(r#"{"type":"tool_use","id":"1","input":{}}"#).unwrap_err().contains("\"name\""));
        assert!(block(r#"{"text":"x"}"#).is_err());
    }
}
