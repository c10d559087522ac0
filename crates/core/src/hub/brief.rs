//! What a worker is told with the work it is given: its contract, in words the worker knows.

use super::Hub;
use super::run::RunHandle;
use crate::dispatch::Worker;
use crate::fleet::contract::{Contract, Past};
use crate::fleet::form::{self, Told};
use crate::fleet::queue::Order;
use crate::fleet::terms;
use crate::registry::Agent;
use flotilla_protocol::work::Assignment;
use std::sync::Arc;

/// Who is given work, and how it came to that.
pub(super) struct Given<'a> {
    pub contract: &'a Contract,
    pub order: &'a Order,
    pub agent: &'a Agent,
    pub worker: &'a Worker,
    /// What it may lack, for all that is known.
    pub unverified: &'a [String],
    /// It did not have the work before.
    pub is_another: bool,
}

impl Hub {
    /// Makes of an assignment what is sent to its worker.
    pub(super) async fn brief(&self, given: Given<'_>, work: &mut Assignment, run: &RunHandle) {
        let Given { contract, order, agent, worker, unverified, is_another } = given;
        let asked_again = contract.past.asked_again.as_ref().filter(|(who, _)| *who == worker.name);
        let violations = asked_again.map(|(_, violations)| violations.as_slice());
        if violations.is_some() {
            work.trail.upstream.task.clear();
        }
        let deadline = [work.lineage.deadline, contract.dispatch.deadline].into_iter().flatten().min();
        work.lineage.deadline = deadline;
        let left = match run.live.committed() {
            Some(head) => self.left_above(&head).await,
            None => None,
        };
        let told = Told { worker, unverified, violations, deadline, left };
        let anew = is_another || violations.is_some();
        let texts = !order.direct || self.reads_texts(agent);
        if let Some(mut dispatch) = terms::told(&contract.dispatch, work, texts, anew) {
            if agent.is_elsewhere() {
                terms::pass_on(dispatch.to_mut());
            }
            work.message = form::dressed(&work.message, &dispatch, &told);
        }
        rename(work, agent, tries(&contract.past, &worker.name));
    }
}

impl Hub {
    /// The same for work that was given before the hub stopped, and that its worker may not have been told of yet.
    pub(super) async fn brief_again(
        &self,
        contract: &Contract,
        order: &Order,
        agent: &Agent,
        work: &mut Assignment,
        run: &RunHandle,
    ) {
        if work.trail.is_held() || work.trail.linked {
            return rename(work, agent, tries(&contract.past, &agent.name));
        }
        let (worker, past) = (self.fleet.worker(&agent.name), &contract.past);
        let is_another = past.had.as_ref().is_none_or(|had| *had != worker.name);
        let given = Given { contract, order, agent, worker: &worker, unverified: &past.unverified, is_another };
        self.brief(given, work, run).await;
    }
}

/// How often a worker was told of this work before, and is told something else now.
fn tries(past: &Past, worker: &str) -> u32 {
    let asked_again = past.asked_again.as_ref().is_some_and(|(who, _)| **who == *worker);
    past.refusals(worker) + u32::from(asked_again)
}

/// Whoever is elsewhere and refused a message, or replied to it, is asked by another: under the same id it would only say
/// the same again.
fn rename(work: &mut Assignment, agent: &Agent, tries: u32) {
    if tries > 0 && agent.is_elsewhere() {
        Arc::make_mut(&mut work.message).message_id.push_str(&format!(".{tries}"));
        work.trail.refused = tries;
    }
}
