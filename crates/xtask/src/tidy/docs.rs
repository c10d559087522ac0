//! Documents: the paths they name exist, and the map of the house stays short enough to read.

use super::Finding;
use super::tree::File;

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const LONGEST: usize = 300;
/// What a path of this repository begins with.
const STARTS: [&str; 6] = ["crates/", "docs/", "tests/", "bench/", "examples/", "console/"];
const WHOLE: [&str; 2] = ["./test", ".ci/run"];

pub fn is_checked(path: &str) -> bool {
    matches!(path, "ARCHITECTURE.md" | "README.md" | "CONTRIBUTING.md")
        || (path.starts_with("docs/") && path.ends_with(".md"))
}

/// The map of the house is there, and short.
pub fn architecture(files: &[File]) -> Option<Finding> {
    let Some(file) = files.iter().find(|file| file.path == ARCHITECTURE) else {
        return Some(Finding::new(ARCHITECTURE, 1, "write it: the idea, the rooms, the rule and the paths"));
    };
    let lines = file.text.lines().count();
    (lines >= LONGEST).then(|| {
        Finding::new(ARCHITECTURE, lines, format!("{lines} lines: keep it under {LONGEST}, detail goes to docs/"))
    })
}

pub fn check(file: &File, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut fenced = false;
    for (index, line) in file.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        // What stands between backticks is every second piece.
        let quoted = line.split('`').skip(1).step_by(2).flat_map(str::split_whitespace);
        let named = quoted.filter_map(path_in).flat_map(spread);
        for path in named.chain(links(line).map(|link| beside(&file.path, link))) {
            if !exists(&path) {
                let text = format!("`{path}` does not exist: correct the path, or the sentence around it");
                findings.push(Finding::new(&file.path, index + 1, text));
            }
        }
    }
    findings
}

/// The targets of links to other files, without the place in them.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next());
    targets.filter(|target| !target.is_empty() && !target.contains(':'))
}

/// A link is relative to the document it stands in.
fn beside(document: &str, link: &str) -> String {
    let mut names: Vec<&str> = document.split('/').collect();
    names.pop();
    for name in link.split('/') {
        match name {
            "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    names.join("/")
}

/// The path a word names, without a line number; before a `*` or a `<placeholder>` only the directory counts.
fn path_in(word: &str) -> Option<&str> {
    if !WHOLE.contains(&word) && !STARTS.iter().any(|start| word.starts_with(start)) {
        return None;
    }
    let word = word.trim_end_matches([',', '.', ';', ':', ')']);
    let word = word.rsplit_once(':').filter(|(_, line)| line.parse::<u32>().is_ok()).map_or(word, |(path, _)| path);
    let fixed = word.find(['*', '<', '$', '…']).map_or(word, |at| &word[..at]);
    Some(if fixed.len() < word.len() { fixed.rsplit_once('/').map_or(fixed, |(directory, _)| directory) } else { word })
}

/// `a/{b,c}.rs` names two files.
fn spread(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let Some((choices, after)) = rest.split_once('}') else { return vec![path.to_owned()] };
    choices.split(',').map(|choice| format!("{before}{choice}{after}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{architecture, beside, check, is_checked};
    use crate::tidy::tree::File;

    const THERE: [&str; 6] =
        ["./test", "crates/core", "crates/core/src/task.rs", "docs/glossary.md", "crates/core/src", "bench/run"];

    fn missing(text: &str) -> Vec<String> {
        let file = File { path: "README.md".into(), text: text.into() };
        let found = check(&file, |path| THERE.contains(&path.trim_end_matches('/')));
        found.iter().filter_map(|finding| finding.text.split('`').nth(1).map(str::to_owned)).collect()
    }

    #[test]
    fn paths_that_exist_are_fine() {
        let text = "`./test rust`, `crates/core/`, `crates/core/src/task.rs:12`, `crates/core/src/{task}.rs`, \
                    `bench/run --quick`, `crates/core/src/*.rs`, `docs/glossary.md`";
        assert_eq!(missing(text), [""; 0]);
    }

    #[test]
    fn paths_that_do_not_exist_are_found() {
        let text = "See `crates/core/src/tusk.rs` and `.ci/run`\nor `crates/core/src/{task,run}.rs`.";
        assert_eq!(missing(text), ["crates/core/src/tusk.rs", ".ci/run", "crates/core/src/run.rs"]);
    }

    #[test]
    fn links_lead_somewhere() {
        let text =
            "[a](docs/glossary.md), [b](./docs/glossary.md#task), [c](#here), [d](https://example.com/x), [e](x.md)";
        assert_eq!(missing(text), ["x.md"]);
        assert_eq!(beside("docs/a/b.md", "../c.md"), "docs/c.md");
    }

    #[test]
    fn other_words_are_not_paths() {
        assert_eq!(missing("crates/core/nope, `core/task`, `a2a/error`, `POST /docs/x`\n```\n`docs/x`\n```"), [""; 0]);
    }

    #[test]
    fn the_right_documents_are_read() {
        for (path, expected) in [
            ("README.md", true),
            ("docs/a/b.md", true),
            ("docs/a.yaml", false),
            ("bench/README.md", false),
            ("CHANGELOG.md", false),
        ] {
            assert_eq!(is_checked(path), expected, "{path}");
        }
    }

    #[test]
    fn the_map_is_there_and_short() {
        let map = |lines: usize| [File { path: "ARCHITECTURE.md".into(), text: "a\n".repeat(lines) }];
        assert!(architecture(&[]).is_some());
        assert!(architecture(&map(300)).is_some());
        assert_eq!(architecture(&map(299)), None);
    }
}
