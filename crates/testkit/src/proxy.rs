//! A way between two programs that can be cut and closed.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

pub struct Proxy {
    address: SocketAddr,
    open: Arc<AtomicBool>,
    pairs: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    pub fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let open = Arc::new(AtomicBool::new(true));
        let pairs: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let (is_open, kept) = (Arc::clone(&open), Arc::clone(&pairs));
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let far = TcpStream::connect(target).ok().filter(|_| is_open.load(Ordering::SeqCst));
                let Some(far) = far else { continue };
                let copy = |stream: &TcpStream| stream.try_clone().expect("a socket can be shared");
                kept.lock().expect("no panic").extend([copy(&near), copy(&far)]);
                // It may have been closed in between.
                if !is_open.load(Ordering::SeqCst) {
                    cut(&kept);
                }
                pump(copy(&near), copy(&far));
                pump(far, near);
            }
        });
        Self { address, open, pairs }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Cuts what is connected.
    pub fn cut(&self) {
        cut(&self.pairs);
    }

    /// Cuts, and lets nobody through until it is opened again.
    pub fn close(&self) {
        self.open.store(false, Ordering::SeqCst);
        self.cut();
    }

    pub fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
    }
}

fn cut(pairs: &Mutex<Vec<TcpStream>>) {
    for stream in pairs.lock().expect("no panic").drain(..) {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream) {
    std::thread::spawn(move || {
        let mut bytes = [0; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}
