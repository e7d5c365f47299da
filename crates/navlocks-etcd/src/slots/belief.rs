//! Until when a node may believe that it owns its slots.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::{self, Moment};

/// The end of a node's belief. It moves with every successful renewal.
#[derive(Debug)]
pub(crate) struct Belief {
    node_lease: Duration,
    until: Mutex<Moment>,
}

impl Belief {
    pub(crate) fn new(node_lease: Duration) -> Self {
        Self { node_lease, until: Mutex::new(Moment::MIN) }
    }

    /// A renewal that was sent at this moment has succeeded.
    pub(crate) fn renewed(&self, sent: Moment) {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        *until = (*until).max(sent.plus(clock::belief(self.node_lease)));
    }

    pub(crate) fn until(&self) -> Moment {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node's incarnation is over.
    pub(crate) fn end(&self) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = Moment::MIN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn belief_counts_from_when_the_renewal_was_sent() {
        let at = |seconds| Moment::new(Duration::from_secs(seconds));
        let belief = Belief::new(Duration::from_secs(8));
        assert_eq!(belief.until(), Moment::MIN);
        belief.renewed(at(100));
        assert_eq!(belief.until(), at(107));
        // An answer that was overtaken by a later one changes nothing.
        belief.renewed(at(99));
        assert_eq!(belief.until(), at(107));
        belief.end();
        assert_eq!(belief.until(), Moment::MIN);
    }
}
