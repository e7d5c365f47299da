//! TCP connections that have not shown a token yet. They have a small pool, in which the oldest
//! gives way.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;

/// The connections without a tenant, by age.
#[derive(Debug, Default)]
pub(crate) struct Unauthenticated(RefCell<Inner>);

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    by_age: BTreeMap<u64, Stranger>,
    by_address: BTreeSet<(IpAddr, u64)>,
}

#[derive(Debug)]
struct Stranger {
    address: IpAddr,
    since: Instant,
    task: Option<AbortHandle>,
}

impl Inner {
    fn remove(&mut self, number: u64) {
        let Some(stranger) = self.by_age.remove(&number) else { return };
        self.by_address.remove(&(stranger.address, number));
        if let Some(task) = stranger.task {
            task.abort();
        }
    }

    /// Removes a connection that had its time. Returns how much of it is left if it has not.
    fn replace(&mut self, number: u64, time: Duration, now: Instant) -> Result<(), Duration> {
        let since = self.by_age.get(&number).map_or(now, |stranger| stranger.since);
        let left = time.saturating_sub(now.saturating_duration_since(since));
        if !left.is_zero() {
            return Err(left);
        }
        self.remove(number);
        Ok(())
    }

    fn from(&self, address: IpAddr) -> impl Iterator<Item = u64> + '_ {
        self.by_address.range((address, 0)..=(address, u64::MAX)).map(|&(_, number)| number)
    }
}

impl Unauthenticated {
    pub(crate) fn len(&self) -> usize {
        self.0.borrow().by_age.len()
    }

    /// Makes room for one more, by closing the oldest if that had its time.
    pub(crate) fn make_room(&self, max: usize, time: Duration) -> Result<(), Duration> {
        let mut inner = self.0.borrow_mut();
        while inner.by_age.len() >= max.max(1)
            && let Some(oldest) = inner.by_age.keys().next().copied()
        {
            inner.replace(oldest, time, Instant::now())?;
        }
        Ok(())
    }

    /// Adds a connection. Returns its number; none if its address has as many as it may have.
    pub(crate) fn add(
        &self,
        address: IpAddr,
        per_address_max: usize,
        time: Duration,
    ) -> Option<u64> {
        let mut inner = self.0.borrow_mut();
        let now = Instant::now();
        // All users of a machine share its loopback address.
        if !address.is_loopback() && inner.from(address).count() >= per_address_max.max(1) {
            let oldest = inner.from(address).next()?;
            inner.replace(oldest, time, now).ok()?;
        }
        let number = inner.next;
        inner.next += 1;
        inner.by_age.insert(number, Stranger { address, since: now, task: None });
        inner.by_address.insert((address, number));
        Some(number)
    }

    /// Notes the task of a connection, to end it by.
    pub(crate) fn served_by(&self, number: u64, task: AbortHandle) {
        if let Some(stranger) = self.0.borrow_mut().by_age.get_mut(&number) {
            stranger.task = Some(task);
        }
    }

    /// Removes a connection that has a tenant now, or is closed.
    pub(crate) fn settled(&self, number: u64) {
        let mut inner = self.0.borrow_mut();
        if let Some(stranger) = inner.by_age.get_mut(&number) {
            stranger.task = None;
        }
        inner.remove(number);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));
    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn connections_of_one_address_are_capped_and_others_are_not() {
        let strangers = Unauthenticated::default();
        let add = |address, time| strangers.add(address, 2, time);
        let first = add(HERE, LONG).expect("room for one");
        add(HERE, LONG).expect("room for two");
        assert_eq!(add(HERE, LONG), None, "the oldest has not had its time");
        assert!(add(THERE, LONG).is_some());
        // All users of the machine have the loopback address.
        assert!((0..10).all(|_| add(LOOPBACK, LONG).is_some()));
        let before = strangers.len();
        assert!(add(HERE, Duration::ZERO).is_some(), "the oldest has had its time");
        assert_eq!(strangers.len(), before);
        strangers.settled(first);
        assert_eq!(strangers.len(), before, "the first one has given way already");
    }

    #[test]
    fn connection_that_has_shown_its_tenant_makes_room_for_another() {
        let strangers = Unauthenticated::default();
        let first = strangers.add(HERE, 1, LONG).expect("room");
        assert_eq!(strangers.add(HERE, 1, LONG), None);
        strangers.settled(first);
        assert!(strangers.add(HERE, 1, LONG).is_some());
        assert!(strangers.make_room(1, LONG).is_err_and(|left| left <= LONG));
    }
}
