//! The invariants of the engine, checked in debug builds and by fuzzing.

use super::LockManager;
use crate::client::SuspendPolicy;
use crate::id::Index;

impl LockManager {
    /// Checks everything that must be true between two inputs, in O(n log n).
    ///
    /// Debug builds call it after every input while the manager is small, and now and then when it
    /// is large.
    ///
    /// # Panics
    ///
    /// When an invariant is broken. That is a bug of this crate.
    pub fn check_invariants(&self) {
        let entries = self.clients.check(&self.seating);
        let sleeps =
            |client: Index| self.clients[client].sleeps_under(SuspendPolicy::EvictOnContention);
        self.seating.check(&entries, sleeps);
        let waited_for = |&(client, _): &(Index, _)| sleeps(client) && self.is_waited_for(client);
        assert!(
            !self.clients.iter().any(|one| waited_for(&one)),
            "a suspended client blocks others"
        );
    }

    /// Checks the invariants after every input while there are few entries. A large manager is
    /// checked once in as many inputs as it has entries, so that debug builds stay linear.
    #[inline]
    pub(super) fn check_in_turn(&mut self) {
        #[cfg(debug_assertions)]
        {
            self.inputs_since_check += 1;
            let live = self.seating.live();
            if live <= 64 || self.inputs_since_check > live {
                self.inputs_since_check = 0;
                self.check_invariants();
            }
        }
    }
}
