//! `.env` files: one `A2ACLI_NAME=value` a line; lines of other programs are passed over.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct File {
    pub path: PathBuf,
    values: BTreeMap<String, String>,
}

impl File {
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        Ok(Self { path: path.to_owned(), values: parse(&text) })
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Whether others than its owner can read it.
    pub fn is_exposed(&self) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::metadata(&self.path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
        }
        #[cfg(not(unix))]
        false
    }
}

fn parse(text: &str) -> BTreeMap<String, String> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    if !name.starts_with("A2ACLI_") {
        return None;
    }
    let value = unquoted(value.trim());
    (!value.is_empty()).then(|| (name.to_owned(), value))
}

/// What stands in quotes, or everything before a comment.
fn unquoted(value: &str) -> String {
    for quote in ['"', '\''] {
        if let Some((inside, _)) = value.strip_prefix(quote).and_then(|rest| rest.split_once(quote)) {
            return inside.to_owned();
        }
    }
    value.split(" #").next().unwrap_or(value).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn lines_of_ours_are_read_and_others_passed_over() {
        let text = "# A2ACLI_NO=1\nDATABASE=x\nA2ACLI_A=1 # why\nexport A2ACLI_B=\"two words # kept\"\nA2ACLI_C='x=y'\n\
                    A2ACLI_D=\nA2ACLI_E = e=f\nnonsense";
        let values: Vec<String> = parse(text).into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(values, ["A2ACLI_A=1", "A2ACLI_B=two words # kept", "A2ACLI_C=x=y", "A2ACLI_E=e=f"]);
    }
}
