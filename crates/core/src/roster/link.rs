//! The way to an agent that dials in: its runs wait at its desk until it comes, and for as long as they may.

use super::desk::{Answers, Desk, End, Ending, Entered, Reported, Standing};
use super::session::Order;
use super::silence::Silence;
use super::{Presence, Roster, Terms};
use crate::hub::RunHandle;
use crate::ids::{AgentId, TaskId};
use crate::ports::{Absence, Link, Stopped, Stopping};
use crate::registry::OnLost;
use flotilla_protocol::a2a::error::{Reason, Refusal};
use flotilla_protocol::a2a::model::Message;
use flotilla_protocol::work::{Assignment, Contents};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a run that ended as it was asked to waits for the word why, before it is one that just stopped.
const CANCELED_BY_THEN: Duration = Duration::from_secs(30);
/// No wait is longer: beyond this, a clock is of no use.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

pub struct Dialed {
    desk: Arc<Desk>,
    terms: Terms,
}

impl Dialed {
    pub fn new(roster: &Roster, agent: AgentId, terms: Terms) -> Self {
        Self { desk: roster.desk(agent), terms }
    }

    pub fn terms(&self) -> Terms {
        self.terms
    }
}

impl Link for Dialed {
    fn run(&self, assignment: Assignment, run: RunHandle) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(attend(Arc::clone(&self.desk), self.terms, Arc::new(assignment), run))
    }

    fn is_remote(&self) -> bool {
        true
    }

    /// Whoever has the run is asked to end it. What was not sent yet ends at once.
    fn stop(&self, stopping: Stopping) -> Pin<Box<dyn Future<Output = Result<Stopped, Refusal>> + Send>> {
        let (desk, terms) = (Arc::clone(&self.desk), self.terms);
        Box::pin(async move {
            match desk.ask_to_end(stopping.task) {
                None => Ok(Stopped::Now(None)),
                Some(ending) => ended(&desk, stopping.task, ending, terms).await,
            }
        })
    }

    fn stop_when_back(&self, task: TaskId, run: u32, theirs: String) {
        self.desk.stop_when_back(Order::Stop { task, run, theirs });
    }

    /// A worker that has it says when nothing of it is left.
    fn stops_later(&self, task: TaskId) -> bool {
        self.desk.is_with_worker(task) && !self.desk.waits(task)
    }

    fn absence(&self) -> Option<Absence> {
        if self.desk.is_present() {
            return None;
        }
        // Why it takes nothing is its owner's to know.
        let reason = match self.desk.presence().connections {
            0 => "The agent is not connected. The message waits for it.",
            _ => {
                "The agent is connected, but takes no work now: it is about to leave, or lacks something, which its owner \
                 can see. The message waits for it."
            }
        };
        Some(Absence { reason: reason.to_owned(), ttl: Some(self.terms.ttl) })
    }

    fn dialed(&self) -> Option<Terms> {
        Some(self.terms)
    }

    fn presence(&self) -> Option<Presence> {
        Some(self.desk.presence())
    }
}

/// Waits for what whoever was asked to end a run makes of that.
async fn ended(desk: &Desk, task: TaskId, ending: Ending, terms: Terms) -> Result<Stopped, Refusal> {
    if ending.answers == Answers::Perhaps {
        return Ok(said_in_frames(ending, terms.cancel).await);
    }
    let Ending { answers, mut end, .. } = ending;
    // Also over when the run is: then the log says how it ended.
    let mut answered = async |within: Duration| {
        let settled = end.wait_for(|end| *end != End::Asked);
        tokio::time::timeout(within, settled).await.map(|end| end.map(|end| end.clone()).ok())
    };
    match answers {
        // A worker says when nothing of the run is left, and has the grace time for it. Nothing is canceled before that.
        Answers::WhenGone => match answered(terms.grace).await {
            Ok(_) => Ok(Stopped::Now(None)),
            Err(_) => {
                let text = "The worker was asked to end the run, and has not said yet that nothing of it is left. The task \
                            is canceled as soon as it does: look at the task again later, or try again.";
                Err(Refusal::new(Reason::Unavailable, text).fact("taskId", task.to_string()))
            }
        },
        Answers::Perhaps | Answers::ToRequests | Answers::Never => {
            let mut heard = answered(terms.cancel).await;
            // One that is away may come back and answer; what it does not speak of by then has ended.
            if heard.is_err() && !desk.is_held(task) {
                heard = answered(terms.grace).await;
            }
            match heard {
                Ok(Some(End::Refused(words))) => {
                    let text = format!("The agent did not cancel the task: {words}");
                    Err(Refusal::new(Reason::TaskNotCancelable, text).fact("taskId", task.to_string()))
                }
                Ok(Some(End::Gone)) => Ok(Stopped::Now(None)),
                Ok(_) => Ok(Stopped::Told),
                Err(_) => {
                    desk.goes_on(task, None);
                    let text = "The agent was asked to cancel the task and has not answered. The task goes on; try again \
                                later.";
                    Err(Refusal::new(Reason::Unavailable, text).fact("taskId", task.to_string()))
                }
            }
        }
    }
}

/// What an agent in frames makes of that. Its time runs while it is there: one that is away is told when it is back, and the
/// run ends with the grace time.
async fn said_in_frames(ending: Ending, within: Duration) -> Stopped {
    let Ending { mut end, mut standing, .. } = ending;
    loop {
        let stands = *standing.borrow_and_update();
        if stands == Standing::Waiting {
            // It went away before it took it: nobody has it.
            return Stopped::Now(None);
        }
        let settled = async { end.wait_for(|end| *end != End::Asked).await.map(|end| end.clone()) };
        let silent = async {
            match stands {
                Standing::Away(_) => std::future::pending().await,
                _ => tokio::time::sleep(within).await,
            }
        };
        tokio::select! {
            biased;
            end = settled => return if matches!(end, Ok(End::Gone)) { Stopped::Now(None) } else { Stopped::Told },
            moved = standing.changed() => if moved.is_err() { return Stopped::Told },
            () = silent => {
                let text = "The agent was told to stop. It has not said that it has.";
                return Stopped::Now(Some(Contents::text(text)));
            }
        }
    }
}

/// What a run is waited for, and until when.
enum Until {
    /// The agent, by the time its message is no longer worth anything.
    Expired(Instant),
    /// The agent's return.
    Lost(Instant),
    /// The word of a worker that was sent it.
    Untaken(Instant),
    /// The agent's work.
    Ever,
}

/// The next thing the caller says while the run is under way.
type Said = Pin<Box<dyn Future<Output = Arc<Message>> + Send>>;

fn listen(run: &RunHandle, turn: u32) -> Said {
    let said = run.said_after(turn);
    Box::pin(async move {
        match said.await {
            Some(message) => message,
            None => std::future::pending().await,
        }
    })
}

/// What happens to a run next.
enum Happened {
    Reported(Reported),
    Moved(Standing),
    Said(Arc<Message>),
    /// Nobody has said anything for too long.
    Silent,
    Fenced,
    Stopping,
    TimeOver,
}

async fn attend(desk: Arc<Desk>, terms: Terms, work: Arc<Assignment>, mut run: RunHandle) {
    let Some(task) = TaskId::parse(&work.task_id) else { return };
    let ttl = work.ttl.map_or(terms.ttl, |seconds| Duration::from_secs(seconds.into()));
    let expires = Instant::now() + ttl.min(LONGEST).saturating_sub(run.age(work.asked_at));
    let mut turn = work.turn;
    let mut said = listen(&run, turn);
    let mut silence = Silence::new(work.watched, work.trail.waits);
    let mut entered = desk.enter(task, work);
    entered.late = run.latecomer();
    run.has_started();
    let mut sent: Option<Instant> = None;
    loop {
        // Seen only when it is told below: what changes meanwhile is not missed.
        let standing = *entered.standing.borrow();
        sent = if matches!(standing, Standing::Sent(_)) { sent.or_else(|| Some(Instant::now())) } else { None };
        let until = match standing {
            Standing::Waiting => Until::Expired(expires),
            Standing::Away(since) => Until::Lost(since + terms.grace),
            Standing::Sent(_) | Standing::Taken(_) => {
                let take = run.take().filter(|_| desk.acknowledges(task));
                take.zip(sent).map_or(Until::Ever, |(take, sent)| Until::Untaken(sent + take.min(LONGEST)))
            }
        };
        silence.look(standing, &desk, task, &run).await;
        let more = desk.takes_more(task).then_some(&mut said);
        match next(&mut entered, &run, (&until, silence.over_at), more).await {
            Happened::Silent => silence.end(standing, &mut run).await,
            Happened::Reported(Reported { gone: Some(reason), kept, .. }) => {
                gone(&desk, task, run, &reason, terms).await;
                let _ = kept.send(true);
                return;
            }
            Happened::Reported(Reported { reports, acknowledged, kept, .. }) => {
                silence.broken(&mut run, &reports).await;
                if acknowledged {
                    run.acknowledged().await;
                }
                // Without any, it is one that came before, and was kept by now.
                let goes_on = reports.is_empty() || run.report(reports).await.is_ok();
                // Whoever reported may be gone.
                let _ = kept.send(goes_on);
                if !goes_on || !run.is_current() {
                    return settled(&desk, task, &run).await;
                }
            }
            Happened::Moved(Standing::Sent(_)) => silence.broken(&mut run, &[]).await,
            Happened::Moved(Standing::Taken(_)) => {
                silence.broken(&mut run, &[]).await;
                run.taken().await;
            }
            Happened::Moved(Standing::Waiting) => silence.again(&mut run).await,
            Happened::Moved(Standing::Away(_)) => {}
            Happened::Said(message) => {
                turn += 1;
                said = listen(&run, turn);
                desk.say(task, message);
            }
            // Canceled, most likely: whoever has it need not go on.
            Happened::Fenced => {
                desk.stop(task);
                return;
            }
            // Those who dialed in are told to come again, and the run waits for them in the log.
            Happened::Stopping => return run.detach(),
            Happened::TimeOver if matches!(until, Until::Untaken(_)) && !desk.is_asked_to_end(task) => {
                // Should it be begun after all, it is to end.
                desk.stop(task);
                drop(entered);
                let seconds = run.take().unwrap_or_default().as_secs();
                return run.fail(&format!("it did not take the work up within {seconds} s")).await;
            }
            Happened::TimeOver => return time_over(&desk, task, run, &until, (ttl, terms)).await,
        }
    }
}

/// The agent has nothing more to say of the run, which a worker may yet have to hear that it is to end.
async fn settled(desk: &Desk, task: TaskId, run: &RunHandle) {
    if desk.is_asked_to_end(task) && desk.is_with_worker(task) {
        run.called_off().await;
    }
}

/// Whoever had it was not heard of in time.
async fn time_over(desk: &Desk, task: TaskId, run: RunHandle, until: &Until, (ttl, terms): (Duration, Terms)) {
    if !desk.is_asked_to_end(task) {
        return give_up(run, until, ttl, terms).await;
    }
    if !desk.is_with_worker(task) {
        // It is told when it is back after all.
        desk.stop(task);
        return end(desk, task, run, "the agent was asked to end it and did not come back", terms).await;
    }
    let seconds = terms.grace.as_secs_f32();
    let reason = format!(
        "its worker was asked to end it and has not come back within {seconds} s; whether it still runs there is not \
         known, and it is ended when the worker is back"
    );
    run.give_up(&reason, false).await;
}

/// May be dropped while it waits: nothing is taken and then lost.
async fn next(
    entered: &mut Entered,
    run: &RunHandle,
    (until, silent): (&Until, Option<Instant>),
    more: Option<&mut Said>,
) -> Happened {
    let said = async {
        match more {
            Some(said) => said.await,
            None => std::future::pending().await,
        }
    };
    let alarm = async {
        match until {
            Until::Expired(at) | Until::Lost(at) | Until::Untaken(at) => tokio::time::sleep_until(*at).await,
            Until::Ever => std::future::pending().await,
        }
    };
    let silence = async {
        match silent {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        Some(reported) = entered.reports.recv() => Happened::Reported(reported),
        Ok(()) = entered.standing.changed() => Happened::Moved(*entered.standing.borrow()),
        () = run.fenced() => Happened::Fenced,
        message = said => Happened::Said(message),
        () = run.stopping() => Happened::Stopping,
        () = silence => Happened::Silent,
        () = alarm => Happened::TimeOver,
    }
}

/// Nothing of the run is left at its worker. If that was asked for, the task is canceled with it: whoever asked may have
/// been told meanwhile that it takes longer.
async fn gone(desk: &Desk, task: TaskId, run: RunHandle, reason: &str, terms: Terms) {
    match desk.ended(task) {
        true => run.canceled().await,
        false => run.give_up(reason, terms.on_lost == OnLost::Retry).await,
    }
}

/// The run is over as far as anybody will know. If that was asked for, whoever asked says what it was.
async fn end(desk: &Desk, task: TaskId, run: RunHandle, reason: &str, terms: Terms) {
    let was_asked = desk.ended(task);
    if was_asked {
        let _ = tokio::time::timeout(CANCELED_BY_THEN, run.fenced()).await;
    }
    // What somebody wanted ended is not begun again.
    run.give_up(reason, !was_asked && terms.on_lost == OnLost::Retry).await;
}

async fn give_up(mut run: RunHandle, until: &Until, ttl: Duration, terms: Terms) {
    if let Until::Expired(_) = until {
        let seconds = ttl.as_secs();
        run.fail(&format!("The agent did not come for the message within {seconds} s, so it was not delivered.")).await;
        return;
    }
    let reason = format!("the agent went away and did not come back within {} s", terms.grace.as_secs());
    run.give_up(&reason, terms.on_lost == OnLost::Retry).await;
}
