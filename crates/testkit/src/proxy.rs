//! A proxy between a peer and the hub that cuts, delays, and lets one connection overtake another.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// What passes, until a test says otherwise.
#[derive(Default)]
struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut closed = self.closed.lock().expect("no panic at the gate");
        while *closed {
            closed = self.opened.wait(closed).expect("no panic at the gate");
        }
    }

    fn set(&self, is_closed: bool) {
        *self.closed.lock().expect("no panic at the gate") = is_closed;
        self.opened.notify_all();
    }
}

struct Pair {
    ends: [TcpStream; 2],
    gate: Arc<Gate>,
}

impl Pair {
    fn cut(&self) {
        for end in &self.ends {
            let _ = end.shutdown(Shutdown::Both);
        }
        self.gate.set(false);
    }
}

/// Forwards bytes both ways; each connection can be held up, let go on, or cut, by its number.
pub struct Proxy {
    address: SocketAddr,
    pairs: Arc<Mutex<Vec<Pair>>>,
    count: Arc<AtomicUsize>,
    /// Nobody is let through.
    shut: Arc<AtomicBool>,
}

impl Proxy {
    pub fn to(hub: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let proxy = Self { address, pairs: Arc::default(), count: Arc::default(), shut: Arc::default() };
        let (pairs, count, shut) = (Arc::clone(&proxy.pairs), Arc::clone(&proxy.count), Arc::clone(&proxy.shut));
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let far = TcpStream::connect(hub).ok().filter(|_| !shut.load(Ordering::SeqCst));
                let Some(far) = far else { continue };
                let pair = join(near, far);
                // It may have been closed in between.
                let mut pairs = pairs.lock().expect("no panic in the proxy");
                if shut.load(Ordering::SeqCst) {
                    pair.cut();
                }
                pairs.push(pair);
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        proxy
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many connections there were.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Nothing passes on this connection until it is let go on.
    pub fn hold(&self, number: usize) {
        self.pairs.lock().expect("no panic in the proxy")[number].gate.set(true);
    }

    pub fn let_go(&self, number: usize) {
        self.pairs.lock().expect("no panic in the proxy")[number].gate.set(false);
    }

    /// Both ends are told nothing but that it is over; what was held up is lost.
    pub fn cut(&self, number: usize) {
        self.pairs.lock().expect("no panic in the proxy")[number].cut();
    }

    pub fn cut_all(&self) {
        self.pairs.lock().expect("no panic in the proxy").iter().for_each(Pair::cut);
    }

    /// Cuts, and lets nobody through until it is opened again.
    pub fn close(&self) {
        self.shut.store(true, Ordering::SeqCst);
        self.cut_all();
    }

    pub fn open(&self) {
        self.shut.store(false, Ordering::SeqCst);
    }

    /// Only the peer's end is cut: the hub does not know yet.
    pub fn cut_near(&self, number: usize) {
        let pairs = self.pairs.lock().expect("no panic in the proxy");
        pairs[number].gate.set(true);
        let _ = pairs[number].ends[0].shutdown(Shutdown::Both);
    }
}

fn join(near: TcpStream, far: TcpStream) -> Pair {
    let gate = Arc::new(Gate::default());
    let clone = |stream: &TcpStream| stream.try_clone().expect("a socket can be shared");
    for stream in [&near, &far] {
        stream.set_nodelay(true).expect("small frames go at once");
    }
    for (from, to) in [(clone(&near), clone(&far)), (clone(&far), clone(&near))] {
        let gate = Arc::clone(&gate);
        std::thread::spawn(move || forward(from, to, &gate));
    }
    Pair { ends: [near, far], gate }
}

fn forward(mut from: TcpStream, mut to: TcpStream, gate: &Gate) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 {
            break;
        }
        gate.pass();
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    gate.pass();
    let _ = to.shutdown(Shutdown::Both);
}
