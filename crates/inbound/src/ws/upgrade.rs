//! A connection that becomes a socket: handed over by whoever served it until then.

use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

/// Bytes both ways, however they travel.
pub trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

type Taker = oneshot::Sender<Box<dyn Bytes>>;

/// Goes with the answer `101` as an extension: who wants the connection once that answer is written.
#[derive(Clone)]
pub struct Upgrade(Arc<Mutex<Option<Taker>>>);

impl Upgrade {
    pub fn new() -> (Self, oneshot::Receiver<Box<dyn Bytes>>) {
        let (give, take) = oneshot::channel();
        (Self(Arc::new(Mutex::new(Some(give)))), take)
    }

    pub fn hand_over(&self, connection: impl Bytes + 'static) {
        let give = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(give) = give {
            // Nobody may want it any more; it is closed then.
            let _ = give.send(Box::new(connection));
        }
    }
}
