//! `${NAME}` and `${NAME:-default}` in the configuration, filled from the environment.

use anyhow::{Result, bail};

/// The text with its references filled, and what they were filled with.
#[derive(Default)]
pub struct Filled {
    pub text: String,
    values: Vec<(String, String)>,
}

impl Filled {
    /// Puts the references back in the place of their values: an error must not tell a secret.
    pub fn mask(&self, problem: &str) -> String {
        let mut masked = problem.to_owned();
        for (name, value) in self.values.iter().filter(|(_, value)| value.len() > 3) {
            masked = masked.replace(value, &format!("${{{name}}}"));
        }
        masked
    }
}

/// Fills references line by line, so that later errors still name the right line. `$${` is a literal `${`.
pub fn fill(text: &str, look_up: impl Fn(&str) -> Option<String>) -> Result<Filled> {
    let mut filled = Filled::default();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if line.trim_start().starts_with('#') {
            filled.text.push_str(line);
        } else {
            fill_line(line, index + 1, &look_up, &mut filled)?;
        }
    }
    Ok(filled)
}

fn fill_line(line: &str, number: usize, look_up: &impl Fn(&str) -> Option<String>, filled: &mut Filled) -> Result<()> {
    let out = &mut filled.text;
    let mut rest = line;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            out.push_str(&rest[..at - 1]);
            out.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        out.push_str(&rest[..at]);
        let Some(end) = rest[at..].find('}') else { bail!("line {number}: '${{' without a closing '}}'") };
        let reference = &rest[at + 2..at + end];
        let (name, default) = reference.split_once(":-").map_or((reference, None), |(n, d)| (n, Some(d)));
        // As in a shell: a default stands for an empty one too.
        let known = look_up(name).filter(|value| default.is_none() || !value.is_empty());
        let value = known.or_else(|| default.map(str::to_owned));
        let Some(value) = value else {
            bail!("line {number}: the environment variable {name} is not set; set it, or write ${{{name}:-default}}")
        };
        // A line break in a value would change the structure of the file.
        if value.contains(['\n', '\r']) {
            bail!("line {number}: the environment variable {name} holds a line break");
        }
        let (before, after) = (&line[..line.len() - rest.len() + at], &rest[at + end + 1..]);
        let Some(written) = written(&value, before, after) else {
            bail!(
                "line {number}: the environment variable {name} holds signs that mean something to YAML; put quotes \
                 around the whole value"
            )
        };
        out.push_str(&written);
        filled.values.push((name.to_owned(), value));
        rest = after;
    }
    out.push_str(rest);
    Ok(())
}

/// A value as it stands in the file, between what is before and after it on its line: it stays one value, whatever it
/// holds. None where it would need quotes around more than itself.
fn written(value: &str, before: &str, after: &str) -> Option<String> {
    match quote(before) {
        Some('"') => Some(value.replace('\\', "\\\\").replace('"', "\\\"")),
        Some(_) => Some(value.replace('\'', "''")),
        None if is_plain(value) => Some(value.to_owned()),
        None if is_alone(before, after) => Some(format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))),
        None => None,
    }
}

/// The quote that is open at the end of this beginning of a line.
fn quote(before: &str) -> Option<char> {
    let (mut open, mut escaped) = (None, false);
    for sign in before.chars() {
        match open {
            Some('"') if escaped => escaped = false,
            Some('"') if sign == '\\' => escaped = true,
            Some(quote) if sign == quote => open = None,
            Some(_) => {}
            None => open = matches!(sign, '"' | '\'').then_some(sign),
        }
    }
    open
}

/// Whether it reads the same without quotes: numbers, switches, times, names, paths and addresses do.
fn is_plain(value: &str) -> bool {
    let is_sign = |sign: char| sign.is_alphanumeric() || "_./:@+-=%~ ".contains(sign);
    let begins = |first: char| first.is_alphanumeric() || "_./+-".contains(first);
    value.chars().all(is_sign)
        && value.starts_with(begins)
        && !value.starts_with("- ")
        && !value.contains(": ")
        && !value.ends_with([':', ' '])
}

/// Whether nothing else belongs to the value.
fn is_alone(before: &str, after: &str) -> bool {
    let (before, after) = (before.trim_end_matches(' '), after.trim_start());
    let is_begun = before.is_empty() || before.ends_with([':', '-', '[', ',', '{']);
    is_begun && (after.is_empty() || after.starts_with([',', ']', '}', '#']))
}

#[cfg(test)]
mod tests {
    use super::fill;

    fn filled(text: &str) -> Result<String, String> {
        let filled = fill(text, |name| (name == "PORT").then(|| "7".to_owned()));
        filled.map(|filled| filled.text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_value_stays_one_value_whatever_it_holds() {
        let filled = |text: &str, value: &str| {
            let filled = fill(text, |_| Some(value.to_owned()));
            filled.map(|filled| filled.text).map_err(|error| error.to_string())
        };
        for (text, value, expected) in [
            ("a: ${X}", "abc #def", "a: \"abc #def\""),
            ("a: ${X} # why", "x: y", "a: \"x: y\" # why"),
            ("{a: ${X}, b: 1}", "x, c: 2", "{a: \"x, c: 2\", b: 1}"),
            ("a: \"k ${X}\"", r#"q"\"#, r#"a: "k q\"\\""#),
            ("a: '${X}'", "it's", "a: 'it''s'"),
            ("a: ${X}", "", "a: \"\""),
            ("a: ${X:-d}", "", "a: d"),
            ("a: ${X}", "127.0.0.1:80", "a: 127.0.0.1:80"),
            ("a: ${X}", "-5", "a: -5"),
            ("a: http://${X}/b", "h:1", "a: http://h:1/b"),
        ] {
            assert_eq!(filled(text, value).as_deref(), Ok(expected), "{text}");
        }
        assert!(filled("a: b ${X}", "c #d").unwrap_err().contains("quotes around the whole value"));
    }

    #[test]
    fn fills_from_the_environment() {
        assert_eq!(filled("a: ${PORT}\n# ${NOT_READ}\nb: ${X:-d}").as_deref(), Ok("a: 7\n# ${NOT_READ}\nb: d"));
        assert_eq!(filled("a: $${PORT}").as_deref(), Ok("a: ${PORT}"));
        assert!(filled("\na: ${X}").unwrap_err().contains("line 2"));
        assert!(filled("a: ${X").is_err());
    }
}
