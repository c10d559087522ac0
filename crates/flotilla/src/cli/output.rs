//! Standard output: the payload and nothing else. Texts from agents never reach a terminal as commands to it.

use super::failure::Failure;
use super::pretty::pretty;
use flotilla_outbound::net::address;
use std::io::{ErrorKind, Write as _};

/// How results are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
}

impl Format {
    /// `said` is where the name comes from.
    pub fn parse(said: &str, text: &str) -> Result<Self, Failure> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(Failure::usage(format!("{said}: '{text}' is neither text nor json"))),
        }
    }
}

/// A line on standard error. Where it cannot be written nobody can be told so, and the command goes on.
macro_rules! aside {
    ($($words:tt)*) => { $crate::cli::output::put_aside(format_args!($($words)*)) };
}
pub(super) use aside;

pub fn put_aside(words: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr().lock(), "{words}");
}

/// Writes a line at once. A reader that closed its end has seen enough: that is no error. Anything else is one.
pub fn line(text: &str) {
    match write(text) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            aside!("Error: standard output cannot be written to: {error}. Send it elsewhere, or make room.");
            std::process::exit(1);
        }
    }
}

fn write(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush())
}

/// The last line of a command that failed, on one line. Whether anybody reads it or not, the command ends as it would.
pub fn failed(json: &str) {
    if let Err(error) = write(&escape_json(&json.replace(['\n', '\r'], " ")))
        && error.kind() != ErrorKind::BrokenPipe
    {
        aside!("Error: {json}");
    }
}

/// One JSON document, laid out for reading.
pub fn document(json: &str) {
    line(&escape_json(&pretty(json)));
}

/// JSON on one line; the line breaks between its tokens are no part of it.
pub fn compact(json: &str) {
    line(&escape_json(&json.replace(['\n', '\r'], " ")));
}

/// The same JSON: outside its texts there are no such characters. Whoever reads it, so that there is one form to test.
fn escape_json(json: &str) -> String {
    if !json.contains(is_dangerous) {
        return json.to_owned();
    }
    let shown = |c: char| if is_dangerous(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    json.chars().map(shown).collect()
}

/// A document, or, where the caller reads lines, a line.
pub fn object(json: &str, on_one_line: bool) {
    if on_one_line { compact(json) } else { document(json) }
}

/// A word to the person, beside the payload.
pub fn say(text: &str) {
    aside!("{}", escape_controls(&address::shown_in(text)));
}

pub fn warn(text: &str) {
    say(&format!("Warning: {text}"));
}

/// Fields and blocks of the text format: `Label: value`, or a label, indented lines and an empty one.
#[derive(Debug, Default)]
pub struct Text {
    lines: String,
}

impl Text {
    /// A field; an empty value is left out.
    pub fn field(&mut self, label: &str, value: &str) -> &mut Self {
        if !value.is_empty() {
            let value = value.replace(['\n', '\r'], " ");
            self.lines.push_str(&escape_controls(&format!("{label}: {value}")));
            self.lines.push('\n');
        }
        self
    }

    /// A field with an address, what is secret in it masked.
    pub fn address(&mut self, label: &str, value: &str) -> &mut Self {
        self.field(label, &address::shown_in(value))
    }

    /// A block. Its lines are indented, so that none can be taken for a field or for the block's end.
    pub fn block(&mut self, label: &str, content: &str) -> &mut Self {
        self.lines.push_str(&format!("{label}:\n"));
        for content_line in content.lines() {
            self.lines.push_str("  ");
            self.lines.push_str(&escape_controls(content_line));
            self.lines.push('\n');
        }
        self.lines.push('\n');
        self
    }

    /// An empty line between two groups of fields.
    pub fn gap(&mut self) -> &mut Self {
        if !self.lines.is_empty() && !self.lines.ends_with("\n\n") {
            self.lines.push('\n');
        }
        self
    }

    pub fn print(&self) {
        let text = self.lines.strip_suffix('\n').unwrap_or(&self.lines);
        if !text.is_empty() {
            line(text);
        }
    }
}

/// What moves a terminal's cursor, or the order in which what follows is read.
fn is_dangerous(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}');
    turns || (c.is_control() && !matches!(c, '\n' | '\t'))
}

/// Control characters as visible escapes; line breaks and tabs stay.
pub fn escape_controls(text: &str) -> String {
    if !text.contains(is_dangerous) {
        return text.to_owned();
    }
    let shown = |c: char| if is_dangerous(c) { format!("\\u{{{:x}}}", u32::from(c)) } else { c.to_string() };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::{Text, escape_json};

    #[test]
    fn what_turns_text_around_is_escaped() {
        let mut text = Text::default();
        text.field("Name", "a\u{202e}b").block("Text", "\u{2066}x\u{9b}31m\ty");
        assert_eq!(text.lines, "Name: a\\u{202e}b\nText:\n  \\u{2066}x\\u{9b}31m\ty\n\n");
        let json = "{\n  \"a\": \"\u{202e}\u{9b}é\"\n}";
        let escaped = escape_json(json);
        assert_eq!(escaped, "{\n  \"a\": \"\\u202e\\u009bé\"\n}");
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(json), read(&escaped), "the same JSON");
    }

    #[test]
    fn fields_and_blocks_cannot_be_mistaken_for_each_other() {
        let mut text = Text::default();
        text.field("Task", "1").field("Empty", "").field("Name", "a\nState: x");
        text.block("Text", "State: fake\n\n\u{1b}[2J").field("State", "done");
        let expected = "Task: 1\nName: a State: x\nText:\n  State: fake\n  \n  \\u{1b}[2J\n\nState: done\n";
        assert_eq!(text.lines, expected);
    }
}
