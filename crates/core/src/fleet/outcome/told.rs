//! The results a worker told in one run. There should be one; of several that differ none is lost and the worst counts, and
//! so it does where a result and its state differ.

use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::fleet::TaskResult;
use flotilla_protocol::fleet::result::Status;
use flotilla_protocol::fleet::route::Check;
use serde_json::Value;

/// The member of a result that holds the others.
const OTHERS: &str = "other_results";
/// So many others are kept.
const MOST: usize = 8;

/// What was told so far, each thing once, the latest last.
#[derive(Default)]
pub(super) struct Told(Vec<One>);

struct One {
    /// The artifact it was told in.
    artifact: Option<String>,
    result: Box<TaskResult>,
}

impl Told {
    /// Takes a result. What an artifact said before it began anew was not its last word.
    pub(super) fn add(&mut self, result: Box<TaskResult>, artifact: Option<&str>, anew: bool) {
        let replaced = |one: &One| anew && artifact.is_some() && one.artifact.as_deref() == artifact;
        let same = |one: &One| one.result == result || is_claim_of(&one.result, &result);
        self.0.retain(|one| !same(one) && !replaced(one));
        if self.0.len() > MOST {
            self.0.remove(0);
        }
        self.0.push(One { artifact: artifact.map(str::to_owned), result });
    }

    pub(super) fn is_some(&self) -> bool {
        !self.0.is_empty()
    }

    /// What it all comes to, and whether it is one word; the others are kept in it.
    pub(super) fn take(&mut self) -> Option<(TaskResult, Option<Check>)> {
        let mut all = std::mem::take(&mut self.0);
        // What was used is told last, whichever result it stands in.
        let usage = all.iter().rev().find_map(|one| one.result.usage.clone());
        let worst = (0..all.len()).max_by_key(|at| badness(all[*at].result.status))?;
        let mut result = *all.remove(worst).result;
        if all.is_empty() {
            return Some((result, None));
        }
        let said = result.status;
        result.usage = usage;
        let others: Vec<Status> = all.iter().map(|one| one.result.status).filter(|other| *other != said).collect();
        if others.contains(&Status::Blocked) && said != Status::Error {
            let error = "The worker contradicts itself: by one result nothing was begun, and another says how it went.";
            (result.status, result.error) = (Status::Error, Some(error.to_owned()));
        }
        let kept = all.iter().filter_map(|one| serde_json::to_value(&one.result).ok()).collect();
        result.more.insert(OTHERS.to_owned(), Value::Array(kept));
        let detail = "the worker told several results that differ; the worst of them counts";
        let differs = Check { name: "one_result".into(), ok: false, detail: detail.to_owned() };
        Some((result, (!others.is_empty()).then_some(differs)))
    }
}

/// What git saw of a claim stands in its place, and says of itself how they differ.
const SEEN: [&str; 5] = ["branch", "commits", "diff", "uncommitted", "flags"];

/// Whether a result is another one that was held against what git saw, by the program whose agent told it.
fn is_claim_of(claim: &TaskResult, seen: &TaskResult) -> bool {
    let is_held = seen.more.get("evidence").is_some_and(|evidence| evidence["git"]["ok"].is_boolean());
    is_held && unseen(claim) == unseen(seen)
}

/// A result without what git has a word on.
fn unseen(result: &TaskResult) -> TaskResult {
    let mut result = result.clone();
    result.artifacts.files_changed.clear();
    SEEN.iter().for_each(|name| drop(result.artifacts.more.remove(*name)));
    let evidence = result.more.get_mut("evidence").and_then(Value::as_object_mut);
    if evidence.is_some_and(|evidence| evidence.remove("git").is_some() && evidence.is_empty()) {
        result.more.remove("evidence");
    }
    result
}

/// Whoever says how it went has begun.
fn badness(status: Status) -> u8 {
    match status {
        Status::Blocked => 0,
        Status::Done => 1,
        Status::Partial => 2,
        Status::Error => 3,
    }
}

/// How a result and the state it came with speak against each other, if they do.
pub(super) fn contradiction(status: Status, state: TaskState) -> Option<&'static str> {
    let says_well = matches!(status, Status::Done | Status::Partial);
    match state {
        TaskState::Failed if says_well => Some("it failed, and its result says otherwise"),
        TaskState::Rejected if status != Status::Blocked => Some("it rejected the work, and says how it went"),
        TaskState::Canceled if status == Status::Done => Some("it stopped as canceled, and says it is done"),
        state if state.is_interrupted() && status == Status::Done => Some("it asks, and says it is done"),
        state if state.is_interrupted() && status == Status::Error => Some("it asks, and says it failed"),
        _ => None,
    }
}
