//! What an agent says it did, held against what git saw.

use super::Evidence;
use flotilla_protocol::fleet::TaskResult;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// A claim that does not match, or a change that nobody claimed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "flag", rename_all = "snake_case")]
pub enum Flag {
    /// Said to be changed, and as they were.
    ClaimedNotChanged {
        files: Vec<String>,
    },
    /// Changed, and not said to be.
    ChangedNotClaimed {
        files: Vec<String>,
    },
    BranchDiffers {
        claimed: String,
        seen: Option<String>,
    },
    /// Commits that are said to be there and are not.
    CommitsMissing {
        claimed: Vec<String>,
    },
    /// Their number differs.
    CommitCountDiffers {
        claimed: u64,
        seen: usize,
    },
    HistoryRewritten,
    /// Marked so that git does not look for changes in them.
    HiddenFromGit {
        files: Vec<String>,
    },
    /// What git ignores was changed where no commit shows it.
    IgnoresChanged,
    /// Repositories that could not be looked at: `.` is the one the run was in, others are inside it.
    NotSeen {
        places: Vec<String>,
    },
}

/// Where files are claimed from.
#[derive(Debug, Clone)]
pub struct Ground {
    root: PathBuf,
    /// Where the program was started, as it was told.
    folder: PathBuf,
    /// The same, from the root.
    inside: PathBuf,
}

impl Ground {
    /// `folder` is in the repository at `root`.
    pub fn new(root: &Path, folder: &Path) -> Self {
        let real = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let inside = real.strip_prefix(root).unwrap_or(Path::new("")).to_owned();
        Self { root: root.to_owned(), folder: folder.to_owned(), inside }
    }

    /// Claimed files as git names them. An agent may name them from the root or from its folder: one way is tried first, and
    /// where that names nothing that was seen, the other.
    fn claimed(&self, files: &[String], seen: &BTreeSet<String>, first: &Path) -> BTreeSet<String> {
        let name = |file: &String| {
            let file = Path::new(file);
            let below = file.strip_prefix(&self.folder).map(|file| self.inside.join(file));
            let file = file.strip_prefix(&self.root).map(Path::to_owned).or(below).unwrap_or_else(|_| file.to_owned());
            let mut names = [first, Path::new(""), &self.inside].map(|from| plain(&from.join(&file))).into_iter();
            names.find(|name| seen.contains(name)).unwrap_or_else(|| plain(&file))
        };
        files.iter().map(name).collect()
    }
}

/// Puts what was seen in the place of what was claimed, with a flag for each difference.
pub fn hold(result: &mut TaskResult, evidence: &Evidence, ground: &Ground) -> Vec<Flag> {
    let flags = flags(result, evidence, ground);
    let made = &mut result.artifacts;
    made.files_changed.clone_from(&evidence.files_changed);
    let claimed = made.more.get("branch").and_then(Value::as_str).filter(|claimed| is_where(evidence, claimed));
    let branch = claimed.or(evidence.branch.as_deref()).map(str::to_owned);
    made.more.insert("branch".into(), json!(branch));
    made.more.insert("commits".into(), json!(evidence.commits.iter().map(|commit| &commit.id).collect::<Vec<_>>()));
    made.more.insert("diff".into(), json!(evidence.diff));
    if !evidence.uncommitted.is_empty() {
        made.more.insert("uncommitted".into(), json!(evidence.uncommitted));
    }
    if !flags.is_empty() {
        made.more.insert("flags".into(), json!(flags));
    }
    flags
}

/// Where the repository could be read before the run and cannot any more, nothing that is claimed has been seen.
pub fn unseen(result: &mut TaskResult) -> Vec<Flag> {
    let flags = vec![Flag::NotSeen { places: vec![".".into()] }];
    result.artifacts.more.insert("flags".into(), json!(flags));
    flags
}

/// Whether what was made is on this branch: it is checked out, or holds all the commits.
fn is_where(evidence: &Evidence, branch: &str) -> bool {
    evidence.branch.as_deref() == Some(branch) || evidence.branches.iter().any(|holds| holds == branch)
}

fn flags(result: &TaskResult, evidence: &Evidence, ground: &Ground) -> Vec<Flag> {
    let made = &result.artifacts;
    let mut flags = Vec::new();
    let seen: BTreeSet<String> = evidence.files_changed.iter().cloned().collect();
    let readings = [&ground.inside, Path::new("")].map(|first| ground.claimed(&made.files_changed, &seen, first));
    // Where both name something that was seen, the one that was meant leaves less over.
    let claimed = readings.into_iter().min_by_key(|claimed| claimed.symmetric_difference(&seen).count());
    let claimed = claimed.unwrap_or_default();
    let files: Vec<String> = claimed.difference(&seen).cloned().collect();
    // Where not all are named, one that is not among them may be changed all the same.
    if !files.is_empty() && seen.len() == evidence.files {
        flags.push(Flag::ClaimedNotChanged { files });
    }
    let files: Vec<String> = seen.difference(&claimed).cloned().collect();
    // Where others were at work too, what nobody here claims may be theirs.
    if !files.is_empty() && !evidence.shared {
        flags.push(Flag::ChangedNotClaimed { files });
    }
    if let Some(claimed) = made.more.get("branch").and_then(Value::as_str)
        && !is_where(evidence, claimed)
    {
        flags.push(Flag::BranchDiffers { claimed: claimed.to_owned(), seen: evidence.branch.clone() });
    }
    match made.more.get("commits") {
        Some(Value::Array(claimed)) => {
            let is_there =
                |id: &&str| evidence.commits.iter().any(|commit| id.len() >= 7 && commit.id.starts_with(*id));
            let missing = claimed.iter().filter_map(Value::as_str).filter(|id| !is_there(id));
            let claimed: Vec<String> = missing.map(str::to_owned).collect();
            if !claimed.is_empty() {
                flags.push(Flag::CommitsMissing { claimed });
            }
        }
        Some(Value::Number(claimed)) => {
            let differs = |claimed: &u64| *claimed != evidence.commit_count as u64 && !evidence.shared;
            if let Some(claimed) = claimed.as_u64().filter(differs) {
                flags.push(Flag::CommitCountDiffers { claimed, seen: evidence.commit_count });
            }
        }
        _ => {}
    }
    if evidence.rewritten && !evidence.shared {
        flags.push(Flag::HistoryRewritten);
    }
    if !evidence.hidden.is_empty() && !evidence.shared {
        flags.push(Flag::HiddenFromGit { files: evidence.hidden.clone() });
    }
    if evidence.ignores_changed && !evidence.shared {
        flags.push(Flag::IgnoresChanged);
    }
    if !evidence.unseen.is_empty() {
        flags.push(Flag::NotSeen { places: evidence.unseen.clone() });
    }
    flags
}

/// Without steps that lead nowhere.
fn plain(file: &Path) -> String {
    let mut plain = PathBuf::new();
    for part in file.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Evidence, Flag, Ground, hold};
    use crate::evidence::Commit;
    use flotilla_protocol::fleet::TaskResult;
    use serde_json::json;
    use std::path::Path;

    fn seen() -> Evidence {
        let commit = Commit { id: "0123456789abcdef".into(), subject: "x".into() };
        Evidence {
            branch: Some("main".into()),
            files_changed: vec!["a.rs".into(), "b.rs".into()],
            files: 2,
            commits: vec![commit],
            commit_count: 1,
            ..Evidence::default()
        }
    }

    fn claimed(artifacts: serde_json::Value) -> TaskResult {
        let result =
            json!({"type": "TASK_RESULT", "protocol_version": "2.0", "status": "done", "artifacts": artifacts});
        serde_json::from_value(result).unwrap()
    }

    fn ground(folder: &str) -> Ground {
        Ground::new(Path::new("/repo"), Path::new(folder))
    }

    fn flags(artifacts: serde_json::Value) -> Vec<Flag> {
        hold(&mut claimed(artifacts), &seen(), &ground("/repo"))
    }

    #[test]
    fn claims_that_match_raise_no_flag_however_they_are_spelled() {
        let claims = json!({"files_changed": ["./a.rs", "/repo/b.rs"], "branch": "main", "commits": ["0123456"]});
        assert_eq!(flags(claims), []);
        assert_eq!(flags(json!({"files_changed": ["a.rs", "b.rs"], "commits": 1})), []);
    }

    #[test]
    fn each_difference_is_a_flag_and_what_was_seen_stands() {
        let mut result = claimed(json!({
            "files_changed": ["a.rs", "c.rs"], "branch": "fix", "commits": ["fedcba9"], "pr": "https://x.example/1"
        }));
        let flags = hold(&mut result, &seen(), &ground("/repo"));
        assert_eq!(
            flags,
            [
                Flag::ClaimedNotChanged { files: vec!["c.rs".into()] },
                Flag::ChangedNotClaimed { files: vec!["b.rs".into()] },
                Flag::BranchDiffers { claimed: "fix".into(), seen: Some("main".into()) },
                Flag::CommitsMissing { claimed: vec!["fedcba9".into()] },
            ]
        );
        assert_eq!(result.artifacts.files_changed, ["a.rs", "b.rs"]);
        assert_eq!(result.artifacts.pr.as_deref(), Some("https://x.example/1"));
        let told = serde_json::to_value(&result).unwrap()["artifacts"].clone();
        assert_eq!((&told["branch"], &told["flags"][0]["flag"]), (&json!("main"), &json!("claimed_not_changed")));
    }

    #[test]
    fn files_may_be_named_from_where_the_program_was_started() {
        let seen = |files: &[&str]| {
            let files_changed: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
            Evidence { files: files_changed.len(), files_changed, ..Evidence::default() }
        };
        for (changed, said, is_right) in [
            (&["sub/s.txt"][..], &["s.txt"][..], true),
            (&["sub/s.txt"], &["./s.txt"], true),
            (&["sub/s.txt"], &["sub/s.txt"], true),
            (&["sub/s.txt"], &["/repo/sub/s.txt"], true),
            (&["out.txt", "sub/s.txt"], &["../out.txt", "s.txt"], true),
            (&["s.txt", "sub/s.txt"], &["../s.txt", "s.txt"], true),
            (&["s.txt", "sub/s.txt"], &["s.txt", "sub/s.txt"], true),
            (&["s.txt", "sub/s.txt"], &["s.txt"], false),
            (&["sub/s.txt"], &["t.txt"], false),
            (&["sub/s.txt"], &["../../s.txt"], false),
            (&["sub/s.txt"], &["other/s.txt"], false),
        ] {
            let mut result = claimed(json!({"files_changed": said}));
            let flags = hold(&mut result, &seen(changed), &ground("/repo/sub"));
            assert_eq!(flags.is_empty(), is_right, "{said:?} of {changed:?}: {flags:?}");
        }
    }

    #[test]
    fn a_branch_that_holds_the_commits_is_where_they_are() {
        let mut result = claimed(json!({"files_changed": ["a.rs", "b.rs"], "branch": "feat"}));
        let seen = Evidence { branches: vec!["feat".into()], ..seen() };
        assert_eq!(hold(&mut result, &seen, &ground("/repo")), []);
        assert_eq!(result.artifacts.more["branch"], "feat");
    }

    #[test]
    fn a_number_of_commits_is_a_claim_too() {
        let raised = flags(json!({"files_changed": ["a.rs", "b.rs"], "commits": 3}));
        assert_eq!(raised, [Flag::CommitCountDiffers { claimed: 3, seen: 1 }]);
    }
}
