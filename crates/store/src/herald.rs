//! The herald: tells who waits for a commit what became of it, in the order of the commits.

use flotilla_core::ports::{Done, NotCommitted};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

pub type Outcome = Result<(), NotCommitted>;
pub type Batch = Vec<(Done, Outcome)>;

/// On the runtime, with one wake for a whole batch, so that the writer can go on to the next.
#[derive(Clone)]
pub enum Herald {
    Runtime(UnboundedSender<Batch>),
    /// There is no runtime: a tool at work on the store.
    Here,
}

impl Herald {
    pub fn new() -> Self {
        let Ok(runtime) = Handle::try_current() else { return Self::Here };
        let (sender, mut inbox) = unbounded_channel::<Batch>();
        runtime.spawn(async move {
            while let Some(batch) = inbox.recv().await {
                tell(batch);
            }
        });
        Self::Runtime(sender)
    }

    pub fn announce(&self, batch: Batch) {
        match self {
            _ if batch.is_empty() => {}
            Self::Here => tell(batch),
            // A runtime that is gone has nobody left to tell.
            Self::Runtime(sender) => drop(sender.send(batch)),
        }
    }
}

fn tell(batch: Batch) {
    for (done, outcome) in batch {
        done(outcome);
    }
}
