//! Agents that speak ACP: what they are told and asked, what is heard of them, and that nothing of them is left.

use crate::cast::{id, reached, setup, state, text};
use flotilla_testkit::client::message;
use flotilla_testkit::{Binding, Client, HubProcess, Request, until};
use flotilla_worker::reaper::{MARK, tree};
use serde_json::{Value, json};

/// Speaks ACP as a shell can. What it is told is kept in `told`, line by line.
const AGENT: &str = r#"
say() { echo "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"$s\",\"update\":$1}}"; }
chunk() { say "{\"sessionUpdate\":\"$1\",\"content\":{\"type\":\"text\",\"text\":\"$2\"}}"; }
cost() { say "{\"sessionUpdate\":\"usage_update\",\"used\":9,\"size\":99,\"cost\":{\"amount\":$1,\"currency\":\"USD\"}}"; }
answer() { echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
fail() { echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":$1,\"message\":\"$2\"}}"; }
next() { read -r line || exit 0; echo "$line" >> told; rest=${line#*'"id":'}; id=${rest%%,*}; }
echo 'starting up' >&2
while next; do
case "$line" in
*'"method":"initialize"'*) answer "{\"protocolVersion\":${VERSION:-1},\"agentCapabilities\":{\"loadSession\":true}}" ;;
*'"method":"authenticate"'*) touch in; answer '{}' ;;
*'"method":"session/new"'*)
  if [ -n "$LOCKED" ] && ! [ -e in ]; then fail -32000 'Authentication required'; continue; fi
  s=s$$; answer "{\"sessionId\":\"$s\",\"modes\":{\"currentModeId\":\"ask\",\"availableModes\":[{\"id\":\"ask\"},{\"id\":\"code\"}]}}" ;;
*'"method":"session/load"'*)
  if [ -e forgotten ]; then fail -32603 'no such session'; continue; fi
  rest=${line#*'"sessionId":"'}; s=${rest%%\"*}
  chunk user_message_chunk 'old question'; chunk agent_message_chunk 'old answer'; answer 'null' ;;
*'"method":"session/set_mode"'*) answer '{}' ;;
*'"method":"session/prompt"'*)
  case "$line" in
  *leave*)
    echo '{"jsonrpc":"2.0","id":900,"method":"session/request_permission","params":{"sessionId":"'$s'","toolCall":{"toolCallId":"t9","title":"rm -rf","rawInput":{"c":"rm"}},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}}'
    p=$id; next
    case "$line" in *'"optionId":"yes"'*) chunk agent_message_chunk allowed ;; *'"optionId":"no"'*) chunk agent_message_chunk refused ;; esac
    id=$p; answer '{"stopReason":"end_turn"}' ;;
  *reading*)
    echo '{"jsonrpc":"2.0","id":901,"method":"fs/read_text_file","params":{"path":"/etc/passwd"}}'
    p=$id; next; case "$line" in *-32601*) chunk agent_message_chunk 'not offered' ;; esac
    id=$p; answer '{"stopReason":"end_turn"}' ;;
  *stubborn*) trap '' TERM; (setsid sh -c 'trap "" TERM; sleep 600' &); chunk agent_message_chunk ready; sleep 600 ;;
  *polite*) chunk agent_message_chunk ready; p=$id; next; case "$line" in *session/cancel*) touch canceled; id=$p; answer '{"stopReason":"cancelled"}' ;; esac ;;
  *die*) echo 'oh no' >&2; exit 4 ;;
  *cut*) printf '{"jsonrpc":"2.0","id":'; exit 0 ;;
  *broken*) fail -32603 'Internal error' ;;
  *refuse*) answer '{"stopReason":"refusal"}' ;;
  *tokens*) answer '{"stopReason":"max_tokens"}' ;;
  *linger*) chunk agent_message_chunk done; answer '{"stopReason":"end_turn"}'; trap '' TERM; exec <&-; sleep 600 ;;
  *spend*) n=0; while [ $n -lt 2000 ]; do
      n=$((n + 1)); cost "$((n / 1000)).$(printf %03d $((n % 1000)))"; sleep 0.01
    done; answer '{"stopReason":"end_turn"}' ;;
  *price*) n=$(($(cat paid 2>/dev/null || echo 0) + 1)); echo $n > paid; cost "$n.5"; answer '{"stopReason":"end_turn"}' ;;
  *change*) echo more >> tracked.txt; echo new > new.txt; answer '{"stopReason":"end_turn"}' ;;
  *)
    echo 'this is no JSON'
    chunk agent_thought_chunk 'let me '; chunk agent_thought_chunk 'see'
    say '{"sessionUpdate":"plan","entries":[{"content":"look","priority":"high","status":"in_progress"}]}'
    say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"grep","kind":"search","status":"pending","rawInput":{"q":"x"}}'
    say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"found it"}}]}'
    chunk agent_message_chunk 'one '; chunk agent_message_chunk "in $s"
    answer '{"stopReason":"end_turn","usage":{"inputTokens":5,"outputTokens":7,"totalTokens":12}}' ;;
  esac ;;
esac
done"#;

fn hub(more: &str) -> HubProcess {
    let script = json!(AGENT.replace("${", "$${"));
    let config = format!(
        "agents:\n  coder:\n    kind: acp\n    acp:\n      program: sh\n      arguments: [-c, {script}]\n      \
         folder: .\n      grace: 300ms\n{more}"
    );
    setup().config(&config).start()
}

fn coder(hub: &HubProcess) -> Client {
    hub.owner(Binding::JsonRpc).agent("coder")
}

fn alive(task: &str) -> usize {
    tree::marked(MARK, |mark| mark.starts_with(&format!("{task}."))).len()
}

fn said(task: &Value) -> &str {
    text(&task["status"]["message"])
}

fn output(task: &Value) -> String {
    let parts = task["artifacts"][0]["parts"].as_array().cloned().unwrap_or_default();
    parts.iter().filter_map(|part| part["text"].as_str()).collect()
}

fn log(hub: &HubProcess, task: &Value) -> String {
    hub.owner(Binding::HttpJson).get(&format!("/api/tasks/{}/log", id(task))).text().to_owned()
}

fn told(hub: &HubProcess) -> String {
    std::fs::read_to_string(hub.dir().join("told")).expect("the agent was told something")
}

/// A message in a conversation of the caller's naming.
fn in_context(client: &Client, number: u32, context: &str, words: &str) -> Value {
    let mut said = message(&format!("m{number}"), words);
    said["message"]["contextId"] = json!(context);
    client.call("SendMessage", &said).expect("an answer")["task"].clone()
}

#[test]
fn text_goes_to_the_caller_and_all_the_rest_to_the_owner() {
    let hub = hub("");
    let task = coder(&hub).say("m", "--help me look");
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
    assert!(output(&task).starts_with("one in s"), "{task}");
    let log = log(&hub, &task);
    for hidden in ["let me see", "tool_use", "grep", "found it", "progress", "input_tokens", "starting up", "no JSON"] {
        assert!(log.contains(hidden) && !task.to_string().contains(hidden), "{hidden}: {log}");
    }
    let told = told(&hub);
    assert!(told.contains(r#""text":"--help me look""#) && told.contains(r#""terminal":false"#), "{told}");
}

#[test]
fn a_conversation_goes_on_in_its_session_also_after_a_restart() {
    let mut hub = hub("");
    let first = output(&in_context(&coder(&hub), 1, "c", "look"));
    let second = in_context(&coder(&hub), 2, "c", "look");
    assert_eq!(output(&second), first, "the same session, and nothing of what was said before");
    assert_ne!(output(&in_context(&coder(&hub), 3, "d", "look")), first);
    let other = hub.caller(Binding::JsonRpc, "someone").agent("coder");
    assert_ne!(output(&in_context(&other, 4, "c", "look")), first, "another caller's context is another");
    hub.kill();
    hub.restart();
    assert_eq!(output(&in_context(&coder(&hub), 5, "c", "look")), first);
    std::fs::write(hub.dir().join("forgotten"), "").expect("a file");
    let anew = in_context(&coder(&hub), 6, "c", "look");
    assert_eq!(state(&anew), "TASK_STATE_COMPLETED");
    assert_ne!(output(&anew), first);
    assert!(log(&hub, &anew).contains("begun anew"));
}

#[test]
fn leave_to_use_a_tool_is_the_owners_to_give() {
    let hub = hub("      silence: 2s\n");
    let client = coder(&hub);
    let owner = hub.owner(Binding::HttpJson);
    for (number, (answer, state_of_it, expected)) in [
        (json!({"decision": "allow"}), "allowed", "allowed"),
        (json!({"decision": "deny", "note": "not today"}), "denied", "refused"),
        // There is no way to tell an agent so.
        (json!({"decision": "allow", "input": {"c": "ls"}}), "denied", "refused"),
    ]
    .into_iter()
    .enumerate()
    {
        let task = client.start(&format!("m{number}"), "ask for leave");
        let approval = until("a question to the owner", || {
            let open: Value = serde_json::from_str(owner.get("/api/approvals?state=open").text()).ok()?;
            open["approvals"].as_array()?.first()?["id"].as_str().map(str::to_owned)
        });
        assert!(!client.task(id(&task)).to_string().contains("rm -rf"), "the caller sees WORKING only");
        let post = Request::post(&format!("/api/approvals/{approval}"), answer.to_string());
        owner.send(post.header("content-type", "application/json"));
        let task = reached(&client, id(&task), "TASK_STATE_COMPLETED");
        assert_eq!(output(&task), expected, "{answer}");
        assert!(log(&hub, &task).contains(state_of_it));
    }
    // A question that nobody answers does not outlive the run.
    let task = client.start("last", "ask for leave");
    until("a question to the owner", || owner.get("/api/approvals?state=open").text().contains("rm -rf").then_some(()));
    let canceled = client.call("CancelTask", &json!({"id": id(&task)})).expect("it can be canceled");
    assert_eq!((state(&canceled), alive(id(&task))), ("TASK_STATE_CANCELED", 0));
}

#[test]
fn without_an_owner_at_hand_the_configuration_decides() {
    for (more, answer, decision) in
        [("      permission: deny\n", "refused", "denied"), ("      permission: allow\n", "allowed", "allowed")]
    {
        let hub = hub(more);
        let task = coder(&hub).say("m", "ask for leave");
        assert_eq!((state(&task), output(&task).as_str()), ("TASK_STATE_COMPLETED", answer));
        let log = log(&hub, &task);
        assert!(log.contains("rm -rf") && log.contains(decision), "{log}");
        assert!(!task.to_string().contains("rm -rf"));
    }
}

#[test]
fn what_is_not_offered_is_refused_and_each_end_is_told() {
    let hub = hub("");
    let client = coder(&hub);
    assert_eq!(output(&client.say("reading", "reading")), "not offered");
    for (words, expected, why) in [
        ("die", "FAILED", "exit code 4: starting up\noh no"),
        ("cut", "FAILED", "exit code 0"),
        ("broken", "FAILED", "Internal error (-32603)"),
        ("refuse", "REJECTED", "refused"),
        ("tokens", "FAILED", "limit of tokens"),
    ] {
        let task = client.say(words, words);
        assert_eq!(state(&task), format!("TASK_STATE_{expected}"), "{words}: {task}");
        assert!(said(&task).contains(why), "{words}: {}", said(&task));
        assert_eq!(alive(id(&task)), 0);
    }
    let lingers = client.say("linger", "linger");
    assert_eq!((state(&lingers), output(&lingers).as_str()), ("TASK_STATE_COMPLETED", "done"));
    assert_eq!(alive(id(&lingers)), 0, "a turn that is over is over");
    let mut image = message("image", "look at this");
    let picture = json!({"raw": "AAAA", "mediaType": "image/png", "filename": "a.png"});
    image["message"]["parts"].as_array_mut().expect("parts").push(picture);
    let refused = client.call("SendMessage", &image).expect("an answer")["task"].clone();
    assert_eq!(state(&refused), "TASK_STATE_REJECTED");
    assert!(said(&refused).contains("takes no images"), "{refused}");
    let mut file = message("file", "look at this");
    let secret = json!({"raw": "QC9ldGMvcGFzc3dk", "mediaType": "application/json", "filename": "a.json"});
    file["message"]["parts"].as_array_mut().expect("parts").push(secret);
    let taken = client.call("SendMessage", &file).expect("an answer")["task"].clone();
    assert_eq!(state(&taken), "TASK_STATE_COMPLETED", "{taken}");
    let told = told(&hub);
    let words = told.split_once("A file (a.json):").expect("a file of text goes as words").1;
    assert!(words.contains("@/etc/passwd") && words.contains("(The message ends here."), "{words}");
}

#[test]
fn a_cancel_is_told_to_the_agent_and_said_when_nothing_is_left() {
    let hub = hub("");
    let client = coder(&hub);
    for words in ["polite", "stubborn"] {
        let task = client.start(words, words);
        until("its first words", || client.task(id(&task))["artifacts"][0].is_object().then_some(()));
        let canceled = client.call("CancelTask", &json!({"id": id(&task)})).expect("it can be canceled");
        assert_eq!((state(&canceled), alive(id(&task))), ("TASK_STATE_CANCELED", 0), "{words}");
    }
    assert!(hub.dir().join("canceled").exists(), "it was asked first");
}

#[test]
fn silence_time_and_output_are_bounded() {
    for (words, more, told) in [
        ("stubborn", "      silence: 300ms\n", "said nothing"),
        ("stubborn", "      timeout: 1s\n", "within 1 s"),
        ("look", "      output_bytes: 500\n", "more than 500 bytes"),
    ] {
        let hub = hub(more);
        let task = coder(&hub).say("m", words);
        assert_eq!(state(&task), "TASK_STATE_FAILED", "{words}");
        assert!(said(&task).contains(told), "{}", said(&task));
        assert_eq!(alive(id(&task)), 0);
    }
}

#[test]
fn modes_servers_and_signing_in_are_as_configured() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), r#"{"mcpServers":{"notes":{"command":"notes-server","env":{"K":"${PLACE:-here}"}}}}"#)
        .expect("written");
    let more = format!(
        "      mode: code\n      mcp_config: {}\n      sign_in: key\n      env: {{LOCKED: 'yes'}}\n",
        file.path().display()
    );
    let open = hub(&more);
    let task = coder(&open).say("m", "look");
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
    let told = told(&open);
    for part in [r#""modeId":"code""#, r#""methodId":"key""#, r#""command":"notes-server""#, r#""value":"here""#] {
        assert!(told.contains(part), "{part}: {told}");
    }
    for (more, why) in [
        ("      env: {LOCKED: 'yes'}\n", "not signed in"),
        ("      mode: fly\n", "no mode 'fly'; it has: ask, code"),
        ("      env: {VERSION: '7'}\n", "version 7"),
        ("      model: big\n", "no model to choose"),
    ] {
        let task = coder(&hub(more)).say("m", "look");
        assert_eq!(state(&task), "TASK_STATE_FAILED");
        assert!(said(&task).contains(why), "{}", said(&task));
    }
}

#[test]
fn what_changed_in_the_repository_is_told_to_the_owner() {
    let repository = flotilla_testkit::scratch();
    let git = |words: &[&str]| {
        let run = std::process::Command::new("git").args(words).current_dir(repository.path()).output().expect("git");
        assert!(run.status.success(), "{words:?}: {}", String::from_utf8_lossy(&run.stderr));
    };
    git(&["init", "-q", "-b", "main", "."]);
    std::fs::write(repository.path().join("tracked.txt"), "first\n").expect("written");
    std::fs::write(repository.path().join(".gitignore"), "told\n").expect("written");
    git(&["add", "--all"]);
    git(&["-c", "user.email=a@b.example", "-c", "user.name=A", "commit", "-q", "-m", "first"]);
    let folder = repository.path().display();
    let config = |git: &str| {
        let script = json!(AGENT.replace("${", "$${"));
        let acp = format!("acp: {{program: sh, arguments: [-c, {script}], folder: {folder}, git: {git}}}");
        setup().config(&format!("agents:\n  coder:\n    kind: acp\n    {acp}\n")).start()
    };
    let apart = config("{evidence: true, worktree: per-task, afterwards: merge}");
    let task = coder(&apart).say("m", "change");
    let seen = log(&apart, &task);
    assert!(seen.contains(r#""files_changed":["new.txt","tracked.txt"]"#), "{seen}");
    assert!(seen.contains(r#""worktree":"merged""#), "{seen}");
    assert!(!task.to_string().contains("tracked.txt"));
    assert!(repository.path().join("new.txt").exists(), "merged");
    git(&["diff", "--quiet", "HEAD"]);

    let here = config("{evidence: true}");
    let seen = log(&here, &coder(&here).say("m", "change"));
    assert!(
        seen.contains(r#""uncommitted":["new.txt","tracked.txt"]"#)
            || seen.contains(r#""files_changed":["tracked.txt"]"#),
        "{seen}"
    );
}

#[test]
fn what_cannot_work_is_told_at_the_start() {
    let refused = |acp: &str| setup().config(&format!("agents:\n  x:\n    kind: acp\n{acp}")).refused();
    for (acp, told) in [
        ("", "needs 'acp:'"),
        ("    acp: {program: sh}\n", "folder"),
        ("    acp: {program: no-such-program, folder: .}\n", "no-such-program"),
        ("    acp: {program: sh, folder: /no/such/folder}\n", "not a folder"),
        ("    acp: {program: sh, folder: ., mcp_config: /no/such/file}\n", "mcp_config"),
        ("    acp: {program: sh, folder: ., git: {afterwards: merge}}\n", "worktree: per-task"),
    ] {
        let log = refused(acp);
        assert!(log.contains(told), "{acp}: {log}");
    }
}

fn used(hub: &HubProcess, query: &str) -> Value {
    hub.owner(Binding::HttpJson).get(&format!("/api/usage?{query}")).json()["total"].clone()
}

#[test]
fn a_hard_ceiling_on_cost_stops_a_turn_that_goes_on() {
    let hub = hub("");
    let mut request = message("m", "spend");
    let dispatch = json!({"type": "TASK_DISPATCH", "protocol_version": "2.0", "brief": "spend",
        "task": {"budget": {"max_cost_usd": 0.05, "hard": true}}});
    request["message"]["metadata"] = json!({"urn:flotilla:ext:fleet-handshake:2.0": dispatch});
    request["configuration"] = json!({"returnImmediately": true});
    let task = coder(&hub).call("SendMessage", &request).expect("a task")["task"].clone();
    let failed = reached(&coder(&hub), id(&task), "TASK_STATE_FAILED");
    assert!(failed["status"].to_string().contains("budget_exhausted"), "{failed}");
    until("nothing of it is left", || (alive(id(&task)) == 0).then_some(()));
    let used = used(&hub, &format!("by=task&task={}", id(&task)));
    let cost = used["costUsd"].as_f64().expect("a cost");
    assert!((0.05..1.0).contains(&cost), "{used}");
    until("it is known that it was broken off", || {
        let used = self::used(&hub, &format!("by=task&task={}", id(&task)));
        used["incomplete"].to_string().contains("costUsd").then_some(())
    });
}

#[test]
fn a_session_is_paid_for_once_over_turns_and_restarts() {
    let mut hub = hub("");
    let pay = |hub: &HubProcess, number: u32| {
        assert_eq!(state(&in_context(&coder(hub), number, "c", "price")), "TASK_STATE_COMPLETED");
        used(hub, "agent=coder")["costUsd"].clone()
    };
    assert_eq!((pay(&hub, 1), pay(&hub, 2)), (json!(1.5), json!(2.5)), "the session has cost 2.5 by then");
    let file = hub.data().join("agents/coder/sessions.json");
    until("it is on record", || std::fs::read_to_string(&file).is_ok_and(|text| text.contains("2.5")).then_some(()));
    hub.kill();
    hub.restart();
    assert_eq!(pay(&hub, 3), json!(3.5));
    std::fs::remove_file(hub.dir().join("paid")).expect("the agent's own record");
    assert_eq!(pay(&hub, 4), json!(5.0), "it counts anew");
}
