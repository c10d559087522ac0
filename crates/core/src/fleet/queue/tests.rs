//! Who gets what first: urgency, deadlines, age, places; and how long a decision takes among many.

use super::{Order, Queued};
use crate::dispatch::{Choice, Shunned, Target};
use crate::fleet::{Fleet, Settings, Via, virtual_agent};
use crate::ids::{AgentId, PrincipalId, TaskId, WorkspaceId};
use crate::registry::{Agent, Registry, Visibility};
use flotilla_protocol::fleet::announce::RepoState;
use flotilla_protocol::fleet::dispatch::Priority;
use flotilla_protocol::fleet::result::BlockedReason;
use flotilla_protocol::fleet::{Announce, Dispatch};
use flotilla_protocol::time::Millis;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

const NOW: Millis = Millis(10_000_000);

fn agent(number: i64) -> Agent {
    let agent = virtual_agent(AgentId(number), PrincipalId(1), WorkspaceId::DEFAULT);
    Agent { name: format!("w{number:03}"), ..agent }
}

/// A fleet of so many workers, each with one place.
fn fleet(count: i64) -> (Fleet, Registry) {
    let registry = Registry::new((1..=count).map(agent), None);
    let fleet = Fleet::default();
    for agent in registry.agents() {
        let mut announce = Announce::default();
        announce.worker.agent_id.clone_from(&agent.name);
        announce.capabilities.tools = ["bash", "edit", "grep"].map(str::to_owned).to_vec();
        announce.worker.model_tier = Some(["haiku", "sonnet", "opus"][(agent.id.0 % 3) as usize].to_owned());
        fleet.announce(agent, announce, Via::Socket(0), NOW);
    }
    (fleet, registry)
}

fn order(priority: Priority, deadline: Option<i64>, since: Millis) -> Order {
    let mut dispatch = Dispatch { brief: "x".into(), deadline: deadline.map(Millis), ..Dispatch::default() };
    dispatch.task.priority = priority;
    Order {
        task: TaskId::fresh(),
        run: 1,
        dispatch: Arc::new(dispatch),
        target: Target::Any,
        shunned: Vec::new(),
        principal: PrincipalId(1),
        workspace: WorkspaceId::DEFAULT,
        context: TaskId::fresh().to_string().into(),
        since,
        direct: false,
        agents: None,
        passed: Arc::default(),
    }
}

/// Lets orders wait for the only worker, and says in which order they got it.
fn given(orders: Vec<Order>) -> Vec<usize> {
    let (fleet, registry) = fleet(1);
    let first = order(Priority::Normal, None, NOW);
    fleet.place(&first, &registry, NOW).expect("it is free");
    let tasks: Vec<TaskId> = orders.iter().map(|order| order.task).collect();
    let mut queued: Vec<Option<Queued<'_>>> =
        orders.into_iter().map(|order| Some(fleet.enqueue(order, &registry, NOW).expect("it is busy"))).collect();
    let (mut has, mut order) = (first.task, Vec::new());
    for _ in 0..tasks.len() {
        fleet.release((has, 1), &registry, NOW);
        let placed = |waits: &mut Option<Queued<'_>>| waits.as_mut().is_some_and(|w| w.placed.try_recv().is_ok());
        let number = queued.iter_mut().position(placed).expect("somebody got it");
        queued[number] = None;
        (has, _) = (tasks[number], order.push(number));
    }
    order
}

#[test]
fn the_more_urgent_goes_first_then_what_is_due_then_what_is_older() {
    let now = |priority, deadline| order(priority, deadline, NOW);
    let later = NOW.0 + 10_000;
    let orders = vec![
        now(Priority::Low, Some(later)),
        now(Priority::Normal, None),
        now(Priority::High, None),
        now(Priority::High, Some(later + 5)),
        now(Priority::High, Some(later)),
        now(Priority::Urgent, None),
        now(Priority::Normal, None),
    ];
    assert_eq!(given(orders), [5, 4, 3, 2, 1, 6, 0]);
}

#[test]
fn nothing_starves() {
    let ageing = i64::try_from(Settings::default().ageing.as_millis()).expect("a short time");
    let old = |priority, steps: i64| order(priority, None, Millis(NOW.0 - steps * ageing));
    // Three steps of age make low work as urgent as urgent work that just came; a fourth puts it before.
    let orders = vec![
        old(Priority::Urgent, 0),
        old(Priority::Low, 4),
        old(Priority::Low, 3),
        old(Priority::Normal, 0),
        old(Priority::Low, 0),
    ];
    assert_eq!(given(orders), [1, 0, 2, 3, 4]);
}

#[test]
fn whoever_gives_up_waiting_is_passed_over() {
    let (fleet, registry) = fleet(1);
    let (first, second) = (order(Priority::Normal, None, NOW), order(Priority::Urgent, None, NOW));
    fleet.place(&first, &registry, NOW).expect("it is free");
    let gone = fleet.enqueue(second, &registry, NOW).expect("it is busy");
    let mut stays = fleet.enqueue(order(Priority::Low, None, NOW), &registry, NOW).expect("it is busy");
    drop(gone);
    assert_eq!(fleet.waiting(), 1);
    fleet.release((first.task, 1), &registry, NOW);
    assert!(stays.placed.try_recv().is_ok());
    fleet.drain("w001", true);
    assert!(fleet.place(&order(Priority::Urgent, None, NOW), &registry, NOW).is_err());
}

#[test]
fn a_pause_ends_by_itself_and_one_that_ends_late_frees_its_own_place() {
    let (fleet, registry) = fleet(2);
    let first = order(Priority::Normal, None, NOW);
    let worker = fleet.place(&first, &registry, NOW).expect("one is free").worker.name;
    let until = Millis(NOW.0 + 1_000);
    fleet.pause(&worker, crate::fleet::pause(until, ""));
    fleet.drain(if &*worker == "w001" { "w002" } else { "w001" }, true);
    fleet.changed(&registry, NOW);
    let shunned = Shunned {
        worker,
        epoch: None,
        revision: 1,
        until: Some(until),
        reason: BlockedReason::UsageLimit,
        detail: String::new(),
        retry_at: None,
        retryable: None,
    };
    let again = Order { run: 2, shunned: vec![shunned], ..first.clone() };
    let mut queued = fleet.enqueue(again, &registry, NOW).expect("it is paused");
    fleet.release((first.task, 1), &registry, NOW);
    assert!(queued.placed.try_recv().is_err());
    let (_, next) = fleet.changed(&registry, NOW);
    assert_eq!(next, Some(until), "looked at again in time");
    fleet.changed(&registry, until);
    fleet.offer(&registry, until);
    assert!(queued.placed.try_recv().is_ok());
    fleet.release((first.task, 1), &registry, until);
    assert!(fleet.given(first.task).is_some(), "the next run has it still");
}

#[test]
fn a_key_limited_to_agents_is_served_by_these_alone() {
    let (fleet, registry) = fleet(3);
    let limited = |names: &[&str], target: &str| Order {
        agents: Some(names.iter().map(|name| (*name).to_owned()).collect()),
        target: Target::of(target),
        ..order(Priority::Normal, None, NOW)
    };
    let placed = fleet.place(&limited(&["fleet", "w002"], "any"), &registry, NOW).expect("it is free");
    assert_eq!((&*placed.worker.name, placed.choice.considered.len()), ("w002", 1), "no other is spoken of");
    let mut waits = fleet.enqueue(limited(&["w002"], "any"), &registry, NOW).expect("it is busy");
    fleet.offer(&registry, NOW);
    assert!(waits.placed.try_recv().is_err(), "others are free");
    for target in ["w001", "label:x", "any"] {
        assert_eq!(fleet.place(&limited(&["fleet"], target), &registry, NOW).expect_err("nobody"), Choice::default());
    }
}

#[test]
fn work_does_not_come_back_to_whom_it_comes_from() {
    let (fleet, registry) = fleet(2);
    let from = |name: &str, target: &str| Order {
        passed: Arc::new([name.to_owned()]),
        target: Target::of(target),
        ..order(Priority::Normal, None, NOW)
    };
    for name in ["w001", "w002"] {
        let order = from(name, "any");
        let placed = fleet.place(&order, &registry, NOW).expect("the other is free");
        assert_ne!(&*placed.worker.name, name);
        let hindered = placed.choice.hindered();
        assert_eq!((hindered[0].0, hindered[0].1[0].reason.name()), (name, "ring"), "it is said why");
        fleet.release((order.task, 1), &registry, NOW);
        assert!(fleet.place(&from(name, name), &registry, NOW).is_err(), "also by its name");
    }
    fleet.drain("w002", true);
    let mut waits = fleet.enqueue(from("w001", "any"), &registry, NOW).expect("nobody else is there");
    fleet.offer(&registry, NOW);
    assert!(waits.placed.try_recv().is_err());
    fleet.drain("w002", false);
    fleet.offer(&registry, NOW);
    assert!(waits.placed.try_recv().is_ok());
}

#[test]
fn one_that_never_announced_itself_is_given_what_its_caller_may_give_it() {
    let hidden = Agent { visibility: Visibility::Private, owner: PrincipalId(2), ..agent(1) };
    let registry = Registry::new([hidden, agent(2)], None);
    let fleet = Fleet::default();
    let to = |name: &str, direct| {
        let order = Order { target: Target::of(name), direct, ..order(Priority::Normal, None, NOW) };
        fleet.place(&order, &registry, NOW).is_ok()
    };
    assert_eq!((to("w001", false), to("w001", true), to("w002", false)), (false, true, true));
}

#[test]
fn who_comes_to_a_repository_finds_out_that_others_change_it() {
    let (fleet, registry) = fleet(2);
    let write = || {
        let mut order = order(Priority::Normal, None, NOW);
        Arc::make_mut(&mut order.dispatch).requirements.write = true;
        order
    };
    let says = |name: &str| {
        let mut announce = Announce::default();
        announce.worker.agent_id = name.to_owned();
        let state = RepoState { clean: Some(true), repository: Some("git@x:repo".into()), ..RepoState::default() };
        announce.session.repo_state = Some(state);
        fleet.announce(registry.by_name(name).expect("an agent"), announce, Via::Socket(0), NOW);
    };
    says("w001");
    let first = write();
    assert_eq!(&*fleet.place(&first, &registry, NOW).expect("it is free").worker.name, "w001");
    says("w002");
    let waits = fleet.place(&write(), &registry, NOW).expect_err("somebody changes its files");
    let hindered = waits.hindered();
    let second = hindered.iter().find(|(name, _)| *name == "w002").expect("it was looked at");
    assert_eq!(second.1[0].reason, BlockedReason::OverCapacity, "{second:?}");
    let two = Settings { writers_per_repository: 2, ..Settings::default() };
    fleet.replace_settings(two, &registry);
    let second = write();
    assert!(fleet.place(&second, &registry, NOW).is_ok(), "as many as may");
    fleet.replace_settings(Settings::default(), &registry);
    fleet.release((second.task, 1), &registry, NOW);
    assert!(fleet.place(&write(), &registry, NOW).is_err());
    fleet.release((first.task, 1), &registry, NOW);
    assert!(fleet.place(&write(), &registry, NOW).is_ok());
}

/// In a build that is not optimised a decision takes many times as long, and is held to that.
const MOST: Duration = if cfg!(debug_assertions) { Duration::from_millis(40) } else { Duration::from_millis(1) };

#[test]
fn two_thousand_wait_for_two_hundred_and_each_decision_is_quick() {
    let (fleet, registry) = fleet(200);
    let ranks = [Priority::Low, Priority::Normal, Priority::High, Priority::Urgent];
    let mut working: Vec<TaskId> = Vec::new();
    let mut waiting: HashMap<TaskId, (Priority, Queued<'_>)> = HashMap::new();
    let (mut taking, mut giving) = (Vec::new(), Vec::new());
    for number in 0..2_200usize {
        let order = order(ranks[number % 4], None, NOW);
        let (task, priority) = (order.task, order.dispatch.task.priority);
        let begun = Instant::now();
        match fleet.enqueue(order, &registry, NOW) {
            Err(_) => working.push(task),
            Ok(queued) => drop(waiting.insert(task, (priority, queued))),
        }
        taking.push(begun.elapsed());
    }
    assert_eq!((working.len(), waiting.len()), (200, 2_000));
    let mut last = Priority::Urgent;
    while let Some(done) = working.pop() {
        let begun = Instant::now();
        fleet.release((done, 1), &registry, NOW);
        giving.push(begun.elapsed());
        let got = waiting.iter_mut().find_map(|(task, (_, queued))| queued.placed.try_recv().is_ok().then_some(*task));
        if let Some(task) = got {
            let (priority, _) = waiting.remove(&task).expect("it waited");
            assert!(priority <= last, "{priority:?} after {last:?}");
            last = priority;
            working.push(task);
        }
    }
    assert!(waiting.is_empty(), "nothing is left behind");
    for (what, mut times) in [("to take work in", taking), ("to give it out", giving)] {
        times.sort();
        let p99 = times[times.len() * 99 / 100];
        println!("a decision {what}: p50 {:?}, p99 {p99:?}", times[times.len() / 2]);
        assert!(p99 < MOST, "p99 {p99:?} {what}");
    }
}
