//! What a worker that was killed left behind: files of its runs, and perhaps processes.

use super::spool::{Room, Spool};
use crate::reaper::{MARK, tree};
use crate::supervise::end_marked;
use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Ends what is alive of earlier runs, and has it told that they are gone. A record that cannot be read keeps nobody from
/// working: it is set aside, and its run is told to be gone too.
pub fn sweep(folder: &Path, room: &Arc<Room>) -> io::Result<Vec<Spool>> {
    let mut spools = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "new") {
            if let Err(error) = std::fs::remove_file(&path) {
                tracing::warn!(file = %path.display(), %error, "half of a file stays behind");
            }
        } else if let Some(spool) = recovered(&path, folder, room) {
            spools.push(spool);
        }
    }
    let marks: HashSet<String> = spools.iter().map(|spool| format!("{}.{}", spool.task, spool.run)).collect();
    let alive = end_all(&marks);
    for spool in &mut spools {
        let mark = format!("{}.{}", spool.task, spool.run);
        tracing::warn!(task = spool.task, run = spool.run, "a run of a worker that was stopped is told to be gone");
        let mut reason = "its worker was stopped while the agent was at work".to_owned();
        if alive.contains(&mark) {
            reason.push_str(", and some of it cannot be ended");
        }
        if spool.is_damaged {
            reason.push_str(", and some of what it said cannot be read any more");
        }
        if let Err(problem) = spool.end(&reason) {
            tracing::error!(task = spool.task, run = spool.run, %problem, "that a run is gone cannot be kept");
        }
    }
    Ok(spools)
}

/// What can be told of a run, however its record looks. None if the file is not a run's.
fn recovered(path: &Path, folder: &Path, room: &Arc<Room>) -> Option<Spool> {
    let (task, run) = Spool::named(path)?;
    let aside = folder.join(format!("{task}.{run}.unreadable"));
    let (file, kept) = (path.display().to_string(), aside.display().to_string());
    match Spool::leftover(path, room) {
        Ok(spool) => {
            if spool.as_ref().is_some_and(|spool| spool.is_damaged) {
                tracing::warn!(file, kept, "the record of a run is damaged; what can be read of it is told");
                drop(std::fs::copy(path, aside));
            }
            spool
        }
        Err(error) => {
            tracing::warn!(file, kept, %error, "the record of a run cannot be read, and is set aside");
            let renamed = std::fs::rename(path, aside).and_then(|()| Spool::create(folder, &task, run, room));
            let fresh = renamed.map_err(|error| tracing::error!(file, %error, "it stays where it is"));
            fresh.ok().map(|mut spool| {
                spool.is_damaged = true;
                spool
            })
        }
    }
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

#[cfg(test)]
mod tests {
    use super::{Room, Spool, sweep};
    use flotilla_protocol::a2a::model::TaskState;
    use flotilla_protocol::work::Report;

    #[test]
    fn one_record_that_cannot_be_read_keeps_no_other_from_being_told() {
        let place = tempfile::tempdir().unwrap();
        let (folder, room) = (place.path(), Room::new(100_000));
        let said = || vec![Report::Status { state: TaskState::Working, contents: None, metadata: None }];
        for task in ["good", "bytes"] {
            Spool::create(folder, task, 1, &room).unwrap().tell(said(), 1_000).unwrap();
        }
        let mut bytes = std::fs::read(folder.join("bytes.1")).unwrap();
        bytes.extend(b"\xff\xfe\xff\n");
        std::fs::write(folder.join("bytes.1"), bytes).unwrap();
        std::fs::create_dir(folder.join("folder.2")).unwrap();
        let mut told: Vec<String> = Vec::new();
        for mut spool in sweep(folder, &room).unwrap() {
            let frames: Vec<String> = std::iter::from_fn(|| spool.unsent(9).unwrap()).collect();
            let lost = frames.last().is_some_and(|frame| frame.contains("cannot be read any more"));
            told.push(format!("{} {} {lost}", spool.task, frames.len()));
        }
        told.sort();
        assert_eq!(told, ["bytes 2 true", "folder 1 true", "good 2 false"]);
        assert!(folder.join("bytes.1.unreadable").is_file() && folder.join("folder.2.unreadable").is_dir());
    }
}
