//! Lines: kept connections for plain calls over HTTP/1.1. A call drives its own line, so that nobody else has to be woken.

use super::{ALIVE, KEPT, Limits, innermost};
use arc_swap::ArcSwapOption;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use socket2::{SockRef, TcpKeepalive};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Lines that are kept at most; those beyond are closed after their call.
const MOST: usize = 256;

type Body = Full<Bytes>;

/// Why a call over a line came to nothing.
#[derive(Debug)]
pub enum Cut {
    /// Nothing was sent.
    Unconnected(String),
    /// The head of the answer did not come in time.
    Late,
    /// The line broke before the head of the answer.
    Unanswered(String),
    /// It broke within the answer.
    Broken(String),
    TooLarge,
}

/// An answer in one piece.
pub struct Whole {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// Where a line leads, worked out once for an address.
pub struct Target {
    pub url: String,
    /// `HOST:PORT`.
    pub place: Arc<str>,
    pub host: HeaderValue,
    pub uri: Uri,
}

struct Line {
    /// `HOST:PORT`.
    place: Arc<str>,
    sender: SendRequest<Body>,
    connection: Connection<TokioIo<TcpStream>, Body>,
    since: Instant,
}

/// The lines of one client.
#[derive(Default)]
pub struct Lines {
    kept: Mutex<VecDeque<Line>>,
    /// Somebody will close those nobody uses.
    swept: AtomicBool,
    /// The address of the last call, which is that of most.
    known: ArcSwapOption<Target>,
}

impl Lines {
    fn kept(&self) -> MutexGuard<'_, VecDeque<Line>> {
        self.kept.lock().expect("no panic while holding the lines")
    }

    pub fn target(&self, url: &str) -> Option<Arc<Target>> {
        self.known.load().as_ref().filter(|known| known.url == url).cloned()
    }

    pub fn know(&self, target: Target) -> Arc<Target> {
        let target = Arc::new(target);
        self.known.store(Some(Arc::clone(&target)));
        target
    }

    /// Makes a call over a line to this place, and reads the whole answer.
    pub async fn call(
        self: &Arc<Self>,
        place: &Arc<str>,
        mut request: Request<Body>,
        limits: &Limits,
        patience: Option<Duration>,
    ) -> Result<Whole, Cut> {
        loop {
            let (mut line, is_fresh) = match self.take(place) {
                Some(line) => (line, false),
                None => (Box::pin(Line::open(place, limits.connect)).await?, true),
            };
            let sent = line.send(request);
            let answered = match patience {
                Some(patience) => timeout(patience, sent).await.map_err(|_| Cut::Late)?,
                None => sent.await,
            };
            match answered {
                Ok(response) => {
                    let whole = line.read(response, limits).await?;
                    self.put_back(line);
                    return Ok(whole);
                }
                // Closed by the other side while it was kept: nothing of the request went out.
                Err((_, Some(unsent))) if !is_fresh => request = unsent,
                Err((problem, Some(_))) => return Err(Cut::Unconnected(problem)),
                Err((problem, None)) => return Err(Cut::Unanswered(problem)),
            }
        }
    }

    /// The line that was used last and still holds.
    fn take(&self, place: &Arc<str>) -> Option<Line> {
        loop {
            let mut kept = self.kept();
            let at = kept.iter().rposition(|line| line.place == *place)?;
            let mut line = kept.remove(at)?;
            drop(kept);
            if line.since.elapsed() < KEPT && line.rests() {
                return Some(line);
            }
        }
    }

    fn put_back(self: &Arc<Self>, mut line: Line) {
        if !line.rests() {
            return;
        }
        line.since = Instant::now();
        let mut kept = self.kept();
        if kept.len() < MOST {
            kept.push_back(line);
        }
        drop(kept);
        if !self.swept.swap(true, Ordering::Relaxed) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }
}

/// Closes lines that nobody has used for a while, until there are none.
async fn sweep(lines: Weak<Lines>) {
    loop {
        tokio::time::sleep(KEPT).await;
        let Some(lines) = lines.upgrade() else { return };
        let mut kept = lines.kept();
        kept.retain(|line| line.since.elapsed() < KEPT);
        if kept.is_empty() {
            lines.swept.store(false, Ordering::Relaxed);
            return;
        }
    }
}

impl Line {
    async fn open(place: &Arc<str>, patience: Duration) -> Result<Self, Cut> {
        let stream = match timeout(patience, TcpStream::connect(&**place)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(Cut::Unconnected(error.to_string())),
            Err(_) => return Err(Cut::Unconnected("operation timed out".into())),
        };
        let _ = stream.set_nodelay(true);
        // A peer that is gone without a word must not be waited for until the end of time.
        let _ = SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(ALIVE));
        let shaken = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = shaken.map_err(|error| Cut::Unconnected(innermost(&error)))?;
        Ok(Self { place: Arc::clone(place), sender, connection, since: Instant::now() })
    }

    /// Whether the line is there for the next call.
    fn rests(&mut self) -> bool {
        let ended = Pin::new(&mut self.connection).poll(&mut Context::from_waker(Waker::noop())).is_ready();
        !ended && self.sender.is_ready()
    }

    /// Sends a request and waits for the head of the answer. A request that did not go out is given back.
    async fn send(&mut self, request: Request<Body>) -> Result<Response<Incoming>, (String, Option<Request<Body>>)> {
        let mut sending = pin!(self.sender.try_send_request(request));
        let (connection, mut ended) = (&mut self.connection, false);
        poll_fn(|cx| {
            // What is to be sent is taken up by the connection, and what came is handed out by it.
            ended = ended || Pin::new(&mut *connection).poll(cx).is_ready();
            match sending.as_mut().poll(cx) {
                Poll::Ready(answered) => Poll::Ready(answered.map_err(|mut refused| {
                    let request = refused.take_message();
                    (innermost(refused.error()), request)
                })),
                Poll::Pending if ended => Poll::Ready(Err(("the connection was closed".to_owned(), None))),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    async fn read(&mut self, response: Response<Incoming>, limits: &Limits) -> Result<Whole, Cut> {
        let (head, mut incoming) = response.into_parts();
        let mut body = Vec::new();
        let (connection, mut ended) = (&mut self.connection, false);
        loop {
            let next = poll_fn(|cx| {
                if let Poll::Ready(frame) = Pin::new(&mut incoming).poll_frame(cx) {
                    return Poll::Ready(frame);
                }
                ended = ended || Pin::new(&mut *connection).poll(cx).is_ready();
                Pin::new(&mut incoming).poll_frame(cx)
            });
            let next = timeout(limits.answer, next).await;
            let Some(frame) = next.map_err(|_| Cut::Broken("the answer stopped half-way".into()))? else { break };
            let frame = frame.map_err(|error| Cut::Broken(innermost(&error)))?;
            let Ok(data) = frame.into_data() else { continue };
            if body.len() + data.len() > limits.bytes {
                return Err(Cut::TooLarge);
            }
            body.extend_from_slice(&data);
        }
        Ok(Whole { status: head.status, headers: head.headers, body })
    }
}

#[cfg(test)]
mod tests {
    use super::{Cut, Lines};
    use crate::net::Limits;
    use http::Request;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A server that closes each connection after so many answers, and counts its connections.
    fn server(answers: usize, answer: &'static str) -> (Arc<str>, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place: Arc<str> = listener.local_addr().unwrap().to_string().into();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                counted.fetch_add(1, Ordering::SeqCst);
                let mut reader = BufReader::new(socket.try_clone().unwrap());
                let mut writer = socket;
                for _ in 0..answers {
                    let mut line = String::new();
                    while line != "\r\n" {
                        line.clear();
                        if reader.read_line(&mut line).unwrap_or(0) == 0 {
                            break;
                        }
                    }
                    reader.read_exact(&mut [0; 2]).unwrap_or_default();
                    writer.write_all(answer.as_bytes()).unwrap_or_default();
                }
            }
        });
        (place, count)
    }

    async fn call(lines: &Arc<Lines>, place: &Arc<str>, bytes: usize) -> Result<String, Cut> {
        let request = Request::post("/").header("host", &**place).body("{}".into()).unwrap();
        let limits = Limits { bytes, ..Limits::default() };
        let whole = lines.call(place, request, &limits, None).await?;
        assert_eq!(whole.status, 200);
        Ok(String::from_utf8(whole.body).unwrap())
    }

    const CLOSES: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello";
    const LENGTH: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
    const CHUNKS: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n";

    #[tokio::test]
    async fn a_line_is_used_again_unless_it_is_closed() {
        for (answer, lines_opened) in [(LENGTH, 1), (CHUNKS, 1), (CLOSES, 3)] {
            let (place, count) = server(if lines_opened == 1 { 3 } else { 1 }, answer);
            let lines = Arc::new(Lines::default());
            for _ in 0..3 {
                assert_eq!(call(&lines, &place, 100).await.unwrap(), "hello");
            }
            assert_eq!(count.load(Ordering::SeqCst), lines_opened, "{answer}");
        }
    }

    #[tokio::test]
    async fn what_goes_wrong_is_told_by_how_far_it_came() {
        let lines = Arc::new(Lines::default());
        let nobody: Arc<str> = "127.0.0.1:1".into();
        assert!(matches!(call(&lines, &nobody, 100).await, Err(Cut::Unconnected(_))));
        let (place, _) = server(1, "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello");
        assert!(matches!(call(&lines, &place, 100).await, Err(Cut::Broken(_))));
        let (place, _) = server(1, LENGTH);
        assert!(matches!(call(&lines, &place, 4).await, Err(Cut::TooLarge)));
        let (place, _) = server(0, LENGTH);
        let gone = call(&lines, &place, 100).await;
        assert!(matches!(gone, Err(Cut::Unanswered(_) | Cut::Unconnected(_))), "as far as anything was sent");
    }
}
