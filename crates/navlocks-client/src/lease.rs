//! Leases: how long a client may take its locks for held without an answer of the service.

use std::collections::VecDeque;
use std::time::Duration;

use crate::moment::Moment;

/// The client's side of a lease.
///
/// The service counts from when it last received a message; the client from when it *sent* the
/// last answered one, which is earlier. The client stops an eighth before the end, for clocks that
/// differ. So it knows before any other client can be granted.
#[derive(Debug)]
pub(crate) struct Lease {
    length: Duration,
    until: Moment,
    /// When the last message was sent whose answer renews the lease.
    asked: Moment,
    /// The unanswered pings.
    pings: VecDeque<(u64, Moment)>,
    next_ping: u64,
}

impl Lease {
    /// Makes a lease of this length, renewed by an answered message that was sent at `sent`.
    pub(crate) fn new(length: Duration, sent: Moment) -> Self {
        let pings = VecDeque::new();
        let mut lease = Self { length, until: sent, asked: sent, pings, next_ping: 1 };
        lease.renew(sent);
        lease
    }

    /// Returns the length that the service gave.
    pub(crate) fn length(&self) -> Duration {
        self.length
    }

    /// Returns until when the client may take its locks for held.
    pub(crate) fn until(&self) -> Moment {
        self.until
    }

    /// Returns when the service may end the lease, at the earliest.
    pub(crate) fn over(&self) -> Moment {
        self.until.saturating_add(self.length / 8)
    }

    /// Returns when the connection counts as dead: a ping was not answered for a quarter of the
    /// lease, and nothing received for half of it. The rest is for resuming over another
    /// connection.
    pub(crate) fn silent_from(&self) -> Moment {
        let Some(&(_, sent)) = self.pings.front() else { return Moment::NEVER };
        let answered = self.until.saturating_sub(self.length - self.length / 8);
        sent.saturating_add(self.length / 4).max(answered.saturating_add(self.length / 2))
    }

    /// Returns when the next ping is due: when a quarter of the belief is used, counted from the
    /// last sent message. So more than 5/8 of the lease are left when a connection breaks, if a
    /// ping is answered within 1/32 of it.
    pub(crate) fn ping_at(&self) -> Moment {
        // A timer needs at least a millisecond.
        let quarter = (self.length - self.length / 8) / 4;
        self.asked.saturating_add(quarter.max(Duration::from_millis(1)))
    }

    /// Returns the number of a ping that is about to be sent.
    pub(crate) fn ping(&mut self, now: Moment) -> u64 {
        let number = self.next_ping;
        self.next_ping += 1;
        self.asked = now;
        self.pings.push_back((number, now));
        number
    }

    /// Notes the answer to the ping with this number, and thereby to all before it.
    pub(crate) fn pong(&mut self, number: u64) {
        while let Some(&(ping, sent)) = self.pings.front() {
            if ping > number {
                break;
            }
            self.pings.pop_front();
            self.renew(sent);
        }
    }

    fn renew(&mut self, sent: Moment) {
        self.until = self.until.max(sent.saturating_add(self.length - self.length / 8));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u64) -> Moment {
        Moment::from_nanoseconds(seconds * 1_000_000_000)
    }

    #[test]
    fn lease_is_counted_from_the_sent_message_not_from_the_answer() {
        let mut lease = Lease::new(8 * SECOND, at(100));
        assert_eq!((lease.until(), lease.over()), (at(107), at(108)));
        let first = lease.ping(at(102));
        let second = lease.ping(at(104));
        assert_eq!(lease.until(), at(107));
        lease.pong(first);
        assert_eq!(lease.until(), at(109));
        lease.pong(second);
        assert_eq!(lease.until(), at(111));
    }

    #[test]
    fn ping_is_due_when_a_quarter_of_the_belief_is_used_and_leaves_five_eighths_of_the_lease() {
        let length = 32 * SECOND;
        let mut lease = Lease::new(length, at(100));
        let round_trip = length / 32;
        for _ in 0..10 {
            let sent = lease.ping_at();
            // The connection breaks before the answer comes.
            let left = lease.until().saturating_since(sent.saturating_add(round_trip));
            assert_eq!(left, length / 8 * 5);
            let ping = lease.ping(sent);
            assert_eq!(lease.ping_at(), sent.saturating_add(7 * SECOND));
            lease.pong(ping);
        }
        // The welcome came late: its hello counts.
        assert_eq!(Lease::new(length, at(100)).ping_at(), at(107));
    }

    #[test]
    fn connection_is_silent_when_no_ping_is_answered_for_half_of_the_lease() {
        let mut lease = Lease::new(8 * SECOND, at(100));
        assert_eq!(lease.silent_from(), Moment::NEVER);
        let first = lease.ping(at(102));
        lease.ping(at(104));
        assert_eq!(lease.silent_from(), at(104));
        lease.pong(first);
        assert_eq!(lease.silent_from(), at(106));
        // A process that was stopped sends a ping first.
        let mut stopped = Lease::new(8 * SECOND, at(100));
        stopped.ping(at(105));
        assert_eq!(stopped.silent_from(), at(107));
    }

    #[test]
    fn answer_renews_for_earlier_messages_and_never_twice() {
        let mut lease = Lease::new(8 * SECOND, at(100));
        let first = lease.ping(at(101));
        let second = lease.ping(at(103));
        lease.pong(second);
        assert_eq!(lease.until(), at(110));
        lease.pong(first);
        lease.pong(second + 1);
        assert_eq!(lease.until(), at(110));
    }
}
