//! Failures: one envelope, the protocol's names, the program's codes, and exit statuses that agree with them.

use super::agent::{Agent, Says, card};
use super::program::Place;
use crate::cast::{hub, hub_with, id};
use flotilla_testkit::pages::{Page, Pages};
use flotilla_testkit::process::OWNER;
use flotilla_testkit::stand_in::{Act, StandIn};
use serde_json::{Value, json};

#[test]
fn a_message_that_is_much_too_large_is_refused_in_words_over_every_binding() {
    let hub = hub_with("limits: {body: 1000000}");
    let place = Place::at(&hub);
    let large = place.file("large.bin", vec![b'x'; 5_000_000]);
    for transport in ["JSONRPC", "HTTP+JSON", "GRPC"] {
        let ran = place.run(&["send", "--file", &large, "--transport", transport, "-o", "json"]);
        assert_eq!((ran.code, ran.error().as_str()), (1, "InvalidRequestError"), "{transport}: {ran:?}");
        assert!(ran.out.contains("larger than 1000000 bytes"), "{transport}: {ran:?}");
    }
}

#[test]
fn what_is_too_large_for_an_agent_elsewhere_is_told_with_what_to_do() {
    let place = Place::new();
    let strict = Agent::start(card(json!({})), |_, _| Says::Status(413, json!("<html>too large</html>")));
    let ran = place.run(&["send", "x", "-a", &strict.url, "-o", "json"]);
    assert!(ran.json()["error"]["hint"].as_str().is_some_and(|hint| hint.contains("--file URL")), "{ran:?}");
    // It hangs up before the message has come, and nothing says why.
    let rude = StandIn::start(false, |_| vec![Act::HangUp]);
    let large = place.file("large.bin", vec![b'x'; 2_000_000]);
    let ran = place.run(&["send", "--file", &large, "-a", &rude.url(), "-o", "json"]);
    assert!(ran.code == 3 && ran.out.contains("large files can go as a url"), "{ran:?}");
    let ran = place.run(&["send", "x", "-a", &rude.url(), "-o", "json"]);
    assert!(ran.code == 3 && !ran.out.contains("large files"), "{ran:?}");
}

#[test]
fn whoever_asks_a_hub_that_is_away_is_told_to_look_for_it() {
    for command in ["log", "why", "tree"] {
        let ran = Place::new().run(&["task", command, "x", "--hub", "http://127.0.0.1:1", "-o", "json"]);
        assert_eq!((ran.code, ran.error().as_str()), (3, "A2ACLI_ERR_UNREACHABLE"), "{ran:?}");
        let hint = ran.json()["error"]["hint"].clone();
        assert!(hint.as_str().is_some_and(|hint| hint.starts_with("check that the hub runs")), "{command}: {hint}");
    }
}

#[test]
fn an_error_has_the_same_name_over_every_binding() {
    let hub = hub();
    let place = Place::at(&hub);
    let ended = place.json(&["send", "complete"]);
    let task = id(&ended["task"]);
    let large = place.file("large.bin", vec![b'x'; 9 << 20]);
    for (args, name, codes) in [
        (
            &["send", "--file", &large][..],
            "InvalidRequestError",
            [json!(-32600), json!(413), json!("RESOURCE_EXHAUSTED")],
        ),
        (&["task", "get", "nope"], "TaskNotFoundError", [json!(-32001), json!(404), json!("NOT_FOUND")]),
        (
            &["task", "cancel", task],
            "TaskNotCancelableError",
            [json!(-32002), json!(400), json!("FAILED_PRECONDITION")],
        ),
        (
            &["task", "subscribe", task],
            "UnsupportedOperationError",
            [json!(-32004), json!(400), json!("FAILED_PRECONDITION")],
        ),
        (
            &["send", "x", "--a2a-version", "1.9"],
            "VersionNotSupportedError",
            [json!(-32009), json!(400), json!("FAILED_PRECONDITION")],
        ),
        (
            &["task", "list", "--page-token", "!"],
            "InvalidParamsError",
            [json!(-32602), json!(400), json!("INVALID_ARGUMENT")],
        ),
        (
            &["send", "x", "--agent", "strict"],
            "ExtensionSupportRequiredError",
            [json!(-32008), json!(400), json!("FAILED_PRECONDITION")],
        ),
    ] {
        for (transport, code) in ["JSONRPC", "HTTP+JSON", "GRPC"].into_iter().zip(&codes) {
            let ran = place.run(&[args, &["-o", "json", "--transport", transport]].concat());
            let error = &ran.json()["error"];
            assert_eq!((ran.code, &error["code"], &error["a2aCode"]), (1, &json!(name), code), "{args:?} {transport}");
            assert!(error["message"].is_string() && error["hint"].is_string(), "{error}");
        }
    }
    let data = place.file("x.json", "{}");
    let ran = place.run(&["send", "--data", &data, "--agent", "plain", "-o", "json"]);
    assert_eq!((ran.code, ran.error().as_str()), (1, "ContentTypeNotSupportedError"));
}

#[test]
fn the_wire_log_shows_what_an_agent_says_over_grpc() {
    let hub = hub();
    let place = Place::at(&hub);
    let ran = place.run(&["task", "get", OWNER, "--debug", "--transport", "GRPC"]);
    assert!(ran.err.contains("< grpc-message: The task does not exist or is not accessible to you."), "{ran:?}");
    assert!(ran.err.contains(r#""reason":"TASK_NOT_FOUND""#), "{ran:?}");
    assert!(ran.err.contains(r#""taskId":"[redacted]""#) && !ran.err.contains(OWNER), "a key is masked: {ran:?}");
    let ran = place.run(&["task", "subscribe", "nope", "--debug", "--transport", "GRPC"]);
    assert!(ran.err.contains("< grpc-message: The task does not exist"), "{ran:?}");
}

#[test]
fn every_failure_has_its_code_and_the_status_that_belongs_to_it() {
    let hub = hub();
    let place = Place::new();
    let bad_card = place.file("bad.json", "{");
    let url = hub.url();
    let wrong = ["send", "x", "-a", &url, "--bearer", "flk_wrong"];
    for (args, code, status) in [
        (&["send"][..], "A2ACLI_ERR_USAGE", 2),
        (&["send", "x", "--nonsense"], "A2ACLI_ERR_USAGE", 2),
        (&["send", "x", "-a", "./no.json"], "A2ACLI_ERR_CARD_NOT_FOUND", 3),
        (&["send", "x", "-a", &bad_card], "A2ACLI_ERR_CARD_INVALID", 1),
        (&["send", "x", "-a", "http://127.0.0.1:1"], "A2ACLI_ERR_UNREACHABLE", 3),
        (&["send", "x", "-a", &url], "A2ACLI_ERR_CREDENTIALS_MISSING", 4),
        (&wrong, "A2ACLI_ERR_AUTH_FAILED", 4),
    ] {
        let ran = place.run(&[args, &["-o", "json"]].concat());
        assert_eq!((ran.error().as_str(), ran.code), (code, status), "{ran:?}");
        assert_eq!(ran.json().as_object().map(serde_json::Map::len), Some(1), "one envelope");
        assert!(ran.json()["error"]["hint"].is_string(), "{ran:?}");
        let told = place.run(args);
        assert_eq!((told.code, told.out.as_str()), (status, ""), "people are told on standard error: {told:?}");
        assert!(!told.err.is_empty());
    }
    let odd =
        card(json!({"supportedInterfaces": [{"url": "x", "protocolBinding": "PIGEON", "protocolVersion": "1.0"}]}));
    let file = place.file("odd.json", odd.to_string());
    let ran = place.run(&["send", "x", "-a", &file, "-o", "json"]);
    assert_eq!((ran.error().as_str(), ran.code), ("A2ACLI_ERR_INTERNAL", 1));
    let nowhere = place.file("nowhere.json", card(json!({"supportedInterfaces": []})).to_string());
    let ran = place.run(&["send", "x", "-a", &nowhere, "-o", "json"]);
    assert_eq!((ran.error().as_str(), ran.code), ("A2ACLI_ERR_CARD_INVALID", 1));
}

#[test]
fn people_are_told_what_to_try_next() {
    let hub = hub();
    let place = Place::at(&hub);
    let ran = place.run(&["task", "get", "nope"]);
    for label in ["Error: TaskNotFoundError", "Message: ", "Hint: "] {
        assert!(ran.err.contains(label), "{ran:?}");
    }
    let nobody = Place::new().env("FLOTILLA_URL", "http://127.0.0.1:1").run(&["send", "x"]);
    assert!(nobody.err.contains("flotilla serve"), "{nobody:?}");
}

#[test]
fn a_hint_fits_what_went_wrong() {
    let hint = |place: Place, args: &[&str]| {
        let error = place.run(&[args, &["-o", "json"]].concat()).json()["error"].clone();
        (error["message"].as_str().expect("words").to_owned(), error["hint"].as_str().expect("a hint").to_owned())
    };
    let secured = Pages::start(|_, _| Page { body: "Use https:// here".into(), ..Page::status(400) });
    let (message, next) = hint(Place::new(), &["send", "x", "-a", &secured.address.to_string()]);
    assert!(message.contains("HTTP 400: Use https:// here"), "{message}");
    assert!(next.contains(&format!("https://{}", secured.address)), "{next}");
    let mut newer = card(json!({}));
    newer["supportedInterfaces"][0]["protocolVersion"] = json!("2.0");
    let newer = Agent::start(newer, |_, _| Says::Json(json!({})));
    let (message, next) = hint(Place::new(), &["send", "x", "-a", &newer.url]);
    assert!(message.contains("2.0") && !next.contains("0.3"), "{message}: {next}");
    for flag in ["--agent-card", "--hub"] {
        let (message, _) = hint(Place::new(), &["card", "get", flag, ""]);
        assert!(message.contains(&format!("{flag} is empty")), "{message}");
    }
    for (name, value, args) in [
        ("A2ACLI_TRANSPORT", "pigeon", &["send", "x", "-a", &newer.url][..]),
        ("A2ACLI_TIMEOUT", "soon", &["send", "x"]),
        ("A2ACLI_OUTPUT", "xml", &["send", "x"]),
        ("A2ACLI_A2A_VERSION", "7", &["send", "x"]),
    ] {
        let place = Place::new().env(name, value);
        let told = place.run(args);
        assert!(told.code == 2 && told.err.contains(&format!("{name}: ")) && told.err.contains(value), "{told:?}");
        assert!(!told.err.contains(&format!("--{}", &name[7..].to_lowercase())), "{told:?}");
    }
}

/// What an agent that answers like this is called.
fn named(answer: fn() -> Says) -> (i32, String, Value) {
    let agent = Agent::start(card(json!({})), move |_, _| answer());
    let ran = Place::new().run(&["task", "get", "t-1", "-a", &agent.url, "-o", "json"]);
    let code = ran.json()["error"]["a2aCode"].clone();
    (ran.code, ran.error(), code)
}

#[test]
fn an_agent_s_nonsense_is_named_and_never_taken_for_a_result() {
    let internal = "InternalError".to_owned();
    assert_eq!(named(|| Says::Error(-32603, "boom")), (1, internal.clone(), json!(-32603)));
    assert_eq!(named(|| Says::Status(500, json!("boom"))), (1, internal, json!(500)));
    let away = (3, "A2ACLI_ERR_UNREACHABLE".to_owned(), Value::Null);
    assert_eq!(named(|| Says::Status(502, json!("bad gateway"))), away, "what is in front of it did not reach it");
    assert_eq!(named(|| Says::Result(json!([1]))), (1, "InvalidAgentResponseError".into(), Value::Null));
    assert_eq!(named(|| Says::Json(json!("hm"))), (1, "InvalidAgentResponseError".into(), Value::Null));
    assert_eq!(named(|| Says::Error(-32700, "x")).1, "JSONParseError");
    assert_eq!(named(|| Says::Error(-32601, "x")).1, "MethodNotFoundError");
}

#[test]
fn mistakes_on_the_command_line_have_the_form_of_every_failure() {
    let place = Place::new();
    for (args, message, hint) in [
        (&["sned", "hi"][..], "sned", "'send'"),
        (&["send", "--agnt", "x"], "--agnt", "'--agent'; flotilla send --help"),
        (&["task", "get"], "<ID>", "flotilla task get --help"),
        (&["send", "hi", "--verbose=maybe"], "maybe", "--help"),
        (&["send", "hello", "there"], "there", "in quotes; flotilla send --help"),
        (&["send", "x", "--async", "--stream"], "--stream", "leave out one of them"),
        (&["card", "get", "example.com"], "example.com", "--agent-card"),
        (&["send", "x", "--timeout", "-1s"], "--timeout: '-1s' is not a length of time", "--help"),
        (&["task", "list", "--page-size", "-1"], "must be a whole number, 1 or more", "--help"),
        (&["task", "list", "--status", "unspecified"], "it is none of TASK_STATE_SUBMITTED", "--help"),
        (&["listen", "--listen", "localhost"], "such as 127.0.0.1:7420", "flotilla listen --help"),
        (&["send", "x", "--svc-param", "grpc-timeout:5S"], "a flag of its own", "--timeout"),
        (&["send", "--data", "{}"], "--data {}", "| flotilla send --data -"),
        (&["agents", "list", "--hub", "ftp://h"], "http and https are", "http://"),
        (&["task"], "subcommand", "flotilla task --help"),
    ] {
        let ran = place.run(args);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
        if args.len() > 1 {
            let lines: Vec<&str> = ran.err.lines().collect();
            assert_eq!(lines.len(), 3, "{ran:?}");
            assert_eq!(lines[0], "Error: A2ACLI_ERR_USAGE");
            assert!(lines[1].starts_with("Message: ") && lines[1].contains(message), "{ran:?}");
            assert!(lines[2].starts_with("Hint: ") && lines[2].contains(hint), "{ran:?}");
        }
        for format in [&["-o", "json"][..], &["-ojson"], &["--output=json"], &["--output", "json"]] {
            let ran = place.run(&[args, format].concat());
            assert_eq!((ran.code, ran.error().as_str()), (2, "A2ACLI_ERR_USAGE"), "{ran:?}");
            let error = &ran.json()["error"];
            assert!(error["message"].as_str().is_some_and(|text| text.contains(message)), "{error}");
            assert!(error["hint"].as_str().is_some_and(|text| text.contains(hint)), "{error}");
        }
    }
    let configured = Place::new().env("A2ACLI_OUTPUT", "json");
    assert_eq!(configured.run(&["task", "get"]).error(), "A2ACLI_ERR_USAGE");
}

#[test]
fn an_agent_s_limit_has_its_own_code_and_says_when_to_try_again() {
    let told = |says: fn() -> Says| {
        let agent = Agent::start(card(json!({})), move |_, _| says());
        let ran = Place::new().run(&["send", "hi", "-a", &agent.url, "-o", "json"]);
        assert_eq!((ran.code, ran.error().as_str()), (1, "FLOTILLA_ERR_RESOURCE_EXHAUSTED"), "{ran:?}");
        let error = ran.json()["error"].clone();
        (error["hint"].as_str().expect("a hint").to_owned(), error["a2aCode"].clone())
    };
    let (hint, code) = told(|| Says::Headed(429, "retry-after: 17\r\n", json!("slow down")));
    assert!(hint.contains("try again in 17 s") && code == 429, "{hint}");
    let (hint, _) = told(|| Says::Headed(429, "retry-after: Fri, 01 Jan 2027 00:00:00 GMT\r\n", json!({})));
    assert!(hint.contains("after Fri, 01 Jan 2027"), "{hint}");
    let (hint, code) = told(|| Says::Error(-32013, "too many"));
    assert!(hint.contains("try again") && code == -32013, "{hint}");
    let (hint, _) = told(|| {
        let error = json!({"code": -32000, "message": "slow"});
        Says::Headed(429, "retry-after: 3\r\n", json!({"jsonrpc": "2.0", "id": 1, "error": error}))
    });
    assert!(hint.contains("in 3 s"), "{hint}");

    let hub = crate::cast::hub_with("limits: {open_tasks_per_caller: 1}");
    let place = Place::at(&hub);
    place.run(&["send", "hold", "--async"]).ok();
    for (transport, code) in
        [("JSONRPC", json!(-32013)), ("HTTP+JSON", json!(429)), ("GRPC", json!("RESOURCE_EXHAUSTED"))]
    {
        let ran = place.run(&["send", "hold", "--async", "--transport", transport, "-o", "json"]);
        let error = &ran.json()["error"];
        assert_eq!((&error["code"], &error["a2aCode"]), (&json!("FLOTILLA_ERR_RESOURCE_EXHAUSTED"), &code), "{ran:?}");
        assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("try again in 1 s")), "{ran:?}");
    }
}

#[test]
fn a_wait_goes_on_when_the_agent_is_asked_too_often() {
    let agent = Agent::start(card(json!({})), |_, before| match before {
        0 => Says::Headed(429, "retry-after: 1\r\n", json!({})),
        _ => Says::Result(super::agent::task("COMPLETED")),
    });
    let ran = Place::new().run(&["task", "get", "t-1", "--wait", "-a", &agent.url, "--poll-interval", "20ms"]).ok();
    assert!(ran.field("State") == "TASK_STATE_COMPLETED" && ran.err.contains("Asking:"), "{ran:?}");
}

#[test]
fn what_is_no_agent_and_what_is_no_file_is_told_with_what_to_name_instead() {
    let place = Place::new();
    let ran = place.run(&["send", "x", "-a", "ftp://h", "-o", "json"]);
    assert_eq!((ran.code, ran.error().as_str()), (3, "A2ACLI_ERR_CARD_NOT_FOUND"), "{ran:?}");
    assert!(ran.out.contains("ftp is not spoken here, http and https are"), "{ran:?}");
    for (args, told) in [
        (&["serve", "--config", "nope"][..], "reading nope (--config"),
        (&["worker", "--config", "nope"], "reading nope (--config"),
        (&["import", "fleet", "nope"], "reading nope (name the file"),
        (&["backup", "copy", "--data-dir", "nope"], "there is no store in nope; name its directory with --data-dir"),
        (&["restore", "nope", "--data-dir", "data"], "nope does not exist; name a file that 'flotilla backup' wrote"),
    ] {
        let ran = place.run(args);
        assert!(ran.code == 1 && ran.err.contains(told), "{ran:?}");
    }
    assert!(!place.dir().join("data").exists(), "a restore of nothing makes nothing");
}
