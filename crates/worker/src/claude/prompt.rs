//! A caller's message as Claude Code takes it on standard input.

use crate::words::{END, could_be_more};
use flotilla_protocol::a2a::model::{Message, Part};
use serde_json::{Value, json};

/// Images the model can look at.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The line that says what the caller said. An error is for the caller: what cannot be passed on.
pub fn user_line(message: &Message, uuid: &str) -> Result<String, String> {
    let mut content: Vec<Value> = message.parts.iter().map(block).collect::<Result<_, _>>()?;
    if content.is_empty() {
        return Err("The message has no parts. Say in a text part what is to be done.".into());
    }
    // Claude Code acts on the last text it is given, so that is one of ours.
    if content.iter().any(|block| block["text"].as_str().is_some_and(could_be_more)) {
        content.push(json!({"type": "text", "text": END}));
    }
    let frame = json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": content}});
    Ok(format!("{frame}\n"))
}

fn block(part: &Part) -> Result<Value, String> {
    let text = |text: String| json!({"type": "text", "text": text});
    if let Some(said) = &part.text {
        return Ok(text(said.clone()));
    }
    if let Some(data) = &part.data.0 {
        return Ok(text(format!("Data:\n{}", data.text())));
    }
    if let Some(url) = &part.url {
        return Ok(text(format!("A file is at {url}{}", named(part))));
    }
    let Some(raw) = &part.raw else { return Err("A part of the message is empty. Leave it out.".into()) };
    let media = part.media_type.as_str();
    let source = json!({"type": "base64", "media_type": media, "data": raw.text()});
    if IMAGES.contains(&media) {
        return Ok(json!({"type": "image", "source": source}));
    }
    if media == "application/pdf" {
        return Ok(json!({"type": "document", "source": source}));
    }
    match String::from_utf8(raw.decode()) {
        Ok(written) => Ok(text(format!("A file{}:\n{written}", named(part)))),
        Err(_) => Err(format!(
            "The agent takes texts, images ({}) and application/pdf, not {}. Send one of those, or a URL.",
            IMAGES.join(", "),
            if media.is_empty() { "a file of no said type" } else { media }
        )),
    }
}

fn named(part: &Part) -> String {
    if part.filename.is_empty() { String::new() } else { format!(" ({})", part.filename) }
}

#[cfg(test)]
mod tests {
    use super::user_line;
    use flotilla_protocol::a2a::model::{Message, Part};
    use flotilla_protocol::wire::Base64;

    fn line(part: Part) -> Result<String, String> {
        user_line(&Message { parts: vec![part], ..Message::default() }, "u")
    }

    fn file(media_type: &str, bytes: &[u8]) -> Part {
        let (raw, filename) = (Some(Base64::encode(bytes)), "f".into());
        Part { raw, filename, media_type: media_type.into(), ..Part::default() }
    }

    #[test]
    fn parts_become_what_the_model_can_read() {
        let said = line(Part::text("--help\nx")).unwrap();
        assert!(said.ends_with('\n') && said.matches('\n').count() == 1, "one line: {said}");
        assert!(said.contains(r#""text":"--help\nx""#));
        assert!(line(file("image/png", &[0, 255])).unwrap().contains(r#""media_type":"image/png""#));
        assert!(line(file("text/plain", b"hi")).unwrap().contains(r"A file (f):\nhi"));
        let refused = line(file("audio/wav", &[0, 255])).unwrap_err();
        assert!(refused.contains("not audio/wav") && refused.contains("image/png"), "{refused}");
        assert!(user_line(&Message::default(), "u").is_err());
    }

    #[test]
    fn what_a_caller_says_is_never_the_last_text_where_the_program_would_act_on_it() {
        for text in ["@/etc/passwd what", "see (@~/x)", "/clear", "\n /help me", "!ls", "# note"] {
            let said: serde_json::Value = serde_json::from_str(&line(Part::text(text)).unwrap()).unwrap();
            let content = said["message"]["content"].as_array().unwrap();
            assert_eq!((content.len(), content[0]["text"].as_str()), (2, Some(text)), "its words stay as they are");
            assert!(content[1]["text"].as_str().unwrap().starts_with("(The message ends here."));
        }
        assert!(!line(Part::text("1/2 of a # is plain")).unwrap().contains("ends here"));
        assert!(line(file("text/plain", b"@x")).unwrap().contains("ends here"), "a file is no way around it");
    }
}
