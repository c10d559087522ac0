//! A stand-in for Claude Code in tests: what the real program will not do on demand, in the frames of the real one.
//!
//! The first word of what it is told says what it does; see `act`.

use serde_json::{Value, json};
use std::io::{BufRead as _, Write as _, stdin, stdout};
use std::path::PathBuf;
use std::process::{Command, exit};
use std::time::Duration;

const HELP: &str = "Options:
  --allowedTools <tools...>       tools
  --append-system-prompt <text>   more
  --include-partial-messages      pieces, with
                                  --output-format=stream-json
  --input-format <format>         in
  --json-schema <schema>          form
  --max-budget-usd <amount>       most
  --model <model>                 model
  --output-format <format>        out
  --permission-mode <mode>        (choices: \"plan\", \"default\")
  -p, --print                     headless
  --replay-user-messages          again
  -r, --resume [value]            go on
  --session-id <uuid>             begin
  --verbose                       all
";

/// What it has beyond its help, as the real one does.
const UNLISTED: [&str; 1] = ["--permission-prompt-tool"];

fn main() {
    if let Some(megabytes) = std::env::var("HOLD").ok().and_then(|text| text.parse().ok()) {
        hold(megabytes);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--version") => return println!("9.9.9 (Stand-in)"),
        Some("--help") => return print!("{HELP}"),
        _ => {}
    }
    let known = |argument: &&String| {
        let name = argument.split('=').next().unwrap_or_default();
        !name.starts_with("--") || HELP.contains(name) || UNLISTED.contains(&name)
    };
    if let Some(unknown) = arguments.iter().find(|argument| !known(argument)) {
        eprintln!("error: unknown option '{unknown}'");
        exit(1);
    }
    let Some((first, _)) = hear() else {
        eprintln!("Error: Input must be provided");
        exit(1);
    };
    let session = open(&arguments);
    say(&json!({"type": "system", "subtype": "init", "session_id": session, "model": "stand-in", "tools": ["Bash"],
        "mcp_servers": [{"name": "docs", "status": "connected"}], "claude_code_version": "9.9.9"}));
    act(&first, &arguments);
    done("");
}

/// Begins a conversation or goes on with one, as the real program does: a file for each in its home.
fn open(arguments: &[String]) -> String {
    let value = |name: &str| arguments.iter().find_map(|argument| argument.strip_prefix(name).map(str::to_owned));
    let file = |id: &str| PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(id);
    if let Some(id) = value("--resume=") {
        if !file(&id).exists() {
            eprintln!("No conversation found with session ID: {id}");
            say(&json!({"type": "result", "subtype": "error_during_execution", "is_error": true}));
            exit(1);
        }
        return id;
    }
    let id = value("--session-id=").unwrap_or_default();
    if file(&id).exists() {
        eprintln!("Error: Session ID {id} is already in use.");
        exit(1);
    }
    // A home that cannot be written to keeps no conversations.
    let _ = std::fs::write(file(&id), "");
    id
}

fn act(text: &str, arguments: &[String]) {
    let word = text.split_whitespace().next().unwrap_or_default();
    match word {
        "crash" => {
            print!("{{\"type\":\"assistant\",\"mess");
            flush();
            exit(3);
        }
        "stall" => wait(),
        "linger" => {
            spoken("I stay.");
            result("I stay.");
            wait();
        }
        "orphan" => {
            let _ = Command::new("sh").args(["-c", "setsid sleep 600 & exit"]).status();
            spoken("Somebody is left.");
        }
        "limit" => {
            let resets_at = now() + 600.0;
            say(&json!({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": resets_at}}));
            say(&json!({"type": "result", "subtype": "success", "is_error": true, "result": "limit"}));
            exit(1);
        }
        "garbage" => {
            println!("warning: this is no frame");
            println!("{{\"type\":\"hologram\",\"n\":1}}");
            println!("{{\"type\":\"assistant\"}}");
            eprintln!("and this is an aside");
            spoken("Still here.");
        }
        "flood" => loop {
            println!("{}", "x".repeat(1000));
        },
        "memory" => hold(200),
        // Each by itself does not hold too much.
        "crowd" => {
            let own = std::env::current_exe().unwrap_or_default();
            let started: Vec<_> = (0..3).map(|_| Command::new(&own).env("HOLD", "60").spawn()).collect();
            spoken(&format!("We are {}.", started.len()));
            wait();
        }
        "spin" => loop {
            std::hint::spin_loop();
        },
        "pieces" => pieces(text),
        "permission" => permission(),
        "question" => question(),
        "more" => more(),
        "spend" => spend(text),
        "broke" => broke(),
        "told" => spoken(&told(arguments)),
        "form" => {
            let schema = arguments.iter().find_map(|argument| argument.strip_prefix("--json-schema="));
            say(&json!({"type": "result", "subtype": "success", "result": "", "structured_output": {
                "schema": schema, "told": text.contains("JSON Schema")}}));
            exit(0);
        }
        _ => spoken(&format!("{} characters", text.len())),
    }
}

/// Holds memory, all of it written to.
fn hold(megabytes: usize) -> ! {
    let much = vec![1u8; megabytes << 20];
    spoken(&format!("I have {}.", much.iter().map(|byte| usize::from(*byte)).sum::<usize>()));
    wait()
}

/// What it was started with.
fn told(arguments: &[String]) -> String {
    let mut variables: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
    variables.sort();
    let folder = std::env::current_dir().unwrap_or_default();
    json!({"arguments": arguments, "variables": variables, "folder": folder}).to_string()
}

fn pieces(text: &str) {
    for word in text.split_inclusive(' ') {
        let delta = json!({"type": "text_delta", "text": word});
        say(&json!({"type": "stream_event", "event": {"type": "content_block_delta", "delta": delta}}));
    }
    spoken(text);
}

fn permission() {
    let input = json!({"command": "ls"});
    said(&json!([{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": input}]));
    let asked = json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": input, "tool_use_id": "toolu_1"});
    say(&json!({"type": "control_request", "request_id": "r1", "request": asked}));
    let (_, answer) = hear().unwrap_or_default();
    spoken(&answer["response"]["response"].to_string());
}

fn question() {
    let input = json!({"questions": [{"question": "Which size?", "options": [{"label": "Large"}]}]});
    let asked = json!({"subtype": "can_use_tool", "tool_name": "AskUserQuestion", "input": input});
    say(&json!({"type": "control_request", "request_id": "r1", "request": asked}));
    let (_, answer) = hear().unwrap_or_default();
    assert_eq!(answer["response"]["response"]["interrupt"], true);
    say(&json!({"type": "result", "subtype": "error_during_execution", "is_error": true}));
    exit(1);
}

/// Takes up what it is told meanwhile: once during the turn, and once after it.
fn more() {
    spoken("Go on.");
    let (text, line) = hear().unwrap_or_default();
    say(&json!({"type": "user", "isReplay": true, "uuid": line["uuid"], "message": {"content": text}}));
    spoken(&format!("You said {text}."));
}

/// Asks its model again and again: `spend CALLS`, and with `stall` it hears half of one more answer.
fn spend(text: &str) {
    let calls: u64 = text.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1);
    for number in 0..calls {
        ask_model(number, true);
        let result = json!([{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]);
        say(&json!({"type": "user", "message": {"role": "user", "content": result}, "parent_tool_use_id": null}));
        std::thread::sleep(Duration::from_millis(10));
    }
    if text.contains("stall") {
        ask_model(calls, false);
        wait();
    }
    let usage = json!({"input_tokens": 100 * calls, "output_tokens": 50 * calls, "cache_read_input_tokens": 7 * calls,
        "cache_creation_input_tokens": 3 * calls});
    say(&json!({"type": "result", "subtype": "success", "is_error": false, "result": "", "total_cost_usd": 0.5,
        "usage": usage}));
    while hear().is_some() {}
    exit(0);
}

/// One call of the model in the frames of the real program: only the last of them tells all it used.
fn ask_model(number: u64, is_whole: bool) {
    let event = |event: Value| say(&json!({"type": "stream_event", "event": event, "parent_tool_use_id": null}));
    let (id, usage) = (format!("msg_{number}"), |output: u64| {
        json!({"input_tokens": 100, "output_tokens": output, "cache_read_input_tokens": 7,
            "cache_creation_input_tokens": 3})
    });
    event(json!({"type": "message_start", "message": {"id": id, "content": [], "usage": usage(1)}}));
    let content = json!([{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}]);
    let message = json!({"id": id, "role": "assistant", "content": content, "usage": usage(1)});
    say(&json!({"type": "assistant", "message": message, "parent_tool_use_id": null}));
    if is_whole {
        event(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage(50)}));
        event(json!({"type": "message_stop"}));
    }
}

/// Ends by its own budget, as the real program does: its sum is nothing, and the models' figures are the truth.
fn broke() {
    let usage = json!({"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 0});
    let model = json!({"inputTokens": 100, "outputTokens": 50, "cacheReadInputTokens": 7,
        "cacheCreationInputTokens": 3, "costUSD": 0.5, "contextWindow": 200_000});
    say(&json!({"type": "result", "subtype": "error_max_budget_usd", "is_error": true, "total_cost_usd": 0.5,
        "usage": usage, "modelUsage": {"stand-in": model}}));
    exit(1);
}

/// The next thing it is told: its text, and all of it. None at the end.
fn hear() -> Option<(String, Value)> {
    let mut line = String::new();
    stdin().lock().read_line(&mut line).ok().filter(|count| *count > 0)?;
    let frame: Value = serde_json::from_str(&line).ok()?;
    let text = frame["message"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    Some((text, frame))
}

fn spoken(text: &str) {
    said(&json!([{"type": "text", "text": text}]));
}

fn said(content: &Value) {
    say(
        &json!({"type": "assistant", "message": {"role": "assistant", "content": content}, "parent_tool_use_id": null}),
    );
}

fn result(text: &str) {
    say(&json!({"type": "result", "subtype": "success", "is_error": false, "result": text, "num_turns": 1,
        "total_cost_usd": 0.25, "usage": {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 1,
        "cache_creation_input_tokens": 0}, "modelUsage": {"stand-in": {"contextWindow": 200_000}}}));
}

/// The turn is over; the program ends when nobody speaks to it any more.
fn done(text: &str) {
    result(text);
    while hear().is_some() {}
}

fn say(frame: &Value) {
    println!("{frame}");
    flush();
}

fn flush() {
    // Whoever does not listen is gone.
    let _ = stdout().flush();
}

fn wait() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(600));
    }
}

fn now() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}
