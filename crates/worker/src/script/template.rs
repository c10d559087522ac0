//! Texts with placeholders, and JSON whose strings are such texts.

use flotilla_protocol::work::Assignment;
use serde_json::Value;

/// What placeholders stand for at one moment of a run.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub assignment: &'a Assignment,
    /// Which time this is, within chunks or a repeat.
    pub n: u64,
}

impl Scene<'_> {
    /// The message's first text, or nothing.
    pub fn text(&self) -> &str {
        first_text(self.assignment)
    }
}

pub(super) fn first_text(assignment: &Assignment) -> &str {
    assignment.message.parts.iter().find_map(|part| part.text.as_deref()).unwrap_or_default()
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Placeholder {
    Text,
    MessageId,
    Turn,
    TaskId,
    ContextId,
    N,
    /// The nth word of the text, from 1.
    Word(usize),
}

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Literal(String),
    Value(Placeholder),
}

/// A text in which `{…}` stands for something known only when a message is there.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Template(Vec<Piece>);

impl Template {
    pub fn parse(source: &str, counted: bool) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = source;
        while let Some(open) = rest.find('{') {
            literal.push_str(&rest[..open]);
            rest = &rest[open..];
            if let Some(name) = doubly_braced(rest) {
                literal.push_str(&rest[1..name.len() + 3]);
                rest = &rest[name.len() + 4..];
            } else if let Some(name) = braced(rest) {
                if !literal.is_empty() {
                    pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                }
                pieces.push(Piece::Value(placeholder(name, counted)?));
                rest = &rest[name.len() + 2..];
            } else {
                // A brace that opens no placeholder, as in JSON, is just a brace.
                literal.push('{');
                rest = &rest[1..];
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Self(pieces))
    }

    pub fn is_fixed(&self) -> bool {
        !self.0.iter().any(|piece| matches!(piece, Piece::Value(_)))
    }

    pub fn render(&self, scene: Scene<'_>) -> String {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => out.push_str(text),
                Piece::Value(Placeholder::Text) => out.push_str(scene.text()),
                Piece::Value(Placeholder::MessageId) => out.push_str(&scene.assignment.message.message_id),
                Piece::Value(Placeholder::Turn) => out.push_str(&scene.assignment.turn.to_string()),
                Piece::Value(Placeholder::TaskId) => out.push_str(&scene.assignment.task_id),
                Piece::Value(Placeholder::ContextId) => out.push_str(&scene.assignment.context_id),
                Piece::Value(Placeholder::N) => out.push_str(&scene.n.to_string()),
                Piece::Value(Placeholder::Word(nth)) => {
                    out.push_str(scene.text().split_whitespace().nth(nth - 1).unwrap_or_default());
                }
            }
        }
        out
    }
}

/// The name in `{name}` at the start of a text, if that is what stands there.
fn braced(text: &str) -> Option<&str> {
    let body = text.strip_prefix('{')?;
    let name = &body[..body.find('}')?];
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    is_name.then_some(name)
}

/// The name in `{{name}}`, which means the text `{name}`.
fn doubly_braced(text: &str) -> Option<&str> {
    let name = braced(text.strip_prefix('{')?)?;
    text[name.len() + 3..].starts_with('}').then_some(name)
}

fn placeholder(name: &str, counted: bool) -> Result<Placeholder, String> {
    Ok(match name {
        "text" => Placeholder::Text,
        "message_id" => Placeholder::MessageId,
        "turn" => Placeholder::Turn,
        "task_id" => Placeholder::TaskId,
        "context_id" => Placeholder::ContextId,
        "n" if counted => Placeholder::N,
        "n" => return Err("{n} has a meaning only inside chunks and repeat".into()),
        _ => match name.parse::<usize>() {
            Ok(nth) if nth > 0 => Placeholder::Word(nth),
            _ => {
                return Err(format!(
                    "{{{name}}} is no placeholder; there are {{text}}, {{message_id}}, {{turn}}, {{task_id}}, \
                     {{context_id}}, {{n}} and words from {{1}} on (write {{{{{name}}}}} for the text itself)"
                ));
            }
        },
    })
}

/// JSON whose strings may hold placeholders.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tree {
    Fixed(Value),
    Text(Template),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

impl Tree {
    pub fn parse(value: &Value, counted: bool) -> Result<Self, String> {
        Ok(match value {
            Value::String(text) => Self::Text(Template::parse(text, counted)?),
            Value::Array(items) => {
                Self::List(items.iter().map(|item| Self::parse(item, counted)).collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let tree = |(name, value): (&String, _)| Ok((name.clone(), Self::parse(value, counted)?));
                Self::Map(members.iter().map(tree).collect::<Result<_, String>>()?)
            }
            other => Self::Fixed(other.clone()),
        })
    }

    pub fn render(&self, scene: Scene<'_>) -> Value {
        match self {
            Self::Fixed(value) => value.clone(),
            Self::Text(text) => Value::String(text.render(scene)),
            Self::List(items) => items.iter().map(|item| item.render(scene)).collect(),
            Self::Map(members) => members.iter().map(|(name, tree)| (name.clone(), tree.render(scene))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Scene, Template, Tree};
    use flotilla_protocol::a2a::model::{Message, Part};
    use flotilla_protocol::lineage::{Ancestor, Lineage, SpanId, Trace, TraceId};
    use flotilla_protocol::time::Millis;
    use flotilla_protocol::work::{Assignment, Trail};
    use std::sync::Arc;

    fn assignment() -> Assignment {
        let parts = vec![Part { url: Some("u".into()), ..Part::default() }, Part::text("chunks  10 now")];
        Assignment {
            task_id: "t".into(),
            context_id: "c".into(),
            run: 1,
            caller: 1,
            turn: 3,
            message: Arc::new(Message { message_id: "m".into(), parts, ..Message::default() }),
            accepted_output_modes: Vec::new(),
            metadata: None,
            asked_at: Millis(0),
            from: String::new(),
            ttl: None,
            watched: true,
            max_cost_usd: None,
            trail: Trail::default(),
            lineage: Lineage {
                here: Ancestor { hub: "h".into(), agent: "a".into(), task: "t".into() },
                origin: None,
                deadline: None,
                trace: Trace::begun(TraceId::of([1; 16]).unwrap(), SpanId::of(1).unwrap()),
            },
        }
    }

    fn render(source: &str) -> Result<String, String> {
        let assignment = assignment();
        Template::parse(source, true).map(|template| template.render(Scene { assignment: &assignment, n: 7 }))
    }

    #[test]
    fn placeholders_stand_for_what_came() {
        let all = "{text}|{message_id}|{turn}|{task_id}|{context_id}|{n}|{1}|{2}|{9}|";
        assert_eq!(render(all).as_deref(), Ok("chunks  10 now|m|3|t|c|7|chunks|10||"));
        assert_eq!(render("plain").as_deref(), Ok("plain"));
        assert_eq!(render("").as_deref(), Ok(""));
    }

    #[test]
    fn other_braces_are_just_braces() {
        for same in [r#"{"a": {"b": 1}}"#, "{", "}", "{}", "{ text }", "{Text}", "{{", "a { b"] {
            assert_eq!(render(same).as_deref(), Ok(same));
        }
        assert_eq!(render("{{text}} is {1}").as_deref(), Ok("{text} is chunks"));
        assert_eq!(render("{{text} {{no}}").as_deref(), Ok("{chunks  10 now {no}"));
    }

    #[test]
    fn unknown_placeholders_are_errors() {
        assert!(render("{txet}").unwrap_err().starts_with("{txet} is no placeholder"));
        assert!(render("{txet}").unwrap_err().contains("write {{txet}} for the text itself"));
        assert!(render("{0}").is_err());
        assert!(Template::parse("{n}", false).unwrap_err().contains("only inside chunks and repeat"));
    }

    #[test]
    fn every_string_of_a_tree_is_a_template() {
        let assignment = assignment();
        let value = serde_json::json!({"a": ["{1}", 1, null], "b": {"{1}": "{2}"}});
        let tree = Tree::parse(&value, false).unwrap();
        let expected = serde_json::json!({"a": ["chunks", 1, null], "b": {"{1}": "10"}});
        assert_eq!(tree.render(Scene { assignment: &assignment, n: 0 }), expected);
    }
}
