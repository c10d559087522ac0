//! Stopping: streams are told to come back, and those who wait are answered with what there is.

use super::Hub;
use std::sync::atomic::Ordering;

impl Hub {
    /// Tells every stream to end and come back later.
    pub fn stop_streams(&self) {
        self.stopping.send_replace(true);
    }

    /// Answers every waiting send with its task as it is.
    pub fn release_waiting(&self) {
        self.hurrying.store(true, Ordering::Release);
        self.lives.wake_all();
    }

    /// Waits until the hub stops.
    pub async fn stopped(&self) {
        // The sender lives as long as the hub itself.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }

    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }
}
