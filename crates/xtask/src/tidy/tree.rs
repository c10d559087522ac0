//! The repository as tidy sees it: its text files, and what cargo says about its crates.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A text file, named relative to the repository.
pub struct File {
    pub path: String,
    pub text: String,
}

/// A file that cargo compiles first.
pub struct Root {
    pub path: String,
    /// Part of what is shipped: a library or a program, not a test.
    pub is_crate: bool,
}

pub struct Tree {
    root: PathBuf,
    pub files: Vec<File>,
    pub roots: Vec<Root>,
    pub metadata: Value,
}

/// Directories that hold what was built or installed, not what was written.
const SKIPPED: [&str; 8] = [".git", ".cache", ".venv", "__pycache__", "node_modules", "target", "venv", "dist"];

impl Tree {
    pub fn load() -> Result<Self> {
        let metadata = metadata()?;
        let root = PathBuf::from(metadata["workspace_root"].as_str().context("cargo metadata names no root")?);
        let mut files = Vec::new();
        walk(&root, &root, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let roots = roots(&metadata, &root);
        Ok(Self { root, files, roots, metadata })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    pub fn is_crate(&self, path: &str) -> bool {
        self.roots.iter().any(|root| root.is_crate && root.path == path)
    }
}

fn metadata() -> Result<Value> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .context("running cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("reading cargo metadata")
}

fn walk(root: &Path, directory: &Path, files: &mut Vec<File>) -> Result<()> {
    let entries = std::fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))?;
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !SKIPPED.iter().any(|name| entry.file_name() == *name) {
                walk(root, &path, files)?;
            }
        } else if kind.is_file() {
            // What is not text is nobody's business here; what vanished meanwhile was no source.
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let path = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            files.push(File { path, text });
        }
    }
    Ok(())
}

fn roots(metadata: &Value, root: &Path) -> Vec<Root> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .flat_map(|package| package["targets"].as_array().into_iter().flatten())
        .filter_map(|target| {
            let path = Path::new(target["src_path"].as_str()?).strip_prefix(root).ok()?;
            let kinds = target["kind"].as_array()?;
            let is_crate = kinds.iter().any(|kind| kind == "lib" || kind == "bin");
            Some(Root { path: path.to_string_lossy().into_owned(), is_crate })
        })
        .collect()
}
