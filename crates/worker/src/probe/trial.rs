//! Probe turns: a small turn now and then that shows whether an agent can really work. Each costs what a turn costs, so
//! there are none unless an owner asks for them.

use crate::agent::{Agent, Outbox, Stop};
use crate::sessions::seconds_now;
use flotilla_protocol::a2a::model::TaskState;
use flotilla_protocol::block::{Block, Kind};
use flotilla_protocol::fleet::Announce;
use flotilla_protocol::time::Millis;
use flotilla_protocol::work::{Assignment, Contents, Report};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// What is counted together.
const DAY: u64 = 24 * 3600;
/// Reports the work may be ahead of whoever takes them.
const AHEAD: usize = 16;

/// When a probe turn is due, what it says, and what all of them may cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    pub every: Duration,
    pub prompt: String,
    /// A turn that takes longer has failed.
    pub timeout: Duration,
    pub turns_per_day: u32,
    pub usd_per_day: Option<f64>,
}

/// The probe turns of one agent.
#[derive(Debug)]
pub struct Trials {
    terms: Terms,
    /// Where they are on record: a worker that is started again and again must not pay each time.
    file: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    past: Past,
    /// The message of the one that was asked for and is not over, and whether it came.
    open: Option<(String, bool)>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Past {
    /// When the last one was asked for, in seconds since 1970.
    asked_at: Option<u64>,
    /// Those of the last day: when each began, and what it cost, if that was told.
    turns: Vec<(u64, Option<f64>)>,
    last_success: Option<u64>,
    /// Why the last one failed, if it did.
    problem: Option<String>,
}

/// What was seen of a run.
#[derive(Default)]
struct Seen {
    state: Option<TaskState>,
    words: String,
    cost: Option<f64>,
}

impl Trials {
    pub fn open(terms: Terms, file: Option<PathBuf>) -> Arc<Self> {
        let kept = file.as_ref().and_then(|file| std::fs::read(file).ok());
        let past = kept.and_then(|kept| serde_json::from_slice(&kept).ok()).unwrap_or_default();
        Arc::new(Self { terms, file, state: Mutex::new(State { past, open: None }) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id and the text of a message that is due now, if one is and there is something left to spend on it.
    pub fn due(&self, now: u64) -> Option<(String, String)> {
        let mut state = self.state();
        let last = state.past.asked_at.unwrap_or(0);
        // One that was asked for and never came cost nothing.
        let is_open = state.open.as_ref().is_some_and(|(_, began)| *began);
        if is_open || now < last.saturating_add(self.terms.every.as_secs()) {
            return None;
        }
        state.past.turns.retain(|(at, _)| now < at + DAY);
        let spent: f64 = state.past.turns.iter().filter_map(|(_, cost)| *cost).sum();
        let is_spent = self.terms.usd_per_day.is_some_and(|most| spent >= most);
        if is_spent || state.past.turns.len() >= self.terms.turns_per_day as usize {
            return None;
        }
        let id = format!("probe-{}", uuid::Uuid::new_v4());
        state.past.asked_at = Some(now);
        state.open = Some((id.clone(), false));
        self.keep(&state.past);
        Some((id, self.terms.prompt.clone()))
    }

    /// How long until another may be due; one that is put off by something else is looked for as often as they come.
    pub fn pause(&self, now: u64) -> Duration {
        let next = self.state().past.asked_at.map_or(now, |last| last.saturating_add(self.terms.every.as_secs()));
        match next.saturating_sub(now) {
            0 => self.terms.every,
            left => Duration::from_secs(left),
        }
    }

    /// Puts what is known of turns into an announcement.
    pub fn fill(&self, announce: &mut Announce) {
        let past = self.state().past.clone();
        let millis = |at: u64| Millis(i64::try_from(at.saturating_mul(1000)).unwrap_or(i64::MAX));
        announce.session.last_successful_turn = past.last_success.map(millis);
        if let Some(problem) = past.problem {
            announce.session.broken.get_or_insert(format!("its probe turn failed: {problem}"));
        }
    }

    /// Works as the agent does, and sees what becomes of it.
    pub async fn watch(&self, doer: &Agent, assignment: Assignment, outbox: Outbox, mut stop: Stop) {
        let is_probe = self.begin(&assignment.message.message_id, seconds_now());
        let (reports, mut inbox) = mpsc::channel::<Box<Report>>(AHEAD);
        let (say, inner) = Stop::pair();
        let work = doer.work(assignment, outbox.through(reports), inner.hearing(stop.take_more()));
        let mut seen = Seen::default();
        let passing = async {
            while let Some(report) = inbox.recv().await {
                seen.take(&report);
                if outbox.report(*report).await.is_err() {
                    break;
                }
            }
            drop(inbox);
        };
        let (mut asked, mut late) = (false, false);
        {
            let mut both = pin!(async { tokio::join!(work, passing) });
            let mut over = pin!(tokio::time::sleep(self.terms.timeout));
            loop {
                tokio::select! {
                    _ = &mut both => break,
                    () = stop.asked(), if !asked => {
                        asked = true;
                        say.send_replace(true);
                    }
                    () = &mut over, if is_probe && !late => {
                        late = true;
                        say.send_replace(true);
                    }
                }
            }
        }
        if !is_probe {
            return if seen.state == Some(TaskState::Completed) {
                self.succeeded(seconds_now())
            };
        }
        let problem = format!("it did not end within {} s", self.terms.timeout.as_secs());
        if late && seen.state.is_none() {
            let contents = Some(Contents::text(format!("The probe turn failed: {problem}, and was stopped.")));
            let _ = outbox.report(Report::Status { state: TaskState::Failed, contents, metadata: None }).await;
        }
        let late = late.then_some(problem);
        self.ended(if asked && seen.state.is_none() { None } else { Some(seen.judged(late)) }, seen.cost);
    }

    /// Whether a message is the one that was asked for.
    fn begin(&self, message: &str, now: u64) -> bool {
        let mut state = self.state();
        let is_probe = state.open.as_ref().is_some_and(|(id, _)| id == message);
        if is_probe {
            state.open = Some((message.to_owned(), true));
            state.past.turns.push((now, None));
            self.keep(&state.past);
        }
        is_probe
    }

    /// One whose outcome says nothing, because somebody stopped it, changes nothing but what was spent.
    fn ended(&self, outcome: Option<Result<(), String>>, cost: Option<f64>) {
        let mut state = self.state();
        state.open = None;
        if let Some((_, spent)) = state.past.turns.last_mut() {
            *spent = cost;
        }
        match outcome {
            None => {}
            Some(Ok(())) => (state.past.last_success, state.past.problem) = (Some(seconds_now()), None),
            Some(Err(problem)) => state.past.problem = Some(problem),
        }
        self.keep(&state.past);
    }

    /// Any turn that ends well shows the same.
    fn succeeded(&self, now: u64) {
        let mut state = self.state();
        (state.past.last_success, state.past.problem) = (Some(now), None);
    }

    fn keep(&self, past: &Past) {
        let Some(file) = &self.file else { return };
        let folder = file.parent().map(std::fs::create_dir_all).unwrap_or(Ok(()));
        let written = folder.and_then(|()| std::fs::write(file, serde_json::to_vec(past).unwrap_or_default()));
        if let Err(error) = written {
            tracing::error!(file = %file.display(), %error, "probe turns cannot be put on record");
        }
    }
}

impl Seen {
    fn take(&mut self, report: &Report) {
        match report {
            Report::Status { state, contents, .. } if state.is_terminal() || state.is_interrupted() => {
                self.state = Some(*state);
                if let Some(Contents::Parts(parts)) = contents {
                    self.words = parts.iter().filter_map(|part| part.text.as_deref()).collect::<Vec<_>>().join(" ");
                }
            }
            Report::Answer { .. } => self.state = Some(TaskState::Completed),
            Report::Note { blocks } => {
                for cost in blocks.iter().filter_map(cost) {
                    self.cost = Some(self.cost.unwrap_or(0.0) + cost);
                }
            }
            _ => {}
        }
    }

    fn judged(&self, late: Option<String>) -> Result<(), String> {
        match (self.state, late) {
            (Some(TaskState::Completed), _) => Ok(()),
            (None, Some(late)) => Err(late),
            (None, None) => Err("it ended without a result".into()),
            (Some(state), _) if self.words.is_empty() => Err(format!("it ended as {}", state.name())),
            (Some(_), _) => Err(self.words.clone()),
        }
    }
}

fn cost(block: &Block) -> Option<f64> {
    let told: Value = (block.kind() == Kind::Usage).then(|| serde_json::from_str(block.json().text()).ok())??;
    told["cost_usd"].as_f64().or_else(|| told["total_cost_usd"].as_f64())
}

#[cfg(test)]
mod tests {
    use super::{DAY, Terms, Trials};
    use flotilla_protocol::fleet::Announce;
    use std::sync::Arc;
    use std::time::Duration;

    fn trials(turns_per_day: u32, usd_per_day: Option<f64>) -> Arc<Trials> {
        let (every, timeout) = (Duration::from_secs(600), Duration::from_secs(60));
        Trials::open(Terms { every, prompt: "Say yes.".into(), timeout, turns_per_day, usd_per_day }, None)
    }

    fn run(trials: &Trials, now: u64, outcome: Result<(), String>, cost: Option<f64>) -> bool {
        let Some((id, prompt)) = trials.due(now) else { return false };
        assert!(prompt == "Say yes." && trials.due(now).is_none() && !trials.begin("other", now));
        assert!(trials.begin(&id, now) && trials.due(now + 6000).is_none(), "one at a time");
        trials.ended(Some(outcome), cost);
        true
    }

    #[test]
    fn one_is_due_now_and_then_and_no_more_than_may_be_spent() {
        let few = trials(2, None);
        let now = 10 * DAY;
        assert!(run(&few, now, Ok(()), None) && !run(&few, now + 599, Ok(()), None));
        assert!(run(&few, now + 600, Ok(()), None) && !run(&few, now + 1200, Ok(()), None), "two in a day");
        assert!(run(&few, now + DAY, Ok(()), None), "the next day");
        let cheap = trials(100, Some(0.5));
        assert!(run(&cheap, now, Ok(()), Some(0.3)) && run(&cheap, now + 600, Ok(()), Some(0.3)));
        assert!(!run(&cheap, now + 1200, Ok(()), None), "it is spent");
        assert_eq!(few.pause(now + DAY + 200).as_secs(), 400, "until the next may be due");
        assert_eq!(cheap.pause(now + 1200).as_secs(), 600, "what is spent comes back some time");
        let lost = trials(1, None);
        assert!(lost.due(now).is_some() && lost.due(now + 600).is_some(), "what never came cost nothing");
    }

    #[test]
    fn what_became_of_it_is_announced_until_a_turn_ends_well() {
        let trials = trials(9, None);
        let announced = || {
            let mut announce = Announce::default();
            trials.fill(&mut announce);
            (announce.session.broken, announce.session.last_successful_turn.is_some())
        };
        assert_eq!(announced(), (None, false));
        assert!(run(&trials, DAY, Err("not signed in".into()), None));
        assert_eq!(announced(), (Some("its probe turn failed: not signed in".into()), false));
        trials.succeeded(DAY);
        assert_eq!(announced(), (None, true));
    }
}
