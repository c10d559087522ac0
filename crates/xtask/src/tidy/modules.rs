//! Files and modules: every source file is reached from a crate root, as `name.rs` and `name/`, under a telling name.

use super::Finding;
use super::mask::mask;
use super::tree::{File, Root};
use std::collections::BTreeSet;

/// Names that say nothing about what lives there.
const EMPTY_NAMES: [&str; 5] = ["utils", "common", "helpers", "manager", "types"];

pub fn check(files: &[File], roots: &[Root]) -> Vec<Finding> {
    let mut reached = BTreeSet::new();
    for root in roots {
        let (directory, _) = root.path.rsplit_once('/').unwrap_or(("", &root.path));
        follow(files, &root.path, directory, &mut reached);
    }
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| is_source(&file.path)) {
        if file.path.ends_with("/mod.rs") {
            findings.push(Finding::new(&file.path, 1, "no mod.rs: name the file after its directory, beside it"));
        }
        if !reached.contains(file.path.as_str()) {
            let text = "no crate root reaches this file: declare it with `mod`, or delete it";
            findings.push(Finding::new(&file.path, 1, text));
        }
        for (line, name) in declared(&file.text, true) {
            if EMPTY_NAMES.contains(&name.as_str()) {
                let text = format!("the module name '{name}' says nothing: name it after what lives there");
                findings.push(Finding::new(&file.path, line, text));
            }
        }
    }
    findings
}

fn is_source(path: &str) -> bool {
    let mut names = path.split('/');
    path.ends_with(".rs")
        && names.next() == Some("crates")
        && names.next().is_some()
        && matches!(names.next(), Some("src" | "tests"))
}

/// Marks a file and, through its declarations, those below it. `directory` is where its modules live.
fn follow<'a>(files: &'a [File], path: &str, directory: &str, reached: &mut BTreeSet<&'a str>) {
    let Some(file) = files.iter().find(|file| file.path == path) else { return };
    if !reached.insert(&file.path) {
        return;
    }
    for (_, name) in declared(&file.text, false) {
        let below = format!("{directory}/{name}");
        follow(files, &format!("{below}.rs"), &below, reached);
    }
}

/// The names after `mod`, with their lines; those with a body only if `inline`.
fn declared(text: &str, inline: bool) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    for (index, line) in mask(text).lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = match words.as_slice() {
            ["mod", name, ..] => name,
            [visibility, "mod", name, ..] if visibility.starts_with("pub") => name,
            _ => continue,
        };
        if name.ends_with(';') || inline {
            names.push((index + 1, name.trim_end_matches(';').to_owned()));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::tree::{File, Root};

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> =
            files.iter().map(|(path, text)| File { path: (*path).into(), text: (*text).into() }).collect();
        let root = |path: &str| Root { path: path.into(), is_crate: true };
        let roots = [root("crates/a/src/lib.rs"), root("crates/a/tests/a/main.rs")];
        check(&files, &roots).iter().map(|finding| format!("{}:{}", finding.file, finding.line)).collect()
    }

    #[test]
    fn files_are_reached_through_declarations() {
        let tree = [
            ("crates/a/src/lib.rs", "mod b;\npub mod c;\npub(crate) mod d { }"),
            ("crates/a/src/b.rs", "#[cfg(test)]\nmod tests;"),
            ("crates/a/src/b/tests.rs", ""),
            ("crates/a/src/c.rs", ""),
            ("crates/a/tests/a/main.rs", "mod e;"),
            ("crates/a/tests/a/e.rs", ""),
        ];
        assert_eq!(findings(&tree), [""; 0]);
    }

    #[test]
    fn dead_files_and_mod_rs_are_found() {
        let tree = [
            ("crates/a/src/lib.rs", "// mod b;\nmod c;"),
            ("crates/a/src/b.rs", ""),
            ("crates/a/src/c/mod.rs", ""),
            ("bench/src/other.rs", ""),
        ];
        let expected = ["crates/a/src/b.rs:1", "crates/a/src/c/mod.rs:1", "crates/a/src/c/mod.rs:1"];
        assert_eq!(findings(&tree), expected);
    }

    #[test]
    fn empty_names_are_found() {
        assert_eq!(findings(&[("crates/a/src/lib.rs", "\npub mod helpers {\n}")]), ["crates/a/src/lib.rs:2"]);
        assert_eq!(findings(&[("crates/a/src/lib.rs", "mod utilities;\nlet modutils = 1;")]), [""; 0]);
    }
}
