//! When a service that nobody uses ends.

use super::shared::Shared;

/// Ready when there was nobody for as long as the configuration says; never when it says nothing.
pub(crate) async fn idle(shared: &Shared) {
    let Some(patience) = shared.config.idle_exit else { return std::future::pending().await };
    loop {
        let emptied = shared.emptied.notified();
        if !shared.is_idle() {
            emptied.await;
            continue;
        }
        let arrivals = shared.arrivals();
        tokio::time::sleep(patience).await;
        if shared.is_idle() && shared.arrivals() == arrivals {
            return;
        }
    }
}
