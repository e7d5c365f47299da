//! The time in which a node could see the renewals of others.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, Moment};

/// A clock that stands still while its node reads nothing from etcd, and goes back a little after
/// that. Otherwise all nodes would find each other silent after an outage of etcd, and the first to
/// return would end the others.
#[derive(Debug)]
pub(crate) struct Hearing {
    clock: Arc<dyn Clock>,
    /// The longest time between two readings that counts.
    gap_max: Duration,
    /// The time for others to renew after an outage.
    rest: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The last reading.
    read: Moment,
    /// The time that does not count.
    deaf: Duration,
}

impl Hearing {
    pub(crate) fn new(clock: Arc<dyn Clock>, node_lease: Duration) -> Self {
        // A third of the lease lies between two readings.
        let (gap_max, rest) = (node_lease / 12 * 5, node_lease / 3);
        let state = Mutex::new(State { read: clock.now(), deaf: Duration::ZERO });
        Self { clock, gap_max, rest, state }
    }

    /// A reading has succeeded.
    pub(crate) fn hear(&self) {
        let now = self.clock.now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let deaf = match now.since(state.read).checked_sub(self.gap_max) {
            Some(deaf) => deaf + self.rest,
            None => Duration::ZERO,
        };
        *state = State { read: now, deaf: state.deaf + deaf };
    }
}

impl Clock for Hearing {
    fn now(&self) -> Moment {
        let now = self.clock.now();
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let heard = now.min(state.read.plus(self.gap_max));
        Moment::new(heard.since_start().saturating_sub(state.deaf))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct ByHand(Mutex<u64>);

    impl Clock for ByHand {
        fn now(&self) -> Moment {
            Moment::new(Duration::from_secs(*self.0.lock().unwrap()))
        }
    }

    #[test]
    fn time_of_an_outage_is_not_silence() {
        let clock = Arc::new(ByHand(Mutex::new(100)));
        let hearing = Hearing::new(clock.clone(), Duration::from_secs(12));
        let start = hearing.now();
        let passed = |seconds: u64| {
            *clock.0.lock().unwrap() = 100 + seconds;
            hearing.now().since(start).as_secs()
        };
        assert_eq!(passed(4), 4, "the usual time between two readings");
        hearing.hear();
        assert_eq!((passed(9), passed(10), passed(1_000)), (9, 9, 9));
        hearing.hear();
        assert_eq!(passed(1_000), 5, "the outage is over, and others have time to renew");
        assert_eq!((passed(1_004), passed(1_005), passed(1_006)), (9, 10, 10));
    }
}
