//! Generated files must be what their sources give.

use super::Finding;
use crate::proto::{self, GENERATED};
use std::path::Path;

pub fn check(root: &Path) -> Vec<Finding> {
    let files = match proto::generate(root) {
        Ok(files) => files,
        Err(error) => return vec![Finding::new("crates/grpc/proto", 1, format!("{error:#}"))],
    };
    let differs = |file: &proto::Generated| {
        let path = format!("{GENERATED}/{}", file.name);
        let same = std::fs::read(root.join(&path)).is_ok_and(|bytes| bytes == file.bytes);
        let text = "is not what the proto files give: run `cargo run -q -p xtask -- proto` and commit the result";
        (!same).then(|| Finding::new(&path, 1, text))
    };
    files.iter().filter_map(differs).collect()
}

/// Rules for what people write do not bind what is generated.
pub fn is_generated(path: &str) -> bool {
    path.starts_with(GENERATED)
}
