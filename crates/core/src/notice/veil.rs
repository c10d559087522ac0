//! Numbers that only this process can read: whoever sees some of a count must not learn how many there are in between.

use std::hash::{BuildHasher as _, RandomState};

const ROUNDS: u32 = 6;

/// A permutation of all numbers that is another for every process (a Feistel network over a keyed hash).
#[derive(Debug, Default)]
pub struct Veil(RandomState);

impl Veil {
    fn mix(&self, round: u32, half: u32) -> u32 {
        self.0.hash_one((round, half)) as u32
    }

    pub fn hide(&self, number: u64) -> u64 {
        let (mut left, mut right) = ((number >> 32) as u32, number as u32);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ self.mix(round, right));
        }
        u64::from(left) << 32 | u64::from(right)
    }

    pub fn show(&self, hidden: u64) -> u64 {
        let (mut left, mut right) = ((hidden >> 32) as u32, hidden as u32);
        for round in (0..ROUNDS).rev() {
            (left, right) = (right ^ self.mix(round, left), left);
        }
        u64::from(left) << 32 | u64::from(right)
    }
}

#[cfg(test)]
mod tests {
    use super::Veil;

    #[test]
    fn what_is_hidden_is_found_again_and_tells_nothing_of_its_neighbours() {
        let (veil, other) = (Veil::default(), Veil::default());
        for number in [0, 1, 2, 77, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(veil.show(veil.hide(number)), number);
            assert_ne!(veil.hide(number), other.hide(number), "another process hides otherwise");
        }
        let steps: std::collections::HashSet<u64> =
            (0..100).map(|number| veil.hide(number + 1).wrapping_sub(veil.hide(number))).collect();
        assert_eq!(steps.len(), 100, "no step is like another");
    }
}
