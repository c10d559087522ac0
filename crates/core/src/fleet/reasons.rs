//! Why work went where it went, or nowhere: a choice in the words of the log.

use crate::dispatch::{Choice, Target, Unfit, Verdict};
use flotilla_protocol::fleet::result::BlockedReason;
use flotilla_protocol::fleet::route::{Candidate, Considered, Obstacle};
use flotilla_protocol::time::Millis;

/// So many workers are listed with a decision; the others are counted.
const LISTED: usize = 64;
/// So many are named where there is room for a sentence.
const NAMED: usize = 3;

/// What stands in the way of work, in the words of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hindrance {
    pub reason: BlockedReason,
    pub detail: String,
    /// Whether the same work may be taken later without anybody announcing something new.
    pub retryable: bool,
    /// From when on, if that is known.
    pub until: Option<Millis>,
}

/// What stands in the way of those who are nearest to it. The reason is that of the nearest.
pub fn hindrance(choice: &Choice, target: &Target) -> Hindrance {
    let hindered = choice.hindered();
    let Some((_, nearest)) = hindered.first() else { return nobody(target) };
    let named = |(worker, reasons): &(&str, &[Unfit])| match target {
        Target::Worker(_) => details(reasons),
        _ => format!("{worker}: {}", details(reasons)),
    };
    let mut detail = hindered.iter().take(NAMED).map(named).collect::<Vec<_>>().join("; ");
    match hindered.len().saturating_sub(NAMED) {
        0 => {}
        1 => detail.push_str("; and 1 other"),
        others => detail.push_str(&format!("; and {others} others")),
    }
    let reason = nearest.iter().min_by_key(|unfit| unfit.waits);
    let reason = reason.map_or(BlockedReason::OverCapacity, |unfit| unfit.reason.clone());
    let retryable = nearest.iter().all(|unfit| unfit.waits);
    // Only if the end of each is known is that of all of them.
    let until = nearest.iter().map(|unfit| unfit.until).collect::<Option<Vec<_>>>();
    Hindrance { reason, detail, retryable, until: until.and_then(|all| all.into_iter().max()) }
}

fn details(reasons: &[Unfit]) -> String {
    reasons.iter().map(|unfit| unfit.detail.as_str()).collect::<Vec<_>>().join(", ")
}

/// Nobody was looked at: there is none of the kind.
fn nobody(target: &Target) -> Hindrance {
    let (reason, detail) = match target {
        Target::Any => (BlockedReason::OverCapacity, "no worker has announced itself".to_owned()),
        Target::Worker(name) => (BlockedReason::MissingCapability, format!("there is no worker '{name}'")),
        Target::Label(label) => (BlockedReason::MissingCapability, format!("no worker has the label '{label}'")),
        Target::Skill(skill) => (BlockedReason::MissingCapability, format!("no worker has the skill '{skill}'")),
    };
    // One may come at any time; a kind of worker that nobody is of is more to ask for.
    Hindrance { reason, detail, retryable: *target == Target::Any, until: None }
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

#[cfg(test)]
mod tests {
    use super::hindrance;
    use crate::dispatch::{Choice, Considered, Distance, Target, Unfit, Verdict};
    use flotilla_protocol::fleet::result::BlockedReason::{
        self, MissingCapability, MissingMcp, OverCapacity, UsageLimit,
    };
    use flotilla_protocol::time::Millis;

    fn unfit(reason: BlockedReason, waits: bool, distance: Distance, until: Option<i64>) -> Unfit {
        let detail = format!("{} {distance:?}", reason.name());
        Unfit { reason, detail, waits, until: until.map(Millis), distance }
    }

    fn choice(workers: &[(&str, Vec<Unfit>)]) -> Choice {
        let considered = workers.iter().map(|(name, reasons)| Considered {
            worker: (*name).into(),
            epoch: None,
            verdict: Verdict::Unfit(reasons.clone()),
        });
        Choice { considered: considered.collect() }
    }

    #[test]
    fn the_nearest_are_named_first_and_the_reason_is_the_nearest_one_s() {
        let choice = choice(&[
            ("away", vec![unfit(OverCapacity, true, Distance::Gone, None)]),
            ("sick", vec![unfit(MissingMcp, false, Distance::Lacking, None)]),
            ("drains", vec![unfit(OverCapacity, true, Distance::Resting, None)]),
            ("worse", vec![unfit(MissingMcp, false, Distance::Lacking, None); 2]),
        ]);
        let told = hindrance(&choice, &Target::Any);
        let expected =
            "drains: over_capacity Resting; away: over_capacity Gone; sick: missing_mcp Lacking; and 1 other";
        assert_eq!((told.reason, told.detail.as_str(), told.retryable), (OverCapacity, expected, true));
    }

    #[test]
    fn the_time_is_told_where_each_of_the_nearest_one_s_obstacles_has_one() {
        let paused = unfit(UsageLimit, true, Distance::Resting, Some(9));
        let full = unfit(OverCapacity, true, Distance::Full, None);
        let told = |reasons: Vec<Unfit>| hindrance(&choice(&[("w", reasons)]), &Target::Worker("w".into()));
        assert_eq!((told(vec![paused.clone()]).until, told(vec![paused, full]).until), (Some(Millis(9)), None));
    }

    #[test]
    fn what_nobody_has_is_missing_and_no_retry_brings_it() {
        for (target, reason, retryable) in [
            (Target::Label("gpu".into()), MissingCapability, false),
            (Target::Skill("paint".into()), MissingCapability, false),
            (Target::Worker("w".into()), MissingCapability, false),
            (Target::Any, OverCapacity, true),
        ] {
            let told = hindrance(&Choice::default(), &target);
            assert_eq!((told.reason, told.retryable, told.until), (reason, retryable, None), "{target:?}");
        }
    }
}
