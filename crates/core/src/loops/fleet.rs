//! The fleet loop: notices workers that come and go, and sleeps until the next one's lease or pause is over.

use crate::hub::Hub;
use std::sync::Arc;
use std::time::Duration;

/// The clock is looked at this often at least, for it may be set while nobody looks.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// Runs until the hub stops.
pub async fn watch(hub: Arc<Hub>) {
    loop {
        let next = hub.look_at_workers().unwrap_or(LONGEST_WAIT);
        tokio::select! {
            () = hub.fleet().stirred() => {}
            () = tokio::time::sleep(next) => {}
            () = hub.stopped() => return,
        }
    }
}
