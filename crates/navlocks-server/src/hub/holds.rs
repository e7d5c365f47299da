//! Maximum holds: the locks whose time will be over, and when.
//!
//! A deadline is a moment, and no timer that a restart would start anew. The tables have it for the
//! locks of absent sessions; in a cluster a claim has the age of its lock.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_wire::{Granted, LossCause, RequestKey};
use tokio::sync::Notify;

use super::Hub;
use super::sessions::Known;
use crate::store::{RequestRecord, boot_ms};

/// The locks with a maximum hold, by the end of their time.
#[derive(Debug)]
pub(crate) struct Holds {
    until: HashMap<RequestKey, Instant>,
    due: BTreeSet<(Instant, RequestKey)>,
    /// Notified when another lock is the first one.
    changed: Rc<Notify>,
}

impl Holds {
    /// Begins with the locks of absent sessions.
    pub(super) fn of_absent<'r>(
        records: impl Iterator<Item = &'r RequestRecord>,
        changed: Rc<Notify>,
        now: Instant,
    ) -> Self {
        let mut holds = Self { until: HashMap::new(), due: BTreeSet::new(), changed };
        for record in records.filter(|record| record.until_ms != 0) {
            let left = Duration::from_millis(record.until_ms.saturating_sub(boot_ms()));
            holds.begin(record.key(), now + left);
        }
        holds
    }

    pub(super) fn len(&self) -> usize {
        self.until.len()
    }

    /// Notes until when a lock may be held.
    pub(crate) fn begin(&mut self, key: RequestKey, until: Instant) {
        self.end(key);
        self.until.insert(key, until);
        self.due.insert((until, key));
        if self.due.first() == Some(&(until, key)) {
            self.changed.notify_one();
        }
    }

    /// Notes until when a claimed lock may be held, unless the tables had that.
    pub(super) fn begin_restored(&mut self, key: RequestKey, until: Instant) {
        if !self.until.contains_key(&key) {
            self.begin(key, until);
        }
    }

    /// Returns the grant of a lock as its client receives it again, with the time that the request
    /// waited if its hold has a maximum.
    pub(super) fn granted_again(
        &self,
        key: RequestKey,
        (since, max): (Instant, Duration),
        token: u64,
    ) -> Granted {
        let granted = self.until.get(&key).and_then(|until| until.checked_sub(max));
        let waited = granted.map_or(Duration::ZERO, |at| at.saturating_duration_since(since));
        Granted::after(waited, key.request, token)
    }

    /// Forgets a lock.
    #[inline]
    pub(crate) fn end(&mut self, key: RequestKey) {
        if self.until.is_empty() {
            return;
        }
        if let Some(until) = self.until.remove(&key) {
            self.due.remove(&(until, key));
        }
    }

    /// Takes out a lock whose time is over.
    fn take_due(&mut self, now: Instant) -> Option<RequestKey> {
        let &(_, key) = self.due.first().filter(|(until, _)| *until <= now)?;
        self.end(key);
        Some(key)
    }
}

impl Hub {
    /// Takes away the locks whose time is over. Returns how long it takes until the next one's is.
    pub fn check_holds(&mut self, now: Instant) -> Option<Duration> {
        while let Some(key) = self.holds.take_due(now) {
            let session = self.sessions.get(key.session);
            match session.and_then(|session| session.requests.get(key.request)) {
                Some(Known::Live { partition, id }) => {
                    let (partitions, mut context) = self.context(now);
                    partitions[partition].expire(id, &mut context);
                }
                // An absent session holds it, and is told when it comes back.
                _ => {
                    self.lose_in_room(key, LossCause::HeldTooLong, None);
                    self.admit(now);
                }
            }
            self.settle(now);
        }
        let (next, _) = self.holds.due.first()?;
        Some(next.saturating_duration_since(now))
    }

    /// Notes that the machine has slept for so long, which its clock does not count.
    pub(crate) fn note_sleep(&mut self, slept: Duration) {
        let due = std::mem::take(&mut self.holds.due);
        for (until, key) in due {
            self.holds.begin(key, until.checked_sub(slept).unwrap_or(until));
        }
    }
}
