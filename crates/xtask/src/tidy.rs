//! Tidy: the house rules that a machine can check, each finding with its place and what to do.

mod docs;
mod edges;
mod generated;
mod mask;
mod modules;
mod proofs;
mod source;
mod text;
mod tree;

use anyhow::Result;
use std::fmt;
use std::process::ExitCode;
use tree::Tree;

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    file: String,
    line: usize,
    text: String,
}

impl Finding {
    fn new(file: &str, line: usize, text: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.text)
    }
}

pub fn run() -> Result<ExitCode> {
    let tree = Tree::load()?;
    let findings = check(&tree);
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("tidy: {} files, nothing to do", tree.files.len());
        return Ok(ExitCode::SUCCESS);
    }
    println!("tidy: {} files, {} to do", tree.files.len(), findings.len());
    Ok(ExitCode::FAILURE)
}

fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = edges::check(&tree.metadata);
    findings.extend(generated::check(tree.root()));
    findings.extend(modules::check(&tree.files, &tree.roots));
    findings.extend(docs::architecture(&tree.files));
    for file in &tree.files {
        findings.extend(text::check(file));
        if file.path.ends_with(".rs") && !generated::is_generated(&file.path) {
            findings.extend(source::check(file, tree.is_crate(&file.path)));
        }
        if docs::is_checked(&file.path) {
            findings.extend(docs::check(file, |path| tree.exists(path)));
        }
        if proofs::is_checked(&file.path) {
            findings.extend(proofs::check(file, &tree.files));
        }
    }
    findings.sort();
    findings.dedup();
    findings
}
