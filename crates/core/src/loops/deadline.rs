//! The deadline loop: ends tasks when their time is over, and sleeps until the next one's is.

use crate::hub::Hub;
use std::sync::Arc;

/// Runs until the hub stops. What passes while none runs is ended at the next start.
pub async fn end_overdue(hub: Arc<Hub>) {
    loop {
        let next = hub.end_overdue().await;
        let alarm = async {
            match next {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = hub.deadline_set() => {}
            () = alarm => {}
            () = hub.stopped() => return,
        }
    }
}
