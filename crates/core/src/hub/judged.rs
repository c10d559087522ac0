//! Reports of a worker under a contract: its result is looked at before anything is said to be done.

use super::Hub;
use super::run::{Fenced, RunHandle};
use crate::dispatch::End;
use crate::fleet::outcome::Ruling;
use crate::fleet::settings::after;
use crate::fleet::{LONGEST_PAUSE, Via, pause};
use crate::registry::Agent;
use crate::task::{Command, RunState};
use flotilla_protocol::event::{Change, Event};
use flotilla_protocol::fleet::result::BlockedReason;
use flotilla_protocol::fleet::route::Step;
use flotilla_protocol::fleet::{Announce, Kind, TaskResult, announcement};
use flotilla_protocol::time::Millis;
use flotilla_protocol::work::{Contents, Report};
use metrics::counter;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often the time before a worker is asked again is doubled: from a second to about four minutes.
const MOST_DOUBLINGS: u32 = 8;

/// How a turn went for the worker.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Went {
    /// It was not heard how.
    #[default]
    Unheard,
    Ended(End),
    /// It did not begin.
    Nowhere,
}

pub(super) type Turn = Arc<Mutex<Went>>;

impl RunHandle {
    pub(super) fn turn(&self) -> Turn {
        Arc::clone(&self.turn)
    }

    fn went(&self, went: Went) {
        *self.turn.lock().expect("no panic while holding a turn") = went;
    }

    /// The reports that go into the log, or the end of the run.
    pub(super) async fn judged(&mut self, reports: Vec<Report>) -> Result<Vec<Report>, Fenced> {
        let Some(judge) = &mut self.judge else { return Ok(reports) };
        let worker = Arc::clone(&judge.worker);
        let (ruling, announced) = judge.rule(reports);
        self.hub.fleet.heard(&worker, self.hub.clock.now());
        if let Some(agent) = self.hub.registry().by_name(&worker).cloned() {
            self.announced(&agent, announced).await;
        }
        match ruling {
            Ruling::Pass(reports) => Ok(reports),
            Ruling::Blocked(result, notes) => {
                self.note(notes).await?;
                self.blocked(*result).await;
                Err(Fenced)
            }
            Ruling::Again(violations, notes) => {
                self.note(notes).await?;
                self.end_with(Step::AskedAgain { worker: worker.to_string(), violations }).await;
                Err(Fenced)
            }
            Ruling::Over { reports, step, end, blocked } => {
                if let Some(blocked) = blocked {
                    let now = self.hub.clock.now();
                    let reason = blocked.blocked_reason.unwrap_or(BlockedReason::MissingCapability);
                    let until = retry_at(&reason, blocked.retryable, blocked.retry_after, now);
                    self.hub.rests(&worker, &reason, until, &blocked.detail.unwrap_or_default()).await;
                }
                self.went(Went::Ended(end));
                counter!("flotilla_dispatches_total", "outcome" => "ended").increment(1);
                let hub = Arc::clone(&self.hub);
                self.ruled = Some(worker);
                if !hub.route(self, step, None).await {
                    self.late(&reports).await;
                    self.over = true;
                    return Err(Fenced);
                }
                self.judge = None;
                Ok(reports)
            }
        }
    }

    /// An agent may announce itself in any reply, as a part that says so; it stays part of the reply.
    pub(super) async fn heeded(&self, reports: Vec<Report>) -> Vec<Report> {
        let announced: Vec<Announce> = reports.iter().flat_map(announcements).collect();
        let agent = self.live.committed().and_then(|head| self.hub.registry().by_id(head.agent).cloned());
        if let Some(agent) = agent.filter(|_| !announced.is_empty()) {
            Box::pin(self.announced(&agent, announced)).await;
        }
        reports
    }

    /// Takes what an agent announced in a reply, unless it may be no more than what its caller said to it.
    async fn announced(&self, agent: &Arc<Agent>, announced: Vec<Announce>) {
        if announced.is_empty() {
            return;
        }
        let asked = match self.live.whole() {
            Some((_, changes)) => Ok(changes),
            None => self.hub.whole_log(self.live.id()).await,
        };
        if asked.map_or(true, |changes| speaks_of_announcing(&changes)) {
            let why = "the caller spoke of one, so it may be the caller's; announce over /ws or /api/fleet/announce";
            tracing::warn!(worker = %agent.name, "an announcement in a reply is not taken: {why}");
            return;
        }
        for announce in announced {
            if let Err(error) = self.hub.announce_worker(agent, announce, Via::Reply).await {
                tracing::warn!(worker = %agent.name, %error, "an announcement in a reply is not taken");
            }
        }
    }

    /// What was used is used, whatever becomes of the run.
    async fn note(&mut self, notes: Vec<Report>) -> Result<(), Fenced> {
        if notes.is_empty() { Ok(()) } else { self.report_together(notes).await }
    }

    /// The worker did not begin: the run is over, the task is not.
    pub(super) async fn blocked(&mut self, result: TaskResult) {
        let Some(judge) = &self.judge else { return };
        let (worker, hub) = (Arc::clone(&judge.worker), Arc::clone(&self.hub));
        let now = hub.clock.now();
        let reason = result.blocked_reason.unwrap_or(BlockedReason::MissingCapability);
        // What is too late does not come in time by waiting, whatever its worker says.
        let retryable = result.retryable.map(|told| told && reason != BlockedReason::DeadlinePassed);
        let detail = result.detail.unwrap_or_default();
        let retry_at = retry_at(&reason, retryable, result.retry_after, now);
        // Whoever says the same again and again is asked less and less often.
        let patience = after(now, Duration::from_secs(1 << self.refusals.min(MOST_DOUBLINGS)));
        let until = retry_at.filter(|_| !lacks(&reason)).map(|at| at.max(patience));
        count_blocked(&reason);
        hub.rests(&worker, &reason, until, &detail).await;
        let (revision, epoch) = self.profile;
        let worker = worker.to_string();
        self.end_with(Step::Blocked { worker, epoch, revision, reason, detail, until, retry_at, retryable }).await;
    }

    async fn end_with(&mut self, step: Step) {
        self.went(Went::Nowhere);
        // Before the next run looks for a worker: this one's place must not stand in its way.
        self.hub.fleet.release((self.live.id(), self.run), &self.hub.registry(), self.hub.clock.now());
        let run = self.run;
        let command = || Command::Again { run, step: Box::new(step.clone()) };
        if let Err(error) = self.hub.change(&self.live, command).await {
            tracing::error!(task = %self.live.id(), %error, "that a worker did not do its work could not be recorded");
        }
        self.over = true;
    }

    /// Whether the run is a worker's that never took it up: then another may have it. It is ended here.
    pub(super) async fn passed_on(&mut self, reason: &str) -> bool {
        let unstarted = self.live.committed().is_some_and(|head| head.run_state == RunState::Claimed);
        if self.judge.is_none() || !unstarted {
            return false;
        }
        let detail = Some(reason.to_owned());
        self.blocked(TaskResult { blocked_reason: Some(BlockedReason::OverCapacity), detail, ..TaskResult::default() })
            .await;
        true
    }
}

impl Hub {
    /// Pauses all of a worker's account if its usage limit is reached.
    async fn rests(self: &Arc<Self>, worker: &str, reason: &BlockedReason, until: Option<Millis>, detail: &str) {
        if let (BlockedReason::UsageLimit, Some(until)) = (reason, until) {
            let paused = self.fleet.pause(worker, pause(until, detail));
            self.look_at_workers();
            self.keep_workers(&paused).await;
        }
    }
}

/// Whether a caller's messages hold an announcement, or anything that could be made into one. Their JSON is read, so
/// that no way of writing it hides the word.
fn speaks_of_announcing(changes: &[Arc<Change>]) -> bool {
    let mut events = changes.iter().flat_map(|change| &change.events);
    events.any(|event| match event {
        Event::Asked { message, .. } => serde_json::to_value(message).map_or(true, |json| {
            let said = json.to_string();
            said.contains(Kind::Announce.name()) || said.contains(Kind::Announce.media_type())
        }),
        _ => false,
    })
}

fn announcements(report: &Report) -> impl Iterator<Item = Announce> + '_ {
    let contents = match report {
        Report::Artifact { contents, .. } | Report::Answer { contents, .. } => Some(contents),
        Report::Status { contents, .. } => contents.as_ref(),
        _ => None,
    };
    let parts = match contents {
        Some(Contents::Parts(parts)) => parts.as_slice(),
        Some(Contents::Message(message)) => message.parts.as_slice(),
        _ => &[],
    };
    let told = parts.iter().filter(|part| part.media_type == Kind::Announce.media_type());
    told.filter_map(|part| announcement(part.data.0.as_ref()?.text()).ok().map(|announce| *announce))
}

/// When a worker may be asked again. Without a word of its own: what is full has room soon, a limit takes longer, and
/// what is missing is missing until the worker announces something new.
fn retry_at(reason: &BlockedReason, retryable: Option<bool>, seconds: Option<u64>, now: Millis) -> Option<Millis> {
    let usual = match reason {
        BlockedReason::OverCapacity => Some(5),
        BlockedReason::UsageLimit => Some(300),
        _ => None,
    };
    let seconds = if retryable == Some(false) { None } else { seconds.or(usual) };
    // Somebody who says "at once" again and again must not be asked again and again at once.
    seconds.map(|seconds| after(now, Duration::from_secs(seconds.max(1)).min(LONGEST_PAUSE)))
}

/// What a worker lacks it is not asked for again before it announces something new, whatever it hopes. Nor is one that
/// has to announce itself anew, or for which it is too late.
fn lacks(reason: &BlockedReason) -> bool {
    use BlockedReason::{DeadlinePassed, MissingCapability, MissingMcp, StaleProfile, TierTooLow};
    matches!(reason, MissingMcp | MissingCapability | TierTooLow | StaleProfile | DeadlinePassed)
}

/// Words of workers' own are not counted each: there is no end to them.
pub(super) fn counted(reason: &BlockedReason) -> String {
    match reason {
        BlockedReason::Other(_) => "other".to_owned(),
        typed => typed.name().to_owned(),
    }
}

pub(super) fn count_blocked(reason: &BlockedReason) {
    counter!("flotilla_blocked_total", "reason" => counted(reason)).increment(1);
}

#[cfg(test)]
mod tests {
    use super::retry_at;
    use flotilla_protocol::fleet::result::BlockedReason;
    use flotilla_protocol::time::Millis;

    #[test]
    fn a_worker_is_left_alone_as_long_as_it_says_within_bounds() {
        let at = |seconds| retry_at(&BlockedReason::UsageLimit, None, seconds, Millis(0)).map(|at| at.0);
        assert_eq!([at(Some(0)), at(Some(60)), at(None)], [Some(1_000), Some(60_000), Some(300_000)]);
        assert_eq!([at(Some(1 << 63)), at(Some(1_000_000_000))], [Some(8 * 86_400_000); 2]);
    }
}
