//! Following a task at an agent elsewhere: by stream as long as one holds, then by asking.

use super::ending::end_without_artifact;
use super::{Run, offers_no_stream};
use crate::client::Client;
use crate::client::choose::Binding;
use crate::client::error::{ClientError, name_of};
use crate::client::frame::{Frame, Frames, Sent};
use crate::remote::fault::{End, Failure, bare};
use crate::remote::look::may_subscribe;
use flotilla_protocol::a2a::STREAM_RESUME;
use flotilla_protocol::a2a::error::Reason;
use flotilla_protocol::a2a::model::TaskState;
use std::time::{Duration, Instant};

/// Streams in a row that bring nothing before the task is only asked for.
const FRUITLESS: u32 = 4;
/// Frames that are reported together.
const BATCH: usize = 64;

/// What a stream ended with that was neither an event nor an end, as long as nothing new was heard since.
pub(super) struct Garbled {
    /// How, as the rest of a sentence.
    told: String,
    /// It was an error of the agent's own, and no garbage.
    is_error: bool,
    since: Instant,
}

/// What came of reading a stream again.
enum Resumed {
    Settled,
    /// It broke, perhaps after it brought something.
    Broke {
        fruitful: bool,
    },
    /// The agent gives none for this task.
    Unwilling,
}

impl Run {
    /// Until the task ends or waits for its caller.
    pub(super) async fn follow(&mut self) -> Result<(), End> {
        let (retries, poll, lost) =
            (self.remote.options.retries, self.remote.options.poll, self.remote.options.times.lost);
        self.seen.ask();
        let (mut fruitless, mut asked, mut failures) = (0, 0, 0);
        let mut reached = Instant::now();
        while !self.seen.is_settled() {
            let mut streams = false;
            let client = match self.client().await {
                Ok(client) if fruitless < FRUITLESS && may_subscribe(&client) && !self.doubts() => {
                    streams = true;
                    match self.resume(&client).await? {
                        Resumed::Settled => return Ok(()),
                        Resumed::Broke { fruitful: true } => (fruitless, reached) = (1, Instant::now()),
                        Resumed::Broke { fruitful: false } => fruitless += 1,
                        Resumed::Unwilling => fruitless = FRUITLESS,
                    }
                    Ok(client)
                }
                other => other,
            };
            let before = self.seen.is_settled();
            self.stop_doubting();
            let told = match client {
                Ok(client) => self.ask(&client).await?,
                // A card or a token that cannot be had now may be had later; the work goes on there.
                Err(error) => Some(error),
            };
            if before || self.seen.is_settled() || self.ends_with_message(told.as_ref()).await? {
                break;
            }
            let pause = match told {
                None => {
                    if let Some(failure) = self.given_up(lost) {
                        return Err(failure.into());
                    }
                    (reached, failures, asked) = (Instant::now(), 0, asked + 1);
                    if streams && fruitless < FRUITLESS {
                        retries.pause(fruitless.max(1))
                    } else {
                        growing(poll.first, asked, poll.longest)
                    }
                }
                Some(error) => {
                    failures += 1;
                    self.remote.way.doubt();
                    if reached.elapsed() >= lost {
                        return Err(End::Lost(self.lost_touch(&error, lost)));
                    }
                    retries.pause(failures)
                }
            };
            self.pause(pause).await?;
        }
        Ok(())
    }

    fn lost_touch(&self, error: &ClientError, lost: Duration) -> Failure {
        let (name, problem, seconds) = (self.name(), bare(error), lost.as_secs());
        let mut text = if error.is(Reason::TaskNotFound) {
            format!("The agent '{name}' does not know the task any more, for longer than {seconds} s.")
        } else {
            let how = if error.is_passing() { "reached" } else { "asked about it" };
            format!(
                "The agent '{name}' took the work up and cannot be {how} any more ({problem}), for longer than \
                 {seconds} s. It may have gone on."
            )
        };
        text.push_str(&self.recalled());
        Failure::new(text, error.to_string())
    }

    /// How its stream ended, for those who are told that the task did not.
    pub(super) fn recalled(&self) -> String {
        self.garbled.as_ref().map_or_else(String::new, |garbled| format!(" Before that its stream {}", garbled.told))
    }

    /// Some end a stream with an error and leave its task as it is, for good.
    fn given_up(&self, lost: Duration) -> Option<Failure> {
        let Garbled { told, .. } = self.garbled.as_ref().filter(|it| it.is_error && it.since.elapsed() >= lost)?;
        let text = format!(
            "The agent '{}' has not gone on with its task for longer than {} s, since its stream {told}",
            self.name(),
            lost.as_secs()
        );
        Some(Failure::new(text.clone(), text))
    }

    /// Asks for the task as it is now. To ask is safe, so whatever went wrong is a reason to ask again; only an answer
    /// that cannot be used ends the run.
    pub(super) async fn ask(&mut self, client: &Client) -> Result<Option<ClientError>, End> {
        let upstream = self.seen.upstream();
        let request = client.asking(&upstream.task, &upstream.context);
        match client.task(request).await {
            Ok(answer) => match self.tell(vec![Sent::Task(Box::new(answer.value))]).await {
                // The agent has answered: how its task is may stay open.
                Err(End::Failed(failure)) if self.seen.has_message() => Ok(Some(ClientError::malformed(failure.text))),
                told => told.map(|()| None),
            },
            Err(error) if error.is_unusable() && !self.seen.has_message() => {
                Err(Failure::of(self.name(), &error).into())
            }
            Err(error) => {
                if matches!(error, ClientError::AuthFailed { .. } | ClientError::CredentialsMissing { .. }) {
                    self.remote.way.drop_token().await;
                }
                Ok(Some(error))
            }
        }
    }

    async fn resume(&mut self, client: &Client) -> Result<Resumed, End> {
        let resumes = client.card().capabilities.extensions.iter().any(|extension| extension.uri == STREAM_RESUME);
        let cursor = self.cursor.clone().filter(|_| resumes);
        let mut frames = match client.subscribe(&self.seen.upstream().task, cursor.as_deref()).await {
            Ok(frames) => frames,
            Err(error) if error.is_passing() => return Ok(Resumed::Broke { fruitful: false }),
            Err(_) => return Ok(Resumed::Unwilling),
        };
        let before = self.frames;
        match self.pump(client, &mut frames, resumes).await {
            Ok(None) => Ok(Resumed::Settled),
            Ok(Some(_)) => Ok(Resumed::Broke { fruitful: self.frames > before }),
            // A stream may be refused by its first event.
            Err(End::Failed(_) | End::Unstreamed(_)) if self.frames == before => Ok(Resumed::Unwilling),
            Err(end) => Err(end),
        }
    }

    /// Reports what a stream brings, until the task is settled or the stream breaks: then why. A stream that is not
    /// `exact` may have begun with a gap, or with what is told twice: what it brings is only a reason to ask.
    pub(super) async fn pump(
        &mut self,
        client: &Client,
        frames: &mut Frames,
        exact: bool,
    ) -> Result<Option<String>, End> {
        let (idle, before) = (self.remote.options.times.idle, self.frames);
        while !self.seen.is_settled() {
            let next = tokio::select! {
                biased;
                letter = self.letters.recv() => {
                    self.open(letter).await?;
                    continue;
                }
                next = tokio::time::timeout(idle, frames.next()) => next,
            };
            // The connection holds, as far as is known: the agent may be thinking.
            if next.is_err() && !self.seen.is_linked() && !self.is_shown(client).await? {
                continue;
            }
            let first = match next {
                Err(_) => {
                    // It holds the stream open, so it may be thinking.
                    self.garbled = None;
                    self.closed = self.frames > before && self.seen.is_untimed();
                    return Ok(Some(format!("no event within {} s", idle.as_secs())));
                }
                Ok(Ok(None)) => {
                    self.closed = self.frames > before;
                    return Ok(Some("the agent closed the stream before the task was done".into()));
                }
                Ok(Err(error)) if self.breaks(&error) => {
                    return Ok(Some(self.broke(client, &error, self.frames > before)));
                }
                Ok(Err(error)) if self.frames == before && offers_no_stream(&error) => {
                    return Err(End::Unstreamed(error));
                }
                Ok(Err(error)) => return Err(Failure::of(self.name(), &error).into()),
                Ok(Ok(Some(frame))) => frame,
            };
            let (batch, problem) = ready(first, frames).await;
            self.take(client, batch, exact).await?;
            if self.seen.has_message() {
                return Ok(Some("the agent answered with a Message".into()));
            }
            match problem {
                _ if self.seen.is_settled() => {}
                None => {}
                Some(error) if self.breaks(&error) => return Ok(Some(self.broke(client, &error, true))),
                Some(error) => return Err(Failure::of(self.name(), &error).into()),
            }
        }
        Ok(None)
    }

    /// Whether an error only ends the stream: once the agent's task is known, it can be asked for.
    fn breaks(&self, error: &ClientError) -> bool {
        error.is_passing() || (self.seen.is_linked() && !error.is_unusable())
    }

    /// How a stream ended. What was no connection that broke is told if the task cannot be asked for either.
    /// `began` says that it brought something before.
    fn broke(&mut self, client: &Client, error: &ClientError, began: bool) -> String {
        let problem = bare(error);
        if error.is_passing() {
            return problem;
        }
        tracing::warn!(agent = %self.name(), task = %self.assignment.task_id, %error, "a stream cannot be read");
        // What its next stream is refused with says less.
        if self.garbled.as_ref().is_none_or(|before| !before.is_error) {
            let how = match error {
                ClientError::Refused { reason, .. } => format!("ended with an error ({})", name_of(*reason)),
                _ => format!("could not be read ({})", name_of(Reason::InvalidAgentResponse)),
            };
            // Over gRPC whoever is between may end it like this, by its own time-outs.
            let is_told = matches!(error, ClientError::Refused { .. }) && !error.is_unusable();
            let is_agents = is_told && client.choice().binding != Binding::Grpc;
            let (told, is_error) = (format!("{how}: {problem}"), began && is_agents);
            self.garbled = Some(Garbled { told, is_error, since: Instant::now() });
        }
        problem
    }

    async fn take(&mut self, client: &Client, mut frames: Vec<Frame>, exact: bool) -> Result<(), End> {
        self.frames += frames.len();
        if let Some(id) = frames.iter().rev().find_map(|frame| frame.id.clone()) {
            self.cursor = Some(id);
        }
        let end = end_without_artifact(&frames).filter(|_| exact && !self.seen.has_artifacts());
        if let Some(end) = end {
            let mut rest = frames.split_off(end);
            self.tell(frames.into_iter().map(|frame| frame.sent).collect()).await?;
            return self.take_end(client, rest.swap_remove(0).sent).await;
        }
        let settles = frames.iter().any(|frame| frame.sent.state().is_some_and(TaskState::is_settled));
        // A whole task can be told at any time: only what is new in it counts.
        let whole = frames.iter().all(|frame| matches!(frame.sent, Sent::Task(_)));
        if !exact && !whole && self.seen.is_linked() {
            // Nothing is lost if this fails: what settles the task is asked for again.
            let failed = self.ask(client).await?;
            if failed.is_none() || settles {
                return Ok(());
            }
        }
        let mut sent: Vec<Sent> = frames.into_iter().map(|frame| frame.sent).collect();
        let ends = |one: &Sent| one.state().is_some_and(TaskState::is_terminal);
        if let Some(end) = sent.iter().position(ends).filter(|_| self.assignment.trail.waited && !whole) {
            let last = sent.split_off(end);
            self.tell(sent).await?;
            if !self.seen.has_whole() {
                self.catch_up(client).await?;
            }
            sent = last;
        }
        self.tell(sent).await
    }
}

/// Whatever else the stream holds already, so that it is reported together.
async fn ready(first: Frame, frames: &mut Frames) -> (Vec<Frame>, Option<ClientError>) {
    let mut batch = vec![first];
    while batch.len() < BATCH {
        let next = tokio::select! {
            biased;
            next = frames.next() => next,
            () = std::future::ready(()) => break,
        };
        match next {
            Ok(Some(frame)) => batch.push(frame),
            Ok(None) => break,
            Err(error) => return (batch, Some(error)),
        }
    }
    (batch, None)
}

/// Pauses that grow by half each time.
pub(super) fn growing(first: Duration, number: u32, longest: Duration) -> Duration {
    first.mul_f64(1.5f64.powi(number.saturating_sub(1).min(64).cast_signed())).min(longest)
}
