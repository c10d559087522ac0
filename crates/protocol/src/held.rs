//! What an artifact holds, in short: enough to know whether another is the same, or goes on from it.

use crate::a2a::model::Part;
use std::hash::{DefaultHasher, Hasher as _};

/// The parts an artifact holds, as a running hash after each: enough to know whether another goes on from here.
#[derive(Debug, Clone, Default)]
pub struct Held {
    hash: DefaultHasher,
    after: Vec<u64>,
}

/// How a whole artifact stands to what is held of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// It goes on after so many parts.
    Longer(usize),
    /// It is an earlier state of it, or the same.
    Known,
    Other,
}

impl Held {
    pub fn of(parts: &[Part]) -> Self {
        let mut held = Self::default();
        held.add(parts);
        held
    }

    pub fn add(&mut self, parts: &[Part]) {
        for part in parts {
            self.hash.write(&serde_json::to_vec(part).unwrap_or_default());
            self.after.push(self.hash.finish());
        }
    }

    pub fn compare(&self, whole: &Self) -> Compared {
        let shared = self.after.len().min(whole.after.len());
        // Two that agree after a part agree in all before it.
        let same = shared == 0 || self.after[shared - 1] == whole.after[shared - 1];
        match same {
            true if whole.after.len() > shared => Compared::Longer(shared),
            true => Compared::Known,
            false => Compared::Other,
        }
    }

    /// Whether it holds fewer parts than another.
    pub fn is_shorter(&self, other: &Self) -> bool {
        self.after.len() < other.after.len()
    }
}

/// Of what a message says.
pub fn hash(parts: &[Part]) -> u64 {
    Held::of(parts).hash.finish()
}
