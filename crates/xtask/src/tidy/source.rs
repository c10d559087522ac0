//! Rules for a Rust file: its first sentence, its length, and what must not be left in it.

use super::Finding;
use super::mask::mask;
use super::tree::File;

const LONGEST: usize = 400;
const LONGEST_TEST: usize = 600;

/// Words that stand for unfinished work, and what to do about them.
const UNFINISHED: [(&str, &str); 4] = [
    ("todo!(", "finish it, or leave it out"),
    ("unimplemented!(", "finish it, or leave it out"),
    ("dbg!(", "remove it"),
    ("#[ignore", "a test that is not run says nothing: repair or delete it"),
];

pub fn check(file: &File, is_crate: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |line: usize, text: &str| findings.push(Finding::new(&file.path, line, text));
    if !opens_with_a_sentence(&file.text) {
        find(1, "begin with `//!` and a sentence that says what lives here");
    }
    if is_crate && !file.text.lines().any(|line| line == "#![forbid(unsafe_code)]") {
        find(1, "add #![forbid(unsafe_code)] to the crate root");
    }
    let is_test = is_test_file(&file.path);
    let (lines, longest) = (file.text.lines().count(), if is_test { LONGEST_TEST } else { LONGEST });
    if lines > longest {
        find(lines, &format!("{lines} lines, more than {longest}: split it by what it is about"));
    }
    let masked = mask(&file.text);
    let tests = test_lines(&masked);
    for (index, (code, line)) in masked.lines().zip(file.text.lines()).enumerate() {
        let in_test = is_test || tests[index];
        for (word, remedy) in UNFINISHED {
            if code.contains(word) {
                find(index + 1, &format!("`{word}`: {remedy}"));
            }
        }
        if in_test && sleeps(code) && !line.contains("// polling") {
            find(index + 1, "a test must not sleep: wait for what it expects (or mark the line `// polling`)");
        }
        if !in_test && code.contains(".unwrap()") {
            find(index + 1, "no unwrap outside tests: return the error, or `expect` the invariant");
        }
    }
    findings
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.split('/').any(|name| name == "tests")
}

fn sleeps(code: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices("sleep(").any(|(at, _)| !code[..at].ends_with(is_name))
}

/// The first paragraph of the file's own documentation is a sentence.
fn opens_with_a_sentence(text: &str) -> bool {
    let first: Vec<&str> = text
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(str::trim)
        .take_while(|line| !line.is_empty())
        .collect();
    first.last().is_some_and(|line| line.ends_with(['.', '!', '?', ':']))
}

/// Which lines belong to an item that is compiled for tests only.
fn test_lines(masked: &str) -> Vec<bool> {
    let lines: Vec<&str> = masked.lines().collect();
    let mut marks = vec![false; lines.len()];
    let mut at = 0;
    while at < lines.len() {
        if !lines[at].trim_start().starts_with("#[cfg(test)]") {
            at += 1;
            continue;
        }
        let mut depth = 0i64;
        while at < lines.len() {
            marks[at] = true;
            let count = |brace| lines[at].matches(brace).count() as i64;
            depth += count('{') - count('}');
            let ends = depth == 0 && lines[at].trim_end().ends_with([';', '}']);
            at += 1;
            if ends {
                break;
            }
        }
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::tree::File;

    fn at(path: &str, text: &str, is_crate: bool) -> Vec<String> {
        let file = File { path: path.into(), text: text.into() };
        check(&file, is_crate).iter().map(|finding| format!("{} {}", finding.line, finding.text)).collect()
    }

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let file = File { path: path.into(), text: format!("//! Here.\n{text}") };
        check(&file, false).iter().map(|finding| finding.line).collect()
    }

    const SOURCE: &str = "crates/a/src/b.rs";
    const TEST: &str = "crates/a/tests/a/b.rs";

    #[test]
    fn a_file_begins_with_a_sentence() {
        assert_eq!(at(SOURCE, "//! What lives here.\n", false), [""; 0]);
        assert_eq!(at(SOURCE, "//! What lives\n//! here.\n//!\n//! More\n", false), [""; 0]);
        for text in ["use a::b;\n", "// What.\n", "//! no sentence\nfn a() {}\n", "\n//! Late.\n"] {
            assert_eq!(at(SOURCE, text, false).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_crate_forbids_unsafe_code() {
        assert_eq!(at(SOURCE, "//! A.\n#![forbid(unsafe_code)]\n", true), [""; 0]);
        assert_eq!(at(SOURCE, "//! A.\n", true), ["1 add #![forbid(unsafe_code)] to the crate root"]);
    }

    #[test]
    fn files_stay_short() {
        assert_eq!(lines(SOURCE, &"\n".repeat(399)), [0; 0]);
        assert_eq!(lines(SOURCE, &"\n".repeat(400)), [401]);
        assert_eq!(lines(TEST, &"\n".repeat(599)), [0; 0]);
        assert_eq!(lines(TEST, &"\n".repeat(600)), [601]);
    }

    #[test]
    fn unfinished_work_is_found_but_not_in_text() {
        let text = "todo!()\nunimplemented!()\ndbg!(1)\n#[ignore]\n#[ignore = \"slow\"]\n// todo!()\n\"dbg!(1)\"";
        assert_eq!(lines(SOURCE, text), [2, 3, 4, 5, 6]);
    }

    #[test]
    fn tests_do_not_sleep() {
        let text = "std::thread::sleep(a);\ntokio::time::sleep(a).await; // polling\nsleep(a);\nno_sleep();";
        assert_eq!(lines(TEST, text), [2, 4]);
        assert_eq!(lines(SOURCE, text), [0; 0]);
        assert_eq!(lines(SOURCE, "#[cfg(test)]\nmod tests {\n    sleep(a);\n}\nsleep(b);"), [4]);
    }

    #[test]
    fn unwrap_is_for_tests() {
        let text = "a.unwrap();\n#[cfg(test)]\nmod tests {\n    fn a() { b.unwrap() }\n}\nc.unwrap();\n// d.unwrap()";
        assert_eq!(lines(SOURCE, text), [2, 7]);
        assert_eq!(lines(TEST, text), [0; 0]);
        assert_eq!(lines("crates/a/src/b/tests.rs", text), [0; 0]);
        assert_eq!(lines(SOURCE, "#[cfg(test)]\nmod tests;\na.unwrap();"), [4]);
    }
}
