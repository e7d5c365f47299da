//! Watchers: holders that wait for the loss of their lock, or for a request that waits for it.

use std::collections::HashMap;
use std::task::Waker;

use navlocks_core::RequestId;

use crate::backend::Watched;
use crate::sync::wakes::Wakes;

/// The watchers of a shard, by lock. Empty most of the time, and then free of cost.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    locks: HashMap<RequestId, Vec<Watch>>,
    next: u64,
}

#[derive(Debug)]
struct Watch {
    number: u64,
    watched: Watched,
    waker: Waker,
}

impl Watchers {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }

    /// Takes the watchers of another shard, whose locks are others.
    pub(super) fn absorb(&mut self, other: Self) {
        self.locks.extend(other.locks);
        self.next = self.next.max(other.next);
    }

    /// Adds a watch, or renews the waker of watch number `watch`, which the first call writes.
    /// Returns a waker to be dropped after unlocking.
    pub(super) fn register(
        &mut self,
        id: RequestId,
        watched: Watched,
        watch: &mut Option<u64>,
        waker: Waker,
    ) -> Option<Waker> {
        let number = *watch.get_or_insert_with(|| {
            self.next += 1;
            self.next
        });
        let watches = self.locks.entry(id).or_default();
        if let Some(known) = watches.iter_mut().find(|known| known.number == number) {
            return Some(std::mem::replace(&mut known.waker, waker));
        }
        watches.push(Watch { number, watched, waker });
        None
    }

    /// Ends one watch. Returns a waker to be dropped after unlocking.
    pub(super) fn unregister(&mut self, id: RequestId, watch: u64) -> Option<Waker> {
        let watches = self.locks.get_mut(&id)?;
        let position = watches.iter().position(|known| known.number == watch)?;
        let removed = watches.swap_remove(position);
        if watches.is_empty() {
            self.locks.remove(&id);
        }
        Some(removed.waker)
    }

    /// Returns true if a holder watches this lock for contention.
    pub(super) fn watch_contention(&self, id: RequestId) -> bool {
        let mut watches = self.locks.get(&id).into_iter().flatten();
        watches.any(|watch| watch.watched == Watched::Contention)
    }

    /// Wakes all watchers of a lock that is over.
    #[inline]
    pub(super) fn end(&mut self, id: RequestId, wakes: &mut Wakes) {
        if !self.is_empty() {
            self.wake_all(id, wakes);
        }
    }

    #[cold]
    fn wake_all(&mut self, id: RequestId, wakes: &mut Wakes) {
        let watches = self.locks.remove(&id).into_iter().flatten();
        wakes.add_all(watches.map(|watch| watch.waker));
    }

    /// Wakes the holders that watch this lock for contention. A holder that still watches registers
    /// again.
    pub(super) fn contend(&mut self, id: RequestId, wakes: &mut Wakes) {
        let Some(watches) = self.locks.get_mut(&id) else { return };
        let woken = watches.extract_if(.., |watch| watch.watched == Watched::Contention);
        wakes.add_all(woken.map(|watch| watch.waker));
        if watches.is_empty() {
            self.locks.remove(&id);
        }
    }
}
