//! The push loop: gives every hook that has something to deliver its turn, and sleeps until there is one.

use crate::hub::Hub;
use std::sync::Arc;

/// Runs until the hub stops. What is on its way then is delivered again at the next start.
pub async fn deliver(hub: Arc<Hub>) {
    loop {
        let due = hub.ring_hooks();
        while let Some(turn) = hub.next_hook() {
            tokio::spawn(turn.run());
        }
        let alarm = async {
            match due {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = hub.hooks_woken() => {}
            () = alarm => {}
            () = hub.stopped() => return,
        }
    }
}
