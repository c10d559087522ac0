//! Programs that start others until the machine lets them start no more, and memory that processes share.

use super::{MARK, launch, none_left, ready};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, Setup, scratch, until};
use flotilla_worker::reaper::tree;
use flotilla_worker::supervise::{Excess, Exit, Launch, Limits, Running, Streams};
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Processes and threads that the user of a crowd may have.
const MOST: usize = 300;

/// Every one of them starts others, without a pause, and does not end when asked to.
const CROWD: &str = "perl -e '$SIG{TERM} = $SIG{HUP} = \"IGNORE\"; $| = 1; print \"ready\\n\"; fork while 1'";
/// The same, each in a session of its own and with nothing to be known by.
const SCATTERED: &str = "exec env -i /usr/bin/perl -MPOSIX -e '$SIG{TERM} = $SIG{HUP} = \"IGNORE\"; $| = 1; \
                         print \"ready\\n\"; while (1) { POSIX::setsid() if defined(fork()) }'";

/// The program of the hub, where a test runs as somebody else.
const PROGRAM: &str = "FLOTILLA_CROWD_TEST_PROGRAM";

/// Runs a test again as a user who may have so many processes: one nobody else is, where that is possible. The hub's side
/// of a run then has no more of them than the run.
fn bounded(test: &str, body: impl AsyncFnOnce(&Path)) {
    if let Some(program) = std::env::var_os(PROGRAM) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        return runtime.expect("a runtime").block_on(body(Path::new(&program)));
    }
    let folder = scratch();
    let copied = |name: &str, from: &Path| {
        let copy = folder.path().join(name);
        std::fs::copy(from, &copy).expect("a copy that any user can read");
        std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).expect("a program");
        copy
    };
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("an open folder");
    let program = copied("flotilla", Path::new(env!("CARGO_BIN_EXE_flotilla")));
    let tests = copied("tests", &std::env::current_exe().expect("this test"));
    let me = std::fs::metadata("/proc/self").expect("this process").uid();
    let mut command = match me {
        0 => {
            let mut command = Command::new("setpriv");
            let user = 100_000 + std::process::id();
            command.args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".into()]);
            command.args(["prlimit".to_owned(), format!("--nproc={MOST}")]);
            command
        }
        _ => {
            let mut command = Command::new("prlimit");
            command.arg(format!("--nproc={}", MOST + tasks_of(me)));
            command
        }
    };
    command.arg(tests).args(["--exact", &format!("reaper::crowd::{test}"), "--nocapture"]);
    command.env(PROGRAM, program).env("TMPDIR", folder.path()).current_dir(folder.path());
    let told = command.output().expect("setpriv and prlimit, of util-linux");
    println!("{}{}", String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
    assert!(told.status.success() && String::from_utf8_lossy(&told.stdout).contains("1 passed"), "{test}");
}

/// Processes of a user, with their threads.
fn tasks_of(user: u32) -> usize {
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let own = processes.filter(|process| process.metadata().is_ok_and(|facts| facts.uid() == user));
    own.map(|process| std::fs::read_dir(process.path().join("task")).map_or(0, Iterator::count)).sum()
}

/// The crowd has grown until nobody can be added.
async fn full(launch: &Launch, streams: &mut Streams) -> u32 {
    ready(streams).await;
    let marked = tree::marked(MARK, |mark| mark == launch.mark);
    let reaper = marked.iter().find(|process| process.is_reaper()).expect("a reaper").pid;
    until("no more processes can be started", || (tree::below(reaper).len() > MOST - 20).then_some(()));
    reaper
}

/// The end of all that is asked to end, or has reason to.
async fn within(what: &str, end: impl Future<Output = Exit>) -> Exit {
    let begun = Instant::now();
    let exit = tokio::time::timeout(Duration::from_secs(20), end).await;
    let exit = exit.unwrap_or_else(|_| panic!("{what}: nothing has ended"));
    println!("{what}: ended after {:?}", begun.elapsed());
    exit
}

/// Fills the machine with each kind of crowd, ends it in this way, and looks that nobody is left.
async fn assert_ends(program: &Path, way: &str, end: impl AsyncFn(&str, Running)) {
    for (kind, script) in [("crowd", CROWD), ("scattered", SCATTERED)] {
        let what = format!("{kind}-{way}");
        let launch = launch(&what, script);
        let (running, mut streams) = launch.start(program).expect("the program starts");
        let reaper = full(&launch, &mut streams).await;
        end(&what, running).await;
        // It does not end before all processes below it.
        until("the reaper has ended", || tree::find(reaper).is_none().then_some(()));
        none_left(&launch);
    }
}

#[test]
fn a_crowd_that_fills_the_machine_is_ended_when_asked_to() {
    bounded("a_crowd_that_fills_the_machine_is_ended_when_asked_to", async |program| {
        assert_ends(program, "stop", async |what, mut running| _ = within(what, running.stop()).await).await;
    });
}

#[test]
fn a_crowd_that_fills_the_machine_is_ended_at_once() {
    bounded("a_crowd_that_fills_the_machine_is_ended_at_once", async |program| {
        assert_ends(program, "kill", async |what, mut running| _ = within(what, running.kill()).await).await;
    });
}

#[test]
fn a_crowd_that_fills_the_machine_goes_with_its_worker() {
    bounded("a_crowd_that_fills_the_machine_goes_with_its_worker", async |program| {
        assert_ends(program, "death", async |_, running| drop(running)).await;
    });
}

#[test]
fn a_crowd_whose_reaper_is_killed_is_ended() {
    bounded("a_crowd_whose_reaper_is_killed_is_ended", async |program| {
        let launch = launch("reaperless", CROWD);
        let (mut running, mut streams) = launch.start(program).expect("the program starts");
        let reaper = full(&launch, &mut streams).await;
        tree::find(reaper).expect("a reaper").signal(rustix::process::Signal::KILL);
        assert_eq!(within("killed reaper", running.ended()).await, Exit::Unknown);
        none_left(&launch);
    });
}

#[test]
fn a_run_has_only_so_many_processes() {
    bounded("a_run_has_only_so_many_processes", async |program| {
        let limits = Limits { processes: Some(100), ..Limits::default() };
        let launch = Launch { limits, ..launch("processes", CROWD) };
        let (mut running, _streams) = launch.start(program).expect("the program starts");
        let exit = within("limit", running.ended()).await;
        assert_eq!(exit, Exit::TooMuch(Excess::Processes(100)));
        assert!(exit.told().contains("more than 100 processes and threads (processes)"), "{}", exit.told());
        none_left(&launch);
    });
}

#[tokio::test]
async fn a_process_has_only_so_many_files() {
    let limits = Limits { files: Some(32), ..Limits::default() };
    let launch = Launch { limits, ..launch("files", "ulimit -n; sh -c 'ulimit -n'; exit 3") };
    let (mut running, streams) = super::start(&launch);
    assert_eq!(super::all(streams.stdout).await, "32\n32\n");
    assert_eq!(running.ended().await, Exit::Code(3));
}

#[tokio::test]
async fn a_program_begins_under_its_limits() {
    let limits = Limits { memory: Some(64 << 20), ..Limits::default() };
    for _ in 0..10 {
        let launch = Launch { limits, ..launch("begins", "ulimit -d; env | grep -c MIMALLOC") };
        let (mut running, streams) = super::start(&launch);
        assert_eq!(super::all(streams.stdout).await, "65536\n0\n");
        running.ended().await;
    }
}

#[tokio::test]
async fn a_program_whose_name_is_no_text_is_ended() {
    let script = r#"exec perl -e '$0 = "a\xff\xfe"; $SIG{TERM} = "IGNORE"; $| = 1; print "ready\n"; sleep 600'"#;
    let launch = launch("name", script);
    let (mut running, mut streams) = super::start(&launch);
    ready(&mut streams).await;
    assert_eq!(within("name", running.stop()).await, Exit::Signal(9));
    none_left(&launch);
}

const MB: u64 = 1_000_000;

async fn most_memory(name: &str, script: &str, most: u64) -> (Exit, u64) {
    let limits = Limits { memory: Some(most), ..Limits::default() };
    let launch = Launch { limits, ..launch(name, script) };
    let (mut running, _streams) = super::start(&launch);
    let exit = within(name, running.ended()).await;
    none_left(&launch);
    (exit, running.meter().used().memory)
}

#[tokio::test]
async fn memory_that_is_in_no_process_counts() {
    let file = format!("/dev/shm/flotilla-test-{}", std::process::id());
    // Open, and in no folder any more.
    let open = format!("exec 3<>{file}; rm {file}; head -c 200000000 /dev/zero >&3; sleep 600");
    let held = "perl -e 'my $name = \"held\"; open(my $file, \">&=\", syscall(319, $name, 0)) or die; \
                print $file \"x\" x 1000000 for 1..200; sleep 600'";
    let key = format!("{}", 0x0f10_0000 + std::process::id());
    let segment = format!(
        "perl -e 'my $id = shmget({key}, 200000000, 01600) // die; my $piece = \"x\" x 1000000; \
         shmwrite($id, $piece, $_ * 1000000, 1000000) for 0..199; sleep 600'"
    );
    for (name, script) in [("open", open.as_str()), ("memfd", held), ("segment", segment.as_str())] {
        // Other processors have another number for this system call.
        if name == "memfd" && !cfg!(target_arch = "x86_64") {
            continue;
        }
        let (exit, used) = most_memory(name, script, 150 * MB).await;
        if name == "segment" {
            // The segment stays after the process that made it.
            let removed = std::process::Command::new("ipcrm").args(["-M", &key]).status().expect("ipcrm");
            assert!(removed.success());
        }
        assert_eq!(exit, Exit::TooMuch(Excess::Memory(150 * MB)), "{name}: {used}");
    }
}

#[tokio::test]
async fn memory_that_processes_share_counts_once() {
    let script = "python3 -c 'import mmap, os, time\nshared = mmap.mmap(-1, 100000000)\nshared.write(b\"x\" * 100000000)\n\
                  for _ in range(5):\n  if os.fork() == 0: sum(shared[at] for at in range(0, 100000000, 4096)); time.sleep(2); os._exit(0)\ntime.sleep(3)'";
    let (exit, used) = most_memory("shared", script, 400 * MB).await;
    assert_eq!(exit, Exit::Code(0), "{used}");
    assert!((100 * MB..400 * MB).contains(&used), "{used}");
}

const AGENTS: &str = r#"
agents:
  canceled: {kind: command, command: {program: sh, arguments: [crowd], folder: ., grace: 300ms}}
  late: {kind: command, command: {program: sh, arguments: [crowd], folder: ., grace: 300ms, timeout: 3s}}
"#;

#[test]
fn a_hub_without_a_process_to_spare_ends_a_crowd() {
    bounded("a_hub_without_a_process_to_spare_ends_a_crowd", async |program| {
        let mut hub = Setup::new(&program.to_string_lossy()).config(AGENTS).start();
        std::fs::write(hub.dir().join("crowd"), CROWD).expect("a script");
        let me = std::fs::metadata("/proc/self").expect("this process").uid();
        let (canceled, late) = ["canceled", "late"].map(|name| hub.owner(Binding::JsonRpc).agent(name)).into();
        let begin = |client: &Client, id: &str| {
            let mut request = message(id, "go");
            request["configuration"] = json!({"returnImmediately": true});
            let task = client.call("SendMessage", &request).expect("a task")["task"]["id"].clone();
            until("no more processes can be started", || (tasks_of(me) > MOST - 20).then_some(()));
            task
        };
        let is_gone = |task: &Value| {
            let task = task.as_str().expect("an id");
            until("all has ended", || tree::marked(MARK, |mark| mark.starts_with(task)).is_empty().then_some(()));
        };
        let task = begin(&canceled, "m1");
        let ended = canceled.call("CancelTask", &json!({"id": task})).expect("an answer");
        assert_eq!(ended["status"]["state"], "TASK_STATE_CANCELED");
        is_gone(&task);
        let task = begin(&late, "m2");
        let told = until("the time is over", || {
            let task = late.call("GetTask", &json!({"id": task})).expect("a task");
            (task["status"]["state"] == "TASK_STATE_FAILED").then_some(task)
        });
        assert!(told["status"]["message"].to_string().contains("3"), "{told}");
        is_gone(&task);
        let task = begin(&canceled, "m3");
        hub.kill();
        is_gone(&task);
    });
}
