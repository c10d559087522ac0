//! Approvals: a run asks its agent's owner, waits, and is told; the owner lists and answers.

mod due;

pub use due::Approvals;

use super::run::is_current;
use super::{Hub, LiveRef, RunHandle};
use crate::approval::{Approval, ApprovalFilter, Policy, Settled};
use crate::caller::{Caller, Scope};
use crate::error::{Error, Fault};
use crate::ids::{ApprovalId, TaskId};
use crate::registry::Agent;
use crate::rights::Right;
use crate::task::approve::{self, Answer, Question, Settling};
use crate::task::{Command, Head};
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::approval::{ApprovalDecision, ApprovalRequest, ApprovalState};
use flotilla_protocol::event::Asker;
use flotilla_protocol::time::Millis;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// The most approvals in a page.
const PAGE: usize = 100;
/// What a question may hold.
const NAME: usize = 256;
const TEXT: usize = 16 * 1024;
const INPUT: usize = 1024 * 1024;
/// A note of the owner's.
const NOTE: usize = 4 * 1024;
/// The clock is looked at this often at least, for it may be set while nobody looks.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

pub struct ApprovalPage {
    pub approvals: Vec<Approval>,
    /// Where the next page starts; none after the last one.
    pub next: Option<ApprovalId>,
}

impl RunHandle {
    /// Asks the agent's owner, and waits for what they say. Asked again under the same name, it is the same question,
    /// also after a restart of the hub. May be waited for beside reports.
    pub fn ask(
        &self,
        request: ApprovalRequest,
    ) -> impl Future<Output = Result<ApprovalDecision, Error>> + Send + use<> {
        let (hub, task, run) = (Arc::clone(&self.hub), self.live.id(), self.run);
        async move { hub.ask(task, run, request).await }
    }
}

impl Hub {
    /// The same for whoever knows a run by its number.
    pub async fn ask(
        self: &Arc<Self>,
        task: TaskId,
        run: u32,
        request: ApprovalRequest,
    ) -> Result<ApprovalDecision, Error> {
        check(&request)?;
        let no_task = || Refusal::no_task(&task.to_string());
        let live = self.find(Scope::Admin, task).await?.ok_or_else(no_task)?;
        let id = ApprovalId::of(task, run, &request.id);
        let mut known = self.store.approval(Scope::Admin, id).await?;
        if known.is_none() {
            let head = live.committed().ok_or_else(no_task)?;
            let question = self.question(&head, id, run, request.clone()).await?;
            self.change(&live, || Command::Ask(Box::new(question.clone()))).await?;
            // Another of this name may have been faster.
            known = self.store.approval(Scope::Admin, id).await?;
        }
        if known.as_ref().is_some_and(|known| !known.request.is_same(&request)) {
            return Err(another(&request.id).into());
        }
        match known.as_ref().and_then(Approval::decision) {
            Some(decision) => Ok(decision),
            None => self.answered(&live, run, id).await,
        }
    }

    /// With the answer of a rule, or of an owner who gave it for all such questions, if there is one.
    async fn question(
        &self,
        head: &Head,
        id: ApprovalId,
        run: u32,
        request: ApprovalRequest,
    ) -> Result<Question, Fault> {
        let policy = self.approvals.policy();
        let agent = self.doer(head);
        let name = agent.as_ref().map_or("", |agent| agent.name.as_str());
        let within = request
            .expires_in
            .map_or(policy.expire_after, |seconds| Duration::from_secs(seconds.into()).min(policy.expire_after));
        let mut answer = policy.answer(name, &request);
        if answer.is_none() && !request.tool.is_empty() {
            // What one worker's owner said does not hold for another's.
            let known = self.store.standing_approval(head.id, &request.tool).await?;
            let own = |known: &Approval| agent.as_ref().is_none_or(|agent| agent.id == known.agent);
            answer = known.filter(own).and_then(standing);
        }
        if answer.is_none() {
            answer = self.nobody(head, agent.as_deref(), within).await?;
        }
        let expires = Millis(self.clock.now().0 + i64::try_from(within.as_millis()).unwrap_or(i64::MAX / 2));
        let expires = Some(expires).filter(|_| answer.is_none());
        let asker = agent.filter(|agent| agent.id != head.agent);
        let asker = asker.map(|agent| Asker { agent: agent.id.0, owner: agent.owner.0 });
        Ok(Question { id, run, request: Arc::new(request), expires, answer, asker })
    }

    /// A no at once, where nobody could say anything else.
    async fn nobody(&self, head: &Head, agent: Option<&Agent>, within: Duration) -> Result<Option<Answer>, Fault> {
        let no = |note: &str| Some(Answer::new(ApprovalState::Denied, "hub").noting(note));
        if within.is_zero() {
            return Ok(no("the hub gives nobody time to answer (approvals.expire_after)"));
        }
        let (now, owner) = (self.clock.now(), agent.map_or(head.owner, |agent| agent.owner));
        let may = self.store.keys().await?.into_iter().any(|key| {
            let live = key.revoked_at.is_none() && key.expires_at.is_none_or(|end| end > now);
            let named = key.agents.as_ref().is_none_or(|names| agent.is_some_and(|agent| names.contains(&agent.name)));
            let owns = key.principal.id == owner && key.rights.has(Right::ApprovalsWrite) && named;
            live && (owns || key.rights.is_admin())
        });
        Ok(if may { None } else { no("nobody has a key that could answer (scope approvals:write)") })
    }

    async fn answered(&self, live: &LiveRef, run: u32, id: ApprovalId) -> Result<ApprovalDecision, Error> {
        loop {
            let mut woken = pin!(live.woken());
            woken.as_mut().enable();
            let open = live.committed().is_some_and(|head| head.open_approvals.contains(&id));
            if !open || !is_current(live, run) {
                break;
            }
            woken.await;
        }
        let known = self.store.approval(Scope::Admin, id).await?;
        let over = ApprovalDecision { state: ApprovalState::Withdrawn, input: None, note: "the run is over".into() };
        Ok(known.and_then(|approval| approval.decision()).unwrap_or(over))
    }

    /// A page of what the agents of this caller have asked, newest first.
    pub async fn approval_page(
        &self,
        caller: &Caller,
        state: Option<&str>,
        task: Option<&str>,
        agent: Option<&str>,
        before: Option<&str>,
    ) -> Result<ApprovalPage, Error> {
        let state = state
            .filter(|name| *name != "all")
            .map(|name| ApprovalState::from_name(name).ok_or_else(|| no_state(name)))
            .transpose()?;
        let no_place = || Refusal::invalid("before", "must be the nextBefore of another page");
        let before = before.map(|text| ApprovalId::parse(text).ok_or_else(no_place)).transpose()?;
        let registry = self.registry();
        let agent = agent.map(|name| registry.resolve(caller, Some(name), "").map(|agent| agent.id)).transpose()?;
        let Some(task) = task.map(TaskId::parse).map_or(Some(None), |task| task.map(Some)) else {
            return Ok(ApprovalPage { approvals: Vec::new(), next: None });
        };
        let filter = ApprovalFilter { state, task, agent, before, limit: PAGE + 1 };
        let mut approvals = self.store.approvals(caller.as_owner(), filter).await?;
        let more = approvals.len() > PAGE;
        approvals.truncate(PAGE);
        let next = approvals.last().map(|approval| approval.id).filter(|_| more);
        approvals.retain(|approval| self.is_shown(caller, approval));
        Ok(ApprovalPage { approvals, next })
    }

    pub async fn approval(&self, caller: &Caller, id: &str) -> Result<Approval, Error> {
        let found = match ApprovalId::parse(id) {
            Some(parsed) => self.store.approval(caller.as_owner(), parsed).await?,
            None => None,
        };
        found.filter(|approval| self.is_shown(caller, approval)).ok_or_else(|| no_approval(id).into())
    }

    fn is_shown(&self, caller: &Caller, approval: &Approval) -> bool {
        let registry = self.registry();
        let agent = registry.by_id(approval.agent);
        caller.agents.is_none() || agent.is_some_and(|agent| caller.may_call(&agent.name))
    }

    /// The owner's answer. Only the first one counts.
    pub async fn answer_approval(
        self: &Arc<Self>,
        caller: &Caller,
        id: &str,
        answer: Answer,
    ) -> Result<Approval, Error> {
        if answer.note.len() > NOTE || answer.input.as_ref().is_some_and(|input| input.text().len() > INPUT) {
            let text = format!("must be at most {NOTE} bytes, and an input at most {INPUT}");
            return Err(Refusal::invalid("note", text).into());
        }
        let approval = self.approval(caller, id).await?;
        if let Some(settled) = &approval.settled {
            return Err(too_late(&approval, settled).into());
        }
        let answer = Answer { by: caller.name.to_string(), ..answer };
        match self.settle(approval.task, approval.id, answer).await {
            Err(Error::Refused(refusal)) => {
                // Somebody was faster, or the run ended: say which.
                let now = self.approval(caller, id).await?;
                Err(now.settled.as_ref().map_or(refusal, |settled| too_late(&now, settled)).into())
            }
            Err(error) => Err(error),
            Ok(()) => self.approval(caller, id).await,
        }
    }

    async fn settle(self: &Arc<Self>, task: TaskId, id: ApprovalId, answer: Answer) -> Result<(), Error> {
        let live = self.find(Scope::Admin, task).await?.ok_or_else(|| approve::settled(id))?;
        let settling = Settling { id, answer };
        self.change(&live, || Command::Settle(Box::new(settling.clone()))).await.map(|_| ())
    }

    /// Denies what nobody answered in time. Says when to come again; none if nothing is open.
    pub(crate) async fn expire_approvals(self: &Arc<Self>) -> Option<Duration> {
        loop {
            let (now, next) = (self.clock.now(), self.approvals.next()?);
            let (at, id, task) = next;
            if at > now {
                return Some(Duration::from_millis(u64::try_from(at.0 - now.0).unwrap_or(0)).min(LONGEST_WAIT));
            }
            let answer = Answer::new(ApprovalState::Expired, "expiry").noting("nobody answered in time");
            match self.settle(task, id, answer).await {
                // Settled meanwhile, or by this.
                Ok(()) | Err(Error::Refused(_)) => self.approvals.forget(id),
                Err(Error::Failed(fault)) => {
                    tracing::error!(%task, approval = %id, %fault, "an approval is not expired yet; trying again");
                    return Some(Duration::from_secs(1));
                }
            }
        }
    }

    pub(crate) async fn approval_due(&self) {
        self.approvals.sooner.notified().await;
    }

    /// Puts other rules in place; what is open stays open.
    pub fn replace_approval_policy(&self, policy: Policy) {
        self.approvals.replace_policy(policy);
    }

    pub(super) async fn load_approvals(&self) -> Result<(), Fault> {
        for (at, task, id) in self.store.expiring().await? {
            self.approvals.expect(at, id, task);
            if let Some(Approval { owner, agent, .. }) = self.store.approval(Scope::Admin, id).await? {
                self.approvals.asked_by(id, owner, agent);
            }
        }
        Ok(())
    }
}

/// An answer that was given for every question of the task about a tool.
fn standing(approval: Approval) -> Option<Answer> {
    let Answer { state, by, .. } = approval.settled?.answer;
    Some(Answer::new(state, by).noting(format!("as said for the whole task in {}", approval.id)))
}

fn check(request: &ApprovalRequest) -> Result<(), Refusal> {
    let long = |name: &str, length: usize, most: usize| {
        let text = format!("must be at most {most} bytes, got {length}");
        if length > most { Err(Refusal::invalid(name, text)) } else { Ok(()) }
    };
    if request.id.is_empty() {
        return Err(Refusal::invalid("id", "must be a name of the question, which no other of the run has"));
    }
    if request.tool.is_empty() && request.text.is_empty() {
        return Err(Refusal::invalid("tool", "must name the tool, or text must say what is asked"));
    }
    long("id", request.id.len(), NAME)?;
    long("tool", request.tool.len(), NAME)?;
    long("text", request.text.len(), TEXT)?;
    long("input", request.input.as_ref().map_or(0, |input| input.text().len()), INPUT)
}

/// What is said to one question goes for no other.
fn another(name: &str) -> Refusal {
    let shown: String = name.chars().take(80).collect();
    let text = format!("'{shown}' is another question of this run already; ask this one under a name of its own");
    Refusal::invalid("id", text)
}

fn too_late(approval: &Approval, settled: &Settled) -> Refusal {
    let Answer { state, by, .. } = &settled.answer;
    let text = format!(
        "The approval is not open any more: {} by {by} at {}. The first answer counts; nothing was changed.",
        state.name(),
        settled.at
    );
    let refusal = Refusal::new(Reason::UnsupportedOperation, text);
    refusal.fact("approvalId", approval.id.to_string()).fact("state", state.name())
}

fn no_state(name: &str) -> Refusal {
    let all: Vec<&str> = ApprovalState::ALL.iter().map(|state| state.name()).collect();
    let shown: String = name.chars().take(80).collect();
    Refusal::invalid("state", format!("'{shown}' is no state; there are: all, {}", all.join(", ")))
}

fn no_approval(id: &str) -> Refusal {
    let shown: String = id.chars().take(80).collect();
    let text = format!("There is no approval '{shown}' for you. 'flotilla approvals list' shows those there are.");
    Refusal::new(Reason::NotFound, text)
}
