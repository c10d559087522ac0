//! Help, version and completion.

use super::program::Place;

/// The commands that a help lists.
fn listed(help: &str) -> Vec<String> {
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // What goes on from the line before stands further in.
    let names = commands.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    names.map(str::to_owned).collect()
}

/// The arguments of a help that it says nothing of, beside the line or below it.
fn wordless(help: &str) -> Vec<&str> {
    let lines: Vec<&str> = help.lines().skip_while(|line| *line != "Arguments:").skip(1).collect();
    let is_said = |(at, line): (usize, &str)| {
        let below = lines.get(at + 1).is_some_and(|next| next.starts_with("    "));
        below || line.trim().split_once("  ").is_some()
    };
    let own = lines.iter().take_while(|line| !line.is_empty()).enumerate();
    let named = own.filter(|(_, line)| line.starts_with("  <") || line.starts_with("  ["));
    named.filter(|(at, line)| !is_said((*at, line))).map(|(_, line)| *line).collect()
}

#[test]
fn help_is_there_for_every_command_and_fits_eighty_columns() {
    let place = Place::new();
    let mut ahead: Vec<Vec<String>> = vec![Vec::new()];
    let mut seen = 0;
    while let Some(command) = ahead.pop() {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let by_flag = place.run(&[&words[..], &["--help"]].concat()).ok();
        let by_word = place.run(&[&["help"], &words[..]].concat()).ok();
        assert_eq!(by_flag.out.contains("Usage: flotilla"), by_word.out.contains("Usage: flotilla"), "{command:?}");
        for line in by_flag.out.lines() {
            assert!(line.chars().count() <= 80, "{command:?}: {line}");
        }
        assert!(by_flag.err.is_empty());
        assert_eq!(wordless(&by_flag.out), [""; 0], "{command:?}");
        seen += 1;
        ahead.extend(listed(&by_flag.out).into_iter().map(|name| [&command[..], &[name]].concat()));
    }
    assert!(seen >= 70, "only {seen} commands were found");
    assert!(place.run(&["-h"]).ok().out.contains("Commands:"));
    assert_eq!(place.run(&[]).code, 2);
}

#[test]
fn the_version_is_told() {
    let place = Place::new();
    for flag in ["-v", "--version"] {
        assert_eq!(place.run(&[flag]).ok().out, format!("flotilla {}\n", env!("CARGO_PKG_VERSION")));
    }
}

#[test]
fn help_shows_the_defaults_that_hold_here() {
    let place = Place::new();
    let help = |place: &Place| place.run(&["send", "--help"]).ok().out.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = help(&place);
    for default in [
        "[default: text]",
        "[default: 2s]",
        "[default: the first in the card that is spoken]",
        "[default: the highest both sides speak]",
        "this is the default",
        "[A2ACLI_BEARER]",
    ] {
        assert!(plain.contains(default), "no {default} in {plain}");
    }
    let place = place.env("A2ACLI_POLL_INTERVAL", "7s").env("A2ACLI_BEARER", "tok-secret");
    let set = help(&place);
    assert!(set.contains("[default: 7s, from environment A2ACLI_POLL_INTERVAL]"), "{set}");
    assert!(set.contains("[set by environment A2ACLI_BEARER]") && !set.contains("tok-secret"), "{set}");
}

#[test]
fn the_dangers_of_credential_flags_are_told_and_service_parameters_are_no_credentials() {
    let help = Place::new().run(&["send", "--help"]).ok().out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("process list") && help.contains("history") && help.contains("A2ACLI_API_KEY"), "{help}");
    let parameter = &help[help.find("--svc-param").expect("the flag")..];
    let about = &parameter[..parameter.find("[A2ACLI_SVC_PARAM]").expect("its end")];
    for word in ["auth", "credential", "token", "key"] {
        assert!(!about.to_lowercase().contains(word), "{about}");
    }
}

#[test]
fn the_program_has_one_name_whatever_its_file_is_called() {
    let place = Place::new();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_flotilla"), place.dir().join("other")).expect("a link");
    let ran = place.typed("./other send --agnt x");
    assert!(ran.err.contains("flotilla send --help") && !ran.err.contains("other"), "{ran:?}");
    assert!(place.typed("./other task --help").ok().out.contains("Usage: flotilla task "), "{ran:?}");
}

#[test]
fn shells_get_scripts_that_know_the_commands() {
    let place = Place::new();
    for (shell, sign) in [("bash", "complete -F"), ("zsh", "#compdef flotilla"), ("fish", "complete -c flotilla")] {
        let script = place.run(&["completion", shell]).ok().out;
        for word in [sign, "push-config", "subscribe", "media-type", "poll-interval"] {
            assert!(script.contains(word), "no {word} for {shell}");
        }
    }
    assert_eq!(place.run(&["completion", "tcsh"]).code, 2);
    let script = place.file("flotilla.bash", place.run(&["completion", "bash"]).ok().out);
    let checked = std::process::Command::new("bash").arg("-n").arg(script).status().expect("bash can be started");
    assert!(checked.success());
}

#[test]
fn bash_completes_the_values_of_options_that_have_few() {
    let place = Place::new();
    let script = place.file("flotilla.bash", place.run(&["completion", "bash"]).ok().out);
    let offered = |words: &[&str]| {
        let typed: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let [.., before, last] = typed.as_slice() else { panic!("too few words: {words:?}") };
        let line = format!(
            "source {script}; COMP_WORDS=({}); COMP_CWORD={}; _flotilla flotilla {last} {before}; echo ${{COMPREPLY[@]}}",
            typed.join(" "),
            words.len() - 1
        );
        place.typed(&format!("bash -c \"$(cat <<'END'\n{line}\nEND\n)\"")).ok().out.trim().to_owned()
    };
    assert_eq!(offered(&["flotilla", "send", "-o", ""]), "text json");
    assert_eq!(offered(&["flotilla", "task", "get", "--output", ""]), "text json");
    assert_eq!(offered(&["flotilla", "doctor", "--output", ""]), "text json");
    assert_eq!(offered(&["flotilla", "doctor", "--output", "=", "j"]), "json");
    assert_eq!(offered(&["flotilla", "send", "--transport", "=", "G"]), "GRPC");
    assert_eq!(offered(&["flotilla", "task", "list", "--status", "=", "COM"]), "COMPLETED");
    assert_eq!(offered(&["flotilla", "card", "get", "--transport", ""]), "JSONRPC HTTP+JSON GRPC");
    let states = offered(&["flotilla", "task", "list", "--status", ""]);
    assert!(states.contains("WORKING") && states.contains("INPUT_REQUIRED"), "{states}");
}

#[test]
fn fish_offers_the_shells_there_are() {
    let script = Place::new().run(&["completion", "fish"]).ok().out;
    let offered = script.lines().filter(|line| line.contains("__fish_flotilla_using_subcommand completion\""));
    assert!(offered.into_iter().any(|line| line.contains(r#"-a "bash zsh fish""#)), "{script}");
}

#[test]
fn a_command_that_asks_the_hub_is_not_completed_with_what_it_refuses() {
    let place = Place::new();
    let fish = place.run(&["completion", "fish"]).ok().out;
    let bash = place.run(&["completion", "bash"]).ok().out;
    let in_fish = |command: &str| {
        let with = format!("__fish_flotilla_using_subcommand task; and __fish_seen_subcommand_from {command}\"");
        fish.lines().filter(|line| line.contains(&with)).collect::<Vec<_>>().join(" ")
    };
    let in_bash = |command: &str| {
        let (_, rest) = bash.split_once(&format!("flotilla__subcmd__task__subcmd__{command})\n")).expect("the command");
        rest.lines().next().expect("its options").to_owned()
    };
    for command in ["log", "why", "tree", "get"] {
        for flag in ["agent-card", "agent", "transport", "svc-param", "a2a-version"] {
            let offered = (in_fish(command).contains(&format!("-l {flag} ")), in_bash(command).contains(flag));
            assert_eq!(offered, (command == "get", command == "get"), "{command} --{flag}");
        }
        assert!(in_fish(command).contains("-l hub ") && in_bash(command).contains("--hub"), "{command}");
    }
    assert!(place.run(&["task", "push-config", "get", "--help"]).ok().out.contains("--agent-card"));
    let below = bash.split("flotilla__subcmd__task__subcmd__push__subcmd__config__subcmd__get)\n").nth(1);
    assert!(
        below.is_some_and(|rest| rest.lines().next().is_some_and(|opts| opts.contains("--agent-card"))),
        "{below:?}"
    );
}
