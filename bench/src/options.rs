//! The command line, as `bench/run` fills it in.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::server::{Server, program};
use crate::subject::{Size, Subject};

#[derive(Debug)]
pub struct Options {
    pub subjects: Vec<Subject>,
    /// None for all that are set up.
    pub servers: Option<Vec<Server>>,
    pub size: Size,
    pub quick: bool,
    pub hub: PathBuf,
    pub bench: PathBuf,
    pub rust_peers: Option<PathBuf>,
    pub python: Option<PathBuf>,
    pub node: Option<PathBuf>,
    pub nginx: Option<PathBuf>,
    pub scratch: PathBuf,
    /// Where benchmarks.md goes, and its plots in a folder beside it.
    pub out: PathBuf,
    pub results: PathBuf,
    /// Lines about machine, date and versions.
    pub about: Vec<String>,
}

impl Options {
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Options> {
        let mut arguments = arguments.into_iter();
        let (mut subjects, mut servers, mut quick, mut rounds) = (Vec::new(), None, false, None);
        let mut about = Vec::new();
        let mut paths = std::collections::BTreeMap::new();
        while let Some(word) = arguments.next() {
            if let Some(subject) = Subject::ALL.into_iter().find(|subject| subject.name() == word) {
                subjects.push(subject);
                continue;
            }
            if word == "--quick" {
                quick = true;
                continue;
            }
            let mut value = || arguments.next().with_context(|| format!("{word} needs a value"));
            match word.as_str() {
                "--servers" => servers = Some(value()?.split(',').map(server).collect::<Result<Vec<_>>>()?),
                "--rounds" => rounds = Some(value()?.parse().context("--rounds needs a number")?),
                "--about" => about.push(value()?),
                "--hub" | "--bench" | "--rust-peers" | "--python" | "--node" | "--nginx" | "--scratch" | "--out"
                | "--results" => {
                    paths.insert(word.clone(), PathBuf::from(value()?));
                }
                _ => bail!("{word} is neither a subject ({}) nor an option", names(&Subject::ALL.map(Subject::name))),
            }
        }
        let mut size = if quick { Size::quick() } else { Size::full() };
        if let Some(rounds) = rounds {
            size.rounds = rounds;
            size.short_rounds = size.short_rounds.min(rounds);
        }
        let mut path = |name: &str| paths.remove(name);
        let mut needed = |name: &str| path(name).with_context(|| format!("{name} is missing: use bench/run"));
        Ok(Options {
            hub: program(needed("--hub")?)?,
            bench: needed("--bench")?,
            scratch: needed("--scratch")?,
            out: needed("--out")?,
            results: needed("--results")?,
            rust_peers: path("--rust-peers"),
            python: path("--python").map(program).transpose()?,
            node: path("--node").map(program).transpose()?,
            nginx: path("--nginx").map(program).transpose()?,
            subjects: if subjects.is_empty() { Subject::ALL.to_vec() } else { subjects },
            servers,
            size,
            quick,
            about,
        })
    }
}

fn server(name: &str) -> Result<Server> {
    let found = Server::ALL.into_iter().find(|server| server.name() == name);
    found.with_context(|| format!("{name} is no server; there are {}", names(&Server::ALL.map(Server::name))))
}

fn names(names: &[&str]) -> String {
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Options> {
        let fixed = "--hub /bin/sh --bench b --scratch s --out o --results r";
        Options::parse(fixed.split(' ').chain(words.split_whitespace()).map(str::to_owned))
    }

    #[test]
    fn subjects_and_servers() {
        let all = parse("").unwrap();
        assert_eq!((all.subjects.len(), all.servers, all.quick), (Subject::ALL.len(), None, false));
        let some = parse("send --quick reads --servers hub,official --rounds 1").unwrap();
        assert_eq!(some.subjects, [Subject::Send, Subject::Reads]);
        assert_eq!(some.servers, Some(vec![Server::Hub, Server::Official]));
        assert_eq!((some.size.rounds, some.size.short_rounds, some.quick), (1, 1, true));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert!(parse("sned").unwrap_err().to_string().contains("send"));
        assert!(parse("--servers hub,nobody").unwrap_err().to_string().contains("official"));
        assert!(parse("--rounds").is_err());
        assert!(parse("--python /not/there").is_err());
    }
}
