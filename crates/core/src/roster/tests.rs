//! A desk, as a script of who comes, goes and takes: runs in order, again after a cut, and shared.

use super::desk::{End, Standing};
use super::{Connections, Desk, Order, Session, Terms};
use crate::ids::TaskId;
use flotilla_protocol::lineage::{Ancestor, Lineage, SpanId, Trace, TraceId};
use flotilla_protocol::time::Millis;
use flotilla_protocol::work::{Assignment, Trail};
use std::sync::Arc;

const SEAL: &str = "a hub and an agent";

fn work(task: TaskId, trail: Trail) -> Arc<Assignment> {
    let here = Ancestor { hub: "here".into(), agent: "a".into(), task: task.to_string() };
    let trace = Trace::begun(TraceId::of([1; 16]).expect("a number"), SpanId::of(1).expect("a number"));
    Arc::new(Assignment {
        task_id: task.to_string(),
        context_id: "c".into(),
        run: 1,
        caller: 1,
        turn: 1,
        message: Arc::default(),
        accepted_output_modes: Vec::new(),
        metadata: None,
        asked_at: Millis(0),
        from: String::new(),
        ttl: None,
        watched: false,
        max_cost_usd: None,
        trail,
        lineage: Lineage { here, origin: None, deadline: None, trace },
    })
}

struct Script {
    desk: Arc<Desk>,
    tasks: Vec<TaskId>,
    entered: Vec<super::desk::Entered>,
}

impl Script {
    fn new() -> Self {
        Self { desk: Arc::default(), tasks: Vec::new(), entered: Vec::new() }
    }

    fn run(&mut self) -> usize {
        let task = TaskId::fresh();
        self.entered.push(self.desk.enter(task, work(task, Trail::default())));
        self.tasks.push(task);
        self.tasks.len() - 1
    }

    fn open(&self, resume: Option<&Session>, connections: Connections, window: usize) -> (Session, bool) {
        let token = resume.map(|session| session.token().to_owned());
        self.desk
            .open(token.as_deref(), Terms { connections, window, ..Terms::default() }, SEAL)
            .expect("random numbers")
    }

    /// Which run a connection is given next, and how often it was sent.
    fn next(&self, session: &Session) -> Option<(usize, u32)> {
        match self.desk.order(session.id()) {
            Some(Order::Deliver(delivery)) => {
                let number = self.tasks.iter().position(|task| *task == delivery.task).expect("a known run");
                Some((number, delivery.attempt))
            }
            _ => None,
        }
    }

    fn stands(&self, number: usize) -> Standing {
        *self.entered[number].standing.borrow()
    }
}

#[tokio::test]
async fn runs_go_out_in_order_within_the_window_and_again_after_a_cut() {
    let mut script = Script::new();
    for _ in 0..3 {
        script.run();
    }
    assert!(!script.desk.is_present());
    let (one, resumed) = script.open(None, Connections::Replace, 2);
    assert!(!resumed && script.desk.is_present());
    assert_eq!((script.next(&one), script.next(&one), script.next(&one)), (Some((0, 1)), Some((1, 1)), None));
    one.taken(script.tasks[0], Some(1)).expect("it is there");
    assert_eq!(script.next(&one), Some((2, 1)), "taking one makes room");
    assert_eq!(one.taken(script.tasks[1], Some(9)), Err(super::NoRun), "another run");
    let token = one.token().to_owned();
    drop(one);
    assert!(matches!(script.stands(0), Standing::Away(_)));
    assert_eq!((script.stands(1), script.stands(2)), (Standing::Waiting, Standing::Waiting));
    script.run();
    let terms = Terms { window: 9, ..Terms::default() };
    let (two, resumed) = script.desk.open(Some(&token), terms, SEAL).expect("random numbers");
    assert!(resumed && matches!(script.stands(0), Standing::Taken(_)), "it goes on");
    let again: Vec<_> = std::iter::from_fn(|| script.next(&two)).collect();
    assert_eq!(again, [(1, 2), (2, 2), (3, 1)], "in their old places, before what is new");
    let (_three, resumed) = script.desk.open(Some("guess"), terms, SEAL).expect("random numbers");
    assert!(!resumed);
}

#[tokio::test]
async fn a_connection_that_acknowledges_nothing_is_asked_what_has_arrived_when_its_window_is_full() {
    let mut script = Script::new();
    for _ in 0..4 {
        script.run();
    }
    let (one, _) = script.open(None, Connections::Replace, 2);
    one.serve_frames();
    assert_eq!((script.next(&one), script.next(&one)), (Some((0, 1)), Some((1, 1))));
    assert!(matches!(script.desk.order(one.id()), Some(Order::AskArrival)));
    assert!(script.desk.order(one.id()).is_none(), "once at a time");
    one.arrived();
    assert_eq!((script.next(&one), script.next(&one)), (Some((2, 1)), Some((3, 1))));
    drop(one);
    let (two, _) = script.open(None, Connections::Replace, 2);
    two.serve_frames();
    assert_eq!((script.next(&two), script.next(&two)), (Some((0, 2)), Some((1, 2))), "nothing of it was taken");
    script.desk.knows_to_acknowledge(two.id());
    assert!(script.desk.order(two.id()).is_none(), "this one will say when it has them");
    two.taken(script.tasks[0], Some(1)).expect("it is there");
    assert_eq!((script.next(&two), script.next(&two)), (Some((2, 2)), None));
}

#[tokio::test]
async fn a_new_connection_replaces_or_shares() {
    let mut script = Script::new();
    let (old, _) = script.open(None, Connections::Replace, 9);
    let (_new, _) = script.open(None, Connections::Replace, 9);
    assert!(matches!(script.desk.order(old.id()), Some(Order::Leave)));

    script = Script::new();
    let (one, _) = script.open(None, Connections::Share, 9);
    let (two, _) = script.open(None, Connections::Share, 9);
    for _ in 0..3 {
        script.run();
    }
    assert_eq!(script.next(&one), Some((0, 1)));
    assert_eq!(script.next(&one), None, "the other has less to do");
    assert_eq!((script.next(&two), script.next(&one)), (Some((1, 1)), Some((2, 1))));
}

#[tokio::test]
async fn a_run_taken_before_the_hub_stopped_waits_to_be_spoken_of() {
    let mut script = Script::new();
    let task = TaskId::fresh();
    let trail = Trail { resumed: true, started: true, ..Trail::default() };
    script.entered.push(script.desk.enter(task, work(task, trail)));
    script.tasks.push(task);
    let (one, _) = script.open(None, Connections::Replace, 9);
    assert_eq!(script.next(&one), None, "it is not sent again");
    one.taken(task, None).expect("it is there");
    assert!(matches!(script.stands(0), Standing::Taken(_)));
    let unstarted = TaskId::fresh();
    let trail = Trail { resumed: true, ..Trail::default() };
    script.entered.push(script.desk.enter(unstarted, work(unstarted, trail)));
    script.tasks.push(unstarted);
    assert_eq!(script.next(&one), Some((1, 2)), "it may have been sent before");
}

#[tokio::test]
async fn what_was_told_is_remembered() {
    let mut script = Script::new();
    let number = script.run();
    let task = script.tasks[number];
    assert!(!script.desk.knows_report(task, "r") && script.desk.knows_report(task, "r"));
    assert!(script.desk.begins(task) && !script.desk.begins(task), "its caller hears once that it has begun");
    assert!(!script.desk.knows_artifact(task, "a", true) && script.desk.knows_artifact(task, "a", false));
    let second = script.run();
    let meant = |context: &str| script.desk.in_context(context).map(|found| found.map(|(task, _)| task));
    assert_eq!(meant("c"), Ok(Some(task)), "the oldest");
    let shown = script.desk.context_shown(script.tasks[second]).expect("it is there");
    assert_eq!(meant(&shown), Ok(Some(script.tasks[second])), "the one looked at");
    script.entered.clear();
    assert_eq!((script.desk.in_context("c"), script.desk.work_of(task).is_none()), (Ok(None), true));
}

#[tokio::test]
async fn a_worker_has_so_many_runs_and_none_when_it_drains() {
    let mut script = Script::new();
    for _ in 0..3 {
        script.run();
    }
    let (one, _) = script.open(None, Connections::Share, 9);
    one.serve_worker(1);
    assert_eq!((script.next(&one), script.next(&one)), (Some((0, 1)), None), "it has one place");
    one.taken(script.tasks[0], Some(1)).expect("it is there");
    assert_eq!(script.next(&one), None, "also when it has taken it");
    let (two, _) = script.open(None, Connections::Share, 9);
    two.serve_worker(9);
    assert_eq!((script.next(&two), script.next(&two)), (Some((1, 1)), Some((2, 1))));
    two.taken(script.tasks[1], Some(1)).expect("it is there");
    two.drain();
    assert_eq!((script.stands(1), script.stands(2)), (Standing::Taken(two.id()), Standing::Waiting));
    assert!(script.desk.is_present() && script.next(&two).is_none());
    one.drain();
    assert!(!script.desk.is_present(), "nobody takes anything");
}

#[tokio::test]
async fn a_number_that_was_received_is_known_also_after_a_restart() {
    let mut script = Script::new();
    let task = TaskId::fresh();
    let trail = Trail { resumed: true, started: true, received: 4, ..Trail::default() };
    script.entered.push(script.desk.enter(task, work(task, trail)));
    let missed: Vec<Option<u64>> = [4, 5, 6, 9].into_iter().map(|number| script.desk.misses(task, 1, number)).collect();
    assert_eq!(missed, [None, None, Some(5), Some(5)], "none is left out");
    let known = [3, 4, 5, 5, 6].map(|number| script.desk.receives(task, 1, number));
    assert_eq!(known, [false, false, true, false, true].map(Some));
    assert_eq!(script.desk.receives(task, 2, 7), None, "of another run");
    assert_eq!(script.desk.receives(TaskId::fresh(), 1, 1), None, "a run that is not there receives nothing");
}

#[tokio::test]
async fn a_worker_is_asked_to_end_a_run_now_or_when_it_is_back() {
    let mut script = Script::new();
    let (first, second) = (script.run(), script.run());
    let (first, second) = (script.tasks[first], script.tasks[second]);
    let (plain, _) = script.open(None, Connections::Replace, 1);
    assert!(script.desk.ask_to_end(first).is_none(), "nobody has it");
    assert_eq!(script.next(&plain), Some((0, 1)));
    assert!(script.desk.ask_to_end(first).is_none(), "this one would not answer");
    drop(plain);
    let (worker, _) = script.open(None, Connections::Replace, 9);
    worker.serve_worker(9);
    assert_eq!((script.next(&worker), script.next(&worker)), (Some((0, 2)), Some((1, 1))));
    worker.taken(second, Some(1)).expect("it is there");
    let end = script.desk.ask_to_end(first).expect("it answers");
    assert!(matches!(script.desk.order(worker.id()), Some(Order::Stop { task, .. }) if task == first));
    assert!(script.desk.ask_to_end(first).is_some() && script.desk.ask_to_end(first).is_some());
    assert!(matches!(script.desk.order(worker.id()), Some(Order::Stop { task, .. }) if task == first), "asked again");
    assert!(script.desk.order(worker.id()).is_none(), "and not once for each who asks meanwhile");
    assert!(script.desk.ended(first) && *end.end.borrow() == End::Gone);
    assert!(!script.desk.ended(second), "nobody asked for that");

    script = Script::new();
    let number = script.run();
    let task = script.tasks[number];
    let (worker, _) = script.open(None, Connections::Replace, 9);
    worker.serve_worker(9);
    script.next(&worker);
    worker.taken(task, Some(1)).expect("it is there");
    let token = worker.token().to_owned();
    drop(worker);
    assert!(script.desk.ask_to_end(task).is_some(), "it is away, and will be told");
    let (back, resumed) = script.desk.open(Some(&token), Terms::default(), SEAL).expect("random numbers");
    assert!(resumed && matches!(script.desk.order(back.id()), Some(Order::Stop { .. })));
}

#[tokio::test]
async fn a_run_that_was_to_end_is_to_end_still_after_a_cut_and_after_a_restart() {
    let mut script = Script::new();
    let number = script.run();
    let task = script.tasks[number];
    let (worker, _) = script.open(None, Connections::Replace, 9);
    worker.serve_worker(9);
    assert_eq!(script.next(&worker), Some((0, 1)));
    assert!(script.desk.ask_to_end(task).is_some(), "it was sent");
    drop(worker);
    let (back, _) = script.open(None, Connections::Replace, 9);
    back.serve_worker(9);
    assert!(matches!(script.desk.order(back.id()), Some(Order::Stop { .. })), "it is not begun");
    assert!(script.desk.ended(task));

    let token = back.token().to_owned();
    for (started, is_back) in [(true, false), (false, false), (true, true)] {
        let (desk, task): (Arc<Desk>, TaskId) = (Arc::default(), TaskId::fresh());
        let work = work(task, Trail { resumed: true, started, stopping: true, ..Trail::default() });
        let open = || {
            let worker = desk.open(Some(&token), Terms::default(), SEAL).expect("random numbers").0;
            worker.serve_worker(9);
            worker
        };
        let early = is_back.then(open);
        let entered = desk.enter(task, work);
        let worker = early.unwrap_or_else(open);
        assert_eq!(stands(&entered), Standing::Taken(worker.id()));
        assert!(matches!(desk.order(worker.id()), Some(Order::Stop { .. })), "{started} {is_back}");
        assert!(desk.is_asked_to_end(task) && desk.is_with_worker(task));
    }
}

#[tokio::test]
async fn a_run_that_ends_while_its_agent_is_away_is_called_off_when_that_is_back() {
    let told = |script: &Script, session: &Session| match script.desk.order(session.id()) {
        Some(Order::Stop { task, theirs, .. }) => {
            script.tasks.iter().position(|known| *known == task).zip(Some(theirs))
        }
        _ => None,
    };
    for (connections, with_token) in [
        (Connections::Replace, true),
        (Connections::Replace, false),
        (Connections::Share, true),
        (Connections::Share, false),
    ] {
        let mut script = Script::new();
        for _ in 0..3 {
            script.run();
        }
        let all = script.tasks.clone();
        let (agent, _) = script.open(None, connections, 2);
        assert_eq!((script.next(&agent), script.next(&agent)), (Some((0, 1)), Some((1, 1))));
        agent.taken(all[0], Some(1)).expect("it is there");
        script.desk.link(all[0], "theirs");
        let token = agent.token().to_owned();
        drop(agent);
        for task in &all {
            script.desk.stop(*task);
        }
        script.entered.clear();
        let terms = Terms { connections, window: 2, ..Terms::default() };
        let shown = with_token.then_some(token.as_str());
        let (back, _) = script.desk.open(shown, terms, SEAL).expect("random numbers");
        let first = [told(&script, &back), told(&script, &back)];
        let expected = [Some((0, "theirs".to_owned())), Some((1, String::new()))];
        let is_told = with_token || connections == Connections::Replace;
        assert_eq!(first, if is_told { expected } else { [None, None] }, "{connections:?} {with_token}");
        assert!(told(&script, &back).is_none(), "what was never sent is nothing to anybody");
        drop(back);
        let (again, _) = script.open(None, Connections::Replace, 2);
        assert_eq!(told(&script, &again).is_none(), is_told, "it is told once");
    }
}

#[tokio::test]
async fn a_token_is_good_until_the_next_one_has_arrived() {
    for connections in [Connections::Replace, Connections::Share] {
        let mut script = Script::new();
        script.run();
        let terms = Terms { connections, ..Terms::default() };
        let open = |token: &str| script.desk.open(Some(token), terms, SEAL).expect("random numbers");
        let (first, _) = script.open(None, connections, 9);
        assert_eq!(script.next(&first), Some((0, 1)));
        first.taken(script.tasks[0], Some(1)).expect("it is there");
        let token = first.token().to_owned();
        drop(first);
        drop(open(&token));
        let (unheard, resumed) = open(&token);
        assert!(resumed, "its welcome may have been lost");
        let (heard, resumed) = open(&token);
        assert!(resumed && script.stands(0) == Standing::Taken(heard.id()), "also before the cut is seen");
        drop(unheard);
        heard.welcomed();
        let (other, resumed) = open(&token);
        assert!(!resumed && script.stands(0) == Standing::Taken(heard.id()), "it has the next one");
        drop(other);
        let next = heard.token().to_owned();
        drop(heard);
        let (last, resumed) = open(&next);
        assert!(resumed && script.stands(0) == Standing::Taken(last.id()));
    }
}

fn taken_before(desk: &Arc<Desk>) -> (TaskId, super::desk::Entered) {
    let task = TaskId::fresh();
    let trail = Trail { resumed: true, started: true, ..Trail::default() };
    (task, desk.enter(task, work(task, trail)))
}

fn stands(entered: &super::desk::Entered) -> Standing {
    *entered.standing.borrow()
}

#[tokio::test]
async fn a_token_goes_on_after_a_restart_whenever_the_runs_are_found() {
    let (before, terms) = (Script::new(), Terms::default());
    let token = before.open(None, Connections::Replace, 9).0.token().to_owned();

    let desk: Arc<Desk> = Arc::default();
    let (_, found) = taken_before(&desk);
    let (back, resumed) = desk.open(Some(&token), terms, SEAL).expect("random numbers");
    assert!(resumed && stands(&found) == Standing::Taken(back.id()), "it was there");
    let (_, later) = taken_before(&desk);
    assert_eq!(stands(&later), Standing::Taken(back.id()), "it is found when the agent is back");
    drop(back);
    let (_, last) = taken_before(&desk);
    assert!(matches!((stands(&found), stands(&last)), (Standing::Away(_), Standing::Away(_))));
    let (again, resumed) = desk.open(Some(&token), terms, SEAL).expect("random numbers");
    let here = Standing::Taken(again.id());
    assert!(resumed && [&found, &later, &last].iter().all(|entered| stands(entered) == here), "it never saw another");
}

#[tokio::test]
async fn a_token_of_another_hub_or_agent_and_one_of_several_go_on_with_nothing_after_a_restart() {
    let (before, terms) = (Script::new(), Terms::default());
    let token = before.open(None, Connections::Replace, 9).0.token().to_owned();
    let desk: Arc<Desk> = Arc::default();
    let (_, found) = taken_before(&desk);
    let share = Terms { connections: Connections::Share, ..terms };
    let forged = format!("{}0", &token[..token.len() - 1]);
    let guess = if forged == token { format!("{}1", &token[..token.len() - 1]) } else { forged };
    for (shown, terms, seal) in [(&token, terms, "another agent"), (&guess, terms, SEAL), (&token, share, SEAL)] {
        let (_session, resumed) = desk.open(Some(shown), terms, seal).expect("random numbers");
        assert!(!resumed && matches!(stands(&found), Standing::Away(_)), "{shown} {seal}");
    }
}

#[tokio::test]
async fn connections_that_go_on_for_each_other_are_of_one_line() {
    let script = Script::new();
    let line = || script.desk.presence().line;
    assert_eq!(line(), 0);
    let (one, _) = script.open(None, Connections::Replace, 9);
    assert_eq!(one.line(), line());
    let (old, first) = (one.token().to_owned(), one.line());
    drop(one);
    let (two, _) = script.desk.open(Some(&old), Terms::default(), SEAL).expect("random numbers");
    assert_eq!((two.line(), line()), (first, first), "with its token");
    let (three, _) = script.open(None, Connections::Replace, 9);
    assert!(three.line() != first && line() == three.line() && two.line() == first, "another takes its place");
    let (four, resumed) = script.desk.open(Some(two.token()), Terms::default(), SEAL).expect("random numbers");
    assert!(resumed && line() == four.line() && four.line() != first, "it has missed what the third said");
    let (beside, _) = script.open(None, Connections::Share, 9);
    assert_eq!((beside.line(), line()), (four.line(), four.line()), "beside it");
    drop((two, three, four, beside));
    let (after, _) = script.open(None, Connections::Share, 9);
    assert!(after.line() == line() && line() != first, "there is nobody to stand beside");
}
