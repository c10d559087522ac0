//! A hook's turn: what is new in its task is cut into webhooks, each carried and settled before the next.

use super::{Follow, Hub, LiveRef};
use crate::caller::Scope;
use crate::error::{Error, Fault};
use crate::ports::Parcel;
use crate::project::Want;
use crate::push::{Attempt, Came, Cut, Hook, HookState, Rest, Settled, Taken, Verdict, cut, verdict};
use crate::task::Head;
use flotilla_protocol::a2a::model::StreamResponse;
use flotilla_protocol::a2a::version::Version;
use flotilla_protocol::time::Millis;
use flotilla_protocol::v03::V03;
use metrics::counter;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Webhooks a hook may send before others get their turn.
const TURN: usize = 64;
/// How long to wait before a turn that could not be settled or read is taken again.
const PAUSE: Duration = Duration::from_secs(5);
/// How long one waits that the hub has no key for. A key comes with a start, which waits for nothing.
const LOCKED_PAUSE: Duration = Duration::from_secs(3600);

impl Hub {
    /// The next hook whose turn it is, taken off the desk.
    pub(crate) fn next_hook(self: &Arc<Self>) -> Option<Turn> {
        let taken = Some(self.desk.take()?);
        Some(Turn { hub: Arc::clone(self), taken, rest: Rest::Wait(PAUSE), went: None })
    }

    /// Makes hooks ready whose time has come; when the next one's will.
    pub(crate) fn ring_hooks(&self) -> Option<Instant> {
        self.desk.ring()
    }

    /// Waits until no webhook is on its way. A hub that stops begins no new ones.
    pub async fn webhooks_landed(&self) {
        self.desk.landed().await;
    }

    /// The end of the webhook before the one that holds the event after `after`: none begins in the middle of another.
    pub(super) async fn unit_start(self: &Arc<Self>, hook: &Hook, after: u64) -> Result<u64, Error> {
        let Some(live) = self.find(Scope::Admin, hook.task).await? else { return Ok(after) };
        let mut follow = Follow::kept(Arc::clone(self), live, 0, HashSet::new());
        let (mut frames, mut start) = (VecDeque::new(), 0);
        loop {
            let open = match cut(&mut frames, hook.cutting()) {
                Cut::Unit(last, _) | Cut::Passed(last) if last > after => return Ok(start),
                Cut::Unit(last, _) | Cut::Passed(last) => {
                    start = last;
                    continue;
                }
                Cut::Open => start,
                Cut::Nothing => after,
            };
            let more = follow.at_hand().await?;
            if more.is_empty() {
                return Ok(open.min(after));
            }
            frames.extend(more);
        }
    }

    /// Waits until a hook may have something to do.
    pub(crate) async fn hooks_woken(&self) {
        self.desk.woken().await;
    }
}

/// A hook in hand. It goes back to the desk when this is dropped, whatever happened in between.
pub(crate) struct Turn {
    hub: Arc<Hub>,
    taken: Option<Taken>,
    rest: Rest,
    went: Option<bool>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(taken) = self.taken.take() {
            self.hub.desk.put_back(taken, self.rest.clone(), self.went);
        }
    }
}

impl Turn {
    pub(crate) async fn run(mut self) {
        let Some(taken) = &mut self.taken else { return };
        let (mut hook, introduced) = (taken.hook.clone(), std::mem::take(&mut taken.introduced));
        match self.deliver(&mut hook, introduced).await {
            Ok(rest) => self.rest = rest,
            Err(error) => tracing::error!(hook = %hook.uid, task = %hook.task, %error, "a webhook waits"),
        }
        if let Some(taken) = &mut self.taken {
            taken.hook = hook;
        }
    }

    async fn deliver(&mut self, hook: &mut Hook, introduced: HashSet<String>) -> Result<Rest, Error> {
        let hub = Arc::clone(&self.hub);
        let Some(live) = hub.find(Scope::Admin, hook.task).await? else {
            // Retention took the task, and with it what there was to tell.
            hub.store.remove_hook(Scope::Admin, hook.task, &hook.id).await?;
            return Ok(Rest::Over);
        };
        let mut follow = Follow::kept(Arc::clone(&hub), live.clone(), hook.cursor, introduced);
        let mut frames = VecDeque::new();
        let mut passed = hook.cursor;
        let mut sent = 0;
        let rest = loop {
            match cut(&mut frames, hook.cutting()) {
                Cut::Unit(_, _) if sent == TURN || hub.is_stopping() => break Rest::More,
                // 0.3 has webhooks of tasks only.
                Cut::Unit(last, frame)
                    if matches!(*frame, StreamResponse::Message(_)) && hook.version == Version::V03 =>
                {
                    passed = last;
                }
                Cut::Unit(last, frame) => {
                    if !hub.desk.is_current(hook) {
                        break Rest::Over;
                    }
                    let Some(head) = live.committed() else { break Rest::Wait(PAUSE) };
                    let ends = frames.is_empty() && head.is_over() && head.peer_seq == last;
                    let body = written(&hub, &live, hook.version, last, &frame).await?;
                    if let Some(rest) = self.attempt(hook, &head, (last, body), ends).await? {
                        break rest;
                    }
                    (sent, passed) = (sent + 1, last);
                }
                Cut::Passed(last) => passed = last,
                Cut::Open | Cut::Nothing => {
                    let more = follow.at_hand().await?;
                    if !more.is_empty() {
                        frames.extend(more);
                        continue;
                    }
                    let over = live.committed().is_some_and(|head| head.is_over() && head.peer_seq <= passed);
                    break if over { self.finish(hook, passed).await? } else { Rest::Idle };
                }
            }
        };
        if let Some(taken) = &mut self.taken {
            taken.introduced = follow.into_introduced();
        }
        Ok(rest)
    }

    /// One attempt, settled. None if the next webhook may follow at once.
    async fn attempt(
        &mut self,
        hook: &mut Hook,
        head: &Head,
        (last, body): (u64, Vec<u8>),
        ends: bool,
    ) -> Result<Option<Rest>, Error> {
        let (at, started) = (self.hub.clock.now(), Instant::now());
        let (id, target, options, version) = (hook.webhook_id(last), hook.target.clone(), hook.options, hook.version);
        let parcel = Parcel { id, at, target, options, version, trace: head.trace(head.run), body };
        let came = self.hub.push.courier.carry(parcel).await;
        let took = started.elapsed();
        let failures = hook.failures + 1;
        let (verdict, reason) = verdict(&came, &self.hub.push.schedule, hook.uid, failures);
        count(&verdict);
        self.went = (verdict != Verdict::Wait).then_some(verdict == Verdict::Delivered);
        let rest;
        match &verdict {
            Verdict::Wait => return self.locked(hook, reason).await.map(Some),
            Verdict::Delivered => {
                (hook.cursor, hook.failures, hook.next_at) = (last, 0, None);
                hook.state = if ends { HookState::Done } else { HookState::Active };
                rest = ends.then_some(Rest::Over);
            }
            Verdict::Again(delay) => {
                let delay_ms = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
                (hook.failures, hook.next_at) =
                    (failures, Some(Millis(self.hub.clock.now().0.saturating_add(delay_ms))));
                hook.state = HookState::Active;
                rest = Some(Rest::Wait(*delay));
            }
            Verdict::Stop(state) => {
                (hook.failures, hook.next_at, hook.state) = (failures, None, *state);
                rest = Some(Rest::Over);
                let trace = head.trace_id();
                tracing::warn!(hook = %hook.uid, task = %hook.task, %trace, reason, "a webhook is {}", state.name());
            }
        }
        hook.attempts += 1;
        hook.reason = reason.clone();
        let status = match came {
            Came::Answer { status, .. } => Some(status),
            Came::Failure(_) | Came::Locked(_) => None,
        };
        let attempt = Attempt {
            number: hook.attempts,
            peer_seq: last,
            at,
            millis: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            status,
            delivered: verdict == Verdict::Delivered,
            next_at: hook.next_at,
            reason,
        };
        self.settle(hook, Some(attempt)).await?;
        Ok(rest)
    }

    /// Nothing could be tried: no attempt is used up, the reason is shown, and the next start tries at once.
    async fn locked(&self, hook: &mut Hook, reason: String) -> Result<Rest, Error> {
        if hook.reason != reason || hook.next_at.is_some() {
            (hook.reason, hook.next_at) = (reason, None);
            self.settle(hook, None).await?;
        }
        Ok(Rest::Wait(LOCKED_PAUSE))
    }

    /// Everything is told, the last of it to nobody.
    async fn finish(&self, hook: &mut Hook, passed: u64) -> Result<Rest, Error> {
        (hook.cursor, hook.state) = (passed, HookState::Done);
        self.settle(hook, None).await?;
        Ok(Rest::Over)
    }

    async fn settle(&self, hook: &Hook, attempt: Option<Attempt>) -> Result<(), Fault> {
        let settled = Settled {
            hook: hook.uid,
            generation: hook.generation,
            cursor: hook.cursor,
            state: hook.state,
            failures: hook.failures,
            next_at: hook.next_at,
            reason: hook.reason.clone(),
            attempt,
        };
        self.hub.store.settle_hook(settled).await
    }
}

fn count(verdict: &Verdict) {
    let result = match verdict {
        Verdict::Delivered => "delivered",
        Verdict::Again(_) => "failed",
        Verdict::Wait => "locked",
        Verdict::Stop(state) => state.name(),
    };
    counter!("flotilla_push_attempts_total", "result" => result).increment(1);
}

/// What a webhook holds: in 1.0 the event, in 0.3 the whole task as of the event.
async fn written(
    hub: &Hub,
    live: &LiveRef,
    version: Version,
    last: u64,
    frame: &StreamResponse,
) -> Result<Vec<u8>, Error> {
    let written = match version {
        Version::V10 => serde_json::to_vec(frame),
        Version::V03 => {
            let (head, fold) = hub.folded(live, last, None).await?;
            serde_json::to_vec(&V03(&fold.into_task(&head, Want::ALL)))
        }
    };
    written.map_err(|error| Fault::new(format!("encoding a webhook: {error}")).into())
}
