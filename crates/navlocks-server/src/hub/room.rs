//! The waiting room: after a start, requests wait here for absent sessions of the earlier service.
//!
//! The requests of absent sessions, held or pending, stand in an engine of its own as *ghosts*. A
//! request that comes meanwhile is a *guest* behind the ghosts. The engine decides which guest may
//! go on to its partition; there another engine decides whether it holds its lock. The registry
//! keeps hashes of names, so they are the names here.
//!
//! Neither engine knows all holders of a name, so a request with a limit is exclusive here: it
//! waits until no ghost wants its names. Beside a holder with a limit, two shared requests may
//! change their order if the first of them waits here for another name.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use navlocks_core::{
    Answer, ClientId, Event, LockManager, Mode, Name, Request, RequestId, Scope, Wait,
};
use navlocks_wire::RequestKey;

use super::partitions::{NewRequest, PartitionIndex, manager};
use crate::store::{RequestRecord, RequestState};

/// The ghosts of absent sessions, and the guests behind them.
#[derive(Debug)]
pub(crate) struct Room {
    engine: LockManager,
    /// The client of the engine that has all entries.
    client: ClientId,
    /// The names that absent sessions hold, by the hash of the name.
    holds: HashMap<u64, Hold>,
    /// The pending requests of absent sessions.
    ghosts: HashMap<RequestKey, Ghost>,
    guests: HashMap<RequestKey, Guest>,
    /// The request that each seat of a ghost or guest belongs to.
    seats: HashMap<RequestId, RequestKey>,
    groups: HashMap<PartitionIndex, Group>,
    /// Groups whose first guest has become ready since they were last looked at.
    woken: BTreeSet<PartitionIndex>,
}

/// A name that absent sessions hold: one entry for all of them.
#[derive(Debug)]
struct Hold {
    id: RequestId,
    ghosts: HashSet<RequestKey>,
}

/// A request that an absent session waits for. It wants one more name, its door, which is locked
/// until the session claims: it is never granted before.
#[derive(Clone, Copy, Debug)]
struct Ghost {
    seat: RequestId,
    door: RequestId,
}

#[derive(Debug)]
struct Guest {
    seat: RequestId,
    partition: PartitionIndex,
    new_request: NewRequest,
}

/// The guests that are on their way to one partition.
#[derive(Debug, Default)]
struct Group {
    guests: BTreeSet<(ClientId, RequestKey)>,
    /// Those that may go on, in order of their places.
    ready: BTreeSet<(u64, RequestKey)>,
}

impl Room {
    /// Seats the live requests of absent sessions.
    pub(crate) fn new<'r>(records: impl Iterator<Item = &'r RequestRecord>) -> Self {
        let mut engine = manager();
        let mut room = Self {
            client: engine.add_client(),
            engine,
            holds: HashMap::new(),
            ghosts: HashMap::new(),
            guests: HashMap::new(),
            seats: HashMap::new(),
            groups: HashMap::new(),
            woken: BTreeSet::new(),
        };
        let mut held: BTreeMap<u64, Vec<&RequestRecord>> = BTreeMap::new();
        let mut pending = BTreeMap::new();
        for record in records {
            match record.state {
                RequestState::Held(_) => {
                    let hashes = record.hashes.iter();
                    hashes.for_each(|&hash| held.entry(hash).or_default().push(record));
                }
                RequestState::Pending(place) => drop(pending.insert((place, record.key()), record)),
                RequestState::Lost(_) => {}
            }
        }
        for (hash, records) in held {
            let mode = Mode::standing_for(records.iter().map(|record| record.mode));
            let ghosts = records.iter().map(|record| record.key()).collect();
            if let Some((id, _)) = room.seat([name(hash)], mode, Wait::Queue) {
                room.holds.insert(hash, Hold { id, ghosts });
            }
        }
        for ((_, key), record) in pending {
            let (door, names) = (Name::from(key.to_string()), record.hashes.iter().copied());
            let names = names.map(name).chain([door.clone()]);
            let mode = Mode::standing_for([record.mode]);
            if let Some((door, _)) = room.seat([door], Mode::Exclusive, Wait::Queue)
                && let Some((seat, _)) = room.seat(names, mode, Wait::Queue)
            {
                room.seats.insert(seat, key);
                room.ghosts.insert(key, Ghost { seat, door });
            }
        }
        room
    }

    /// Returns true if nothing in it holds back a request.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.holds.is_empty() && self.ghosts.is_empty() && self.guests.is_empty()
    }

    fn seat(
        &mut self,
        names: impl IntoIterator<Item = Name>,
        mode: Mode,
        wait: Wait,
    ) -> Option<(RequestId, bool)> {
        let scope = Scope::new(names).ok()?;
        let (id, answer) = self.engine.request(self.client, Request { scope, mode, wait }).ok()?;
        Some((id, matches!(answer, Answer::Granted(_))))
    }

    /// Ends an entry of the engine, and notes which guests may go on now.
    fn unseat(&mut self, id: RequestId) {
        self.seats.remove(&id);
        let _over = self.engine.release(id) || self.engine.abort(id);
        while let Some(event) = self.engine.poll_event() {
            if let Event::Granted { request, .. } = event
                && let Some(&key) = self.seats.get(&request)
            {
                self.wake(key);
            }
        }
    }

    /// Notes that a guest may go on.
    fn wake(&mut self, key: RequestKey) {
        if let Some(Guest { partition, new_request, .. }) = self.guests.get(&key)
            && let Some(group) = self.groups.get_mut(partition)
        {
            if group.ready.is_empty() {
                self.woken.insert(*partition);
            }
            group.ready.insert((new_request.place, key));
        }
    }

    /// Takes a guest in. Gives it back if it need not wait in an open room, or if the engine does
    /// not take it.
    pub(crate) fn enter(
        &mut self,
        partition: PartitionIndex,
        new_request: NewRequest,
        hashes: &[u64],
        open: bool,
    ) -> Option<NewRequest> {
        let Request { mode, wait, .. } = new_request.request;
        // All others wait their turn here, and the partition does the rest.
        let wait = if wait == Wait::Overtake { wait } else { Wait::Queue };
        let mode = Mode::standing_for([mode]);
        let names = hashes.iter().copied().map(name);
        let Some((seat, granted)) = self.seat(names, mode, wait) else { return Some(new_request) };
        if granted && open {
            self.unseat(seat);
            return Some(new_request);
        }
        let key = self.welcome(Guest { seat, partition, new_request });
        if granted {
            self.wake(key);
        }
        None
    }

    /// Takes a guest in that goes on before all others: its place is the smallest.
    pub(crate) fn enter_first(
        &mut self,
        partition: PartitionIndex,
        new_request: NewRequest,
        hashes: &[u64],
    ) {
        let mode = Mode::standing_for([new_request.request.mode]);
        let names = hashes.iter().copied().map(name);
        if let Some((seat, _)) = self.seat(names, mode, Wait::Queue) {
            let key = self.welcome(Guest { seat, partition, new_request });
            self.wake(key);
        }
    }

    /// Gives a claimed request the seat of its ghost. Gives it back if there is none.
    pub(crate) fn adopt(
        &mut self,
        partition: PartitionIndex,
        new_request: NewRequest,
    ) -> Option<NewRequest> {
        let Some(Ghost { seat, door }) = self.ghosts.remove(&new_request.key()) else {
            return Some(new_request);
        };
        self.welcome(Guest { seat, partition, new_request });
        self.unseat(door);
        None
    }

    fn welcome(&mut self, guest: Guest) -> RequestKey {
        let key = guest.new_request.key();
        let group = self.groups.entry(guest.partition).or_default();
        group.guests.insert((guest.new_request.owner, key));
        self.seats.insert(guest.seat, key);
        self.guests.insert(key, guest);
        key
    }

    /// Returns a guest, to change what is known of it.
    pub(crate) fn guest_mut(&mut self, key: RequestKey) -> Option<&mut NewRequest> {
        self.guests.get_mut(&key).map(|guest| &mut guest.new_request)
    }

    /// Takes a guest out.
    pub(crate) fn leave(&mut self, key: RequestKey) -> Option<(PartitionIndex, NewRequest)> {
        let Guest { seat, partition, new_request } = self.guests.remove(&key)?;
        if let Some(group) = self.groups.get_mut(&partition) {
            group.guests.remove(&(new_request.owner, key));
            group.ready.remove(&(new_request.place, key));
            if group.guests.is_empty() {
                self.groups.remove(&partition);
                self.woken.remove(&partition);
            }
        }
        self.unseat(seat);
        Some((partition, new_request))
    }

    /// Takes the ghost of a recorded request out, if it has one.
    pub(crate) fn dismiss(&mut self, record: &RequestRecord) {
        let key = record.key();
        if let Some(Ghost { seat, door }) = self.ghosts.remove(&key) {
            self.unseat(seat);
            self.unseat(door);
        }
        if !record.is_held() {
            return;
        }
        for hash in &record.hashes {
            let Some(hold) = self.holds.get_mut(hash) else { continue };
            hold.ghosts.remove(&key);
            if hold.ghosts.is_empty() {
                let id = hold.id;
                self.holds.remove(hash);
                self.unseat(id);
            }
        }
    }

    /// Returns the requests of absent sessions that hold one of these names.
    pub(crate) fn holders(&self, hashes: &[u64]) -> BTreeSet<RequestKey> {
        let holds = hashes.iter().filter_map(|hash| self.holds.get(hash));
        holds.flat_map(|hold| hold.ghosts.iter().copied()).collect()
    }

    /// Returns the ghosts and guests that wait for one of these names.
    pub(crate) fn waiters(&self, hashes: &[u64]) -> BTreeSet<RequestKey> {
        let queues = hashes.iter().filter_map(|&hash| self.engine.queue_of(&name(hash)));
        let entries = queues.flat_map(|queue| queue.requests());
        entries.filter_map(|entry| self.seats.get(&entry.request).copied()).collect()
    }

    /// Returns the next partition with guests that may go on, once for each time that it has some.
    pub(crate) fn next_woken(&mut self) -> Option<PartitionIndex> {
        self.woken.pop_first()
    }

    /// Takes out the next guest that may go on to a partition.
    pub(crate) fn next(&mut self, partition: PartitionIndex) -> Option<NewRequest> {
        let &(_, key) = self.groups.get(&partition)?.ready.first()?;
        self.leave(key).map(|(_, new_request)| new_request)
    }

    /// Returns true if a guest may go on to a partition.
    pub(crate) fn is_ready(&self, partition: PartitionIndex) -> bool {
        self.groups.get(&partition).is_some_and(|group| !group.ready.is_empty())
    }

    /// Returns the guests that are on their way to a partition, in order of their places.
    pub(crate) fn guests(&self, partition: PartitionIndex) -> Vec<&NewRequest> {
        let keys = self.groups.get(&partition).into_iter().flat_map(|group| &group.guests);
        let guests = keys.filter_map(|(_, key)| self.guests.get(key));
        let mut guests: Vec<&NewRequest> = guests.map(|guest| &guest.new_request).collect();
        guests.sort_by_key(|new_request| new_request.place);
        guests
    }

    /// Returns the guests of a client.
    pub(crate) fn guests_of(&self, partition: PartitionIndex, client: ClientId) -> Vec<RequestKey> {
        let Some(group) = self.groups.get(&partition) else { return Vec::new() };
        let (first, last) = (RequestKey::new(0, 0), RequestKey::new(u32::MAX, u64::MAX));
        let own = group.guests.range((client, first)..=(client, last));
        own.map(|&(_, key)| key).collect()
    }
}

/// Returns the name in the room for a name with this hash. It differs from the names of doors,
/// which have a dot.
fn name(hash: u64) -> Name {
    Name::from(format!("{hash:x}"))
}

#[cfg(test)]
mod tests;
