//! The vigil loop: looks at every agent elsewhere now and again, and sleeps until the next one's turn.

use crate::hub::Hub;
use std::sync::Arc;

/// Runs until the hub stops.
pub async fn look_after(hub: Arc<Hub>) {
    loop {
        let next = hub.look_around();
        let alarm = async {
            match next {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = hub.agents_changed() => {}
            () = alarm => {}
            () = hub.stopped() => return,
        }
    }
}
