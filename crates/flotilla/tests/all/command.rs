//! Programs as agents: what they are told, what is heard of them, and that nothing of them is left.

use crate::cast::{id, reached, setup, state, text};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, HubProcess, scratch, until};
use flotilla_worker::reaper::{MARK, tree};
use serde_json::{Value, json};

/// An agent for each shell script, speaking as said.
fn hub(talk: &str, scripts: &[(&str, &str)], more: &str) -> HubProcess {
    let agents: String = scripts
        .iter()
        .map(|(name, script)| {
            let script = json!(script);
            format!(
                "  {name}:\n    kind: command\n    command:\n      program: sh\n      arguments: [-c, {script}]\n      \
                 talk: {talk}\n      folder: .\n      grace: 300ms\n{more}"
            )
        })
        .collect();
    setup().config(&format!("agents:\n{agents}")).start()
}

fn agent(hub: &HubProcess, name: &str) -> Client {
    hub.owner(Binding::JsonRpc).agent(name)
}

/// Processes of a task that are alive.
fn alive(task: &str) -> usize {
    tree::marked(MARK, |mark| mark.starts_with(&format!("{task}."))).len()
}

fn said(task: &Value) -> &str {
    text(&task["status"]["message"])
}

fn texts(artifact: &Value) -> String {
    artifact["parts"].as_array().expect("parts").iter().filter_map(|part| part["text"].as_str()).collect()
}

#[test]
fn a_program_is_given_the_text_and_what_it_prints_is_the_result() {
    let hub = hub("text", &[("upper", "tr a-z A-Z; echo aside >&2"), ("deaf", "echo $PWD; exec <&-; exit 0")], "");
    let task = agent(&hub, "upper").say("m", "hello");
    assert_eq!((state(&task), texts(&task["artifacts"][0]).as_str()), ("TASK_STATE_COMPLETED", "HELLO"));
    let log = hub.owner(Binding::HttpJson).get(&format!("/api/tasks/{}/log", id(&task)));
    assert!(log.text().contains("aside") && !task.to_string().contains("aside"), "for the owner only");
    // More than a pipe holds, and what looks like an option.
    let long = format!("--help {}", "x".repeat(300_000));
    let task = agent(&hub, "upper").say("m2", &long);
    assert_eq!(texts(&task["artifacts"][0]), long.to_uppercase());
    // A program need not listen.
    let task = agent(&hub, "deaf").say("m3", &long);
    assert_eq!(state(&task), "TASK_STATE_COMPLETED");
}

#[test]
fn what_is_printed_is_streamed_as_it_comes() {
    let hub = hub("text", &[("slow", "echo one; read line; until [ -e go ]; do sleep 0.02; done; echo two")], "");
    let client = agent(&hub, "slow");
    let mut stream = client.stream("SendStreamingMessage", &message("m", "go on")).expect("a stream");
    let first = stream.through(|event| format!("{event:?}").contains("one"));
    assert!(!format!("{first:?}").contains("two"));
    std::fs::write(hub.dir().join("go"), "").expect("a file");
    let rest = format!("{:?}", stream.rest());
    assert!(rest.contains("two") && rest.contains("TASK_STATE_COMPLETED"), "{rest}");
}

#[test]
fn exit_codes_mean_what_was_said_and_failures_are_told() {
    let scripts = [("broken", "echo first >&2; echo last >&2; exit 3"), ("gone", "kill -9 $$")];
    let failing = hub("text", &scripts, "");
    let task = agent(&failing, "broken").say("m", "x");
    assert_eq!((state(&task), said(&task)), ("TASK_STATE_FAILED", "the program ended with exit code 3: first\nlast"));
    assert!(said(&agent(&failing, "gone").say("m", "x")).contains("signal 9"));

    let asking = hub("text", &[("asking", "echo which one >&2; exit 3")], "      exits: {3: input-required}\n");
    let task = agent(&asking, "asking").say("m", "x");
    assert_eq!((state(&task), said(&task)), ("TASK_STATE_INPUT_REQUIRED", "which one"));
}

const TALKER: &str = r#"read line
case "$line" in
*'"turn":2'*) echo '{"type":"status","state":"completed","text":"Thank you"}' ;;
*direct*) echo '{"type":"answer","text":"Hello yourself"}' ;;
*garbage*) echo 'not json' ; sleep 600 ;;
*nothing*) echo '{"type":"dance"}' ;;
*)
echo '{"type":"status","state":"working","text":"On it"}'
echo '{"type":"block","block":{"type":"tool_use","id":"1","name":"grep","input":{"n":1.0}}}'
echo '{"type":"artifact","artifactId":"a","name":"report","text":"one ","lastChunk":false}'
echo '{"type":"artifact","artifactId":"a","parts":[{"text":"two"},{"data":{"n":9007199254740993}}],"append":true,"lastChunk":true}'
echo '{"type":"status","state":"input-required","text":"Which size?","metadata":{"k":1}}' ;;
esac"#;

#[test]
fn lines_of_json_say_everything_a_task_can_be() {
    let hub = hub("json-lines", &[("talker", TALKER)], "");
    let client = agent(&hub, "talker");
    let asked = client.say("m", "go");
    assert_eq!((state(&asked), said(&asked)), ("TASK_STATE_INPUT_REQUIRED", "Which size?"));
    let parts = &asked["artifacts"][0]["parts"];
    assert_eq!(
        (parts[0]["text"].as_str(), parts[2]["data"]["n"].as_u64()),
        (Some("one "), Some(9_007_199_254_740_993))
    );
    assert!(!asked.to_string().contains("grep"), "a peer does not see tools");
    let log = hub.owner(Binding::HttpJson).get(&format!("/api/tasks/{}/log", id(&asked)));
    assert!(log.text().contains("grep"));
    let mut reply = message("m2", "large");
    reply["message"]["taskId"] = json!(id(&asked));
    let done = client.call("SendMessage", &reply).expect("an answer")["task"].clone();
    assert_eq!((state(&done), said(&done)), ("TASK_STATE_COMPLETED", "Thank you"));

    let direct = client.call("SendMessage", &message("m3", "direct")).expect("an answer");
    assert_eq!(text(&direct["message"]), "Hello yourself");
    for (word, told) in [("garbage", "not json"), ("nothing", "dance")] {
        let task = client.say(word, word);
        assert_eq!(state(&task), "TASK_STATE_FAILED");
        assert!(said(&task).contains("not understood") && said(&task).contains(told), "{}", said(&task));
        assert_eq!(alive(id(&task)), 0, "it was stopped before it was told");
    }
}

const STUBBORN: &str = "trap '' TERM HUP; (setsid sh -c 'trap \"\" TERM; sleep 600' &); echo ready; sleep 600";

#[test]
fn canceled_is_only_said_when_nothing_is_left() {
    let hub = hub("text", &[("stubborn", STUBBORN)], "");
    for binding in Binding::ALL {
        let client = hub.owner(binding).agent("stubborn");
        let task = client.start(&format!("m-{binding:?}"), "x");
        until("its processes", || (alive(id(&task)) >= 3).then_some(()));
        let canceled = client.call("CancelTask", &json!({"id": id(&task)})).expect("it can be canceled");
        assert_eq!((state(&canceled), alive(id(&task))), ("TASK_STATE_CANCELED", 0), "{binding:?}");
    }
}

/// Each process is within the limit; together they are not.
const HUNGRY: &str = "for n in 1 2 3 4; do (head -c 50000000 /dev/zero | tail -c 50000000 | sleep 600) & done; wait";

#[test]
fn what_a_run_uses_is_told_to_the_owner() {
    let hub = hub("text", &[("busy", "(while :; do :; done) & sleep 0.4; kill $!; echo done")], "");
    let task = agent(&hub, "busy").say("m", "x");
    assert_eq!(state(&task), "TASK_STATE_COMPLETED");
    let log = hub.owner(Binding::HttpJson).get(&format!("/api/tasks/{}/log", id(&task)));
    assert!(log.text().contains("peak_memory_bytes") && log.text().contains("processor_seconds"), "{}", log.text());
}

#[test]
fn a_program_works_in_a_folder_of_its_own_and_is_not_led_out_of_its_root() {
    let program = "    kind: command\n    command:\n      program: sh\n      arguments: [-c, 'pwd; echo $HOME; ls; echo x > kept']\n";
    let place = scratch();
    let (inside, root) = (place.path().join("root/inside"), place.path().join("root"));
    std::fs::create_dir_all(&inside).expect("a folder");
    let rooted = format!("      folder: {}\n      root: {}\n", inside.display(), root.display());
    let hub = setup().config(&format!("agents:\n  own:\n{program}  led:\n{program}{rooted}")).start();
    let own = hub.data().canonicalize().expect("the data directory").join("agents/own");
    for left in ["", "kept\n"] {
        let task = agent(&hub, "own").say(&format!("m{}", left.len()), "x");
        let told = format!("{0}/work\n{0}/home\n{left}", own.display());
        assert_eq!((state(&task), texts(&task["artifacts"][0])), ("TASK_STATE_COMPLETED", told));
    }
    assert_eq!(state(&agent(&hub, "led").say("m1", "x")), "TASK_STATE_COMPLETED");
    std::fs::remove_dir_all(&inside).expect("it goes");
    std::os::unix::fs::symlink("/", &inside).expect("a link");
    let task = agent(&hub, "led").say("m2", "x");
    assert_eq!(state(&task), "TASK_STATE_FAILED", "{task}");
    assert!(!task.to_string().contains("root"), "where is the owner's to know");
    let log = hub.owner(Binding::HttpJson).get(&format!("/api/tasks/{}/log", id(&task)));
    assert!(log.text().contains("is not in"), "{}", log.text());
}

#[test]
fn a_program_that_is_silent_too_long_or_says_too_much_is_stopped() {
    for (script, more, told) in [
        ("echo hi; sleep 600", "      silence: 300ms\n", "said nothing"),
        ("while :; do echo x; sleep 0.01; done", "      timeout: 1s\n", "did not end within 1 s"),
        ("yes", "      output_bytes: 100000\n", "more than 100000 bytes"),
        (HUNGRY, "      memory_bytes: 120000000\n", "used more than 120000000 bytes of memory (memory_bytes)"),
        ("while :; do :; done", "      processor_time: 1s\n", "used more than 1 s of processor time (processor_time)"),
    ] {
        let hub = hub("text", &[("bad", script)], more);
        let task = agent(&hub, "bad").say("m", "x");
        assert_eq!(state(&task), "TASK_STATE_FAILED", "{script}");
        assert!(said(&task).contains(told), "{}", said(&task));
        assert_eq!(alive(id(&task)), 0);
    }
}

#[test]
fn a_program_that_is_done_is_asked_to_end_and_has_its_grace() {
    let done = r#"echo '{"type":"status","state":"completed"}'"#;
    let polite = format!("trap 'echo bye > polite; exit' TERM; {done}; while :; do sleep 0.02; done");
    let stubborn =
        format!("trap 'echo no > stubborn' TERM; {done}; (setsid sleep 600 &); while :; do sleep 0.02; done");
    let hub = hub("json-lines", &[("polite", &polite), ("stubborn", &stubborn)], "");
    for name in ["polite", "stubborn"] {
        let task = agent(&hub, name).say("m", "x");
        assert_eq!(state(&task), "TASK_STATE_COMPLETED");
        until("it was asked to end", || hub.dir().join(name).exists().then_some(()));
        until("nothing of it is left", || (alive(id(&task)) == 0).then_some(()));
    }
}

#[test]
fn what_comes_together_on_standard_error_is_one_note() {
    let hub = hub("text", &[("loud", "yes | head -n 100000 >&2; echo why >&2; exit 3")], "");
    let task = agent(&hub, "loud").say("m", "x");
    assert_eq!(said(&task), "the program ended with exit code 3: y\ny\ny\ny\nwhy");
    let log = hub.owner(Binding::HttpJson).get(&format!("/api/tasks/{}/log", id(&task)));
    let (notes, lines) = (log.text().matches("\"noted\"").count(), log.text().matches("\\ny").count());
    assert!((1..500).contains(&notes) && lines > 90_000, "{notes} notes of {lines} lines");
}

#[test]
fn a_hub_that_is_killed_leaves_no_process_behind() {
    let mut hub = hub("text", &[("stubborn", STUBBORN)], "");
    let client = agent(&hub, "stubborn");
    let tasks: Vec<String> = (0..5).map(|n| id(&client.start(&format!("m{n}"), "x")).to_owned()).collect();
    for task in &tasks {
        until("its processes", || (alive(task) >= 3).then_some(()));
    }
    hub.kill();
    for task in &tasks {
        until("nothing is left", || (alive(task) == 0).then_some(()));
    }
    hub.restart();
    for task in &tasks {
        let lost = reached(&agent(&hub, "stubborn"), task, "TASK_STATE_FAILED");
        assert!(said(&lost).contains("the hub stopped"), "{lost}");
    }
}

#[test]
fn what_cannot_work_is_told_at_the_start() {
    let refused = |command: &str| setup().config(&format!("agents:\n  x:\n    kind: command\n{command}")).refused();
    for (command, told) in [
        ("", "needs 'command:'"),
        ("    command: {program: no-such-program}\n", "no-such-program"),
        ("    command: {program: sh, env: {A: 'env:NO_SUCH_VARIABLE'}}\n", "NO_SUCH_VARIABLE"),
        ("    command: {program: sh, folder: /no/such/folder}\n", "not a folder"),
        ("    command: {program: sh, shell: true}\n", "shell"),
    ] {
        let log = refused(command);
        assert!(log.contains(told), "{command}: {log}");
    }
}
