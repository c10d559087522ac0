//! Regular expressions of schemas: read as JSON Schema means them, and matched within bounds.

use fancy_regex::{Regex, RegexBuilder};

/// The longest pattern, the most memory one may take, and how often it may go back to try another way.
const LONGEST: usize = 2_000;
const MEMORY: usize = 1024 * 1024;
const WAYS: usize = 10_000;

/// A pattern that can be held against a text; the error says what to do about one that cannot.
pub(super) fn compiled(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > LONGEST {
        return Err(format!("a pattern may be {LONGEST} bytes long; write it more simply"));
    }
    let mut builder = RegexBuilder::new(&translated(pattern));
    let built = builder.backtrack_limit(WAYS).delegate_size_limit(MEMORY).build();
    built.map_err(|_| format!("the pattern '{pattern}' cannot be matched here; write it more simply"))
}

/// Whether it may have to go back: it looks around, or for what it has seen before. All others take time by length alone.
pub(super) fn tries_ways(pattern: &str) -> bool {
    let looks = ["(?=", "(?!", "(?<", "(?>", "\\k", "\\K", "\\G"].iter().any(|sign| pattern.contains(sign));
    looks || pattern.as_bytes().windows(2).any(|pair| pair[0] == b'\\' && pair[1].is_ascii_digit())
}

/// Digits and letters of words are those of ASCII (ECMA-262), and not of all scripts.
fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('d') => out.push_str("[0-9]"),
            Some('D') => out.push_str("[^0-9]"),
            Some('w') => out.push_str("[0-9A-Za-z_]"),
            Some('W') => out.push_str("[^0-9A-Za-z_]"),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::compiled;

    #[test]
    fn patterns_are_read_as_schemas_mean_them() {
        let email = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$";
        for (pattern, text, matches) in [
            ("a+", "xaay", true),
            (r"^\d{3}$", "123", true),
            (r"^\d$", "\u{665}", false),
            (r"^[\w/]+$", "a_9/b", true),
            (r"^[^\W]$", "é", false),
            (r"^a\/b$", "a/b", true),
            (email, "ada@example.org", true),
            (email, "ada..b@example.org", false),
        ] {
            assert_eq!(compiled(pattern).unwrap().is_match(text).unwrap(), matches, "{pattern} {text}");
        }
        for wrong in ["(", "a".repeat(2_001).as_str(), "(a{1000}){1000}"] {
            assert!(compiled(wrong).unwrap_err().contains("more simply"), "{wrong}");
        }
        let slow = compiled(r"^(a*)*\1(?=b)c$").unwrap().is_match(&"a".repeat(5_000));
        assert!(!slow.unwrap_or(false), "it ends, whatever it is");
    }
}
