//! What an operator may set about choosing workers.

/// Tiers of models, least first. What is not listed has no known tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiers(Vec<String>);

impl Tiers {
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().map(|name| name.to_lowercase()).collect())
    }

    pub fn rank(&self, name: &str) -> Option<usize> {
        let name = name.to_lowercase();
        self.0.iter().position(|tier| *tier == name)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Default for Tiers {
    fn default() -> Self {
        Self::new(["haiku", "sonnet", "opus"].map(str::to_owned))
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policy {
    pub tiers: Tiers,
    pub weights: Weights,
}

/// What counts how much between workers that all could do the work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// Not taking a bigger model than asked for.
    pub tier: f64,
    pub load: f64,
    /// Having worked in the same context before.
    pub affinity: f64,
    /// How its work went lately.
    pub success: f64,
    /// Costing little.
    pub cost: f64,
}

/// What a million tokens cost that is neither cheap nor dear, in US dollars.
pub const DEAR: f64 = 10.0;

impl Default for Weights {
    fn default() -> Self {
        Self { tier: 3.0, load: 2.0, affinity: 2.5, success: 1.5, cost: 1.0 }
    }
}
