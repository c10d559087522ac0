//! What is known of a run from its reports, so that the next one is taken for what it is.

use super::{Desk, REMEMBERED};
use crate::ids::TaskId;

impl Desk {
    /// Whether a run has made an artifact before; it has now, if that is to be remembered.
    pub fn knows_artifact(&self, task: TaskId, artifact: &str, remember: bool) -> bool {
        let mut state = self.state();
        let Some(entry) = state.runs.get_mut(&task) else { return false };
        entry.artifacts.contains(artifact) || (remember && !entry.artifacts.insert(artifact.to_owned()))
    }

    /// Whether this is the first its caller hears of a run; the next is not.
    pub fn begins(&self, task: TaskId) -> bool {
        let mut state = self.state();
        state.runs.get_mut(&task).is_some_and(|entry| !std::mem::replace(&mut entry.begun, true))
    }

    /// Whether a report of this id was taken before; it is now.
    pub fn knows_report(&self, task: TaskId, id: &str) -> bool {
        let mut state = self.state();
        let Some(entry) = state.runs.get_mut(&task) else { return false };
        if entry.told.iter().any(|told| told == id) {
            return true;
        }
        if entry.told.len() == REMEMBERED {
            entry.told.pop_front();
        }
        entry.told.push_back(id.to_owned());
        false
    }
}
