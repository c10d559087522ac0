//! Errors of the configuration file, with a suggestion where a name was mistyped.

use super::limits::range;
use anyhow::anyhow;

/// The parser's words, and what was probably meant. Only its first line: the rest quotes the file, secrets and all.
pub fn plainly(problem: &str, file: &str) -> anyhow::Error {
    let problem = problem.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let key = key_at(problem, file);
    let range = key.as_ref().and_then(|key| (section_at(problem, file)? == "limits").then(|| range(key))?);
    let problem = match key {
        Some(key) => problem.replacen(": ", &format!(", {key}: "), 1),
        None => problem.to_owned(),
    };
    let problem = in_words(problem, range);
    match suggestion(&problem) {
        Some(meant) => anyhow!("{problem}\n  did you mean '{meant}'?"),
        None => anyhow!("{problem}"),
    }
}

/// The parser speaks of our types where a value does not fit one.
fn in_words(problem: String, range: Option<String>) -> String {
    const WORDS: [(&str, &str); 9] = [
        ("expected mapping start", "must hold keys, each with its value: 'key: value'"),
        ("expected sequence start", "must be a list: [a, b]"),
        ("expected string scalar", "must be one value, and no list and no keys"),
        ("invalid boolean", "must be true or false"),
        ("invalid i32", "must be a whole number"),
        ("invalid u8", "must be a whole number from 0 to 255"),
        ("invalid u16", "must be a whole number from 0 to 65535"),
        ("invalid u32", "must be a whole number from 0 to 4294967295"),
        ("invalid u64", "must be a whole number, 0 or more"),
    ];
    if problem.contains("use Option<") {
        let place = problem.split_once(": ").map_or("", |(place, _)| place);
        return format!("{place}: there is nothing where a text must be; put the word null into quotes if it is meant");
    }
    if let Some((place, rest)) = problem.split_once("duplicate mapping key: ") {
        let key = rest.split(", set ").next().unwrap_or_default();
        return format!("{place}the key '{key}' is there a second time: remove one, or join them");
    }
    let Some((typed, words)) = WORDS.iter().find(|(typed, _)| problem.ends_with(typed)) else { return problem };
    // The range of our own is narrower than that of the type: told now, it is met in one go.
    let range = range.filter(|_| words.contains("whole number")).map(|range| format!("must be a whole number {range}"));
    problem.replace(typed, range.as_deref().unwrap_or(words))
}

/// The section of the file that "line L" is in.
fn section_at<'a>(problem: &str, file: &'a str) -> Option<&'a str> {
    let line: usize = problem.strip_prefix("line ")?.split(' ').next()?.parse().ok()?;
    let is_section = |line: &&str| line.starts_with(|first: char| first.is_alphabetic());
    file.lines().take(line).filter(is_section).last()?.split(':').next()
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
    fn what_is_wrong_is_told_in_our_words_and_with_the_range() {
        let told = |file: &str| crate::config::Config::parse(file).expect_err(file).to_string();
        for (file, words) in [
            ("agents: [1]", "line 1 column 9, agents: must hold keys, each with its value: 'key: value'"),
            ("hub: {allowed_hosts: 1}", "line 1 column 22, allowed_hosts: must be a list: [a, b]"),
            ("limits: {body: [1]}", "line 1 column 16, body: must be one value, and no list and no keys"),
            ("hub: {allow_anonymous: 3}", "line 1 column 24, allow_anonymous: must be true or false"),
            ("limits: {body: x}", "line 1 column 16, body: must be a whole number between 1024 and 1073741824"),
            ("hub:\n  name: a\nlimits:\n  page: x", "line 4 column 9, page: must be a whole number between 1 and 100"),
            ("sockets:\n  window: x", "line 2 column 11, window: must be a whole number, 0 or more"),
        ] {
            assert_eq!(told(file), words);
        }
        let twice = told("limits: {body: 2048}\nhub: {}\nlimits: {body: 4096}");
        assert_eq!(twice, "line 3 column 1: the key 'limits' is there a second time: remove one, or join them");
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
