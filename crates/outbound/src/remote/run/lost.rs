//! A message that may have reached an agent, or not: the agent is asked, and nothing is sent again on a guess.

use super::Run;
use super::follow::growing;
use crate::client::Client;
use crate::client::frame::Sent;
use crate::remote::fault::{End, bare};
use crate::remote::search::{Found, search};
use std::time::Instant;

impl Run {
    /// Asks the agent whether it has the message. One that works at it may show so only later.
    pub(super) async fn look_for(&mut self, why: &str) -> Result<(), End> {
        self.entered.call.begin();
        self.seen.ask();
        let (retries, poll, lost) =
            (self.remote.options.retries, self.remote.options.poll, self.remote.options.times.lost);
        let (start, mut asked, mut tries) = (Instant::now(), 0, 0);
        // What others were told of the task meanwhile says as much.
        while !self.seen.is_linked() && !self.seen.is_settled() {
            let found = match self.client().await {
                Ok(client) => search(&client, &self.assignment, self.seen.upstream()).await,
                Err(error) => Err(error),
            };
            let in_time = start.elapsed() < lost;
            let pause = match found {
                Ok(Found::Task(task)) => return self.tell(vec![Sent::Task(task)]).await,
                Ok(Found::NotYet) if in_time => {
                    asked += 1;
                    growing(poll.first, asked, poll.longest)
                }
                Ok(Found::NotYet) => {
                    let seconds = lost.as_secs();
                    let reason =
                        format!("the agent's task shows neither the message nor a change since, for {seconds} s");
                    return Err(End::Unknown(format!("{why}, and {reason}")));
                }
                Ok(Found::Unknown(reason)) => return Err(End::Unknown(format!("{why}, and {reason}"))),
                // One that cannot be reached may come back; one that answers and cannot say is asked a few times.
                Err(error) if in_time && (error.is_passing() || tries < retries.most && !error.is_unusable()) => {
                    tries += 1;
                    retries.pause(tries)
                }
                Err(error) => {
                    return Err(End::Unknown(format!("{why}, and the agent cannot be asked ({})", bare(&error))));
                }
            };
            self.pause(pause).await?;
        }
        Ok(())
    }

    /// Looks once whether the agent shows the message of a stream that has brought nothing yet, and tells it then.
    pub(super) async fn is_shown(&mut self, client: &Client) -> Result<bool, End> {
        let Ok(Found::Task(task)) = search(client, &self.assignment, self.seen.upstream()).await else {
            return Ok(false);
        };
        self.seen.ask();
        self.tell(vec![Sent::Task(task)]).await?;
        Ok(true)
    }
}
