//! Hub and worker are killed at random: no task is lost, none runs twice without a word, no process is left.

use super::{agent, alive, attached, config, hub, log, made, made_of, said};
use crate::cast::{id, state};
use flotilla_testkit::{WorkerProcess, until};

/// Who began, as the programs noted it.
fn began(worker: &WorkerProcess) -> String {
    std::fs::read_to_string(worker.state().with_file_name("began")).unwrap_or_default()
}

const ROUNDS: u64 = 50;

/// Notes that it began, says something, forks away, and ends.
const WORK: &str =
    "read name; echo $name >> began; (setsid sleep 600 &); for n in 1 2 3 4 5; do echo $n; sleep 0.01; done";

#[test]
fn kills_at_random_points_lose_no_task_and_leave_no_process() {
    let mut hub = hub("grace: 30s");
    let mut worker = attached(&hub, &config("", &[("work", "text", WORK)]));
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
    let completed = tasks.iter().filter(|(task, _)| state(&client.task(task)) == "TASK_STATE_COMPLETED").count();
    eprintln!("{completed} of {} completed", tasks.len());
    assert!(completed > 0, "not every run was killed");
}
