//! Work that was ended here while its agent was at it: what the agent then says it used counts.

use super::Run;
use super::follow::growing;
use std::time::Duration;

/// How long an agent that was told to stop is heard out.
const HEARD_OUT: Duration = Duration::from_secs(10);

impl Run {
    /// Whoever ended the work tells the agent to stop, and has its answer brought here. One that has not stopped by then
    /// is asked again. All of it is late, and changes nothing but the ledger.
    pub(super) async fn hear_out(mut self) {
        // What the agent is asked next is the next run's.
        if !self.seen.is_linked() || self.seen.is_settled() || self.handle.is_replaced() {
            return;
        }
        // Whoever does not answer in time has said all it had to say.
        let _ = tokio::time::timeout(HEARD_OUT, self.hear()).await;
    }

    async fn hear(&mut self) {
        let letter = self.letters.recv().await;
        // The run is over, which is no news.
        let _ = self.open(letter).await;
        let poll = self.remote.options.poll;
        let mut asked = 0;
        while !self.seen.is_settled() {
            asked += 1;
            tokio::time::sleep(growing(poll.first, asked, poll.longest)).await;
            if let Ok(client) = self.client().await {
                let _ = self.ask(&client).await;
            }
        }
    }
}
