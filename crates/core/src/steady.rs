//! A task that wakes itself is polled again where it is.
//!
//! What is made of parts that hand things to each other, such as a run that drives the connection to its agent, or the
//! connection of a caller, wakes itself with each answer. A runtime puts a task that does so at the end of its queue and
//! wakes another thread for it, before the flush that the answer waits for.

use futures_util::task::AtomicWaker;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Nobody polls: whoever is woken is put into the runtime's queue.
const AWAY: u8 = 0;
/// It is being polled.
const POLLED: u8 = 1;
/// The same, and something was woken meanwhile.
const AGAIN: u8 = 2;

/// How often in a row it is polled before others have their turn.
const ROUNDS: usize = 4;

#[derive(Default)]
struct Signal {
    state: AtomicU8,
    runtime: AtomicWaker,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        match self.state.compare_exchange(POLLED, AGAIN, Ordering::AcqRel, Ordering::Acquire) {
            // Whoever polls it sees that.
            Ok(_) | Err(AGAIN) => {}
            Err(_) => self.runtime.wake(),
        }
    }
}

/// The same work, polled again at once where it wakes itself.
pub async fn steady<F: Future>(work: F) -> F::Output {
    steady_while(work, || true).await
}

/// The same where that is wanted now; otherwise as the runtime does it.
pub async fn steady_while<F: Future>(work: F, is_wanted: impl Fn() -> bool) -> F::Output {
    let mut work = pin!(work);
    let signal = Arc::new(Signal::default());
    let waker = Waker::from(Arc::clone(&signal));
    poll_fn(move |context| {
        signal.runtime.register(context.waker());
        for _ in 0..ROUNDS {
            signal.state.store(POLLED, Ordering::Release);
            let polled = work.as_mut().poll(&mut Context::from_waker(&waker));
            let woken = signal.state.swap(AWAY, Ordering::AcqRel) == AGAIN;
            if polled.is_ready() || !woken {
                return polled;
            }
            if !is_wanted() {
                break;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::{ROUNDS, steady};
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake, Waker};

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Polls work that wakes itself so many times: how often it was polled, and how often its runtime was woken.
    fn polled(wakes: usize) -> (usize, usize, bool) {
        let (count, mut polls) = (Arc::new(Count::default()), 0);
        let waker = Waker::from(Arc::clone(&count));
        let ready = {
            let work = poll_fn(|context| {
                polls += 1;
                if polls > wakes {
                    return Poll::Ready(());
                }
                context.waker().wake_by_ref();
                Poll::Pending
            });
            pin!(steady(work)).as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
        };
        (polls, count.0.load(Ordering::SeqCst), ready)
    }

    #[test]
    fn what_wakes_itself_goes_on_where_it_is_but_not_for_ever() {
        assert_eq!(polled(0), (1, 0, true));
        assert_eq!(polled(2), (3, 0, true));
        assert_eq!(polled(100), (ROUNDS, 1, false), "others have their turn");
    }

    #[tokio::test]
    async fn what_is_woken_by_others_is_heard() {
        let (tell, told) = tokio::sync::oneshot::channel();
        let (first, second) = tokio::sync::oneshot::channel();
        let waits = tokio::spawn(steady(async move {
            let _ = first.send(());
            told.await
        }));
        second.await.unwrap();
        std::thread::spawn(move || tell.send(7)).join().unwrap().unwrap();
        assert_eq!(waits.await.unwrap(), Ok(7));
    }
}
