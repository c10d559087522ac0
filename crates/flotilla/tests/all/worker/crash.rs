//! Hub, worker and reapers are killed: no task is lost, none runs twice without a word, no process is left. The figure of
//! docs/worker.md is printed by `cargo test --release -p flotilla --test all worker::crash -- --nocapture`.

use super::{agent, alive, attached, config, hub, log, made, made_of, said};
use crate::cast::{id, reached, state};
use flotilla_testkit::{WorkerProcess, until};
use flotilla_worker::reaper::{MARK, tree};
use std::time::{Duration, Instant};

/// Who began, as the programs noted it.
fn began(worker: &WorkerProcess) -> String {
    std::fs::read_to_string(worker.state().with_file_name("began")).unwrap_or_default()
}

const ROUNDS: u64 = 50;

/// How long anything may outlive a kill.
const SOON: Duration = Duration::from_secs(10);

/// A word that only the processes of this test were started with.
fn word() -> String {
    format!("6{}", std::process::id())
}

/// Notes that it began, says something, forks away, once without anything that marks it, and ends.
fn work() -> String {
    let word = word();
    format!(
        "read name; echo $name >> began; (setsid sleep {word} &); (env -i setsid sleep {word} &); \
         for n in 1 2 3 4 5; do echo $n; sleep 0.01; done"
    )
}

/// Processes that were started with a word, whatever became of their parents and their environment.
fn started_with(word: &str) -> usize {
    let has_word = |folder: std::fs::DirEntry| {
        let line = std::fs::read(folder.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).skip(1).any(|said| said == word.as_bytes())
    };
    std::fs::read_dir("/proc").expect("Linux tells of processes").flatten().map(has_word).filter(|has| *has).count()
}

#[test]
fn kills_at_random_points_lose_no_task_and_leave_no_process() {
    let mut hub = hub("grace: 30s");
    let mut worker = attached(&hub, &config("", &[("work", "text", &work())]));
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut dice = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut tasks: Vec<(String, String)> = Vec::new();
    for round in 0..ROUNDS {
        for n in 0..2 {
            let name = format!("r{round}n{n}");
            tasks.push((id(&agent(&hub, "work").start(&name, &format!("{name}\n"))).to_owned(), name));
        }
        // A moment in the life of a run, which differs from round to round: none, begun, or so many words said.
        let (task, name) = tasks.last().expect("one was just begun").clone();
        let moment = dice() % 7;
        until("the moment has come", || {
            let words = || made_of(&agent(&hub, "work").task(&task)).lines().count() as u64;
            let over =
                || !matches!(state(&agent(&hub, "work").task(&task)), "TASK_STATE_SUBMITTED" | "TASK_STATE_WORKING");
            let come = moment == 0
                || (moment == 1 && began(&worker).contains(&name))
                || words() + 1 >= moment.max(2)
                || over();
            come.then_some(())
        });
        match dice() % 3 {
            0 => hub.restart(),
            1 => {
                worker.kill();
                worker.start();
            }
            _ => {
                worker.kill();
                hub.restart();
                worker.start();
            }
        }
    }
    let killed = Instant::now();
    let client = agent(&hub, "work");
    for (task, name) in &tasks {
        let ended = until(&format!("{name} ({task}) ends"), || {
            let task = client.task(task);
            matches!(state(&task), "TASK_STATE_COMPLETED" | "TASK_STATE_FAILED").then_some(task)
        });
        let times = began(&worker).lines().filter(|line| line == name).count();
        let log = log(&hub, task);
        if state(&ended) == "TASK_STATE_COMPLETED" {
            assert_eq!(made(&ended), "1\n2\n3\n4\n5\n", "{log}");
        } else {
            assert!(said(&ended).contains("its worker was stopped"), "{ended}");
            assert!(log.contains("run_lost"), "{log}");
        }
        assert!(times <= 1, "{name} began {times} times: {log}");
        until("nothing of it is left", || (alive(task) == 0).then_some(()));
    }
    until("nothing of any is left", || (started_with(&word()) == 0).then_some(()));
    let gone = killed.elapsed();
    let completed = tasks.iter().filter(|(task, _)| state(&client.task(task)) == "TASK_STATE_COMPLETED").count();
    println!(
        "{ROUNDS} rounds of kills: {} tasks, {completed} completed, the others told to be lost; after {gone:?} all were told \
         and no process was left",
        tasks.len()
    );
    assert!(completed > 0, "not every run was killed");
    assert!(gone < SOON || cfg!(debug_assertions), "{gone:?}");
}

#[test]
fn a_killed_reaper_fails_its_run_at_once_and_leaves_nothing() {
    let hub = hub("");
    let word = format!("7{}", std::process::id());
    let script = format!(
        "trap '' TERM; (setsid sleep {word} &); (env -i setsid sh -c 'trap \"\" TERM; sleep {word} & sleep {word}' &); \
         echo ready; sleep {word}"
    );
    let mut worker = attached(&hub, &config("", &[("big", "text", &script)]));
    let task = agent(&hub, "big").start("m", "x");
    until("its processes", || (started_with(&word) == 4).then_some(()));
    let of_task = tree::marked(MARK, |mark| mark.starts_with(id(&task)));
    let reaper = of_task.iter().find(|process| process.is_reaper()).expect("a reaper").pid.to_string();
    let killed = Instant::now();
    assert!(std::process::Command::new("kill").args(["-9", &reaper]).status().expect("kill").success());
    let failed = reached(&agent(&hub, "big"), id(&task), "TASK_STATE_FAILED");
    assert_eq!(started_with(&word), 0, "nothing is left when it is told");
    assert!(killed.elapsed() < SOON, "{:?}", killed.elapsed());
    assert!(said(&failed).contains("killed or halted from outside"), "{failed}");
    // The worker goes on, and has no dead children either.
    let zombies = tree::children(worker.id()).iter().filter(|child| child.is_dead).count();
    assert_eq!((zombies, worker.log().contains("what it watched over was ended")), (0, true));
    worker.kill();
}

#[test]
fn what_a_halted_reaper_watched_over_is_ended_by_the_next_worker() {
    let hub = hub("");
    let word = format!("8{}", std::process::id());
    let script = format!("(env -i setsid sleep {word} &); echo ready; sleep {word}");
    let mut worker = attached(&hub, &config("", &[("big", "text", &script)]));
    let task = agent(&hub, "big").start("m", "x");
    until("its processes", || (started_with(&word) == 2).then_some(()));
    let of_task = tree::marked(MARK, |mark| mark.starts_with(id(&task)));
    let reaper = of_task.iter().find(|process| process.is_reaper()).expect("a reaper").pid.to_string();
    // First the worker, which would end a halted reaper itself.
    worker.signal("STOP");
    assert!(std::process::Command::new("kill").args(["-STOP", &reaper]).status().expect("kill").success());
    worker.kill();
    worker.start();
    let failed = reached(&agent(&hub, "big"), id(&task), "TASK_STATE_FAILED");
    assert_eq!((started_with(&word), alive(id(&task))), (0, 0), "nothing is left when it is told: {failed}");
}
