//! Maximum holds: until when a client may take a lock for held, by its own clock.
//!
//! The service counts from the grant. The client cannot know that moment, only that the request
//! waited for so long before it, and counts from when it *sent* the request, which is earlier. So
//! the client knows the end before any other client can be granted, also without a connection.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::moment::Moment;

/// Two clocks differ by less than this part of a duration. A clock that is corrected step by step
/// gains or loses half of it at most.
const DRIFT_PART: u32 = 1000;

/// Returns the grant of a request that was sent at this moment and then waited for so long, at the
/// earliest. The service may have another clock.
pub(crate) fn earliest_grant(sent: Moment, waited: Duration, is_far: bool) -> Moment {
    sent.saturating_add(shortened(waited, is_far))
}

/// Returns until when a lock is held that was granted at this moment at the earliest.
pub(crate) fn hold_deadline(granted: Moment, max: Duration, is_far: bool) -> Moment {
    granted.saturating_add(shortened(max, is_far))
}

fn shortened(duration: Duration, is_far: bool) -> Duration {
    if is_far { duration.saturating_sub(duration / DRIFT_PART) } else { duration }
}

/// The locks with a maximum hold, by the end of their time.
#[derive(Debug, Default)]
pub(crate) struct Holds(BTreeSet<(Moment, u64)>);

impl Holds {
    /// Returns when the time of the next lock is over.
    pub(crate) fn deadline(&self) -> Moment {
        self.0.first().map_or(Moment::NEVER, |&(until, _)| until)
    }

    pub(crate) fn begin(&mut self, until: Moment, number: u64) {
        self.0.insert((until, number));
    }

    /// Forgets a lock. One without a maximum hold has no deadline.
    pub(crate) fn end(&mut self, until: Moment, number: u64) {
        if until != Moment::NEVER {
            self.0.remove(&(until, number));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns a lock whose time is over.
    pub(crate) fn due(&self, now: Moment) -> Option<u64> {
        self.0.first().filter(|(until, _)| *until <= now).map(|&(_, number)| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_nanoseconds(seconds * 1_000_000_000)
    }

    #[test]
    fn deadline_counts_from_the_sent_request_and_allows_for_another_clock() {
        let (waited, max) = (Duration::from_secs(1000), Duration::from_secs(2000));
        let near = earliest_grant(at(50), waited, false);
        assert_eq!((near, hold_deadline(near, max, false)), (at(1050), at(3050)));
        let far = earliest_grant(at(50), waited, true);
        assert_eq!((far, hold_deadline(far, max, true)), (at(1049), at(3047)));
    }

    #[test]
    fn locks_are_due_in_the_order_of_their_deadlines() {
        let mut holds = Holds::default();
        assert_eq!((holds.deadline(), holds.due(at(9))), (Moment::NEVER, None));
        holds.begin(at(7), 1);
        holds.begin(at(5), 2);
        holds.end(Moment::NEVER, 1);
        assert_eq!((holds.deadline(), holds.due(at(4)), holds.due(at(5))), (at(5), None, Some(2)));
        holds.end(at(5), 2);
        assert_eq!((holds.deadline(), holds.due(at(6)), holds.due(at(8))), (at(7), None, Some(1)));
    }
}
