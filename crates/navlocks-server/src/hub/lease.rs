//! Leases: for how long a session lives on without a sign of life.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::hub::Hub;
use super::shared::Shared;

impl Hub {
    /// The lease of a session, if it has one.
    pub(crate) fn lease(&self, number: u32) -> Option<Duration> {
        self.sessions.get(number).and_then(|session| session.lease)
    }

    /// Ends the session if its lease has lapsed; if not, says how much is left of it.
    pub(crate) fn check_lease(&mut self, number: u32, now: Instant) -> Option<Duration> {
        let session = self.sessions.get(number)?;
        let left = session.lease?.saturating_sub(now.saturating_duration_since(session.heard));
        if left.is_zero() {
            self.lapse(number, now);
            return None;
        }
        Some(left)
    }

    /// Whether a session is still without a connection since this one broke.
    fn is_detached_since(&self, number: u32, connection: u64) -> bool {
        self.sessions
            .get(number)
            .is_some_and(|session| session.connection == connection && session.outbox.is_none())
    }
}

/// Waits for the end of the lease of a session whose connection broke, and ends it then unless it goes on elsewhere.
pub(crate) async fn expire(shared: Rc<Shared>, number: u32, connection: u64) {
    loop {
        let left = {
            let mut hub = shared.hub.borrow_mut();
            if !hub.is_detached_since(number, connection) {
                return;
            }
            hub.check_lease(number, Instant::now())
        };
        let Some(left) = left else {
            shared.emptied.notify_waiters();
            return;
        };
        tokio::time::sleep(left).await;
    }
}
