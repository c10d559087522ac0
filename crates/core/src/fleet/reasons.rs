//! Why work went where it went, or nowhere: a choice in the words of the log.

use crate::dispatch::{Choice, Target, Verdict};
use flotilla_protocol::fleet::result::BlockedReason;
use flotilla_protocol::fleet::route::{Candidate, Considered, Obstacle};

/// So many workers are listed with a decision; the others are counted.
const LISTED: usize = 64;

/// The one reason that tells most: of the worker that came closest.
pub fn obstacle(choice: &Choice, target: &Target) -> (BlockedReason, String) {
    let unfit = choice.considered.iter().filter_map(|considered| match &considered.verdict {
        Verdict::Unfit(reasons) => Some(reasons),
        Verdict::Fit { .. } => None,
    });
    let closest = unfit.min_by_key(|reasons| (reasons.iter().filter(|reason| !reason.waits).count(), reasons.len()));
    if let Some(first) = closest.and_then(|reasons| reasons.first()) {
        return (first.reason.clone(), first.detail.clone());
    }
    let nobody = match target {
        Target::Any => "no worker has announced itself".to_owned(),
        Target::Worker(name) => format!("there is no worker '{name}'"),
        Target::Label(label) => format!("no worker has the label '{label}'"),
        Target::Skill(skill) => format!("no worker has the skill '{skill}'"),
    };
    (BlockedReason::OverCapacity, nobody)
}

/// Who was looked at, as it is kept in the log.
pub fn listed(choice: &Choice) -> Considered {
    let workers = choice.considered.iter().take(LISTED).map(|considered| {
        let (score, points, obstacles) = match &considered.verdict {
            Verdict::Fit { score, points, .. } => {
                let points = points.iter().map(|(name, point)| ((*name).to_owned(), *point)).collect();
                (Some(*score), points, Vec::new())
            }
            Verdict::Unfit(reasons) => {
                let told = reasons.iter().map(|unfit| {
                    let (reason, detail) = (unfit.reason.clone(), unfit.detail.clone());
                    Obstacle { reason, detail }
                });
                (None, Vec::new(), told.collect())
            }
        };
        Candidate { worker: considered.worker.to_string(), epoch: considered.epoch, score, points, obstacles }
    });
    Considered { workers: workers.collect(), others: choice.considered.len().saturating_sub(LISTED) }
}
