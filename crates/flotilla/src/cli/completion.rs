//! `flotilla completion`: scripts that let a shell complete commands.

use super::Cli;
use anyhow::Result;
use clap::{Args, CommandFactory as _, ValueEnum};
use clap_complete::Shell;

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
        clap_complete::generate(shell, &mut Cli::command(), "flotilla", &mut script);
        super::output::line(String::from_utf8_lossy(&script).trim_end());
        Ok(())
    }
}
