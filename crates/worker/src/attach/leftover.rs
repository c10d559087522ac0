//! What a worker that was killed left behind: files of its runs, and perhaps processes.

use super::spool::{Room, Spool};
use crate::reaper::{MARK, tree};
use crate::supervise::end_marked;
use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Ends what is alive of earlier runs, and has it told that they are gone.
pub fn sweep(folder: &Path, room: &Arc<Room>) -> io::Result<Vec<Spool>> {
    let mut spools = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "new") {
            std::fs::remove_file(&path)?;
        } else if let Some(spool) = Spool::leftover(&path, room)? {
            spools.push(spool);
        }
    }
    let marks: HashSet<String> = spools.iter().map(|spool| format!("{}.{}", spool.task, spool.run)).collect();
    let alive = end_all(&marks);
    for spool in &mut spools {
        let mark = format!("{}.{}", spool.task, spool.run);
        tracing::warn!(task = spool.task, run = spool.run, "a run of a worker that was stopped is told to be gone");
        let reason = match alive.contains(&mark) {
            true => "its worker was stopped while the agent was at work, and some of it cannot be ended",
            false => "its worker was stopped while the agent was at work",
        };
        spool.end(reason).map_err(|problem| io::Error::other(problem.to_string()))?;
    }
    Ok(spools)
}

/// The reaper ends programs when their worker dies. This is for when the reaper was killed too; what is alive after all.
fn end_all(marks: &HashSet<String>) -> HashSet<String> {
    if marks.is_empty() {
        return HashSet::new();
    }
    end_marked(&|mark| marks.contains(mark));
    let lives = |mark: &&String| !tree::marked(MARK, |known| known == mark.as_str()).is_empty();
    marks.iter().filter(lives).cloned().collect()
}
