//! Where in a script we are, so that an error can say so.

use super::template::{Template, Tree};
use serde_json::Value;
use std::fmt;

/// What is wrong with a script, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    pub place: String,
    pub problem: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl std::error::Error for ScriptError {}

/// A path such as `rules[3].do[1].artifact`.
#[derive(Debug, Clone)]
pub(super) struct Place {
    path: String,
    counted: bool,
}

impl Place {
    pub fn new(path: &str) -> Self {
        Self { path: path.to_owned(), counted: false }
    }

    pub fn field(&self, name: &str) -> Self {
        Self { path: format!("{}.{name}", self.path), ..*self }
    }

    pub fn index(&self, i: usize) -> Self {
        Self { path: format!("{}[{i}]", self.path), ..*self }
    }

    /// The same place, where something is done a number of times and `{n}` has a meaning.
    pub fn counted(&self) -> Self {
        Self { path: self.path.clone(), counted: true }
    }

    pub fn is_counted(&self) -> bool {
        self.counted
    }

    pub fn error(&self, problem: impl Into<String>) -> ScriptError {
        ScriptError { place: self.path.clone(), problem: problem.into() }
    }

    pub fn template(&self, source: &str) -> Result<Template, ScriptError> {
        Template::parse(source, self.counted).map_err(|problem| self.error(problem))
    }

    /// A field that may be left out, and is then empty.
    pub fn optional(&self, name: &str, source: Option<&String>) -> Result<Template, ScriptError> {
        source.map_or_else(|| Ok(Template::default()), |source| self.field(name).template(source))
    }

    pub fn tree(&self, value: &Value) -> Result<Tree, ScriptError> {
        Tree::parse(value, self.counted).map_err(|problem| self.error(problem))
    }
}
