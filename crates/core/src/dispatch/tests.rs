//! Who is fit, who is chosen, and why.

use super::{Choice, End, Health, Pause, Policy, Shunned, Target, Verdict, Wanted, Worker, choose};
use flotilla_protocol::fleet::result::BlockedReason;
use flotilla_protocol::fleet::{Announce, Dispatch, Found, Handshake, read};
use flotilla_protocol::time::Millis;
use serde_json::{Value, json};
use std::sync::Arc;

const NOW: Millis = Millis(1_000_000);

fn announce(json: &Value) -> Arc<Announce> {
    match read(&json.to_string()) {
        Found::Handshake(Handshake::Announce(announce)) => Arc::new(*announce),
        other => panic!("{other:?}"),
    }
}

fn dispatch(requirements: &Value) -> Dispatch {
    let json = json!({"type": "TASK_DISPATCH", "protocol_version": "2.0", "brief": "x", "requirements": requirements});
    match read(&json.to_string()) {
        Found::Handshake(Handshake::Dispatch(dispatch)) => *dispatch,
        other => panic!("{other:?}"),
    }
}

fn worker(name: &str, tier: &str) -> Worker {
    let announce = announce(&json!({"type": "SESSION_ANNOUNCE", "protocol_version": "2.0", "epoch": 5,
        "worker": {"agent_id": name, "model_tier": tier, "context_window": 200_000},
        "capabilities": {"tools": ["Bash", "Edit"], "mcp_servers": ["mem", "trek", "new"], "max_concurrent": 2},
        "mcp_health": {"mem": "ok", "trek": "timeout"},
        "session": {"repo_state": {"clean": true}}}));
    Worker {
        announce,
        announced: true,
        labels: ["linux".to_owned()].into(),
        skills: ["review".to_owned()].into(),
        lease_until: Millis(NOW.0 + 1),
        ..Worker::unknown(name)
    }
}

/// Whether the nearest may do later without anything new being announced.
fn may_wait(choice: &Choice) -> bool {
    choice.hindered().first().is_none_or(|(_, reasons)| reasons.iter().all(|reason| reason.waits))
}

fn choice(workers: &[Worker], requirements: &Value, target: &Target, last: Option<&str>) -> Choice {
    let dispatch = dispatch(requirements);
    let wanted = Wanted { dispatch: &dispatch, target, last, shunned: &[], passed: &[] };
    choose(workers, wanted, &Policy::default(), NOW)
}

fn chosen(workers: &[Worker], requirements: &Value) -> Option<String> {
    choice(workers, requirements, &Target::Any, None).chosen().map(|considered| considered.worker.to_string())
}

/// The reasons against a worker, with a star where waiting helps.
fn against(worker: &Worker, requirements: &Value, target: &Target) -> String {
    let choice = choice(std::slice::from_ref(worker), requirements, target, None);
    match &choice.considered[0].verdict {
        Verdict::Fit { unverified, .. } => format!("fit {}", unverified.join(", ")).trim_end().to_owned(),
        Verdict::Unfit(reasons) => {
            let told = reasons.iter().map(|r| format!("{}{}", r.reason.name(), if r.waits { "*" } else { "" }));
            told.collect::<Vec<_>>().join(" ")
        }
    }
}

#[test]
fn every_requirement_can_stand_in_the_way() {
    let ready = worker("w", "sonnet");
    let by_name = Target::Worker("w".into());
    for (requirements, among, named) in [
        (json!({}), "fit", "fit"),
        (json!({"required_mcp": ["mem"]}), "fit", "fit"),
        (json!({"gpu": true}), "fit requirement gpu", "fit requirement gpu"),
        (json!({"required_mcp": ["trek"]}), "missing_mcp", "missing_mcp"),
        (json!({"required_mcp": ["gone"]}), "missing_mcp", "missing_mcp"),
        (json!({"required_mcp": ["new"]}), "missing_mcp", "fit MCP server new"),
        (json!({"required_capabilities": ["terminal", "patch"]}), "fit", "fit"),
        (json!({"required_capabilities": ["browser"]}), "missing_capability", "missing_capability"),
        (json!({"skills": ["Review"]}), "fit", "fit"),
        (json!({"skills": ["paint"]}), "missing_capability", "missing_capability"),
        (json!({"labels": ["mac"]}), "missing_capability", "missing_capability"),
        (json!({"model_tier": "sonnet"}), "fit", "fit"),
        (json!({"model_tier": "opus"}), "tier_too_low", "tier_too_low"),
        (json!({"model_tier": "giant"}), "tier_too_low", "fit model tier giant"),
        (json!({"context_window": 200_000}), "fit", "fit"),
        (json!({"context_window": 200_001}), "missing_capability", "missing_capability"),
        (json!({"write": true}), "fit", "fit"),
        (
            json!({"required_mcp": ["trek"], "model_tier": "opus"}),
            "missing_mcp tier_too_low",
            "missing_mcp tier_too_low",
        ),
    ] {
        assert_eq!(against(&ready, &requirements, &Target::Any), among, "{requirements}");
        assert_eq!(against(&ready, &requirements, &by_name), named, "{requirements}");
    }
}

#[test]
fn trees_deadlines_and_presence_count_too() {
    let change = |edit: fn(&mut Worker)| {
        let mut worker = worker("w", "sonnet");
        edit(&mut worker);
        worker
    };
    let repo = |worker: &mut Worker, clean: Option<bool>| {
        Arc::make_mut(&mut worker.announce).session.repo_state.as_mut().unwrap().clean = clean;
    };
    let (mut dirty, mut unknown) = (worker("w", "sonnet"), worker("w", "sonnet"));
    repo(&mut dirty, Some(false));
    repo(&mut unknown, None);
    assert_eq!(against(&dirty, &json!({"write": true}), &Target::Any), "dirty_tree");
    assert_eq!(against(&dirty, &json!({}), &Target::Any), "fit");
    assert_eq!(against(&unknown, &json!({"write": true}), &Target::Any), "dirty_tree");
    let named = against(&unknown, &json!({"write": true}), &Target::Worker("w".into()));
    assert_eq!(named, "fit a clean working tree");
    let mut contradicts = worker("w", "sonnet");
    Arc::make_mut(&mut contradicts.announce).session.repo_state.as_mut().unwrap().dirty_files = Some(3);
    assert_eq!(
        against(&contradicts, &json!({"write": true}), &Target::Any),
        "dirty_tree",
        "files speak against a word"
    );

    assert_eq!(against(&change(|w| w.active = 2), &json!({}), &Target::Any), "over_capacity*");
    assert_eq!(against(&change(|w| w.draining = true), &json!({}), &Target::Any), "over_capacity*");
    assert_eq!(against(&change(|w| w.lease_until = NOW), &json!({}), &Target::Any), "over_capacity*");
    let broken = change(|w| (0..3).for_each(|_| w.turns.count(NOW, End::Failed("it crashed".into()))));
    assert_eq!(against(&broken, &json!({}), &Target::Any), "stale_profile");
    let told = Health::Broken { reason: "3 turns in a row failed, the last: it crashed".into() };
    assert_eq!(broken.health(NOW), told);

    let late = Dispatch { deadline: Some(NOW), ..dispatch(&json!({})) };
    let ready = [worker("w", "sonnet")];
    let wanted = Wanted { dispatch: &late, target: &Target::Any, last: None, shunned: &[], passed: &[] };
    let choice = choose(&ready, wanted, &Policy::default(), NOW);
    assert!(choice.chosen().is_none() && !may_wait(&choice));
}

#[test]
fn words_of_one_caller_s_task_are_not_told_to_another() {
    let mut broken = worker("w", "sonnet");
    (0..3).for_each(|_| broken.turns.count(NOW, End::Failed("it crashed".into())));
    let mut paused = worker("w", "sonnet");
    paused.paused = Some(Pause { until: Millis(NOW.0 + 1), reason: "it crashed".into() });
    let mut says = worker("w", "sonnet");
    Arc::make_mut(&mut says.announce).session.broken = Some("it crashed".into());
    for hindered in [broken, paused, says] {
        let dispatch = dispatch(&json!({}));
        let wanted = Wanted { dispatch: &dispatch, target: &Target::Any, last: None, shunned: &[], passed: &[] };
        let told = format!("{:?}", choose([&hindered], wanted, &Policy::default(), NOW));
        assert!(told.contains("Unfit") && !told.contains("crashed"), "words of a task are not for others: {told}");
    }
}

#[test]
fn small_work_does_not_take_the_biggest_model() {
    let fleet = [worker("big", "opus"), worker("middle", "sonnet"), worker("small", "haiku")];
    assert_eq!(chosen(&fleet, &json!({})).as_deref(), Some("small"));
    assert_eq!(chosen(&fleet, &json!({"model_tier": "sonnet"})).as_deref(), Some("middle"));
    assert_eq!(chosen(&fleet, &json!({"model_tier": "opus"})).as_deref(), Some("big"));
}

#[test]
fn load_success_and_affinity_decide_between_equals() {
    let (mut one, two) = (worker("one", "sonnet"), worker("two", "sonnet"));
    one.active = 1;
    assert_eq!(chosen(&[one.clone(), two.clone()], &json!({})).as_deref(), Some("two"));
    let fleet = [one.clone(), two.clone()];
    let back = choice(&fleet, &json!({}), &Target::Any, Some("one"));
    assert_eq!(back.chosen().map(|c| &*c.worker), Some("one"), "the context's own worker, although it is busier");
    one.active = 0;
    one.turns.count(NOW, End::Failed("no".into()));
    assert_eq!(chosen(&[one, two], &json!({})).as_deref(), Some("two"));
}

#[test]
fn every_run_takes_a_place_wherever_it_comes_from() {
    let mut one = worker("one", "sonnet");
    for (active, plain, elsewhere, expected) in [
        (1, 0, 0, "fit"),
        (0, 1, 0, "fit"),
        (1, 1, 0, "over_capacity*"),
        (0, 1, 1, "over_capacity*"),
        (0, 0, 9, "over_capacity*"),
    ] {
        (one.active, one.plain, one.elsewhere) = (active, plain, elsewhere);
        assert_eq!(against(&one, &json!({}), &Target::Any), expected, "{active} {plain} {elsewhere}");
    }
    let choice = choice(std::slice::from_ref(&one), &json!({}), &Target::Any, None);
    assert!(choice.hindered()[0].1[0].detail.ends_with("9 of them by work from elsewhere, as it says"));
    let mut announce = (*one.announce).clone();
    announce.capabilities.max_concurrent = None;
    one.announce = Arc::new(announce);
    assert_eq!(against(&one, &json!({}), &Target::Any), "fit", "how many it takes elsewhere it does not say");
}

#[test]
fn each_candidate_is_told_of_and_others_are_not_asked() {
    let mut fleet = [worker("a", "sonnet"), worker("b", "sonnet"), worker("c", "sonnet")];
    fleet[0].labels = ["gpu".to_owned()].into();
    let one = choice(&fleet, &json!({}), &Target::Label("GPU".into()), None);
    assert_eq!(one.considered.iter().map(|c| &*c.worker).collect::<Vec<_>>(), ["a"]);
    let all = choice(&fleet, &json!({"required_mcp": ["trek"]}), &Target::Skill("review".into()), None);
    assert_eq!(all.considered.len(), 3);
    assert!(all.chosen().is_none() && !may_wait(&all));
    assert_eq!(all.considered[0].epoch, Some(5));
}

fn with_epoch(worker: &Worker, epoch: u64) -> Arc<Announce> {
    Arc::new(Announce { epoch: Some(epoch), ..(*worker.announce).clone() })
}

#[test]
fn an_older_announcement_changes_nothing_and_a_newer_one_is_another_chance() {
    let mut worker = worker("w", "sonnet");
    (0..3).for_each(|_| worker.turns.count(NOW, End::Failed("no".into())));
    let (older, newer) = (with_epoch(&worker, 4), with_epoch(&worker, 6));
    assert!(!worker.take(older, Millis(9), NOW) && worker.announce.epoch == Some(5));
    assert!(worker.take(newer, Millis(NOW.0 + 50), NOW));
    assert_eq!(worker.health(NOW), Health::Available);
    worker.returned = true;
    assert!(worker.take(with_epoch(&worker, 1), Millis(NOW.0 + 50), NOW), "it was away: what it says now is new");
    assert!(!worker.take(with_epoch(&worker, 0), Millis(NOW.0 + 50), NOW), "and from then on as before");
}

#[test]
fn what_was_announced_on_an_earlier_connection_is_hearsay() {
    let mut anew = worker("w", "sonnet");
    assert!(anew.take(with_epoch(&anew, 60), Millis(i64::MAX), NOW));
    anew.unconfirmed = true;
    let needs = json!({"required_mcp": ["mem"]});
    assert_eq!(against(&anew, &needs, &Target::Any), "missing_mcp");
    assert_eq!(against(&anew, &needs, &Target::Worker("w".into())), "fit MCP server mem");
    assert!(anew.take(with_epoch(&anew, 1), Millis(i64::MAX), NOW), "whatever its number");
    assert_eq!(against(&anew, &needs, &Target::Any), "fit");
    assert!(!anew.take(with_epoch(&anew, 0), Millis(i64::MAX), NOW), "from then on it counts");
}

#[test]
fn one_that_never_announced_is_tried_by_name_only() {
    let mut silent = Worker::unknown("w");
    silent.active = 7;
    let needs = json!({"required_mcp": ["mem"], "required_capabilities": ["terminal"], "write": true});
    let named = against(&silent, &needs, &Target::Worker("w".into()));
    assert_eq!(named, "fit MCP server mem, tool terminal, a clean working tree");
    assert_eq!(against(&silent, &needs, &Target::Any), "missing_mcp missing_capability dirty_tree");
}

#[test]
fn pauses_full_repositories_and_earlier_answers_stand_in_the_way() {
    let mut worker = worker("w", "sonnet");
    worker.paused = Some(Pause { until: Millis(NOW.0 + 9), reason: "weekly limit".into() });
    assert_eq!(against(&worker, &json!({}), &Target::Any), "usage_limit*");
    assert_eq!(worker.health(NOW), Health::Busy);
    worker.paused = Some(Pause { until: NOW, reason: "weekly limit".into() });
    worker.broke = Some(Pause { until: Millis(NOW.0 + 9), reason: "used up".into() });
    assert_eq!(against(&worker, &json!({}), &Target::Any), "budget_too_small*");
    worker.broke = Some(Pause { until: NOW, reason: "used up".into() });
    worker.repository_full = true;
    assert_eq!(against(&worker, &json!({}), &Target::Any), "fit");
    assert_eq!(against(&worker, &json!({"write": true}), &Target::Any), "over_capacity*");

    let blocked = |reason, revision, until| {
        let detail = String::new();
        let (retry_at, retryable) = (None, None);
        let shunned = Shunned { worker: "w".into(), epoch: None, revision, until, reason, detail, retry_at, retryable };
        let dispatch = dispatch(&json!({}));
        let wanted = Wanted { dispatch: &dispatch, target: &Target::Any, last: None, shunned: &[shunned], passed: &[] };
        let choice = choose([&worker], wanted, &Policy::default(), NOW);
        (choice.chosen().is_some(), may_wait(&choice))
    };
    let answered = |revision, until| blocked(BlockedReason::StaleProfile, revision, until);
    assert_eq!(answered(0, None), (false, false), "never again, until it announces something new");
    assert_eq!(answered(0, Some(Millis(NOW.0 + 1))), (false, true), "later");
    assert_eq!(answered(0, Some(NOW)), (true, true), "now");
    assert_eq!(answered(9, None), (true, true), "it announced something new since");
    let later = Some(Millis(NOW.0 + 1));
    assert_eq!(blocked(BlockedReason::UsageLimit, 0, later), (true, true), "the pause was ended");
}

#[test]
fn whom_work_is_for_is_read() {
    for (text, target) in [
        ("any", Target::Any),
        ("", Target::Any),
        ("label:gpu", Target::Label("gpu".into())),
        ("skill: review", Target::Skill("review".into())),
        ("claude", Target::Worker("claude".into())),
    ] {
        assert_eq!(Target::of(text), target, "{text}");
    }
}
