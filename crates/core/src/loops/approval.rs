//! The approval loop: denies what nobody answered in time, and sleeps until the next one is due.

use crate::hub::Hub;
use std::sync::Arc;

/// Runs until the hub stops. What falls due while none runs is denied at the next start.
pub async fn expire(hub: Arc<Hub>) {
    loop {
        let next = hub.expire_approvals().await;
        let alarm = async {
            match next {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = hub.approval_due() => {}
            () = alarm => {}
            () = hub.stopped() => return,
        }
    }
}
