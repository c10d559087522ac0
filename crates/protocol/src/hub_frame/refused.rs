//! A frame with a result that could not be taken: noted on its run, so that what follows is not taken for done instead.

use crate::a2a::error::Refusal;
use crate::a2a::model::Part;
use crate::block::Block;
use crate::fleet::{self, Kind};
use crate::wire::Json;
use crate::work::Report;
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Cow;

/// The block that says so, for the owner's eyes.
const BLOCK: &str = "refused_result";

/// Which run a frame is about, where the rest of it cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedResult {
    #[serde(alias = "task_id")]
    pub task_id: String,
    #[serde(default)]
    pub run: Option<u32>,
}

impl RefusedResult {
    /// None of a frame that holds no result, or does not say of which task.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let speaks_of_result = String::from_utf8_lossy(bytes).contains(Kind::Result.name());
        if speaks_of_result { serde_json::from_slice(bytes).ok() } else { None }
    }

    pub fn note(&self, refusal: &Refusal) -> Option<Report> {
        let reason = format!("its frame was refused: {}", refusal.message);
        let block = Block::new(Json::of(&json!({"type": BLOCK, "reason": reason})).ok()?).ok()?;
        Some(Report::Note { blocks: vec![block] })
    }
}

/// A part with a result that cannot be read, as the owner sees it: for a peer it would look like one that counts.
pub fn aside(part: &Part, problem: &str) -> Option<Block> {
    let told = fleet::json(part).or_else(|| part.text.as_deref().map(Cow::Borrowed))?;
    let reason = problem.strip_prefix(Kind::Result.name()).map_or(problem, |rest| rest.trim_start_matches([':', ' ']));
    let told: Value = serde_json::from_str(&told).unwrap_or_else(|_| told.into_owned().into());
    Block::new(Json::of(&json!({"type": BLOCK, "reason": reason, "result": told})).ok()?).ok()
}

/// What is wrong with a result, as such a block tells it.
pub fn problem(block: &Block) -> Option<String> {
    if block.kind() != crate::block::Kind::Unknown {
        return None;
    }
    let told: Value = serde_json::from_str(block.json().text()).ok()?;
    let reason = told["reason"].as_str().filter(|_| told["type"] == BLOCK)?;
    Some(format!("{}: {reason}", Kind::Result.name()))
}

#[cfg(test)]
mod tests {
    use super::{RefusedResult, problem};
    use crate::a2a::error::Refusal;
    use crate::work::Report;

    #[test]
    fn a_refused_result_is_known_by_its_note() {
        let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
        let frame = format!(r#"{{"type":"task_response","taskId":"t","x":{deep},"y":{{"type":"TASK_RESULT"}}}}"#);
        let refused = RefusedResult::read(frame.as_bytes()).expect("which one it is");
        assert_eq!((refused.task_id.as_str(), refused.run), ("t", None));
        let Some(Report::Note { blocks }) = refused.note(&Refusal::invalid("artifact.metadata", "must be an object"))
        else {
            panic!("a note")
        };
        let told = problem(&blocks[0]).expect("a problem");
        assert!(
            told.starts_with("TASK_RESULT: its frame was refused: ") && told.contains("must be an object"),
            "{told}"
        );
        assert_eq!(RefusedResult::read(br#"{"type":"task_response","taskId":"t"}"#), None);
    }
}
