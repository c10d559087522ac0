//! Tables whose rows name the test that proves them: a name that no test has is a claim without proof.

use super::Finding;
use super::tree::File;

/// Documents with a column of tests, the last one of each table.
const PROVEN: [&str; 1] = ["docs/bridging.md"];

pub fn is_checked(path: &str) -> bool {
    PROVEN.contains(&path)
}

pub fn check(document: &File, files: &[File]) -> Vec<Finding> {
    let is_test = |name: &str| {
        let (rust, python) = (format!("fn {name}("), format!("def {name}("));
        let code = files.iter().filter(|file| file.path.ends_with(".rs") || file.path.ends_with(".py"));
        code.into_iter().any(|file| file.text.contains(&rust) || file.text.contains(&python))
    };
    let mut findings = Vec::new();
    for (index, line) in document.text.lines().enumerate().filter(|(_, line)| line.starts_with("| ")) {
        let Some(last) = line.trim_end_matches([' ', '|']).rsplit('|').next().map(str::trim) else { continue };
        if last == "Test" {
            continue;
        }
        let names: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            findings.push(Finding::new(&document.path, index + 1, "a row without a test: name the one that proves it"));
        }
        for name in names.into_iter().filter(|name| !is_test(name)) {
            let text = format!("there is no test `{name}`: write it, or take the row away");
            findings.push(Finding::new(&document.path, index + 1, text));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::tree::File;

    #[test]
    fn a_row_without_its_test_is_found() {
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        let code = [file("a.rs", "fn there() {}"), file("b.py", "def test_too():")];
        let rows = "| What | Test |\n|---|---|\n| a | `there` |\n| b | `test_too` |\n| c | `gone` |\n| d | words |\n";
        let found = check(&file("docs/bridging.md", rows), &code);
        let told: Vec<usize> = found.iter().map(|finding| finding.line).collect();
        assert_eq!(told, [5, 6]);
    }
}
