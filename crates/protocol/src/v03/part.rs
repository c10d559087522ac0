//! Parts: 1.0 names what a part holds by its member, 0.3 by `kind`.

use super::{Out, V03, Write, carried};
use crate::a2a::model::Part;
use crate::proto03::opaque;
use crate::wire;
use crate::wire::{AnyValue, Base64, Json, Named as _, Object, WireField as _};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde::ser::Serializer;

/// Names a part of 0.3 has already, which nothing unknown may be written under.
const TAKEN: &[&str] = &["kind", "text", "file", "data", "metadata", "filename", "mediaType"];

/// The same where the name and the type stand in the file.
const TAKEN_IN_FILES: &[&str] = &["kind", "text", "file", "data", "metadata"];

wire! {
    /// The file in a file part.
    pub struct File {
        bytes: Option<Base64> = "bytes",
        uri: Option<String> = "uri",
        name: String = "name",
        mime_type: String = "mimeType" | "mime_type",
    }
}

wire! {
    /// Every member a part may have in 0.3, and those 1.0 writes beside.
    pub struct Fields {
        kind: String = "kind",
        /// What `kind` was called before 0.3.
        older_kind: Option<Json> = "type",
        text: Option<String> = "text",
        file: Option<File> = "file",
        data: AnyValue = "data",
        metadata: Option<Object> = "metadata",
        filename: String = "filename",
        media_type: String = "mediaType" | "media_type",
        raw: Option<Base64> = "raw",
        url: Option<String> = "url",
    }
}

impl<'de> Deserialize<'de> for V03<Part> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(Fields::deserialize(deserializer)?).map(V03).map_err(D::Error::custom)
    }
}

fn read(fields: Fields) -> Result<Part, String> {
    let Fields { kind, older_kind, text, file, data, metadata, filename, media_type, raw, url, mut unknown } = fields;
    let named = older_kind.as_ref().and_then(|json| serde_json::from_str::<String>(json.text()).ok());
    let kind = match named {
        Some(named) if kind.is_empty() => named,
        _ => {
            unknown.extend(older_kind.map(|json| ("type".to_owned(), json)));
            kind
        }
    };
    let rest = Part { metadata, filename, media_type, unknown: carried(unknown, Part::NAMES), ..Part::default() };
    // A part without a kind is told by its member, as in 1.0.
    let named = match kind.as_str() {
        "" if text.is_some() => "text",
        "" if file.is_some() => "file",
        "" if !data.is_absent() => "data",
        "" if raw.is_some() || url.is_some() => return Ok(Part { raw, url, ..rest }),
        "" => return Err("needs a kind: text, file or data".into()),
        known => known,
    };
    match named {
        "text" => {
            let text = text.ok_or("of the kind 'text' needs the member 'text'")?;
            Ok(Part { text: Some(text), ..rest })
        }
        "file" => read_file(file.ok_or("of the kind 'file' needs the member 'file'")?, rest),
        "data" if data.0.as_ref().is_none_or(|json| json.text() == "null") => {
            Err("of the kind 'data' needs the member 'data'".into())
        }
        "data" => Ok(with_data(data, rest)),
        other => {
            let shown: String = other.chars().take(40).collect();
            Err(format!("has the kind '{shown}', which is not one of text, file, data"))
        }
    }
}

fn read_file(file: File, rest: Part) -> Result<Part, String> {
    let File { bytes, uri, name, mime_type, .. } = file;
    let filename = if name.is_empty() { rest.filename } else { name };
    let media_type = if mime_type.is_empty() { rest.media_type } else { mime_type };
    match (bytes, uri) {
        (Some(_), Some(_)) => Err("must hold only one of file.bytes and file.uri".into()),
        (None, None) => Err("must hold one of file.bytes and file.uri".into()),
        (raw, url) => Ok(Part { raw, url, filename, media_type, ..rest }),
    }
}

/// In 0.3 data is an object, which may stand for something else. Those who mix dialects send it as it is.
fn with_data(data: AnyValue, mut rest: Part) -> Part {
    match data.0 {
        Some(json) if json.text().starts_with('{') => {
            let (data, metadata) = opaque::unwrap(Object(json), rest.metadata.take());
            Part { data: AnyValue(Some(data)), metadata, ..rest }
        }
        other => Part { data: AnyValue(other), ..rest },
    }
}

impl Write for Part {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        if self.raw.is_some() || self.url.is_some() {
            out.always("kind", "file")?;
            out.always("file", &FileOf(self))?;
            out.put("metadata", &self.metadata)?;
            return out.rest(&self.unknown, TAKEN_IN_FILES);
        }
        if let Some(data) = &self.data.0 {
            out.always("kind", "data")?;
            let (data, metadata) = opaque::wrap(data, self.metadata.as_ref());
            out.always("data", &data)?;
            out.put("metadata", &metadata)?;
        } else {
            out.always("kind", "text")?;
            out.always("text", self.text.as_deref().unwrap_or_default())?;
            out.put("metadata", &self.metadata)?;
        }
        // 0.3 has no place for these; its readers pass over members they do not know.
        out.put("filename", &self.filename)?;
        out.put("mediaType", &self.media_type)?;
        out.rest(&self.unknown, TAKEN)
    }
}

/// The file of a part.
struct FileOf<'a>(&'a Part);

impl serde::Serialize for FileOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        out.put("bytes", &self.0.raw)?;
        out.put("uri", &self.0.url)?;
        out.put("mimeType", &self.0.media_type)?;
        out.put("name", &self.0.filename)?;
        out.rest(&Vec::new(), &[])
    }
}
