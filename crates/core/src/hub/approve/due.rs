//! What the hub itself knows of approvals: the rules in force, and which question is due next.

use crate::approval::{Policy, Told, told};
use crate::ids::{AgentId, ApprovalId, PrincipalId, TaskId};
use arc_swap::ArcSwap;
use flotilla_protocol::event::Change;
use flotilla_protocol::time::Millis;
use metrics::{counter, gauge};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;

#[derive(Default)]
pub struct Approvals {
    policy: ArcSwap<Policy>,
    due: Mutex<Due>,
    pub sooner: Notify,
}

#[derive(Default)]
struct Due {
    by_time: BTreeMap<(Millis, ApprovalId), TaskId>,
    times: HashMap<ApprovalId, Millis>,
    /// Who asked, and whose agent that is; where it is the fleet's work, it may be another's by the time it is settled.
    askers: HashMap<ApprovalId, (PrincipalId, AgentId)>,
}

impl Approvals {
    fn due(&self) -> MutexGuard<'_, Due> {
        self.due.lock().expect("no panic while holding what is due")
    }

    pub fn policy(&self) -> Arc<Policy> {
        self.policy.load_full()
    }

    pub fn replace_policy(&self, policy: Policy) {
        self.policy.store(Arc::new(policy));
    }

    /// A question is open until this time.
    pub fn expect(&self, at: Millis, id: ApprovalId, task: TaskId) {
        let mut due = self.due();
        due.by_time.insert((at, id), task);
        due.times.insert(id, at);
        gauge!("flotilla_approvals_open").set(due.times.len() as f64);
        if due.by_time.first_key_value().is_some_and(|((_, first), _)| *first == id) {
            self.sooner.notify_one();
        }
    }

    pub fn asked_by(&self, id: ApprovalId, owner: PrincipalId, agent: AgentId) {
        self.due().askers.insert(id, (owner, agent));
    }

    /// Who asked an open question, if that is known.
    pub fn asker(&self, id: ApprovalId) -> Option<(PrincipalId, AgentId)> {
        self.due().askers.get(&id).copied()
    }

    pub fn forget(&self, id: ApprovalId) {
        let mut due = self.due();
        due.askers.remove(&id);
        if let Some(at) = due.times.remove(&id) {
            due.by_time.remove(&(at, id));
        }
        gauge!("flotilla_approvals_open").set(due.times.len() as f64);
    }

    pub fn next(&self) -> Option<(Millis, ApprovalId, TaskId)> {
        self.due().by_time.first_key_value().map(|((at, id), task)| (*at, *id, *task))
    }

    /// A change was committed that may tell of questions.
    pub fn changed(&self, task: TaskId, change: &Change) {
        for told in told(&change.events) {
            match told {
                Told::Asked { id, expires, asker, .. } => {
                    counter!("flotilla_approvals_asked_total").increment(1);
                    if let Some(at) = expires {
                        self.expect(at, id, task);
                        if let Some((agent, owner)) = asker {
                            self.asked_by(id, owner, agent);
                        }
                    }
                }
                Told::Settled { id, answer } => {
                    counter!("flotilla_approvals_settled_total", "state" => answer.state.name()).increment(1);
                    self.forget(id);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Approvals;
    use crate::ids::{ApprovalId, TaskId};
    use flotilla_protocol::time::Millis;

    #[test]
    fn the_first_is_due_first_until_it_is_settled() {
        let approvals = Approvals::default();
        let task = TaskId::fresh();
        let [late, soon] = ["late", "soon"].map(|name| ApprovalId::of(task, 1, name));
        approvals.expect(Millis(20), late, task);
        approvals.expect(Millis(10), soon, task);
        assert_eq!(approvals.next(), Some((Millis(10), soon, task)));
        approvals.forget(soon);
        assert_eq!(approvals.next(), Some((Millis(20), late, task)));
        approvals.forget(late);
        assert_eq!(approvals.next(), None);
    }
}
