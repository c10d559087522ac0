//! The lease loop: agents that are announced and not heard of any more are gone when their time is over.

use crate::hub::Hub;
use std::sync::Arc;

/// Runs until the hub stops.
pub async fn end_overdue(hub: Arc<Hub>) {
    loop {
        let next = hub.end_leases().await;
        let alarm = async {
            match next {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = hub.leases_changed() => {}
            () = alarm => {}
            () = hub.stopped() => return,
        }
    }
}
