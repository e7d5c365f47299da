//! What holders wait for: that their lock is lost, or that somebody wants it.

use std::collections::HashMap;
use std::task::Waker;

use navlocks_core::{LockManager, Name, RequestId, Scope};

use crate::wakes::Wakes;

/// What a holder can wait for. A loss ends both kinds of wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    Loss,
    Contention,
}

/// The holders that wait, and for what. Empty most of the time, and then free of cost.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    locks: HashMap<RequestId, WatchedLock>,
    /// The locks that are watched, by each of their names.
    names: HashMap<Name, Vec<RequestId>>,
    next: u64,
}

#[derive(Debug)]
struct WatchedLock {
    scope: Scope,
    watches: Vec<Watch>,
}

#[derive(Debug)]
struct Watch {
    number: u64,
    watched: Watched,
    waker: Waker,
}

impl Watches {
    pub(crate) fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }

    /// Takes over the watches of another part, whose locks and names are others.
    pub(crate) fn absorb(&mut self, other: Self) {
        let Self { locks, names, next } = other;
        self.locks.extend(locks);
        self.names.extend(names);
        self.next = self.next.max(next);
    }

    /// Wakes `waker` when what is watched for comes. `watch` is the number of this watch, given by the first call.
    /// Returns a waker to be dropped later.
    pub(crate) fn register(
        &mut self,
        id: RequestId,
        scope: &Scope,
        watched: Watched,
        watch: &mut Option<u64>,
        waker: Waker,
    ) -> Option<Waker> {
        let number = *watch.get_or_insert_with(|| {
            self.next += 1;
            self.next
        });
        let lock = self.locks.entry(id).or_insert_with(|| {
            for name in scope.names() {
                self.names.entry(name.clone()).or_default().push(id);
            }
            WatchedLock { scope: scope.clone(), watches: Vec::new() }
        });
        if let Some(known) = lock.watches.iter_mut().find(|known| known.number == number) {
            return Some(std::mem::replace(&mut known.waker, waker));
        }
        lock.watches.push(Watch { number, watched, waker });
        None
    }

    /// Ends one watch. Returns a waker to be dropped later.
    pub(crate) fn unregister(&mut self, id: RequestId, watch: u64) -> Option<Waker> {
        let lock = self.locks.get_mut(&id)?;
        let position = lock.watches.iter().position(|known| known.number == watch)?;
        let removed = lock.watches.swap_remove(position);
        if lock.watches.is_empty() {
            drop(self.remove(id));
        }
        Some(removed.waker)
    }

    /// The lock is over: everybody who watches it wakes.
    #[inline]
    pub(crate) fn over(&mut self, id: RequestId, wakes: &mut Wakes) {
        if !self.locks.is_empty() {
            wakes.add_all(self.remove(id).map(|watch| watch.waker));
        }
    }

    /// A request has begun to wait: holders of its names who watch for that wake.
    #[inline]
    pub(crate) fn began_to_wait(
        &mut self,
        id: RequestId,
        manager: &LockManager,
        wakes: &mut Wakes,
    ) {
        if self.locks.is_empty() {
            return;
        }
        let waiting = manager.info(id);
        let names = waiting.iter().flat_map(|info| info.scope.names());
        let mut locks: Vec<RequestId> =
            names.filter_map(|name| self.names.get(name)).flatten().copied().collect();
        locks.retain(|&lock| manager.is_contended(lock));
        for id in locks {
            // Whoever still watches when it wakes registers again.
            let Some(lock) = self.locks.get_mut(&id) else { continue };
            let woken = lock.watches.extract_if(.., |watch| watch.watched == Watched::Contention);
            wakes.add_all(woken.map(|watch| watch.waker));
            if lock.watches.is_empty() {
                drop(self.remove(id));
            }
        }
    }

    fn remove(&mut self, id: RequestId) -> impl Iterator<Item = Watch> + use<> {
        let lock = self.locks.remove(&id);
        for name in lock.iter().flat_map(|lock| lock.scope.names()) {
            if let Some(locks) = self.names.get_mut(name) {
                locks.retain(|&other| other != id);
                if locks.is_empty() {
                    self.names.remove(name);
                }
            }
        }
        lock.into_iter().flat_map(|lock| lock.watches)
    }
}
