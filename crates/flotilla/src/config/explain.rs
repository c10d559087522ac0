//! Errors of the configuration file, with a suggestion where a name was mistyped.

use anyhow::anyhow;

/// The parser's words, and what was probably meant.
pub fn plainly(problem: &str) -> anyhow::Error {
    match suggestion(problem) {
        Some(meant) => anyhow!("{problem}\n  did you mean '{meant}'?"),
        None => anyhow!("{problem}"),
    }
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
    use super::suggestion;

    #[test]
    fn suggests_the_closest_name() {
        let problem = "line 2: unknown field `lisen`, expected one of listen, data_dir\n 2 | lisen: 1";
        assert_eq!(suggestion(problem).as_deref(), Some("listen"));
        assert_eq!(suggestion("unknown field `lisen`, expected `listen`").as_deref(), Some("listen"));
        assert_eq!(suggestion("unknown field `zzzzzz`, expected one of `listen`, `data_dir`"), None);
        assert_eq!(suggestion("something else"), None);
    }
}
