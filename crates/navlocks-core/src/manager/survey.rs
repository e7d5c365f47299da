//! Views of the queues one by one, for an embedder that shows them: a walk over many names can
//! pause between two.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::LockManager;
use crate::id::Index;
use crate::seating::Waits;
use crate::{ClientId, LossCause, Mode, Name, RequestId};

/// The queue of one name, for reading.
#[derive(Clone, Copy, Debug)]
pub struct QueueView<'a> {
    manager: &'a LockManager,
    queue: Index,
}

/// A request in the queue of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queued {
    /// The request, and once granted the lock.
    pub request: RequestId,
    /// The client of the request.
    pub client: ClientId,
    /// Exclusive, shared, or shared up to a limit.
    pub mode: Mode,
    /// True if the request holds its lock.
    pub held: bool,
}

/// A pending request, with the nearest of its blockers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiter {
    /// The pending request.
    pub request: RequestId,
    /// The client of the request.
    pub client: ClientId,
    /// Held locks that conflict with it, each with a name in common: the first few of each name.
    pub hard: Vec<(RequestId, Name)>,
    /// The last earlier request that conflicts with it and waits itself, with that name.
    pub soft: Option<(RequestId, Name)>,
}

/// How many holders of one name a [`Waiter`] lists.
const HOLDERS_MAX: usize = 4;

impl<'a> QueueView<'a> {
    /// Returns the name.
    pub fn name(self) -> &'a Name {
        &self.manager.seating.queue(self.queue).name
    }

    /// Returns all requests for the name, in queue order.
    pub fn requests(self) -> impl Iterator<Item = Queued> + 'a {
        let Self { manager, queue } = self;
        manager.seating.seats_of(queue).map(move |(_, entry, mode)| Queued {
            request: manager.seating.id(entry),
            client: manager.clients.id(manager.owner(entry)),
            mode,
            held: manager.seating.is_held(entry),
        })
    }
}

impl LockManager {
    /// Returns how many positions [`queue_at`](Self::queue_at) has, used and unused.
    pub fn queue_slots(&self) -> usize {
        self.seating.queue_slots()
    }

    /// Returns the queue at a position, if a name in use has it. A name keeps its position while it
    /// is in use.
    pub fn queue_at(&self, slot: usize) -> Option<QueueView<'_>> {
        let queue = Index::try_from(slot).ok()?;
        self.seating.is_queue(queue).then_some(QueueView { manager: self, queue })
    }

    /// Returns the queue of a name, if a request wants it.
    pub fn queue_of(&self, name: &Name) -> Option<QueueView<'_>> {
        let queue = self.seating.find_queue(name)?;
        Some(QueueView { manager: self, queue })
    }

    /// Returns every pending request with its nearest blockers, in queue order. Returns none if
    /// there are more entries than this, counted once for each name.
    pub fn waiters_within(&self, entries_max: usize) -> Option<Vec<Waiter>> {
        let mut left = entries_max;
        let mut waiters: BTreeMap<Index, Waiter> = BTreeMap::new();
        for queue in self.seating.queues() {
            let mut holders: Vec<(Index, Mode)> = Vec::new();
            let (mut last, mut last_exclusive) = (None, None);
            let mut waits = Waits::new();
            let name = &self.seating.queue(queue).name;
            for (_, entry, mode) in self.seating.seats_of(queue) {
                left = left.checked_sub(1)?;
                let for_all = waits.pass(mode.into());
                if self.seating.is_held(entry) {
                    if holders.len() < HOLDERS_MAX {
                        holders.push((entry, mode));
                    }
                    continue;
                }
                let waiter = waiters.entry(entry).or_insert_with(|| Waiter {
                    request: self.seating.id(entry),
                    client: self.clients.id(self.owner(entry)),
                    hard: Vec::new(),
                    soft: None,
                });
                let in_the_way =
                    holders.iter().filter(|&&(_, held)| for_all || held == Mode::Exclusive);
                waiter
                    .hard
                    .extend(in_the_way.map(|&(holder, _)| (self.seating.id(holder), name.clone())));
                if let Some(nearest) = if for_all { last } else { last_exclusive } {
                    waiter.soft = Some((self.seating.id(nearest), name.clone()));
                }
                last = Some(entry);
                if mode == Mode::Exclusive {
                    last_exclusive = last;
                }
            }
        }
        let mut entries: Vec<Index> = waiters.keys().copied().collect();
        self.seating.sort(&mut entries);
        Some(entries.iter().filter_map(|entry| waiters.remove(entry)).collect())
    }

    /// Takes away the lock that `request` holds, and no other one. Returns false, and nothing
    /// happens, when it holds none.
    pub fn force_release_one(&mut self, request: RequestId) -> bool {
        self.take_lock(request, LossCause::ForceReleased)
    }

    /// Takes away the lock that `request` holds because its time is over: the engine has no clock,
    /// so an embedder with a maximum hold calls this. Returns false, and nothing happens, when it
    /// holds none.
    pub fn expire(&mut self, request: RequestId) -> bool {
        self.take_lock(request, LossCause::HeldTooLong)
    }

    fn take_lock(&mut self, request: RequestId, cause: LossCause) -> bool {
        let held = self.seating.find(request).filter(|&entry| self.seating.is_held(entry));
        if let Some(entry) = held {
            self.take_one_away(entry, cause);
            self.settle();
        }
        held.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, Event, HashKey, Request};

    fn manager() -> (LockManager, [ClientId; 3]) {
        let mut manager = LockManager::new(HashKey::from_bytes([7; 16]));
        let clients = core::array::from_fn(|_| manager.add_client());
        (manager, clients)
    }

    #[test]
    fn queues_are_found_by_position_and_by_name_in_queue_order() {
        let (mut manager, [one, two, _]) = manager();
        let (held, _) = manager.request(one, Request::shared(["a", "b"])).unwrap();
        let (waits, _) = manager.request(two, Request::exclusive("b")).unwrap();
        let all = (0..manager.queue_slots()).filter_map(|slot| manager.queue_at(slot));
        let names: Vec<&Name> = all.map(QueueView::name).collect();
        assert_eq!(names, [&Name::from("a"), &Name::from("b")]);
        let queued: Vec<Queued> = manager.queue_of(&"b".into()).unwrap().requests().collect();
        let expected = [(held, one, Mode::Shared, true), (waits, two, Mode::Exclusive, false)];
        let expected =
            expected.map(|(request, client, mode, held)| Queued { request, client, mode, held });
        assert_eq!(queued, expected);
        assert!(manager.queue_of(&"c".into()).is_none());
    }

    #[test]
    fn waiters_have_the_holders_in_their_way_and_the_nearest_earlier_waiter() {
        let (mut manager, [one, two, three]) = manager();
        let (held, _) = manager.request(one, Request::shared("a")).unwrap();
        let (first, _) = manager.request(two, Request::exclusive("a")).unwrap();
        let (second, _) = manager.request(three, Request::shared(["a", "b"])).unwrap();
        let waiters = manager.waiters_within(10).unwrap();
        let name = || Name::from("a");
        let expected = [
            Waiter { request: first, client: two, hard: [(held, name())].into(), soft: None },
            Waiter { request: second, client: three, hard: [].into(), soft: Some((first, name())) },
        ];
        assert_eq!(waiters, expected);
        for waiter in &waiters {
            let blockers = manager.blockers(waiter.request);
            let hard: Vec<RequestId> = waiter.hard.iter().map(|(id, _)| *id).collect();
            assert_eq!(blockers.hard, hard);
            assert_eq!(blockers.soft.last(), waiter.soft.as_ref().map(|(id, _)| id));
        }
        assert_eq!(manager.waiters_within(2), None);
    }

    #[test]
    fn force_release_of_one_lock_leaves_other_holders_of_the_name() {
        let (mut manager, [one, two, three]) = manager();
        let (taken, _) = manager.request(one, Request::shared("a")).unwrap();
        let (kept, _) = manager.request(two, Request::shared("a")).unwrap();
        let (waits, answer) = manager.request(three, Request::exclusive("a")).unwrap();
        assert_eq!(answer, Answer::Pending);
        assert!(!manager.force_release_one(waits));
        assert!(manager.force_release_one(taken));
        assert!(
            matches!(manager.poll_event(), Some(Event::Lost { request, .. }) if request == taken)
        );
        assert_eq!(manager.poll_event(), None);
        assert!(manager.force_release_one(kept));
        assert!(
            matches!(manager.poll_event(), Some(Event::Lost { request, .. }) if request == kept)
        );
        assert!(
            matches!(manager.poll_event(), Some(Event::Granted { request, .. }) if request == waits)
        );
    }
}
