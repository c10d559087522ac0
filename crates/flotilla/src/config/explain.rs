//! Errors of the configuration file, with a suggestion where a name was mistyped.

use anyhow::anyhow;

/// The parser's words, and what was probably meant. Only its first line: the rest quotes the file, secrets and all.
pub fn plainly(problem: &str, file: &str) -> anyhow::Error {
    let problem = problem.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let problem = match key_at(problem, file) {
        Some(key) => problem.replacen(": ", &format!(", {key}: "), 1),
        None => problem.to_owned(),
    };
    let problem = in_words(problem);
    match suggestion(&problem) {
        Some(meant) => anyhow!("{problem}\n  did you mean '{meant}'?"),
        None => anyhow!("{problem}"),
    }
}

/// The parser speaks of our types where a value does not fit one.
fn in_words(problem: String) -> String {
    const WORDS: [(&str, &str); 4] = [
        ("invalid u8", "must be a whole number from 0 to 255"),
        ("invalid u16", "must be a whole number from 0 to 65535"),
        ("invalid u32", "must be a whole number from 0 to 4294967295"),
        ("invalid u64", "must be a whole number, 0 or more"),
    ];
    if problem.contains("use Option<") {
        let place = problem.split_once(": ").map_or("", |(place, _)| place);
        return format!("{place}: there is nothing where a text must be; put the word null into quotes if it is meant");
    }
    let known = WORDS.iter().find(|(typed, _)| problem.ends_with(typed));
    known.map_or(problem.clone(), |(typed, words)| problem.replace(typed, words))
}

/// The key whose value is at "line L column C": named instead of quoting the value.
fn key_at(problem: &str, file: &str) -> Option<String> {
    let (line, rest) = problem.strip_prefix("line ")?.split_once(" column ")?;
    let column: usize = rest.split(':').next()?.parse().ok()?;
    let line = line.parse::<usize>().ok()?.checked_sub(1)?;
    let before: String = file.lines().nth(line)?.chars().take(column.checked_sub(1)?).collect();
    let key = before.trim_end().strip_suffix(':')?.rsplit([' ', '{', ',', '"']).next()?;
    (!key.is_empty()).then(|| key.to_owned())
}

/// From "unknown field `x`, expected one of a, b" to the closest of the expected.
fn suggestion(problem: &str) -> Option<String> {
    let first = problem.lines().next()?;
    let (_, rest) = first.split_once("unknown field ").or_else(|| first.split_once("unknown variant "))?;
    let (given, expected) = rest.split_once(", expected ")?;
    let given = given.trim_matches('`');
    let names = expected.trim_start_matches("one of ").split([',', ' ']);
    let names = names.map(|name| name.trim_matches('`')).filter(|name| !name.is_empty());
    let best = names.map(|name| (strsim::damerau_levenshtein(given, name), name)).min()?;
    (best.0 <= 1 + given.len() / 3).then(|| best.1.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{plainly, suggestion};

    #[test]
    fn names_the_key_of_a_wrong_value() {
        let told = plainly("error: line 1 column 15: invalid address\n 1 | secret", "hub: {listen: nowhere}");
        assert_eq!(told.to_string(), "line 1 column 15, listen: invalid address");
        for nowhere in ["line 9 column 9: odd", "line 0 column 1: odd", "line 1 column 0: odd"] {
            assert_eq!(plainly(nowhere, "a: 1").to_string(), nowhere);
        }
    }

    #[test]
    fn suggests_the_closest_name() {
        let problem = "line 2: unknown field `lisen`, expected one of listen, data_dir\n 2 | lisen: 1";
        assert_eq!(suggestion(problem).as_deref(), Some("listen"));
        assert_eq!(suggestion("unknown field `lisen`, expected `listen`").as_deref(), Some("listen"));
        assert_eq!(suggestion("unknown field `zzzzzz`, expected one of `listen`, `data_dir`"), None);
        assert_eq!(suggestion("something else"), None);
    }
}
