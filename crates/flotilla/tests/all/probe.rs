//! Probes of MCP servers: each way to answer, and each way not to.

use flotilla_protocol::fleet::announce::{McpStatus, Observation};
use flotilla_testkit::stand_in::{Act, StandIn};
use flotilla_testkit::{HubProcess, until};
use flotilla_worker::probe::mcp::Prober;
use flotilla_worker::probe::mcp::definition::{Definition, Place, Program};
use flotilla_worker::reaper::tree;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// What the processes of these tests are found by.
const SIGN: &str = "FLOTILLA_PROBE_TEST";

fn prober(limit: Duration) -> Prober {
    Prober {
        reaper: env!("CARGO_BIN_EXE_flotilla").into(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        folder: std::env::temp_dir(),
        limit,
        room: Arc::new(Semaphore::new(4)),
    }
}

/// A server that is a shell script, told apart by a name.
fn shell(name: &str, script: &str) -> Definition {
    let environment = BTreeMap::from([(SIGN.to_owned(), format!("{name}-{}", std::process::id()))]);
    let arguments = vec!["-c".into(), script.into()];
    Definition::Stdio(Program { command: "sh".into(), arguments, environment })
}

fn none_left(name: &str) {
    let sign = format!("{name}-{}", std::process::id());
    until("nothing of the server is left", || tree::marked(SIGN, |value| value == sign).is_empty().then_some(()));
}

async fn ask(limit: Duration, definition: &Definition) -> (McpStatus, String) {
    let Observation { status, detail, observed_at, latency_ms, .. } = prober(limit).ask(definition).await;
    assert!(observed_at.is_some_and(|moment| moment.0 > 0));
    assert_eq!(latency_ms.is_some(), status == McpStatus::Ok);
    (status, detail.unwrap_or_default())
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);
/// Answers the handshake, and asks something itself before it answers the ping.
const ANSWERS: &str = r#"read line
case "$line" in *'"method":"initialize"'*) ;; *) exit 9 ;; esac
echo 'Welcome'
echo '{"jsonrpc":"2.0","method":"notifications/message","params":{}}'
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}'
read line
case "$line" in *notifications/initialized*) ;; *) exit 8 ;; esac
read line
case "$line" in *'"method":"ping"'*) ;; *) exit 7 ;; esac
echo '{"jsonrpc":"2.0","id":2,"method":"roots/list"}'
read line
case "$line" in *-32601*) ;; *) exit 6 ;; esac
echo '{"jsonrpc":"2.0","id":2,"result":{}}'
(setsid sleep 600 &)
sleep 600"#;

#[tokio::test]
async fn a_program_that_answers_is_ok_and_nothing_of_it_is_left() {
    assert_eq!(ask(LONG, &shell("answers", ANSWERS)).await, (McpStatus::Ok, String::new()));
    none_left("answers");
}

#[tokio::test]
async fn a_program_that_hangs_dies_or_talks_rubbish_is_told_apart() {
    for (name, limit, script, status, told) in [
        ("hangs", SHORT, "trap '' TERM; (setsid sleep 600 &); sleep 600", McpStatus::Timeout, "handshake"),
        ("dies", LONG, "read line; echo broken >&2; exit 3", McpStatus::Failed, "exit code 3: broken"),
        ("killed", LONG, "read line; kill -9 $$", McpStatus::Failed, "signal 9"),
        ("rubbish", SHORT, "echo hello there; sleep 600", McpStatus::Failed, "hello there"),
        ("zeros", SHORT, "printf '\\0\\0\\0\\n'; sleep 600", McpStatus::Failed, "it said: what is no text"),
        ("cut", LONG, "read line; printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"res'", McpStatus::Failed, "exit code 0"),
        (
            "deaf",
            LONG,
            "exec <&-; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}'; sleep 600",
            McpStatus::Failed,
            "protocolVersion",
        ),
        (
            "refuses",
            LONG,
            "read line; case \"$line\" in *initialize*) n=1 ;; *) n=3 ;; esac; \
             echo '{\"jsonrpc\":\"2.0\",\"id\":'$n',\"error\":{\"code\":-1,\"message\":\"no\"}}'; sleep 600",
            McpStatus::Failed,
            "no (-1)",
        ),
        (
            "stateless",
            LONG,
            "read line; case \"$line\" in *server/discover*2026-07-28*) echo '{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}' ;; \
             *) echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,\"message\":\"no\"}}' ;; esac",
            McpStatus::Ok,
            "",
        ),
        (
            "pingless",
            LONG,
            "read l; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\"}}'; \
          read l; read l; echo '{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32601,\"message\":\"what\"}}'; sleep 600",
            McpStatus::Ok,
            "ping: what",
        ),
    ] {
        let (seen, detail) = ask(limit, &shell(name, script)).await;
        assert_eq!(seen, status, "{name}: {detail}");
        assert!(detail.contains(told), "{name}: {detail}");
        none_left(name);
    }
    let missing = Definition::Stdio(Program { command: "no-such-program".into(), ..Program::default() });
    assert!(matches!(ask(LONG, &missing).await, (McpStatus::Failed, told) if told.contains("no-such-program")));
}

#[tokio::test]
async fn a_ping_has_a_time_of_its_own() {
    let script =
        "read l; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\"}}'; sleep 600";
    let (status, detail) = ask(Duration::from_secs(2), &shell("pings", script)).await;
    assert_eq!((status, detail.contains("the ping")), (McpStatus::Timeout, true), "{detail}");
    none_left("pings");
}

fn at(server: &StandIn, headers: &[(&str, &str)]) -> Definition {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Definition::Http(Place { url: format!("http://{}/mcp?token=secret", server.address), headers })
}

#[tokio::test]
async fn a_server_over_http_is_asked_the_same() {
    let server = StandIn::start(false, |asked| match asked.method.as_str() {
        "initialize" => vec![Act::Answer(json!({"protocolVersion": "2025-06-18", "capabilities": {}}))],
        "ping" => vec![Act::Event(json!({}))],
        _ => vec![Act::Body(202, String::new())],
    });
    let seen = ask(LONG, &at(&server, &[("Authorization", "Bearer x")])).await;
    assert_eq!(seen, (McpStatus::Ok, String::new()));
    for (method, version) in
        [("initialize", None), ("notifications/initialized", Some("2025-06-18")), ("ping", Some("2025-06-18"))]
    {
        let asked = &server.asked(method)[0];
        assert_eq!((asked.header("authorization"), asked.header("mcp-protocol-version")), (Some("Bearer x"), version));
    }
}

#[tokio::test]
async fn a_server_over_http_that_wants_a_name_fails_or_hangs_is_told_apart() {
    for (act, limit, status, told) in [
        (Act::Body(401, String::new()), LONG, McpStatus::NeedsAuth, "sign in"),
        (Act::Body(403, String::new()), LONG, McpStatus::Failed, "403"),
        (Act::Body(302, String::new()), LONG, McpStatus::Failed, "302"),
        (Act::Body(500, "oh".into()), LONG, McpStatus::Failed, "500"),
        (Act::Body(200, "<html>".into()), LONG, McpStatus::Failed, "no MCP"),
        (Act::Refuse(-32000, "not today"), LONG, McpStatus::Failed, "not today"),
        (Act::HangUp, LONG, McpStatus::Failed, "failed"),
        (Act::Hold, SHORT, McpStatus::Timeout, "handshake"),
    ] {
        let shown = format!("{act:?}");
        let server = StandIn::start(false, move |_| vec![act.clone()]);
        let (seen, detail) = ask(limit, &at(&server, &[])).await;
        assert_eq!(seen, status, "{shown}: {detail}");
        assert!(detail.contains(told) && !detail.contains("secret"), "{shown}: {detail}");
    }
    let nobody = Place { url: "http://127.0.0.1:9/?token=secret".into(), ..Place::default() };
    let (seen, detail) = ask(LONG, &Definition::Http(nobody)).await;
    assert_eq!(
        (seen, detail.contains("reached"), detail.contains("secret")),
        (McpStatus::Failed, true, false),
        "{detail}"
    );
    let elsewhere = Place { url: "file:///etc/passwd".into(), ..Place::default() };
    assert_eq!(ask(LONG, &Definition::Http(elsewhere)).await.0, McpStatus::Failed);
}

#[tokio::test]
async fn what_a_server_repeats_of_its_secrets_is_not_told() {
    let long = "x".repeat(90);
    for (name, limit, script) in [
        ("aside", LONG, "echo \"no: $TOK $AGENT\" >&2; exit 3".to_owned()),
        ("noise", LONG, format!("echo \"no: {long} $TOK $AGENT\"; exit 3")),
        ("error", LONG, "read l; printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"no: %s\"}}\\n' \"$TOK $AGENT\"".into()),
    ] {
        let Definition::Stdio(mut program) = shell(name, &script) else { panic!("a program") };
        program.environment.insert("TOK".into(), "s3cr3t-of-the-server".into());
        let mut prober = prober(limit);
        prober.environment.push(("AGENT".into(), "s3cr3t-of-the-agent".into()));
        let detail = prober.ask(&Definition::Stdio(program)).await.detail.unwrap_or_default();
        assert!(detail.contains("no: ") && detail.contains("[redacted]"), "{name}: {detail}");
        assert!(!detail.contains("s3c"), "{name}: {detail}");
        none_left(name);
    }
    let server = StandIn::start(false, |_| vec![Act::Refuse(-32603, "bad key s3cr3t-key for /mcp?token=secret")]);
    let (_, detail) = ask(LONG, &at(&server, &[("X-Key", "Bearer s3cr3t-key")])).await;
    assert!(detail.contains("bad key [redacted]") && !detail.contains("secret"), "{detail}");
}

#[tokio::test]
async fn many_are_asked_side_by_side_and_each_gets_its_answer() {
    let mut servers: BTreeMap<String, Definition> =
        (0..6).map(|n| (format!("hangs-{n}"), shell(&format!("many-{n}"), "sleep 600"))).collect();
    servers.insert("off".into(), Definition::Disabled);
    servers.insert("new".into(), Definition::Other("carrier-pigeon".into()));
    servers.insert("wrong".into(), Definition::Wrong("it names no command".into()));
    let started = Instant::now();
    let asker = Prober { room: Arc::new(Semaphore::new(3)), ..prober(SHORT) };
    let mut asking = JoinSet::new();
    for (name, definition) in servers {
        let asker = asker.clone();
        asking.spawn(async move { (name, asker.ask(&definition).await) });
    }
    let seen: BTreeMap<String, Observation> = asking.join_all().await.into_iter().collect();
    assert!(started.elapsed() >= 2 * SHORT, "no more than three at once");
    let words: Vec<&str> = seen.values().map(|one| one.status.name()).collect();
    let hung = ["timeout"; 6];
    assert_eq!(words, [&hung[..], &["unknown", "disabled", "failed"]].concat());
    (0..6).for_each(|n| none_left(&format!("many-{n}")));
}

/// How the doctor finds the servers of an agent `coder`.
fn health(hub: &HubProcess, config: &str) -> Value {
    hub.write_config(config);
    let told = hub.cli(&["doctor", "--config", "hub.yaml", "-o", "json"]);
    let told: Value = serde_json::from_slice(&told.stdout).expect("JSON");
    let health = &told["announcements"]["coder"]["mcp_health"];
    let each = health.as_object().into_iter().flatten();
    each.map(|(name, health)| (name.clone(), health["status"].clone())).collect::<serde_json::Map<_, _>>().into()
}

#[test]
fn servers_of_an_agents_own_configuration_are_asked_too() {
    let hub = crate::cast::setup().config("agents: {echo: {kind: echo}}\n").start();
    let write = |file: &str, text: &str| std::fs::write(hub.dir().join(file), text).expect("a file");
    let list = |command: &str| json!({"mcpServers": {"own": {"command": command, "args": ["-c", ANSWERS]}, "dead": {"command": "false"}}});
    let claude = crate::claude::config("");
    write(".claude.json", &list("sh").to_string());
    assert_eq!(health(&hub, &claude), json!({"own": "ok", "dead": "failed"}));
    write(".claude.json", &list("false").to_string());
    assert_eq!(health(&hub, &claude), json!({"own": "failed", "dead": "failed"}), "it is looked at anew");
    assert_eq!(health(&hub, &crate::claude::config("      strict_mcp: true\n")), json!({}), "it does not use them");

    // Programs that tell them, as far as they are asked.
    let told = json!([{"name": "own", "enabled": true, "transport": {"type": "stdio", "command": "sh", "args": ["-c", ANSWERS]}}]);
    write("told", &told.to_string());
    let script = "#!/bin/sh\ncase \"$*\" in\n'-c k=v mcp list --json') cat told ;;\n'debug config') cat config ;;\n\
                  --version) echo 9 ;;\nesac\n";
    write("program", script);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(hub.dir().join("program"), mode).expect("a program");
    let section = "folder: ., home: ., program: ./program";
    let codex = format!("agents: {{coder: {{kind: codex, codex: {{{section}, arguments: [-c, k=v, --other]}}}}}}\n");
    assert_eq!(health(&hub, &codex), json!({"own": "ok"}));
    write("config", &json!({"mcp": {"mine": {"type": "local", "command": ["sh", "-c", ANSWERS]}}}).to_string());
    let opencode = format!("agents: {{coder: {{kind: opencode, opencode: {{{section}}}}}}}\n");
    assert_eq!(health(&hub, &opencode), json!({"mine": "ok"}));
}
