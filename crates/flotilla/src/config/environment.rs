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
        let value = look_up(name).or_else(|| default.map(str::to_owned));
        let Some(value) = value else {
            bail!("line {number}: the environment variable {name} is not set; set it, or write ${{{name}:-default}}")
        };
        // A line break in a value would change the structure of the file.
        if value.contains(['\n', '\r']) {
            bail!("line {number}: the environment variable {name} holds a line break");
        }
        out.push_str(&value);
        filled.values.push((name.to_owned(), value));
        rest = &rest[at + end + 1..];
    }
    out.push_str(rest);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::fill;

    fn filled(text: &str) -> Result<String, String> {
        let filled = fill(text, |name| (name == "PORT").then(|| "7".to_owned()));
        filled.map(|filled| filled.text).map_err(|error| error.to_string())
    }

    #[test]
    fn fills_from_the_environment() {
        assert_eq!(filled("a: ${PORT}\n# ${NOT_READ}\nb: ${X:-d}").as_deref(), Ok("a: 7\n# ${NOT_READ}\nb: d"));
        assert_eq!(filled("a: $${PORT}").as_deref(), Ok("a: ${PORT}"));
        assert!(filled("\na: ${X}").unwrap_err().contains("line 2"));
        assert!(filled("a: ${X").is_err());
    }
}
