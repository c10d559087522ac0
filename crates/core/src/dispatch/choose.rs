//! The choice between workers, with the reason for each: nobody should have to guess why a task went where it went.

use super::fit::{Addressed, Distance, Unfit, fit};
use super::{Policy, Worker};
use crate::dispatch::policy::DEAR;
use flotilla_protocol::fleet::dispatch::Dispatch;
use flotilla_protocol::fleet::name;
use flotilla_protocol::fleet::result::BlockedReason;
use flotilla_protocol::time::Millis;
use std::sync::Arc;

/// Whom the work is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Any,
    Worker(String),
    Label(String),
    Skill(String),
}

impl Target {
    /// `any`, `label:L`, `skill:S`, or a worker's name.
    pub fn of(text: &str) -> Self {
        match text.trim() {
            "" | "any" => Self::Any,
            text => match text.split_once(':') {
                Some(("label", label)) => Self::Label(label.trim().to_owned()),
                Some(("skill", skill)) => Self::Skill(skill.trim().to_owned()),
                _ => Self::Worker(text.to_owned()),
            },
        }
    }
}

/// What was thought of one worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Considered {
    pub worker: Arc<str>,
    pub epoch: Option<u64>,
    pub verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It could do it; the higher the better. Each point with its reason, and what is taken on trust.
    Fit {
        score: f64,
        points: Vec<(&'static str, f64)>,
        unverified: Vec<String>,
    },
    Unfit(Vec<Unfit>),
}

/// All that were looked at, the best first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Choice {
    pub considered: Vec<Considered>,
}

impl Choice {
    pub fn chosen(&self) -> Option<&Considered> {
        self.considered.first().filter(|first| matches!(first.verdict, Verdict::Fit { .. }))
    }

    /// Those that cannot, with all that stands in their way, the nearest to it first.
    pub fn hindered(&self) -> Vec<(&str, &[Unfit])> {
        let mut hindered: Vec<(&str, &[Unfit])> = self
            .considered
            .iter()
            .filter_map(|considered| match &considered.verdict {
                Verdict::Unfit(reasons) => Some((&*considered.worker, reasons.as_slice())),
                Verdict::Fit { .. } => None,
            })
            .collect();
        hindered.sort_by_key(|(_, reasons)| {
            let lacks = reasons.iter().filter(|reason| !reason.waits).count();
            (lacks, reasons.iter().map(|reason| reason.distance).max(), reasons.len())
        });
        hindered
    }
}

/// Work to be placed, with what is known around it.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    pub dispatch: &'a Dispatch,
    pub target: &'a Target,
    /// The worker that did the last work of the same context.
    pub last: Option<&'a str>,
    /// Workers that would not take it.
    pub shunned: &'a [Shunned],
    /// The agents it was called for, which it must not come back to.
    pub passed: &'a [String],
}

/// A worker that answered that it cannot, and until when it is not asked again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shunned {
    pub worker: Arc<str>,
    /// What it had announced by then. It may do when it announces something else; where it counts no epochs, the hub's
    /// own count tells.
    pub epoch: Option<u64>,
    pub revision: u64,
    /// It is asked again after that.
    pub until: Option<Millis>,
    pub reason: BlockedReason,
    /// What it said beside that.
    pub detail: String,
    /// When the same work may succeed there, and whether it ever may, in its own words.
    pub retry_at: Option<Millis>,
    pub retryable: Option<bool>,
}

impl Shunned {
    fn stands(&self, worker: &Worker, now: Millis) -> Option<Unfit> {
        let is_new = match (self.epoch, worker.announce.epoch) {
            (Some(then), Some(now)) => then != now,
            _ => self.revision != worker.revision,
        };
        if self.worker != worker.name || is_new {
            return None;
        }
        if self.until.is_some_and(|until| now >= until) {
            return None;
        }
        // The pause that came of it is over: its owner ended it, or it works under another account.
        if self.reason == BlockedReason::UsageLimit && worker.announced && worker.pause(now).is_none() {
            return None;
        }
        let said = if self.detail.is_empty() { String::new() } else { format!(": {}", self.detail) };
        let detail = format!("it answered {}{said}", self.reason.name());
        let until = self.until.or(self.retry_at);
        let distance = match self.reason {
            BlockedReason::OverCapacity => Distance::Full,
            BlockedReason::UsageLimit | BlockedReason::BudgetTooSmall => Distance::Resting,
            _ => Distance::Lacking,
        };
        let waits = self.until.is_some() || self.retryable == Some(true);
        Some(Unfit { reason: self.reason.clone(), detail, waits, until, distance })
    }
}

pub fn choose<'a>(
    workers: impl IntoIterator<Item = &'a Worker>,
    wanted: Wanted<'_>,
    policy: &Policy,
    now: Millis,
) -> Choice {
    let addressed = match wanted.target {
        Target::Worker(_) => Addressed::ByName,
        _ => Addressed::AmongOthers,
    };
    let meant = workers.into_iter().filter(|worker| is_meant(worker, wanted.target));
    let mut considered: Vec<Considered> = meant
        .map(|worker| Considered {
            worker: Arc::clone(&worker.name),
            epoch: worker.announce.epoch,
            verdict: verdict(worker, wanted, addressed, policy, now),
        })
        .collect();
    considered.sort_by(|one, other| rank(other).total_cmp(&rank(one)).then_with(|| one.worker.cmp(&other.worker)));
    Choice { considered }
}

fn verdict(worker: &Worker, wanted: Wanted<'_>, addressed: Addressed, policy: &Policy, now: Millis) -> Verdict {
    let shunned = wanted.shunned.iter().find_map(|shunned| shunned.stands(worker, now));
    let ring = wanted.passed.iter().any(|name| **name == *worker.name).then(Unfit::ring);
    let others: Vec<Unfit> = ring.into_iter().chain(shunned).collect();
    match fit(worker, wanted.dispatch, addressed, policy, now) {
        Ok(unverified) if others.is_empty() => score(worker, wanted, policy, unverified),
        Ok(_) => Verdict::Unfit(others),
        Err(mut reasons) => {
            reasons.extend(others);
            Verdict::Unfit(reasons)
        }
    }
}

fn rank(considered: &Considered) -> f64 {
    match considered.verdict {
        Verdict::Fit { score, .. } => score,
        Verdict::Unfit(_) => f64::NEG_INFINITY,
    }
}

fn is_meant(worker: &Worker, target: &Target) -> bool {
    let among = |names: &std::collections::BTreeSet<String>, wanted: &str| names.iter().any(|n| name::same(n, wanted));
    match target {
        Target::Any => true,
        Target::Worker(wanted) => *worker.name == **wanted,
        Target::Label(wanted) => among(&worker.labels, wanted),
        Target::Skill(wanted) => among(&worker.skills, wanted),
    }
}

fn score(worker: &Worker, wanted: Wanted<'_>, policy: &Policy, unverified: Vec<String>) -> Verdict {
    let weights = policy.weights;
    let points = vec![
        ("tier", weights.tier * tier(worker, wanted.dispatch, policy)),
        ("load", weights.load * (1.0 - worker.load().min(1.0))),
        ("affinity", if wanted.last == Some(&*worker.name) { weights.affinity } else { 0.0 }),
        // One of whom nothing is known yet is neither trusted nor shunned.
        ("cost", weights.cost * cheapness(worker)),
        ("success", weights.success * worker.turns.success.unwrap_or(0.5)),
    ];
    Verdict::Fit { score: points.iter().map(|(_, point)| point).sum(), points, unverified }
}

/// 1 for what costs nothing, less the more it costs; one that does not say is taken to be in between.
fn cheapness(worker: &Worker) -> f64 {
    worker.announce.worker.usd_per_million_tokens.map_or(0.5, |cost| DEAR / (DEAR + cost))
}

/// 1 for the tier that was asked for (or the least, if none was), less for every step above it: small work does not
/// take the biggest model.
fn tier(worker: &Worker, dispatch: &Dispatch, policy: &Policy) -> f64 {
    let steps = policy.tiers.len().max(1) as f64;
    let least = dispatch.requirements.model_tier.as_deref().and_then(|tier| policy.tiers.rank(tier)).unwrap_or(0);
    match worker.announce.worker.model_tier.as_deref().and_then(|tier| policy.tiers.rank(tier)) {
        Some(rank) => 1.0 - rank.saturating_sub(least) as f64 / steps,
        None => 0.0,
    }
}
