//! Following a task to where it waits or ends, over as many connections as that takes.

use super::Client;
use super::error::ClientError;
use super::frame::{Frame, Frames};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

/// How often in a row a broken stream is taken up again before that is left for later.
const TRIES: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// What a follower gets next.
pub enum Next {
    Frame(Box<Frame>),
    /// The stream broke and is taken up again; for those who tell people about it.
    Again {
        problem: String,
    },
    /// It could not be taken up again for now. `retry` does, when there is reason to hope.
    Lost {
        problem: String,
    },
    /// Nothing more has to come.
    End,
}

/// A stream that outlives its connection.
pub struct Follow<'a> {
    client: &'a Client,
    frames: Option<Frames>,
    task: String,
    /// The last event id, where the agent gives any.
    last: Option<String>,
    done: bool,
    /// Breaks in a row without anything new in between.
    failures: u32,
    /// What was seen, by hash: a stream that only ever repeats itself is not going anywhere.
    seen: HashSet<u64>,
}

impl<'a> Follow<'a> {
    /// Goes on with a stream that was just opened.
    pub fn new(client: &'a Client, frames: Frames) -> Self {
        Self::over(client, frames, String::new(), None)
    }

    /// Subscribes to a task, after an event if one is named.
    pub async fn task(client: &'a Client, id: &str, after: Option<&str>) -> Result<Self, ClientError> {
        let frames = client.subscribe(id, after).await?;
        Ok(Self::over(client, frames, id.to_owned(), after.map(str::to_owned)))
    }

    fn over(client: &'a Client, frames: Frames, task: String, last: Option<String>) -> Self {
        Self { client, frames: Some(frames), task, last, done: false, failures: 0, seen: HashSet::new() }
    }

    /// Whether it can go on behind what was seen, so that nothing is missing. Without, what was missed is in the whole task
    /// that a new stream begins with.
    pub fn has_cursor(&self) -> bool {
        self.last.is_some()
    }

    /// The task that is followed; empty as long as no frame has named it.
    pub fn task_id(&self) -> &str {
        &self.task
    }

    /// The next frame, or what became of the stream; an error if it cannot be taken up again at any time.
    pub async fn next(&mut self) -> Result<Next, ClientError> {
        if self.done {
            return Ok(Next::End);
        }
        if self.frames.is_none()
            && let Err(error) = self.reconnect().await
        {
            return lost(error);
        }
        let Some(frames) = &mut self.frames else { return Ok(Next::End) };
        let problem = match frames.next().await {
            Ok(Some(frame)) if self.is_foreign(&frame) => {
                let told = frame.sent.ids().0;
                ClientError::malformed(format!("its stream tells of the task {told}, and not of {}", self.task))
            }
            Ok(Some(frame)) => {
                if self.seen.insert(hash(&frame)) {
                    self.failures = 0;
                }
                self.take(&frame);
                return Ok(Next::Frame(Box::new(frame)));
            }
            // A cursor at the end of an ended task is answered with nothing.
            Ok(None) if self.last.is_some() && self.failures > 0 => return Ok(Next::End),
            Ok(None) => ClientError::Broken("the agent closed the stream before the task was done".into()),
            Err(error) => error,
        };
        self.failures += 1;
        self.frames = None;
        if self.task.is_empty() || !problem.is_passing() {
            return Err(problem);
        }
        match self.failures > TRIES {
            // Behind a cursor nothing is told twice, and a quiet stream may be cut as often as it likes.
            true if self.last.is_some() => Ok(Next::Lost { problem: problem.to_string() }),
            true => Err(problem),
            false => Ok(Next::Again { problem: problem.to_string() }),
        }
    }

    /// Takes a lost stream up again, or says why that is still not possible. What it brings comes with `next`.
    pub async fn retry(&mut self) -> Result<(), ClientError> {
        self.frames = Some(self.client.subscribe(&self.task, self.last.as_deref()).await?);
        // It counts as one that was taken up again, and all tries are to be had once more.
        self.failures = 1;
        Ok(())
    }

    /// Whether it tells of another task than the one that is followed.
    fn is_foreign(&self, frame: &Frame) -> bool {
        let (task, _) = frame.sent.ids();
        !self.task.is_empty() && !task.is_empty() && task != self.task
    }

    fn take(&mut self, frame: &Frame) {
        if let (task, _) = frame.sent.ids()
            && !task.is_empty()
        {
            task.clone_into(&mut self.task);
        }
        if frame.id.is_some() {
            self.last.clone_from(&frame.id);
        }
        self.done = frame.sent.is_last();
    }

    /// The first event is the whole task again, or, after a cursor, what was missed.
    async fn reconnect(&mut self) -> Result<(), ClientError> {
        loop {
            tokio::time::sleep(FIRST_PAUSE * 2u32.pow(self.failures.min(TRIES) - 1)).await;
            match self.client.subscribe(&self.task, self.last.as_deref()).await {
                Ok(frames) => {
                    self.frames = Some(frames);
                    return Ok(());
                }
                Err(error) if error.is_passing() && self.failures < TRIES => self.failures += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

fn lost(error: ClientError) -> Result<Next, ClientError> {
    if error.is_passing() { Ok(Next::Lost { problem: error.to_string() }) } else { Err(error) }
}

fn hash(frame: &Frame) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&frame.id, &frame.json).hash(&mut hasher);
    hasher.finish()
}
