//! The pending requests of a partition in the order of their arrival, for the age of the oldest
//! one.

use std::collections::VecDeque;
use std::time::Instant;

use navlocks_core::{LockManager, RequestId, State};

/// Requests that had to wait. Those that wait no more are removed from time to time, so that a
/// request is looked at twice on average.
#[derive(Debug, Default)]
pub(super) struct Waiters(VecDeque<(Instant, RequestId)>);

/// The length from which requests that wait no more are removed.
const LENGTH_MIN: usize = 32;

impl Waiters {
    /// Adds a request that has to wait.
    pub(super) fn add(&mut self, id: RequestId, since: Instant, manager: &LockManager) {
        if self.0.len() >= LENGTH_MIN.max(2 * manager.pending_count()) {
            self.0.retain(|&(_, id)| is_pending(id, manager));
            self.0.shrink_to(LENGTH_MIN.max(2 * self.0.len()));
        }
        // Later than its request if it waited in the room; few of them are out of order.
        let place = self.0.iter().rposition(|&(earlier, _)| earlier <= since);
        self.0.insert(place.map_or(0, |place| place + 1), (since, id));
    }

    /// Returns since when the oldest request waits.
    pub(super) fn oldest(&mut self, manager: &LockManager) -> Option<Instant> {
        while let Some(&(since, id)) = self.0.front() {
            if is_pending(id, manager) {
                return Some(since);
            }
            self.0.pop_front();
        }
        None
    }
}

fn is_pending(id: RequestId, manager: &LockManager) -> bool {
    manager.state(id) == Some(State::Pending)
}
