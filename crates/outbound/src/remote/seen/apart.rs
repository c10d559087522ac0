//! What a whole task holds under one id, or under none, told apart: nothing takes the place of anything else in it.

use super::Seen;
use flotilla_protocol::a2a::model::{Artifact, Message, Role};
use flotilla_protocol::held::hash;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Artifacts with an id each. One without is named by its place, and a second of the same id by the first's and a
/// number, so that it has the same name whenever the task is told. No name is made up that the agent uses itself.
pub fn artifacts(artifacts: Vec<Arc<Artifact>>) -> Vec<Arc<Artifact>> {
    let mut taken: HashSet<String> = artifacts.iter().map(|artifact| artifact.artifact_id.clone()).collect();
    let mut met = HashSet::new();
    let named = |(index, artifact): (usize, Arc<Artifact>)| {
        let id = &artifact.artifact_id;
        if !id.is_empty() && met.insert(id.clone()) {
            return artifact;
        }
        let place = format!("artifact-{}", index + 1);
        let id = match id.is_empty() {
            true if taken.insert(place.clone()) => place,
            true => fresh(&place, &mut taken),
            false => fresh(id, &mut taken),
        };
        Arc::new(Artifact { artifact_id: id, ..(*artifact).clone() })
    };
    artifacts.into_iter().enumerate().map(named).collect()
}

/// The messages of a history. A second one of the agent's of the same id that says something else gets an id of its own,
/// unless the id is known for what grows under it: what is said piece by piece, or is said now (`latest`).
pub fn messages(history: Vec<Arc<Message>>, seen: &Seen, latest: &str) -> Vec<Arc<Message>> {
    let mut taken: HashSet<String> = history.iter().map(|message| message.message_id.clone()).collect();
    let mut met: HashMap<String, HashSet<u64>> = HashMap::new();
    let told = |message: Arc<Message>| {
        let id = &message.message_id;
        if message.role == Role::User || id.is_empty() || id == latest || seen.pieces.contains(id) {
            return Some(message);
        }
        let said = hash(&message.parts);
        let Some(before) = met.get_mut(id) else {
            met.insert(id.clone(), HashSet::from([said]));
            return Some(message);
        };
        let is_known = !before.insert(said) || seen.said.get(id) == Some(&Some(said));
        let renamed = || Message { message_id: fresh(id, &mut taken), ..(*message).clone() };
        (!is_known).then(renamed).map(Arc::new)
    };
    history.into_iter().filter_map(told).collect()
}

/// `NAME-2`, or the next number that nobody has.
fn fresh(name: &str, taken: &mut HashSet<String>) -> String {
    let free = (2_u64..).map(|number| format!("{name}-{number}")).find(|id| taken.insert(id.clone()));
    free.unwrap_or_default()
}
