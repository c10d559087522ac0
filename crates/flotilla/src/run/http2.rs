//! A connection in HTTP/2: any number of requests at once. One of them is worked on where the connection itself is, so
//! that a client with one request at a time, as most are, needs no other task to be woken for it; the others have tasks
//! of their own.
//!
//! The two tell each other what there is to do, and are polled only when there is something: an answer that is ready
//! is written in the same turn, and the connection is not looked at again for having been told of it.

use super::activity::Watched;
use super::connection::{FAREWELL, Served, drive};
use axum::body::Body;
use futures_util::task::AtomicWaker;
use hyper::Request;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use tokio::sync::watch;

pub async fn serve(io: Watched, served: Served, stop: watch::Receiver<bool>) -> hyper::Result<()> {
    let most = u32::try_from(served.head_bytes()).unwrap_or(u32::MAX);
    let patience = served.keep_alive();
    let requests = served.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let begun = requests.begin();
        Box::pin(async move { Ok::<_, Infallible>(begun.answer(request.map(Body::new)).await) })
    });
    let near = Near::default();
    let connection = http2::Builder::new(near.clone())
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(patience))
        .max_header_list_size(most)
        .serve_connection(TokioIo::new(io), service);
    // In a box of its own, so that a connection takes the room of the version it speaks, and only once.
    let mut requests = Box::pin(Requests::new(connection, near));
    let part = |requests: Pin<&mut Requests<_>>| http2::Connection::graceful_shutdown(requests.connection());
    drive(requests.as_mut(), part, &served, Some(FAREWELL), stop).await.map(drop)
}

/// How often in a row a connection and its request are polled before others have their turn.
const ROUNDS: usize = 4;

/// There is something to do for the connection,
const CONNECTION: u8 = 1;
/// or for the request that is near it.
const REQUEST: u8 = 2;
/// They are being polled: whoever does that sees what comes.
const POLLED: u8 = 4;

/// What there is to do.
#[derive(Default)]
struct Due {
    state: AtomicU8,
    runtime: AtomicWaker,
}

impl Due {
    fn add(&self, part: u8) {
        let before = self.state.fetch_or(part, Ordering::AcqRel);
        // What was due before is known to the runtime already.
        if before & (POLLED | part) == 0 {
            self.runtime.wake();
        }
    }

    fn take(&self, part: u8) -> bool {
        self.state.fetch_and(!part, Ordering::AcqRel) & part != 0
    }

    fn is_any(&self) -> bool {
        self.state.load(Ordering::Acquire) & (CONNECTION | REQUEST) != 0
    }
}

/// Wakes one of the two.
struct Bell {
    due: Arc<Due>,
    part: u8,
}

impl Bell {
    fn waker(due: &Arc<Due>, part: u8) -> Waker {
        Waker::from(Arc::new(Self { due: Arc::clone(due), part }))
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.due.add(self.part);
    }
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The request that is worked on in its connection's task.
#[derive(Clone, Default)]
struct Near {
    work: Arc<Mutex<Option<Work>>>,
    due: Arc<Due>,
}

impl Near {
    fn place(&self) -> MutexGuard<'_, Option<Work>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its place is free meanwhile: what it does may bring more work.
    fn poll(&self, context: &mut Context<'_>) {
        let Some(mut work) = self.place().take() else { return };
        if work.as_mut().poll(context).is_pending() {
            self.put(work);
        }
    }

    /// Whether there was no other, so that it is near.
    fn put(&self, work: Work) -> bool {
        let mut place = self.place();
        let is_free = place.is_none();
        if is_free {
            *place = Some(work);
        } else {
            drop(place);
            tokio::spawn(work);
        }
        is_free
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Near {
    fn execute(&self, work: F) {
        if self.put(Box::pin(work)) {
            self.due.add(REQUEST);
        }
    }
}

struct Requests<C> {
    connection: C,
    near: Near,
    /// Wakes the connection,
    for_connection: Waker,
    /// and the request.
    for_request: Waker,
}

impl<C> Drop for Requests<C> {
    fn drop(&mut self) {
        // The work knows the place it is in, and would keep it for ever.
        let work = self.near.place().take();
        drop(work);
    }
}

impl<C: Unpin> Requests<C> {
    fn new(connection: C, near: Near) -> Self {
        near.due.add(CONNECTION);
        let [for_connection, for_request] = [CONNECTION, REQUEST].map(|part| Bell::waker(&near.due, part));
        Self { connection, near, for_connection, for_request }
    }

    /// To be told something, which it does when it is polled.
    fn connection(self: Pin<&mut Self>) -> Pin<&mut C> {
        self.near.due.add(CONNECTION);
        Pin::new(&mut self.get_mut().connection)
    }
}

impl<C: Future + Unpin> Requests<C> {
    /// One turn of each that has something to do.
    fn turn(&mut self) -> Poll<C::Output> {
        if self.near.due.take(CONNECTION) {
            let mut context = Context::from_waker(&self.for_connection);
            if let Poll::Ready(ended) = Pin::new(&mut self.connection).poll(&mut context) {
                return Poll::Ready(ended);
            }
        }
        if self.near.due.take(REQUEST) {
            self.near.poll(&mut Context::from_waker(&self.for_request));
        }
        Poll::Pending
    }
}

impl<C: Future + Unpin> Future for Requests<C> {
    type Output = C::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<C::Output> {
        let this = self.get_mut();
        let due = Arc::clone(&this.near.due);
        due.runtime.register(context.waker());
        due.state.fetch_or(POLLED, Ordering::AcqRel);
        for _ in 0..ROUNDS {
            if let Poll::Ready(ended) = this.turn() {
                return Poll::Ready(ended);
            }
            if !due.is_any() {
                break;
            }
        }
        due.state.fetch_and(!POLLED, Ordering::AcqRel);
        if due.is_any() {
            // More than one turn's work, or it came in the last moment.
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::{Near, ROUNDS, Requests};
    use hyper::rt::Executor;
    use std::future::poll_fn;
    use std::pin::Pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Poll, Wake, Waker};

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Count {
        fn now(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    /// A connection that does `each` when it is polled, and what is seen of it: its polls, its waker and the runtime's wakes.
    struct Seen {
        polls: AtomicUsize,
        waker: Mutex<Waker>,
        runtime: Arc<Count>,
    }

    impl Seen {
        fn new() -> Arc<Self> {
            let waker = Mutex::new(Waker::noop().clone());
            Arc::new(Self { polls: AtomicUsize::new(0), waker, runtime: Arc::default() })
        }

        fn polls(&self) -> usize {
            self.polls.load(Ordering::SeqCst)
        }

        fn wake(&self) {
            self.waker.lock().unwrap().wake_by_ref();
        }

        fn poll<C: Future<Output = ()> + Unpin>(&self, requests: &mut Requests<C>) -> Poll<()> {
            let waker = Waker::from(Arc::clone(&self.runtime));
            Pin::new(requests).poll(&mut Context::from_waker(&waker))
        }
    }

    fn connection(seen: &Arc<Seen>, each: impl Fn(usize) + Unpin) -> impl Future<Output = ()> + Unpin {
        let seen = Arc::clone(seen);
        poll_fn(move |context| {
            *seen.waker.lock().unwrap() = context.waker().clone();
            each(seen.polls.fetch_add(1, Ordering::SeqCst));
            Poll::Pending
        })
    }

    #[test]
    fn an_answer_is_written_in_the_turn_it_is_ready_in_and_nobody_is_woken_for_it() {
        let (seen, near) = (Seen::new(), Near::default());
        let (tell, asked) = (Arc::clone(&seen), near.clone());
        let answers = connection(&seen, move |poll| {
            if poll == 0 {
                let tell = Arc::clone(&tell);
                asked.execute(async move { tell.wake() });
            }
        });
        let mut requests = Requests::new(answers, near);
        assert!(seen.poll(&mut requests).is_pending());
        assert_eq!((seen.polls(), seen.runtime.now()), (2, 0), "once for the request, once for its answer");
        assert!(seen.poll(&mut requests).is_pending());
        assert_eq!(seen.polls(), 2, "whoever else is woken, it has nothing to do");
        seen.wake();
        seen.wake();
        assert_eq!(seen.runtime.now(), 1, "what is due is told once");
        assert!(seen.poll(&mut requests).is_pending());
        assert_eq!(seen.polls(), 3);
    }

    #[test]
    fn what_is_always_busy_lets_others_have_their_turn() {
        let seen = Seen::new();
        let own = Arc::clone(&seen);
        let mut requests = Requests::new(connection(&seen, move |_| own.wake()), Near::default());
        assert!(seen.poll(&mut requests).is_pending());
        assert_eq!((seen.polls(), seen.runtime.now()), (ROUNDS, 1));
    }

    #[tokio::test]
    async fn a_second_request_is_worked_on_elsewhere() {
        let (seen, near) = (Seen::new(), Near::default());
        let (done, ended) = tokio::sync::oneshot::channel();
        near.execute(std::future::pending());
        near.execute(async move { done.send(()).unwrap() });
        let mut requests = Requests::new(connection(&seen, |_| {}), near);
        assert!(seen.poll(&mut requests).is_pending());
        ended.await.unwrap();
    }

    #[test]
    fn a_connection_that_is_told_to_go_is_polled() {
        let seen = Seen::new();
        let mut requests = Requests::new(connection(&seen, |_| {}), Near::default());
        assert!(seen.poll(&mut requests).is_pending());
        let _told = Pin::new(&mut requests).connection();
        assert_eq!(seen.runtime.now(), 1);
        assert!(seen.poll(&mut requests).is_pending());
        assert_eq!(seen.polls(), 2);
    }
}
