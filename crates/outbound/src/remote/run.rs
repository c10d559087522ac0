//! One run of an agent elsewhere: the message is sent, and what the agent makes of it is reported until it is done.

mod ending;
mod follow;
mod late;
mod lost;
mod reply;

use super::Remote;
use super::call::{Entered, Letter};
use super::fault::{End, Failure, bare};
use super::seen::Seen;
use super::{request, seen};
use crate::client::Client;
use crate::client::error::{ClientError, Code};
use crate::client::frame::{Frames, Sent};
use flotilla_core::hub::RunHandle;
use flotilla_core::ids::TaskId;
use flotilla_protocol::a2a::model::Task;
use flotilla_protocol::block::Block;
use flotilla_protocol::lineage::Onward;
use flotilla_protocol::work::{Assignment, Contents, Report};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;

pub struct Run {
    remote: Arc<Remote>,
    assignment: Arc<Assignment>,
    handle: RunHandle,
    entered: Entered,
    letters: UnboundedReceiver<Letter>,
    seen: Seen,
    onward: Onward,
    headers: Vec<(String, String)>,
    /// The last event of a stream that can be gone on from.
    cursor: Option<String>,
    /// Frames that streams have brought.
    frames: usize,
    /// What a stream ended with that was neither an event nor an end.
    garbled: Option<follow::Garbled>,
    /// The last stream was ended by the agent, after it had brought something; or it fell silent, and no time will ever
    /// tell what it brought from how the task was before.
    closed: bool,
    /// Until then a task that is shown as it was before the message may still move.
    doubted: Option<Instant>,
}

/// A send that did not work.
enum Unsent {
    /// Nothing was taken up: it may be sent again.
    NotYet(ClientError),
    /// It may have been.
    Perhaps(ClientError),
    /// It was refused, as the agent had gone on with its task by itself.
    Overtaken(Box<Task>, ClientError),
    End(End),
}

/// What a send was answered with.
enum Answered {
    Whole(Box<Sent>),
    Stream(Box<Frames>),
    /// With nothing so far; whoever canceled the task was told of it instead.
    Elsewhere,
}

impl From<End> for Unsent {
    fn from(end: End) -> Self {
        Self::End(end)
    }
}

impl Run {
    pub fn new(remote: Arc<Remote>, task: TaskId, assignment: Assignment, handle: RunHandle) -> Self {
        let assignment = Arc::new(assignment);
        let (entered, letters) = remote.calls.enter(task, Some(Arc::clone(&assignment)));
        let seen = Seen::of(&assignment.trail, &assignment.message.message_id);
        let onward = assignment.lineage.onward();
        let headers = request::headers(&assignment, &onward);
        Self {
            remote,
            assignment,
            handle,
            entered,
            letters,
            seen,
            onward,
            headers,
            cursor: None,
            frames: 0,
            garbled: None,
            closed: false,
            doubted: None,
        }
    }

    pub async fn perform(mut self) {
        let whole = self.remote.options.times.whole;
        let fence = self.handle.fence();
        let ended = tokio::select! {
            biased;
            () = fence => None,
            ended = tokio::time::timeout(whole, self.work()) => Some(ended),
        };
        let Some(ended) = ended else { return Box::pin(self.hear_out()).await };
        let end = match ended {
            Ok(Ok(())) => return Box::pin(self.handle.finish()).await,
            Ok(Err(end)) => end,
            Err(_) => {
                let mut text = format!("The agent '{}' took longer than it may ({} s).", self.name(), whole.as_secs());
                if self.seen.is_as_before() {
                    text.push_str(" It has the message, and still shows its task as it was before.");
                }
                text.push_str(&self.recalled());
                Failure::new(text.clone(), text).into()
            }
        };
        if self.seen.is_linked() && !self.seen.is_settled() && !matches!(end, End::Lost(_)) {
            self.remote.abandon(self.seen.upstream().task.clone(), self.assignment.lineage.clone());
        }
        match end {
            End::Fenced => {}
            End::Failed(failure) | End::Lost(failure) => Box::pin(self.fail(failure)).await,
            End::Unstreamed(error) => {
                let failure = Failure::of(self.name(), &error);
                Box::pin(self.fail(failure)).await;
            }
            End::Unknown(reason) => {
                let again = self.remote.options.send_again;
                let then = if again { "; on_lost is retry, so it is sent again" } else { "" };
                tracing::warn!(agent = %self.name(), task = %self.assignment.task_id, %reason, again, "outcome unknown");
                Box::pin(self.handle.give_up(&format!("outcome unknown: {reason}{then}"), again)).await;
            }
        }
    }

    fn name(&self) -> &str {
        &self.remote.options.name
    }

    /// Most runs are one call and its answer. All else is boxed, here and below: every run would carry room for it.
    async fn work(&mut self) -> Result<(), End> {
        match (self.assignment.trail.resumed, self.seen.is_linked()) {
            (false, false) => {
                Box::pin(self.note_staleness()).await?;
                self.send().await?;
            }
            // The hub stopped meanwhile, or the agent went on by itself.
            (_, true) => self.note_link(),
            (true, false) => Box::pin(self.look_for("the hub stopped before the agent had answered")).await?,
        }
        if self.seen.is_settled() { Ok(()) } else { Box::pin(self.follow()).await }
    }

    /// The agent's owner is told in the task's log where a card counts that is not of today.
    async fn note_staleness(&mut self) -> Result<(), End> {
        let Some(problem) = self.remote.stale.load_full() else { return Ok(()) };
        let text = format!("The agent is stale: its card cannot be read, so the last one counts. {problem}");
        let note = Report::Note { blocks: vec![Block::text(&text)] };
        self.handle.report(vec![note]).await.map_err(|_| End::Fenced)
    }

    async fn fail(mut self, Failure { state, text, detail }: Failure) {
        tracing::warn!(agent = %self.name(), task = %self.assignment.task_id, problem = %detail, "a run ended");
        let note = Report::Note { blocks: vec![Block::text(&detail)] };
        let contents = Some(Contents::text(text));
        let status = Report::Status { state, contents, metadata: None };
        let reports = if detail.is_empty() { vec![status] } else { vec![note, status] };
        if self.handle.report(reports).await.is_ok() {
            self.handle.finish().await;
        }
    }

    /// Sends the message, again where that is safe.
    async fn send(&mut self) -> Result<(), End> {
        let retries = self.remote.options.retries;
        let mut tries = 0;
        loop {
            match self.try_send(tries == retries.most).await {
                Ok(()) => return Ok(()),
                Err(Unsent::End(end)) => return Err(end),
                Err(Unsent::Overtaken(task, error)) => return Box::pin(self.take_over(task, &error)).await,
                Err(Unsent::NotYet(error)) if tries < retries.most => {
                    tries += 1;
                    let told = error.retry_after().unwrap_or_default().min(retries.longest);
                    Box::pin(self.pause(retries.pause(tries).max(told))).await?;
                }
                Err(Unsent::NotYet(error)) => {
                    let failure = Failure::of(self.name(), &error);
                    return Err(if error.is_passing() { self.unreached(failure) } else { failure }.into());
                }
                Err(Unsent::Perhaps(error)) => {
                    let why = format!("the connection broke before the agent had answered ({})", bare(&error));
                    return Box::pin(self.look_for(&why)).await;
                }
            }
        }
    }

    /// One try. The tries of a message count once for the breaker: the last of them speaks for all.
    async fn try_send(&mut self, is_last: bool) -> Result<(), Unsent> {
        let remote = Arc::clone(&self.remote);
        let left_alone = |left| End::from(self.unreached(Failure::left_alone(self.name(), &left)));
        let admitted = remote.breaker.admit().map_err(left_alone)?;
        let client = match self.client().await {
            Ok(client) => client,
            Err(error) if error.is_passing() => {
                if is_last {
                    admitted.failed(&error.to_string());
                }
                return Err(Unsent::NotYet(error));
            }
            Err(error) => {
                admitted.reached();
                return Err(Box::pin(self.refused(error)).await);
            }
        };
        if !self.entered.call.begin() {
            // The task is being canceled, which ends this run.
            return std::future::pending().await;
        }
        let answered = self.call(&client).await;
        let outcome = match &answered {
            Err(Unsent::NotYet(error) | Unsent::Perhaps(error)) if !matches!(error, ClientError::Exhausted { .. }) => {
                if is_last || matches!(&answered, Err(Unsent::Perhaps(_))) {
                    admitted.failed(&error.to_string());
                }
                self.remote.way.doubt();
                &self.remote.meters.unreached
            }
            Err(_) => {
                admitted.reached();
                &self.remote.meters.refused
            }
            Ok(_) => {
                admitted.reached();
                &self.remote.meters.answered
            }
        };
        outcome.increment(1);
        if matches!(&answered, Err(Unsent::NotYet(_))) {
            self.entered.call.rewind();
        }
        self.take_in(&client, answered?).await
    }

    /// A client with the headers of this run.
    async fn client(&mut self) -> Result<Client, ClientError> {
        let client = self.remote.way.client().await?.carrying(self.headers.iter().cloned());
        let asks = request::asked(&self.assignment).next().is_some();
        Ok(if asks { client.listening() } else { client })
    }

    async fn call(&mut self, client: &Client) -> Result<Answered, Unsent> {
        let client = client.carrying([request::key(&self.assignment)]);
        if !self.assignment.watched || !client.streams() {
            return self.call_plainly(&client).await;
        }
        let asked = request::send(&self.assignment, &self.onward, self.seen.upstream(), false);
        match self.attend(Box::pin(client.send_streaming(asked))).await? {
            None => Ok(Answered::Elsewhere),
            Some(Ok(Frames::Single(Some(frame)))) => Ok(Answered::Whole(Box::new(frame.sent))),
            Some(Ok(frames)) => Ok(Answered::Stream(Box::new(frames))),
            Some(Err(error)) if offers_no_stream(&error) => Box::pin(self.call_without_stream(&client, error)).await,
            Some(Err(error)) => Err(Box::pin(self.unsent(error, &client)).await),
        }
    }

    /// A caller who looks on gets a receipt, and is told what is asked for then.
    async fn call_plainly(&mut self, client: &Client) -> Result<Answered, Unsent> {
        if self.seen.is_as_before() {
            return Box::pin(self.reply(client)).await;
        }
        let asked = request::send(&self.assignment, &self.onward, self.seen.upstream(), self.assignment.watched);
        match self.attend(client.send(asked)).await? {
            None => Ok(Answered::Elsewhere),
            Some(Ok(answer)) => Ok(Answered::Whole(Box::new(answer.value))),
            Some(Err(error)) => Err(Box::pin(self.unsent(error, client)).await),
        }
    }

    /// Waits for an answer, or for what the agent tells somebody else: told to stop, it need not answer what it was
    /// asked before. What it then goes on with is asked for.
    async fn attend<T>(&mut self, call: impl Future<Output = T>) -> Result<Option<T>, End> {
        tokio::select! {
            biased;
            answered = call => Ok(Some(answered)),
            letter = self.letters.recv() => Box::pin(self.open(letter)).await.map(|()| None),
        }
    }

    /// The agent has no streams, whatever its card says. Nothing was begun by asking for one.
    async fn call_without_stream(&mut self, client: &Client, refused: ClientError) -> Result<Answered, Unsent> {
        let answered = self.call_plainly(client).await;
        if answered.is_ok() && client.do_without_streams() {
            tracing::warn!(agent = %self.name(), %refused, "the agent's card says that it streams, and it does not");
        }
        answered
    }

    async fn take_in(&mut self, client: &Client, answered: Answered) -> Result<(), Unsent> {
        let heard = client.heard();
        let in_force = request::asked(&self.assignment).filter(|uri| heard.iter().any(|one| one == uri));
        self.seen.activate(in_force.map(str::to_owned).collect());
        let mut frames = match answered {
            Answered::Whole(sent) => {
                self.seen.expect_answer();
                if !self.assignment.watched {
                    self.seen.believe();
                }
                self.doubt();
                let fuller = if self.is_bare(&sent) { Box::pin(ending::fuller(client, &sent)).await } else { None };
                return Ok(self.tell(vec![fuller.unwrap_or(*sent)]).await?);
            }
            Answered::Elsewhere => return Ok(()),
            Answered::Stream(frames) => frames,
        };
        // Some begin with the task as it was, whatever comes after it.
        self.seen.ask();
        match Box::pin(self.pump(client, &mut frames, true)).await {
            Ok(Some(problem)) if !self.seen.is_linked() => Err(Unsent::Perhaps(ClientError::Broken(problem))),
            // What is missing is asked for.
            Ok(_) => {
                if self.closed {
                    self.doubt();
                }
                Ok(())
            }
            Err(End::Unstreamed(error)) => {
                let client = client.carrying([request::key(&self.assignment)]);
                let answered = Box::pin(self.call_without_stream(&client, error)).await?;
                Box::pin(self.take_in(&client, answered)).await
            }
            Err(end) => Err(end.into()),
        }
    }

    /// A token may have run out before its time.
    async fn refused(&mut self, error: ClientError) -> Unsent {
        let unknown = matches!(error, ClientError::AuthFailed { .. } | ClientError::CredentialsMissing { .. });
        if unknown && self.remote.way.drop_token().await {
            return Unsent::NotYet(error);
        }
        Unsent::End(Failure::of(self.name(), &error).into())
    }

    /// Waits, and takes what others were told meanwhile.
    async fn pause(&mut self, pause: Duration) -> Result<(), End> {
        let until = tokio::time::Instant::now() + pause;
        loop {
            tokio::select! {
                biased;
                letter = self.letters.recv() => self.open(letter).await?,
                () = tokio::time::sleep_until(until) => return Ok(()),
            }
        }
    }

    async fn open(&mut self, letter: Option<Letter>) -> Result<(), End> {
        if let Some((task, done)) = letter {
            self.tell(vec![Sent::Task(task)]).await?;
            let _ = done.send(());
        }
        Ok(())
    }

    /// Reports what is new in what the agent said, all of it at once.
    async fn tell(&mut self, sent: Vec<Sent>) -> Result<(), End> {
        let mut reports = Vec::new();
        let mut wrong = None;
        for one in sent {
            match self.seen.take(one) {
                Ok(new) => reports.extend(new),
                Err(seen::Garbage(problem)) => {
                    wrong = Some(Failure::garbage(self.name(), &self.remote.way.clean(&problem)));
                    break;
                }
            }
        }
        self.note_link();
        if !reports.is_empty() {
            self.garbled = None;
            self.handle.report(reports).await.map_err(|_| End::Fenced)?;
        }
        wrong.map_or(Ok(()), |failure| Err(failure.into()))
    }

    fn note_link(&self) {
        if self.seen.is_linked() {
            self.entered.call.link(&self.seen.upstream().task);
        }
    }
}

/// Whether a stream was refused because there are none, by a method, a path or an operation that is not there.
fn offers_no_stream(error: &ClientError) -> bool {
    let ClientError::Refused { code, .. } = error else { return false };
    error.is_not_offered() || matches!(code, Some(Code::Number(404 | 405 | 501)))
}
