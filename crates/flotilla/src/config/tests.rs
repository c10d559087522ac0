//! What the configuration accepts, refuses and shows.

use super::{Config, Span};

fn parse(text: &str) -> Result<Config, String> {
    let config = Config::parse(text).map_err(|error| format!("{error:#}"))?;
    config.check().and_then(|()| config.check_whole()).map_err(|error| format!("{error:#}"))?;
    Ok(config)
}

#[test]
fn nothing_is_a_configuration_too() {
    let config = parse("# only a comment\n").unwrap();
    assert_eq!(config.agent_names(), ["echo"]);
    assert_eq!(config.default_agent().as_deref(), Some("echo"));
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_what_was_meant() {
    let problem = parse("hub:\n  lisen: 127.0.0.1:1\n").unwrap_err();
    assert!(problem.contains("line 2") || problem.contains("2:"), "{problem}");
    assert!(problem.contains("did you mean 'listen'?"), "{problem}");
}

#[test]
fn wrong_values_say_what_is_right() {
    assert!(parse("hub:\n  drain: soon\n").unwrap_err().contains("15s"));
    assert!(parse("hub:\n  default_agent: nobody\n").unwrap_err().contains("there are: echo"));
    assert!(parse("agents:\n  tasks: {kind: echo}\n").unwrap_err().contains("choose another name"));
    assert!(parse("agents:\n  'a:b': {kind: echo}\n").unwrap_err().contains("cannot be an agent's name"));
    assert!(parse("agents:\n  s: {kind: script}\n").unwrap_err().contains("needs 'script:'"));
    assert!(parse("hub:\n  public_url: hub.example\n").unwrap_err().contains("https://"));
    let told = parse("hub:\n  public_url: https://me:hush@hub.example/\n").unwrap_err();
    assert!(told.contains("no user name or password") && !told.contains("hush"), "{told}");
    assert!(parse("hub:\n  public_url: https://hub.example/@me\n").is_ok());
}

#[test]
fn secrets_are_masked_when_shown() {
    let key = format!("flk_{}", "a".repeat(64));
    let config = parse(&format!("hub:\n  owner_key: {key}\n")).unwrap();
    let shown = serde_json::to_string(&config).unwrap() + &format!("{config:?}");
    assert!(!shown.contains(&key) && shown.contains("***"));
}

#[test]
fn an_error_never_quotes_a_secret() {
    let key = format!("flk_{}", "b".repeat(64));
    let problem = parse(&format!("hub:\n  owner_key: {key}\n  allow_anonymous: nope\n")).unwrap_err();
    assert!(problem.contains("line 3") && !problem.contains("bbb"), "{problem}");
    assert!(parse("hub:\n  owner_key: abc\n").unwrap_err().contains("64 hex digits"));
}

#[test]
fn a_limit_of_nothing_is_refused() {
    assert!(
        parse("limits:\n  connections: 0\n").unwrap_err().contains("limits.connections must be between 1 and 1000000")
    );
    assert!(parse("agents:\n  a: {kind: echo, input_modes: [nonsense]}\n").unwrap_err().contains("no media type"));
}

#[test]
fn spans_are_read() {
    assert_eq!(parse("retention:\n  tasks: 30d\n").unwrap().retention.tasks, Some(Span::seconds(30 * 86_400)));
}

#[test]
fn the_only_agent_is_the_default_one() {
    let script = "script: {otherwise: [completed]}";
    let config = parse(&format!("agents:\n  solo: {{kind: script, {script}}}\n")).unwrap();
    assert_eq!(config.default_agent().as_deref(), Some("solo"));
}

#[test]
fn what_is_no_json_schema_and_what_could_not_hold_is_refused() {
    let claude = |schema: &str| {
        let agent = format!("agents:\n  a: {{kind: claude-code, claude_code: {{folder: /, json_schema: {schema}}}}}\n");
        parse(&agent).err().unwrap_or_default()
    };
    assert_eq!(claude("{type: object, patternProperties: {'^x': {type: string}}}"), "");
    assert!(claude("{type: 5}").contains("json_schema: is no JSON Schema: 'type' must be"));
    assert!(claude("{required: [n]}").contains("names such as n, y"), "YAML takes it for no");
    assert_eq!(claude("{required: ['n']}"), "");
    assert!(claude("{required: nonsense}").contains("'required' must be a list of names"));
    let git = |git: &str| parse(&format!("agents:\n  a: {{kind: command, command: {{program: x, git: {git}}}}}\n"));
    assert!(git("{worktree: per-task, ignored: remove}").is_ok());
    assert!(git("{ignored: remove}").unwrap_err().contains("say 'worktree: per-task'"));
}

#[test]
fn what_does_not_fit_is_told_in_words_and_not_in_our_types() {
    let told = |settings: &str| {
        let agent = format!("agents:\n  a: {{kind: command, command: {{program: x, {settings}}}}}\n");
        parse(&agent).unwrap_err()
    };
    assert!(told("exits: {300: failed}").contains("must be a whole number from 0 to 255"));
    assert!(told("arguments: [a, ~]").contains("nothing where a text must be"));
}

#[test]
fn sizes_stand_in_the_documents_as_they_are_written_in_the_file() {
    let (programs, worker) = (include_str!("../../../../docs/programs.md"), include_str!("../../../../docs/worker.md"));
    let config = parse("agents: {a: {kind: command, command: {program: x}}}\n").unwrap();
    let shown = serde_json::to_value(&config.agents["a"]).unwrap()["command"].clone();
    for name in ["output_bytes", "memory_bytes", "processes"] {
        let row = programs.lines().find(|line| line.starts_with(&format!("| `{name}`"))).unwrap();
        assert!(row.contains(&format!("`{}`", shown[name])), "{row}");
    }
    assert!(worker.contains("`buffer_bytes` | `67108864`"));
}

/// Each section of a program, with the least that must stand in it.
const SECTIONS: [(&str, &str, &str); 5] = [
    ("command", "command", "program: x"),
    ("acp", "acp", "{program: x, folder: /}"),
    ("opencode", "opencode", "folder: /"),
    ("codex", "codex", "folder: /"),
    ("claude-code", "claude_code", "folder: /"),
];

#[test]
fn what_all_programs_have_is_read_and_refused_alike_in_every_section() {
    for (kind, section, least) in SECTIONS {
        let least = least.trim_matches(['{', '}']).replace(", ", "\n      ");
        let agent =
            |more: &str| parse(&format!("agents:\n  a:\n    kind: {kind}\n    {section}:\n      {least}\n{more}"));
        let config = agent("      home: /\n      silence: 3m\n      memory_bytes: 5\n").unwrap();
        let shown = serde_json::to_value(&config.agents["a"]).unwrap()[section].clone();
        assert_eq!(
            (&shown["silence"], &shown["timeout"], &shown["memory_bytes"]),
            (&"3m".into(), &"1h".into(), &5.into())
        );
        let line = 5 + least.lines().count();
        for (more, told) in [("silense: 3m", "did you mean 'silence'?"), ("timeout: soon", "timeout")] {
            let problem = agent(&format!("      {more}\n")).unwrap_err();
            assert!(problem.contains(&format!("line {line}")) && problem.contains(told), "{section}: {problem}");
        }
        for nothing in ["timeout: 0s", "output_bytes: 0", "memory_bytes: 0", "processor_time: 0s"] {
            let problem = agent(&format!("      {nothing}\n")).unwrap_err();
            assert!(problem.contains(&format!("agents.a: {section}: timeout")), "{section}: {problem}");
        }
        for (few, told) in
            [("processes: 0", "processes must be at least 1"), ("files: 15", "files must be at least 16")]
        {
            let problem = agent(&format!("      {few}\n")).unwrap_err();
            assert!(problem.contains(told), "{section}: {problem}");
        }
        let problem = agent("      home: /no/such/folder\n").unwrap_err();
        assert!(problem.contains("home: /no/such/folder is not a folder"), "{section}: {problem}");
    }
}
