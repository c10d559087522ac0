//! Help with the defaults that hold here and now, and mistakes on the command line in the form the caller reads.

use super::Cli;
use super::failure::Failure;
use super::settings::{Setting, Source, Sources};
use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, CommandFactory as _};
use flotilla_outbound::net::address;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// The commands; where help is asked for, each option says what holds without it.
pub fn command(words: &[OsString]) -> clap::Command {
    let command = all();
    let asks = words.iter().any(|word| word == "-h" || word == "--help" || word == "help");
    if !asks {
        return command;
    }
    let sources = Sources::load(None).unwrap_or_default();
    with_defaults(command, &sources)
}

/// Every command there is.
pub fn all() -> clap::Command {
    below_zero(Cli::command().mut_subcommand("task", of_the_hub))
}

/// A time or a number with a minus is wrong for its own reason, and is not taken for a flag.
fn below_zero(command: clap::Command) -> clap::Command {
    let is_number = |arg: &Arg| {
        let name = arg.get_value_names().and_then(<[_]>::first).map(|name| name.as_str());
        arg.get_long().is_some() && matches!(name, Some("TIME" | "N" | "SEQ"))
    };
    let command = command.mut_args(|arg| if is_number(&arg) { arg.allow_hyphen_values(true) } else { arg });
    command.mut_subcommands(below_zero)
}

/// The commands for scripts that complete them: those offer hidden options too, so these must not be there at all.
pub fn scripted() -> clap::Command {
    below_zero(Cli::command().mut_subcommand("task", only_where_taken))
}

/// What is said to `task` of how an agent is called.
const ABOUT_AGENTS: [&str; 5] = ["agent_card", "agent", "transport", "a2a_version", "svc_param"];
/// These ask the hub and not an agent, and refuse that.
const ASK_THE_HUB: [&str; 3] = ["why", "log", "tree"];

fn about_agents(task: &clap::Command) -> Vec<Arg> {
    task.get_arguments().filter(|arg| ABOUT_AGENTS.contains(&arg.get_id().as_str())).cloned().collect()
}

/// The help of a command does not show what the command refuses.
fn of_the_hub(task: clap::Command) -> clap::Command {
    let hidden: Vec<Arg> = about_agents(&task).into_iter().map(|arg| arg.hide(true)).collect();
    ASK_THE_HUB.into_iter().fold(task, |task, name| task.mut_subcommand(name, |sub| sub.args(&hidden)))
}

/// An option for all commands cannot be taken from one of them, so it is given to each of the others.
fn only_where_taken(task: clap::Command) -> clap::Command {
    fn give(command: clap::Command, args: &[Arg]) -> clap::Command {
        command.args(args).mut_subcommands(|sub| give(sub, args))
    }
    let args: Vec<Arg> = about_agents(&task).into_iter().map(|arg| arg.global(false)).collect();
    let task = ABOUT_AGENTS.into_iter().fold(task, |task, id| task.mut_arg(id, |arg| arg.global(false)));
    task.mut_subcommands(|sub| if ASK_THE_HUB.contains(&sub.get_name()) { sub } else { give(sub, &args) })
}

fn with_defaults(mut command: clap::Command, sources: &Sources) -> clap::Command {
    for setting in Setting::ALL {
        let id = setting.flag().replace('-', "_");
        let is_clients = command.get_arguments().any(|arg| *arg.get_id() == id && arg.get_env().is_none());
        if is_clients {
            command = command.mut_arg(id, |arg| {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                arg.help(format!("{help} {}", effective(setting, sources)))
            });
        }
    }
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    for name in names {
        command = command.mut_subcommand(name, |sub| with_defaults(sub, sources));
    }
    command
}

fn effective(setting: Setting, sources: &Sources) -> String {
    match sources.resolve(setting, None) {
        (_, Source::Default) if setting.default_in_words() == "-" => format!("[{}]", setting.variable()),
        (_, Source::Default) => format!("[default: {}] [{}]", setting.default_in_words(), setting.variable()),
        (_, source) if setting.is_secret() => format!("[set by {source}]"),
        (value, source) => format!("[default: {}, from {source}]", setting.shown(&value.unwrap_or_default())),
    }
}

/// Tells what is wrong with the command line, or gives the help or version that was asked for.
pub fn told(error: &clap::Error, words: &[OsString]) -> ExitCode {
    let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if asked {
        super::output::line(error.to_string().trim_end());
        return ExitCode::SUCCESS;
    }
    let text: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let as_json = wants_json(output_flag(&text), None);
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand && !as_json {
        // Whoever has written half a command wants to see the other half.
        let _ = error.print();
        return ExitCode::from(2);
    }
    let failure = failure(error, &text);
    failure.tell(as_json);
    ExitCode::from(failure.exit)
}

/// A mistake in the form of every other failure: what is wrong, what is near it, and where all that there is is told.
fn failure(error: &clap::Error, words: &[&str]) -> Failure {
    // A word is shown as the address it may be, whatever it holds.
    let told = words.iter().fold(error.to_string(), |told, word| told.replace(word, &address::shown(word)));
    let lines = || told.lines().map(str::trim);
    let usage = lines().find_map(|line| line.strip_prefix("Usage: "));
    let before_options = |usage: &str| {
        let words: Vec<&str> = usage.split_whitespace().take_while(|word| !word.starts_with(['[', '<', '-'])).collect();
        words.join(" ")
    };
    // Of a value that is not taken, the usage is not told.
    let command = usage.map_or_else(|| named(words), before_options);
    let help = format!("{command} --help lists what there is");
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Failure::usage(format!("{command} needs one of its commands")).hint(help);
    }
    let about = lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    let (tips, message): (Vec<&str>, Vec<&str>) =
        about.filter(|line| !line.is_empty()).partition(|line| line.starts_with("tip: "));
    let message = message.join(" ").trim_start_matches("error: ").to_owned();
    let tips = tips.into_iter().map(|tip| tip.trim_start_matches("tip: ").to_owned());
    let own = own_tip(error, &command).map(str::to_owned);
    Failure::usage(message).hint(tips.chain(own).chain([help]).collect::<Vec<_>>().join("; "))
}

/// What was probably meant, where clap has nothing to say.
fn own_tip(error: &clap::Error, command: &str) -> Option<&'static str> {
    let said = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
    match error.kind() {
        ErrorKind::ArgumentConflict => Some("leave out one of them"),
        ErrorKind::UnknownArgument if said.starts_with('-') => None,
        ErrorKind::UnknownArgument if matches!(command, "flotilla send" | "flotilla dispatch") => {
            Some("a text of several words stands in quotes")
        }
        ErrorKind::UnknownArgument if command == "flotilla card get" => Some("name the agent with --agent-card"),
        _ => None,
    }
}

/// The command that words name.
fn named(words: &[&str]) -> String {
    let all = all();
    let (mut command, mut name) = (&all, "flotilla".to_owned());
    for word in words {
        if let Some(found) = command.find_subcommand(word) {
            name.push_str(&format!(" {word}"));
            command = found;
        }
    }
    name
}

/// What `-o` says in a command line that could not be read as a whole.
fn output_flag<'a>(words: &[&'a str]) -> Option<&'a str> {
    words.iter().enumerate().find_map(|(at, word)| match *word {
        "-o" | "--output" => words.get(at + 1).copied(),
        word => word.strip_prefix("--output=").or_else(|| word.strip_prefix("-o=")).or_else(|| word.strip_prefix("-o")),
    })
}

/// Whether failures are for a program to read. Known before anything else can fail.
pub fn wants_json(flag: Option<&str>, config: Option<&Path>) -> bool {
    let sources = || Sources::load(config).or_else(|_| Sources::load(None)).unwrap_or_default();
    match flag {
        Some(format) => format == "json",
        None => sources().value(Setting::Output, None).as_deref() == Some("json"),
    }
}
