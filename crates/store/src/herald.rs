//! The herald: tells who waits for a commit what became of it, in the order of the commits.

use flotilla_core::ports::{Done, NotCommitted};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

pub type Outcome = Result<(), NotCommitted>;
pub type Batch = Vec<(Done, Outcome)>;

/// On the runtime, with one wake for a whole batch, so that the writer can go on to the next; or where it was flushed.
#[derive(Clone)]
pub enum Herald {
    Runtime(Office),
    /// There is no runtime: a tool at work on the store.
    Here,
}

/// Where batches wait to be told.
#[derive(Clone)]
pub struct Office {
    inbox: UnboundedSender<Batch>,
    /// How many have not been told yet.
    untold: Arc<AtomicUsize>,
}

impl Herald {
    pub fn new() -> Self {
        let Ok(runtime) = Handle::try_current() else { return Self::Here };
        let (sender, mut inbox) = unbounded_channel::<Batch>();
        let untold = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&untold);
        runtime.spawn(async move {
            while let Some(batch) = inbox.recv().await {
                tell(batch);
                left.fetch_sub(1, Ordering::Release);
            }
        });
        Self::Runtime(Office { inbox: sender, untold })
    }

    pub fn announce(&self, batch: Batch) {
        match self {
            _ if batch.is_empty() => {}
            Self::Here => tell(batch),
            Self::Runtime(office) => {
                office.untold.fetch_add(1, Ordering::Relaxed);
                // A runtime that is gone has nobody left to tell.
                drop(office.inbox.send(batch));
            }
        }
    }

    /// The same where it is called, unless something before it is still to be told. For whoever is the only one to announce
    /// anything meanwhile.
    pub fn tell(&self, batch: Batch) {
        match self {
            Self::Runtime(office) if office.untold.load(Ordering::Acquire) > 0 => self.announce(batch),
            _ => tell(batch),
        }
    }
}

fn tell(batch: Batch) {
    for (done, outcome) in batch {
        done(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::{Herald, Outcome};
    use flotilla_core::ports::Done;
    use std::sync::mpsc::{Sender, channel};

    fn tells(order: &Sender<u8>, number: u8) -> (Done, Outcome) {
        let order = order.clone();
        (Box::new(move |_| order.send(number).unwrap()), Ok(()))
    }

    #[tokio::test]
    async fn what_was_announced_before_is_told_before() {
        let (herald, (order, told)) = (Herald::new(), channel());
        // On this one thread the runtime cannot have told it yet.
        herald.announce(vec![tells(&order, 1)]);
        herald.tell(vec![tells(&order, 2)]);
        assert!(told.try_recv().is_err(), "it waits for the first");
        let mut seen = Vec::new();
        while seen.len() < 2 {
            tokio::task::yield_now().await;
            seen.extend(told.try_iter());
        }
        assert_eq!(seen, [1, 2]);
        herald.tell(vec![tells(&order, 3)]);
        assert_eq!(told.try_recv(), Ok(3), "at once, where nothing is before it");
    }
}
