//! Rules for any text file: no trailing space, no path that exists on one machine only.

use super::Finding;
use super::tree::File;

pub fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    if is_generated(&file.path) {
        return findings;
    }
    for (index, line) in file.text.lines().enumerate() {
        if line.ends_with([' ', '\t']) {
            findings.push(Finding::new(&file.path, index + 1, "remove the space at the end of the line"));
        }
        if let Some(path) = machine_path(line) {
            let text = format!("'{path}' exists on one machine only: say it relative to the repository");
            findings.push(Finding::new(&file.path, index + 1, text));
        }
    }
    findings
}

fn is_generated(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.ends_with(".lock") || name.ends_with("-lock.json") || name == "LICENSE"
}

/// An absolute path into somebody's home or workplace. In parts, so that this file does not name one.
fn machine_path(line: &str) -> Option<String> {
    for top in ["root", "home", "work", "Users"] {
        let start = format!("/{top}/");
        for (at, _) in line.match_indices(&start) {
            let before = line[..at].chars().next_back();
            let within = before.is_some_and(|c| c.is_alphanumeric() || "./_-~}>)*".contains(c));
            let rest: String = line[at..].chars().take_while(|c| c.is_alphanumeric() || "/._-".contains(*c)).collect();
            // A home needs a name below it; the other tops are nobody's but ours.
            if !within && (matches!(top, "root" | "work") || rest.len() > start.len()) {
                return Some(rest);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::tree::File;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&File { path: path.into(), text: text.into() }).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn lines_end_with_what_they_say() {
        assert_eq!(lines("a.md", "a \nb\nc\t\nd\r\n\n"), [1, 3]);
        assert_eq!(lines("Cargo.lock", "a \n"), [0; 0]);
    }

    #[test]
    fn machine_paths_are_found() {
        for top in ["root", "home", "work"] {
            assert_eq!(lines("a.rs", &format!("open(\"/{top}/me/x\")")), [1], "{top}");
            assert_eq!(lines("a.rs", &format!("see `/{top}/me`.")), [1], "{top}");
            assert_eq!(lines("a.rs", &format!("https://example.com/{top}/me")), [0; 0], "{top}");
            assert_eq!(lines("a.rs", &format!("crates/{top}/src")), [0; 0], "{top}");
        }
        assert_eq!(lines("a.md", "below /home/ and /usr/local"), [0; 0]);
    }
}
