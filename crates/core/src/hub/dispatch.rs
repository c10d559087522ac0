//! Work under a contract: found a worker for, given to it, and given to another when that one cannot.

use super::Hub;
use super::brief::Given;
use super::judged::count_blocked;
use super::occupied::Release;
use super::run::RunHandle;
use super::working::judge;
use crate::budget::Ceiling;
use crate::dispatch::{Choice, Target};
use crate::fleet::contract::{Contract, Past};
use crate::fleet::form;
use crate::fleet::queue::{Order, Placed};
use crate::fleet::reasons::{Hindrance, hindrance, listed};
use crate::fleet::settings::{after, between};
use crate::fleet::{FLEET, contract, own, schema, terms};
use crate::registry::{Agent, OnLost};
use crate::task::{Command, Head};
use flotilla_protocol::a2a::error::Refusal;
use flotilla_protocol::a2a::model::Message;
use flotilla_protocol::event::Change;
use flotilla_protocol::fleet::dispatch::OnBlocked;
use flotilla_protocol::fleet::result::BlockedReason;
use flotilla_protocol::fleet::route::Step;
use flotilla_protocol::time::Millis;
use flotilla_protocol::work::{Assignment, Trail};
use metrics::counter;
use std::sync::Arc;

/// So many workers are tried before work is given up, whatever its policy says.
const MOST_TRIES: usize = 64;

/// Whoever writes `hard` counts on being held to something.
const NO_CEILING: &str = "is hard, and names no ceiling that is known here; write max_total_tokens, max_output_tokens or \
                          max_cost_usd into it, or task.token_budget beside it";

/// How a search for a worker ended.
enum Search {
    Found(Box<Placed>),
    /// Nobody took it.
    Nobody(Hindrance, Choice),
    /// The run is over, or the hub is.
    Off,
}

impl Hub {
    /// Whether texts to an agent are read for a dispatch.
    pub(super) fn reads_texts(&self, agent: &Agent) -> bool {
        agent.name == FLEET
            || self.fleet.settings().workers.get(&agent.name).is_some_and(|worker| worker.handshake)
            || self.fleet.has(&agent.name)
    }

    /// Refuses a dispatch that is wrong before anything is written.
    pub(super) fn check_dispatch(&self, agent: &Agent, message: &Message) -> Result<(), Refusal> {
        let contract::Carried::Dispatch(dispatch) = contract::only(message, self.reads_texts(agent))? else {
            return Ok(());
        };
        if agent.name == FLEET {
            contract::addressee(&dispatch)?;
        }
        if dispatch.task.budget.as_ref().is_some_and(|budget| budget.hard) && Ceiling::of(&dispatch).is_none() {
            return Err(Refusal::invalid("task.budget", NO_CEILING));
        }
        match dispatch.task.json_schema.as_ref().and_then(schema::problem) {
            Some(problem) => Err(Refusal::invalid("task.json_schema", problem)),
            None => Ok(()),
        }
    }

    /// The contract a run is under, if it is under one; and the version of one that cannot be read.
    pub(super) fn contract(
        &self,
        agent: &Agent,
        first: &Message,
        changes: &[Arc<Change>],
    ) -> (Option<Contract>, Option<String>) {
        let carried = contract::carried(first, self.reads_texts(agent)).unwrap_or(contract::Carried::Nothing);
        let (dispatch, version) = match carried {
            contract::Carried::Dispatch(dispatch) => (Some(*dispatch), None),
            contract::Carried::OtherVersion(version) => (None, Some(version)),
            contract::Carried::Nothing => (None, None),
        };
        let dispatch = dispatch.or_else(|| (agent.name == FLEET).then(|| contract::plain(first)));
        let past = if dispatch.is_some() || version.is_some() { Past::of(changes) } else { Past::default() };
        let version = version.filter(|_| !past.noted_version);
        let contract = dispatch.map(|mut dispatch| {
            let target = contract::target(agent, &dispatch);
            terms::amend(&mut dispatch, changes, self.reads_texts(agent));
            dispatch.deadline = past.deadline.or(dispatch.deadline);
            Contract { dispatch: Arc::new(dispatch), target, past }
        });
        (contract, version)
    }

    /// Notes a decision on the task's log. False if the run is over.
    pub(super) async fn route(self: &Arc<Self>, run: &RunHandle, step: Step, deadline: Option<Millis>) -> bool {
        let command = || Command::Route { run: run.run, step: Box::new(step.clone()), deadline };
        match self.change(&run.live, command).await {
            Ok(done) => done.is_some(),
            Err(error) => {
                tracing::error!(task = %run.live.id(), %error, "a decision about dispatched work is not recorded");
                false
            }
        }
    }

    /// Does a run under a contract, from the search for a worker to its last report.
    pub(super) async fn attend(
        self: Arc<Self>,
        contract: Contract,
        agent: Arc<Agent>,
        work: Assignment,
        mut run: RunHandle,
    ) {
        let Some(head) = run.live.committed() else { return };
        run.capped = Ceiling::of(&contract.dispatch).is_some_and(|ceiling| ceiling.hard);
        let order = self.order(&contract, &agent, &head);
        // What its worker took up in this run, before the hub stopped or by itself, is nobody else's.
        let is_same = |number: u32| work.trail.linked || (work.trail.resumed && number == run.run);
        let had = contract.past.given.as_ref().filter(|(number, _)| is_same(*number));
        if let Some((_, worker)) = had {
            return self.resume(&contract, order, Arc::clone(worker), work, run).await;
        }
        run.has_started();
        if contract.dispatch.deadline.is_some_and(|deadline| deadline <= self.clock.now()) {
            let detail = "the deadline passed before the work began; send it again with a later one".to_owned();
            return self.reject(run, &contract, late(detail), Choice::default()).await;
        }
        let Some(run) = self.affordable(run, &contract, None).await else { return };
        self.look_at_allowances().await;
        match self.search(&run, &contract, &order).await {
            Search::Found(placed) => self.hand_over(&contract, order, *placed, work, run).await,
            Search::Nobody(hindrance, choice) => self.reject(run, &contract, hindrance, choice).await,
            Search::Off if self.is_stopping() => run.detach(),
            Search::Off => {}
        }
    }

    fn order(&self, contract: &Contract, agent: &Agent, head: &Head) -> Order {
        let past = &contract.past;
        // Who asked back, or replied wrongly, is the one to go on; and before rerouting is next, who was first.
        let last = past.given.as_ref().map(|(_, worker)| worker);
        let stays = contract.dispatch.on_blocked().first() != Some(&OnBlocked::Reroute);
        let last = last.or_else(|| past.shunned.last().filter(|_| stays).map(|shunned| &shunned.worker));
        let passed = head.origin.iter().flat_map(|origin| origin.passed(self.store.hub_id()));
        Order {
            task: head.id,
            run: head.run,
            dispatch: Arc::clone(&contract.dispatch),
            target: last.map_or_else(|| contract.target.clone(), |worker| Target::Worker(worker.to_string())),
            shunned: past.shunned.clone(),
            principal: head.principal,
            workspace: agent.workspace,
            context: Arc::clone(&head.context),
            since: head.created_at,
            direct: agent.name != FLEET,
            agents: past.agents.clone(),
            passed: passed.map(str::to_owned).collect(),
        }
    }

    /// Finds a worker now, or does what the policy says, step by step, until there is one or nothing is left to do.
    async fn search(self: &Arc<Self>, run: &RunHandle, contract: &Contract, order: &Order) -> Search {
        let tries = contract.past.shunned.len();
        let first = match self.fleet.place(order, &self.registry(), self.clock.now()) {
            Ok(placed) => return Search::Found(Box::new(placed)),
            Err(choice) => choice,
        };
        let (mut choice, mut order) = (first, order.clone());
        let steps = if tries < MOST_TRIES { contract.dispatch.on_blocked() } else { &[] };
        let mut alerts = 0;
        for step in steps {
            match step {
                // Whoever asked back goes on; of work that was blocked, or replied to wrongly, all others are looked at
                // from here on.
                OnBlocked::Reroute if contract.past.is_for_others() && order.target != contract.target => {
                    order.target = contract.target.clone();
                    match self.fleet.place(&order, &self.registry(), self.clock.now()) {
                        Ok(placed) => return Search::Found(Box::new(placed)),
                        Err(looked) => choice = looked,
                    }
                }
                // Everyone was looked at above.
                OnBlocked::Reroute => {}
                OnBlocked::Queue => {
                    if let Some(found) = self.wait_for_worker(run, contract, &order, &mut choice).await {
                        return found;
                    }
                }
                OnBlocked::Alert => {
                    // Each once, however often the policy is begun with again.
                    alerts += 1;
                    if alerts > contract.past.alerts {
                        self.alert(run, hindrance(&choice, &contract.target)).await;
                    }
                }
            }
        }
        let hindrance = hindrance(&choice, &contract.target);
        match contract.dispatch.deadline.is_some_and(|deadline| deadline <= self.clock.now()) {
            true => Search::Nobody(
                late(format!("the deadline passed before anybody could take it ({})", hindrance.detail)),
                choice,
            ),
            false => Search::Nobody(hindrance, choice),
        }
    }

    /// Waits in the queue. None if the time is over.
    async fn wait_for_worker(
        self: &Arc<Self>,
        run: &RunHandle,
        contract: &Contract,
        order: &Order,
        choice: &mut Choice,
    ) -> Option<Search> {
        let since = contract.past.queued_at.unwrap_or_else(|| self.clock.now());
        let until = contract.dispatch.deadline.unwrap_or_else(|| after(since, self.fleet.settings().wait));
        let mut queued = match self.fleet.enqueue(order.clone(), &self.registry(), self.clock.now()) {
            Ok(queued) => queued,
            Err(placed) => return Some(Search::Found(placed)),
        };
        if contract.past.queued_at.is_none() {
            let step = Step::Queued { until, considered: listed(choice) };
            let reason = "The work waits for a worker that can take it.";
            let held = || Command::Hold { run: run.run, reason: reason.to_owned() };
            if !self.route(run, step, None).await || self.change(&run.live, held).await.is_err() {
                return Some(Search::Off);
            }
        }
        loop {
            let now = self.clock.now();
            if now >= until {
                return None;
            }
            // Whoever said when it may be asked again is asked again then.
            let retry = order.shunned.iter().filter_map(|shunned| shunned.until).filter(|at| *at > now).min();
            let next = retry.map_or(until, |retry| retry.min(until));
            tokio::select! {
                biased;
                Ok(placed) = &mut queued.placed => return Some(Search::Found(Box::new(placed))),
                () = run.fenced() => return Some(Search::Off),
                () = run.stopping() => return Some(Search::Off),
                () = tokio::time::sleep(between(now, next)) => {
                    drop(queued);
                    match self.fleet.place(order, &self.registry(), self.clock.now()) {
                        Ok(placed) => return Some(Search::Found(Box::new(placed))),
                        Err(looked) => *choice = looked,
                    }
                    queued = match self.fleet.enqueue(order.clone(), &self.registry(), self.clock.now()) {
                        Ok(queued) => queued,
                        Err(placed) => return Some(Search::Found(placed)),
                    };
                }
            }
        }
    }

    pub(super) async fn reject(
        self: &Arc<Self>,
        mut run: RunHandle,
        contract: &Contract,
        hindrance: Hindrance,
        choice: Choice,
    ) {
        counter!("flotilla_dispatches_total", "outcome" => "rejected").increment(1);
        // What a worker blocked was counted then.
        if contract.past.shunned.is_empty() {
            count_blocked(&hindrance.reason);
        }
        let (reason, detail) = (hindrance.reason.clone(), hindrance.detail.clone());
        let step = Step::Rejected { reason, detail, considered: listed(&choice) };
        if self.route(&run, step, None).await {
            // The run is over with it, whether it could be told or not.
            let _ = run.report(own::refused(&contract.dispatch, &hindrance, &contract.past, self.clock.now())).await;
        }
    }

    /// Gives the work to a worker, in words it knows, once the log says so.
    async fn hand_over(
        self: &Arc<Self>,
        contract: &Contract,
        order: Order,
        placed: Placed,
        mut work: Assignment,
        mut run: RunHandle,
    ) {
        let _release = Release { hub: self, order: &order };
        let Placed { worker, unverified, choice } = placed;
        let Some(agent) = self.registry().by_name(&worker.name).cloned() else {
            return run.give_up("its worker is not configured on this hub any more", true).await;
        };
        run.judge = Some(judge(&agent, Arc::clone(&worker.name), &order, contract));
        (run.profile, run.refusals) = ((worker.revision, worker.announce.epoch), contract.past.refusals(&worker.name));
        // What others used while it waited counts too.
        let Some(run) = self.affordable(run, contract, Some(&agent)).await else { return };
        let (now, settings) = (self.clock.now(), self.fleet.settings());
        let step = Step::Assigned {
            worker: worker.name.to_string(),
            epoch: worker.announce.epoch,
            lease_until: after(now, settings.take),
            form: form::form(&worker),
            fallback: form::fallback(&worker),
            unverified: unverified.clone(),
            considered: listed(&choice),
        };
        if !self.route(&run, step, contract.dispatch.deadline).await {
            return;
        }
        // And what was used just now: only from here on is it stopped as work that was begun.
        let Some(mut run) = self.affordable(run, contract, Some(&agent)).await else { return };
        let is_another = contract.past.given.as_ref().is_none_or(|(_, last)| *last != worker.name);
        if is_another {
            // What another worker said, and its names for things, are nothing to this one.
            work.trail = Trail::default();
        }
        let given =
            Given { contract, order: &order, agent: &agent, worker: &worker, unverified: &unverified, is_another };
        self.brief(given, &mut work, &run).await;
        (work.asked_at, work.ttl) = self.to_be_taken();
        counter!("flotilla_dispatches_total", "outcome" => "assigned").increment(1);
        run.take = worker.announced.then_some(settings.take);
        self.work(&agent, work, run).await;
    }

    /// From when on, and for how many seconds, a worker may be absent that was given work.
    pub(super) fn to_be_taken(&self) -> (Millis, Option<u32>) {
        (self.clock.now(), u32::try_from(self.fleet.settings().take.as_secs().max(1)).ok())
    }

    /// Takes up work that a worker had when the hub stopped.
    async fn resume(
        self: &Arc<Self>,
        contract: &Contract,
        order: Order,
        worker: Arc<str>,
        mut work: Assignment,
        mut run: RunHandle,
    ) {
        let Some(agent) = self.registry().by_name(&worker).cloned() else {
            return run.give_up("its worker is not configured on this hub any more", false).await;
        };
        if !agent.link.is_remote() {
            if work.trail.stopping {
                return run.canceled().await;
            }
            let again = agent.on_lost == OnLost::Retry;
            return run.give_up("the hub stopped while the worker was at work", again).await;
        }
        self.fleet.regive(&order, &worker);
        let _release = Release { hub: self, order: &order };
        if self.route(&run, Step::Resumed { worker: worker.to_string() }, None).await {
            (run.profile, run.refusals) = (self.fleet.profile(&worker), contract.past.refusals(&worker));
            run.take = self.fleet.has(&worker).then(|| self.fleet.settings().take);
            self.brief_again(contract, &order, &agent, &mut work, &run).await;
            let mut judge = judge(&agent, worker, &order, contract);
            match self.log_of(&run.live).await {
                Ok(changes) => judge.recall(&changes),
                Err(fault) => return run.give_up(&format!("what was said of it cannot be read: {fault}"), false).await,
            }
            run.judge = Some(judge);
            if !work.trail.started {
                // Nobody has it yet for all that is known, and others wait for it.
                (work.asked_at, work.ttl) = self.to_be_taken();
            }
            self.work(&agent, work, run).await;
        }
    }
}

fn late(detail: String) -> Hindrance {
    Hindrance { reason: BlockedReason::DeadlinePassed, detail, retryable: false, until: None }
}
