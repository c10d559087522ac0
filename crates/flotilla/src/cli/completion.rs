//! `flotilla completion`: scripts that let a shell complete commands.

use super::usage;
use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use clap_complete::Shell;
use flotilla_outbound::client::choose::Binding;
use flotilla_protocol::a2a::model::TaskState;

#[derive(Debug, Args)]
pub struct Completion {
    /// The shell
    #[arg(value_enum)]
    shell: ShellName,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ShellName {
    Bash,
    Zsh,
    Fish,
}

impl Completion {
    pub fn run(&self) -> Result<()> {
        let shell = match self.shell {
            ShellName::Bash => Shell::Bash,
            ShellName::Zsh => Shell::Zsh,
            ShellName::Fish => Shell::Fish,
        };
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut with_values(usage::scripted()), "flotilla", &mut script);
        let mut script = String::from_utf8_lossy(&script).into_owned();
        match self.shell {
            ShellName::Bash => script = script.replacen(PREVIOUS, &format!("{PREVIOUS}{BEFORE_EQUALS}"), 1),
            ShellName::Fish => script.push_str(SHELLS),
            ShellName::Zsh => {}
        }
        super::output::line(script.trim_end());
        Ok(())
    }
}

/// Where the script for bash takes the word before the one that is completed.
const PREVIOUS: &str = "    prev=\"$3\"\n";
/// To bash, `--flag=val` is three words, and the one before the value is the `=`.
const BEFORE_EQUALS: &str = "    [[ \"${prev}\" == \"=\" ]] && prev=\"${COMP_WORDS[COMP_CWORD-2]}\"\n";

/// The script for fish knows the values of options only, and this is the one argument that has some.
const SHELLS: &str =
    "complete -c flotilla -n \"__fish_flotilla_using_subcommand completion\" -f -a \"bash zsh fish\" -d 'The shell'\n";

/// The values of options that take few. They are read more leniently than this, so only the scripts know them so.
fn with_values(mut command: clap::Command) -> clap::Command {
    let states = TaskState::ALL.iter().skip(1).map(|state| state.name().trim_start_matches("TASK_STATE_"));
    let known: [(&str, Vec<&'static str>); 3] = [
        ("output", vec!["text", "json"]),
        ("transport", Binding::ALL.into_iter().map(Binding::name).collect()),
        ("status", states.collect()),
    ];
    for (id, values) in known {
        if command.get_arguments().any(|arg| *arg.get_id() == id) {
            command = command.mut_arg(id, |arg| arg.value_parser(PossibleValuesParser::new(values)));
        }
    }
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_values))
}
