//! What was measured: a value for each measure, server and round, and what went wrong.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::load::stats::Spread;
use crate::server::Server;

/// Whether more or less of a measure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    More,
    Less,
}

impl Better {
    /// All but rates are times, memory or work: less of it is better.
    pub fn of(measure: &str) -> Better {
        if measure.ends_with("requests/s") { Better::More } else { Better::Less }
    }
}

type Key = (String, Server);

#[derive(Debug, Default)]
pub struct Results {
    values: BTreeMap<Key, BTreeMap<usize, f64>>,
    /// Why there is no value, in a word or two.
    gaps: BTreeMap<Key, String>,
    pub notes: Vec<String>,
    pub our_faults: usize,
}

impl Results {
    pub fn add(&mut self, measure: &str, server: Server, round: usize, value: f64) {
        self.values.entry((measure.to_owned(), server)).or_default().insert(round, value);
    }

    /// Says in the table why a value is missing.
    pub fn gap(&mut self, measure: &str, server: Server, why: &str) {
        self.gaps.insert((measure.to_owned(), server), why.to_owned());
    }

    /// Something that should have worked and did not. If it is ours, the run fails once the report is written.
    pub fn fault(&mut self, server: Server, what: &str, why: &anyhow::Error) {
        self.note(format!("{}, {what}: {why:#}", server.label()));
        self.our_faults += usize::from(server.is_ours());
    }

    pub fn note(&mut self, note: String) {
        eprintln!("  ! {note}");
        self.notes.push(note);
    }

    pub fn gap_of(&self, measure: &str, server: Server) -> Option<&str> {
        self.gaps.get(&(measure.to_owned(), server)).map(String::as_str)
    }

    pub fn value(&self, measure: &str, server: Server, round: usize) -> Option<f64> {
        self.values.get(&(measure.to_owned(), server))?.get(&round).copied()
    }

    pub fn spread(&self, measure: &str, server: Server) -> Option<Spread> {
        Spread::of(self.values.get(&(measure.to_owned(), server))?.values().copied())
    }

    /// How many times better a server is than the baseline: one ratio for each round that has both.
    pub fn ratio(&self, measure: &str, server: Server, baseline: Server) -> Option<Spread> {
        let better = Better::of(measure);
        let ours = self.values.get(&(measure.to_owned(), server))?;
        let theirs = self.values.get(&(measure.to_owned(), baseline))?;
        let ratios = ours.iter().filter_map(|(round, ours)| {
            let theirs = theirs.get(round)?;
            let (above, below) = if better == Better::More { (ours, theirs) } else { (theirs, ours) };
            (*below > 0.0).then(|| above / below)
        });
        Spread::of(ratios)
    }

    /// Everything of which there is a value.
    pub fn measures(&self) -> BTreeSet<&str> {
        self.values.keys().map(|(measure, _)| measure.as_str()).collect()
    }

    /// The servers that have a value or a reason for this measure.
    pub fn servers(&self, measure: &str) -> Vec<Server> {
        let known = |server| {
            let key = (measure.to_owned(), server);
            self.values.contains_key(&key) || self.gaps.contains_key(&key)
        };
        Server::ALL.into_iter().filter(|server| known(*server)).collect()
    }

    /// Everything, for other programs.
    pub fn to_json(&self, about: &[String]) -> Value {
        let values: Vec<Value> = self
            .values
            .iter()
            .map(|((measure, server), rounds)| {
                json!({"measure": measure, "server": server.name(), "rounds": rounds.values().collect::<Vec<_>>()})
            })
            .collect();
        json!({"about": about, "values": values, "notes": self.notes})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_pair_the_rounds_and_favour_the_better() {
        let mut results = Results::default();
        for (round, ours, theirs) in [(0, 20.0, 10.0), (1, 30.0, 10.0), (2, 80.0, 20.0)] {
            for measure in ["requests/s", "cold start"] {
                results.add(measure, Server::Hub, round, ours);
                results.add(measure, Server::Official, round, theirs);
            }
        }
        results.add("requests/s", Server::Hub, 3, 1.0);
        let spread = |measure| results.ratio(measure, Server::Hub, Server::Official);
        assert_eq!(spread("requests/s"), Some(Spread { median: 3.0, least: 2.0, most: 4.0 }));
        assert_eq!(spread("cold start").map(|spread| spread.most), Some(0.5));
        assert_eq!(results.ratio("requests/s", Server::Hub, Server::Python), None);
    }
}
