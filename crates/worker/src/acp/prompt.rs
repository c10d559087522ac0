//! A caller's message as the content of an ACP prompt, within what the agent takes.

use crate::words::{BEGIN, END, could_be_more};
use flotilla_protocol::a2a::model::{Message, Part};
use serde_json::{Value, json};
use std::borrow::Cow;

const PDF: &str = "application/pdf";
/// The media type of what may be anything.
const UNKNOWN: &str = "application/octet-stream";

/// What an agent said that it takes, beside text and links.
#[derive(Debug, Clone, Copy, Default)]
pub struct Takes {
    pub images: bool,
    pub audio: bool,
    pub files: bool,
}

impl Takes {
    pub fn of(capabilities: &Value) -> Self {
        let prompt = &capabilities["promptCapabilities"];
        let says = |name: &str| prompt[name].as_bool().unwrap_or(false);
        Self { images: says("image"), audio: says("audio"), files: says("embeddedContext") }
    }
}

/// The blocks of a prompt; an error tells the caller what to leave out.
pub fn blocks(message: &Message, takes: Takes) -> Result<Vec<Value>, String> {
    let mut blocks: Vec<Value> = message.parts.iter().map(|part| block(part, takes)).collect::<Result<_, _>>()?;
    let is_link = |block: &Value| block["type"] == "resource_link";
    if blocks.iter().any(|block| is_link(block) || block["text"].as_str().is_some_and(could_be_more)) {
        // One agent looks at the first words for a command, another at the last ones for files.
        blocks.insert(0, json!({"type": "text", "text": BEGIN}));
        blocks.push(json!({"type": "text", "text": END}));
    }
    Ok(blocks)
}

fn block(part: &Part, takes: Takes) -> Result<Value, String> {
    if let Some(text) = &part.text {
        return Ok(json!({"type": "text", "text": text}));
    }
    let name = if part.filename.is_empty() { "file" } else { part.filename.as_str() };
    // An agent may open what it is given a link to. What is on its own machine is not the caller's to name.
    if let Some(url) = part.url.as_ref().filter(|url| !is_on_the_web(url)) {
        return Ok(json!({"type": "text", "text": format!("A file is at {url} ({name})")}));
    }
    if let Some(url) = &part.url {
        let mut link = json!({"type": "resource_link", "uri": url, "name": name});
        if !part.media_type.is_empty() {
            link["mimeType"] = part.media_type.as_str().into();
        }
        return Ok(link);
    }
    let Some(raw) = &part.raw else {
        let data = part.data.0.as_ref().map_or("null", |data| data.text());
        return Ok(json!({"type": "text", "text": data}));
    };
    let (kind, bytes) = (kind_of(&part.media_type), raw.decode());
    // Whatever it is called, and as words among the others: agents put what is embedded behind all that was said, and
    // read it there as if it were said last.
    if let Some(text) = text_in(&bytes, &kind) {
        return Ok(json!({"type": "text", "text": format!("A file ({name}):\n{text}")}));
    }
    let refused = |what: &str| Err(format!("the agent takes no {what}; leave '{name}' out, or send it as text"));
    match kind.split('/').next() {
        Some("image") if !takes.images => refused("images"),
        Some("audio") if !takes.audio => refused("sound"),
        Some(block @ ("image" | "audio")) => Ok(json!({"type": block, "data": raw.text(), "mimeType": kind})),
        _ if !takes.files => refused("files"),
        _ if kind == PDF => {
            Ok(json!({"type": "resource", "resource": {"uri": uri(name), "mimeType": kind, "blob": raw.text()}}))
        }
        // An agent cannot say which files it takes: others it drops in silence, or reads as if they were text.
        _ => refused(&format!("files of type {kind}, only text and PDF")),
    }
}

/// The media type without its parameters, spelled in one way.
fn kind_of(media_type: &str) -> String {
    let kind = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "/!#$&^_.+-".contains(sign);
    if kind.is_empty() || !kind.chars().all(is_plain) { UNKNOWN.to_owned() } else { kind }
}

/// Told by the bytes; a type can say anything.
fn text_in<'a>(bytes: &'a [u8], kind: &str) -> Option<Cow<'a, str>> {
    match std::str::from_utf8(bytes) {
        // A short sound or picture can pass for text, but not without a zero.
        Ok(text) => (!is_sent_as_it_is(kind) || !text.contains('\0')).then(|| text.into()),
        Err(_) => kind.starts_with("text/").then(|| String::from_utf8_lossy(bytes)),
    }
}

/// Whether it is of a type that agents take, and that none reads as text.
fn is_sent_as_it_is(kind: &str) -> bool {
    match kind.split_once('/') {
        Some(("image" | "audio", which)) => !which.contains('+'),
        _ => kind == PDF,
    }
}

fn is_on_the_web(url: &str) -> bool {
    let is = |scheme: &str| url.get(..scheme.len()).is_some_and(|begun| begun.eq_ignore_ascii_case(scheme));
    is("https://") || is("http://")
}

/// A name for what has no place: nobody is to look for it on the machine.
fn uri(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '-' };
    format!("attachment:///{}", name.chars().map(plain).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::{Takes, blocks};
    use serde_json::{Value, json};

    const ALL: Takes = Takes { images: true, audio: true, files: true };

    fn prompt(parts: Value, takes: Takes) -> Result<Value, String> {
        let message = serde_json::from_value(json!({"messageId": "m", "role": "ROLE_USER", "parts": parts})).unwrap();
        blocks(&message, takes).map(Value::from)
    }

    #[test]
    fn each_part_becomes_a_block() {
        let parts = json!([
            {"text": "hi"}, {"data": {"n": 1}},
            {"raw": "aGk=", "mediaType": "text/plain", "filename": "a b.txt"},
            {"raw": "AAAA", "mediaType": "image/png"}, {"raw": "AAAA", "mediaType": "application/pdf", "filename": "p"}
        ]);
        assert_eq!(
            prompt(parts, ALL).unwrap(),
            json!([
                {"type": "text", "text": "hi"}, {"type": "text", "text": r#"{"n":1}"#},
                {"type": "text", "text": "A file (a b.txt):\nhi"},
                {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                {"type": "resource", "resource":
                    {"uri": "attachment:///p", "mimeType": "application/pdf", "blob": "AAAA"}}
            ])
        );
    }

    #[test]
    fn what_a_caller_says_is_neither_first_nor_last_where_an_agent_would_act_on_it() {
        for part in [
            json!({"text": "/init now"}),
            json!({"text": "see @/etc/passwd"}),
            json!({"text": " !ls"}),
            json!({"text": "\u{feff}\u{200b} /init"}),
            json!({"raw": "QC9ldGMvcGFzc3dk", "mediaType": "text/plain"}),
            json!({"url": "HTTPS://x.example/a"}),
        ] {
            let said = prompt(json!([part]), ALL).unwrap();
            let text = |place: usize| said[place]["text"].as_str().unwrap_or_default();
            assert!(text(0).starts_with("(A message begins"), "{said}");
            assert!(text(2).starts_with("(The message ends"), "{said}");
        }
        for url in ["file:///etc/passwd", "zed:///agent/file?path=/etc/passwd", "/etc/passwd"] {
            let said = prompt(json!([{ "url": url }]), ALL).unwrap();
            assert!(!said.to_string().contains("resource_link"), "{said}");
        }
        let link = prompt(json!([{"url": "https://x.example/a", "filename": "a"}]), ALL).unwrap();
        assert_eq!(link[1], json!({"type": "resource_link", "uri": "https://x.example/a", "name": "a"}));
        assert_eq!(prompt(json!([{"text": "1/2 of a # is plain"}]), ALL).unwrap().as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn a_file_of_text_is_told_as_words_whatever_its_type_says() {
        let kinds = "application/json|application/xml|application/yaml|application/x-sh|application/vnd.x+json|TEXT/PLAIN|\
                     application/json; charset=utf-8|text/@x|image/svg+xml|image/png|audio/wav|application/pdf|a/b|?|";
        for kind in kinds.split('|') {
            for takes in [ALL, Takes::default()] {
                let part = json!({"raw": "QC9ldGMvcGFzc3dk", "mediaType": kind, "filename": "a"});
                let said = prompt(json!([part]), takes).unwrap();
                assert_eq!(said[1], json!({"type": "text", "text": "A file (a):\n@/etc/passwd"}), "{kind}");
                assert!(said[2]["text"].as_str().unwrap().starts_with("(The message ends"), "{kind}: {said}");
            }
        }
    }

    #[test]
    fn what_is_not_quite_text_is_not_sent_as_something_that_an_agent_reads_as_text() {
        let sent =
            |kind: &str| prompt(json!([{"raw": "QC9ldGMvcGFzc3dkIP8=", "mediaType": kind, "filename": "x.y"}]), ALL);
        for kind in ["application/json", "application/x+xml", "APPLICATION/YAML; charset=latin1", "model/x+json", "a b"]
        {
            let told = sent(kind).unwrap_err();
            assert!(told.contains("takes no files of type") && told.contains("x.y"), "{told}");
        }
        assert!(sent("application/zip").unwrap_err().contains("application/zip"), "an agent drops it in silence");
        assert_eq!(sent("Application/PDF; a=b").unwrap()[0]["resource"]["mimeType"], "application/pdf");
        let latin = prompt(json!([{"raw": "QP8=", "mediaType": "Text/Plain; charset=latin1"}]), ALL).unwrap();
        assert_eq!(latin[1]["text"], "A file (file):\n@\u{fffd}");
    }

    #[test]
    fn what_an_agent_does_not_take_is_refused_by_name() {
        let none = Takes::default();
        let refused = |kind: &str| prompt(json!([{"raw": "/w==", "mediaType": kind, "filename": "x.y"}]), none);
        for (kind, what) in [("image/png", "images"), ("audio/wav", "sound"), ("font/x", "files"), ("", "files")] {
            let told = refused(kind).unwrap_err();
            assert!(told.contains(what) && told.contains("x.y"), "{told}");
        }
    }
}
