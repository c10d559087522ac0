//! A result that was told before its run is over, noted for its owner: the worker was answered that it is kept, so it counts
//! also if the hub stops before the worker's last word.

use super::TaskResult;
use crate::block::{self, Block};
use crate::wire::Json;
use serde::{Deserialize, Serialize};

/// The block that holds one.
const BLOCK: &str = "told_result";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToldResult {
    #[serde(rename = "type")]
    kind: String,
    /// The artifact it was told in, whether that began with it, and whether it holds nothing else.
    pub artifact: String,
    pub anew: bool,
    #[serde(default)]
    pub alone: bool,
    pub result: Box<TaskResult>,
}

impl ToldResult {
    pub fn new(artifact: &str, anew: bool, result: Box<TaskResult>) -> Self {
        Self { kind: BLOCK.to_owned(), artifact: artifact.to_owned(), anew, alone: false, result }
    }

    pub fn block(&self) -> Option<Block> {
        Block::new(Json::of(self).ok()?).ok()
    }

    /// None of any other block.
    pub fn of(block: &Block) -> Option<Self> {
        let is_unknown = block.kind() == block::Kind::Unknown;
        let told: Self = is_unknown.then(|| serde_json::from_str(block.json().text()).ok()).flatten()?;
        (told.kind == BLOCK).then_some(told)
    }
}

#[cfg(test)]
mod tests {
    use super::ToldResult;
    use crate::block::Block;
    use crate::wire::Json;
    use serde_json::json;

    #[test]
    fn what_was_told_is_read_as_it_was_noted() {
        let told = ToldResult::new("r", true, Box::default());
        assert_eq!(ToldResult::of(&told.block().unwrap()), Some(told));
        let other = Block::new(Json::of(&json!({"type": "refused_result", "reason": "x"})).unwrap()).unwrap();
        assert_eq!(ToldResult::of(&other), None);
    }
}
