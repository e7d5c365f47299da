//! Random histories: the room and a partition against an engine that never died.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use navlocks_core::{FencingToken, State};
use navlocks_wire::ClientKey;

use super::*;

const HISTORIES: u64 = 1_000;
const SESSIONS: u64 = 6;
const NAMES: u64 = 4;

/// A generator of numbers, the same for each seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Which requests a history makes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Shared and exclusive ones that wait for their turn: the same hold their locks at every step.
    Plain,
    /// Those, ones with limits, and ones that overtake or steal: the holders fit together at every
    /// step, and no waiter waits for ever.
    All,
}

/// A request of a history.
#[derive(Clone)]
struct Made {
    request: Request,
    hashes: Vec<u64>,
    place: u64,
    /// In the engine that never died.
    there: RequestId,
    /// In the partition.
    here: Option<RequestId>,
}

struct World {
    kind: Kind,
    dice: Dice,
    /// The engine that never died.
    whole: LockManager,
    partition: LockManager,
    clients: (ClientId, ClientId),
    room: Room,
    absent: BTreeSet<u32>,
    records: BTreeMap<RequestKey, RequestRecord>,
    made: BTreeMap<RequestKey, Made>,
    next: u64,
    first: u64,
}

impl World {
    /// Makes requests, kills their service, and seats what they left in a room.
    fn new(kind: Kind, seed: u64) -> Self {
        let (mut whole, mut partition) = (manager(), manager());
        let clients = (whole.add_client(), partition.add_client());
        let room = Room::new([].into_iter());
        let absent = (1..=SESSIONS as u32).collect();
        let (records, made) = (BTreeMap::new(), BTreeMap::new());
        let dice = Dice(seed);
        let (next, first) = (1_000_000, 1_000_000);
        let mut world = Self {
            kind,
            dice,
            whole,
            partition,
            clients,
            room,
            absent,
            records,
            made,
            next,
            first,
        };
        for _ in 0..world.dice.roll(14) {
            let session = 1 + world.dice.roll(SESSIONS) as u32;
            let (key, mut made) = world.draw(session, Wait::Queue);
            made.there = world.whole.request(clients.0, &made.request).expect("it is valid").0;
            world.made.insert(key, made);
        }
        for (&key, made) in &world.made {
            let state = match world.whole.state(made.there) {
                Some(State::Held(token)) => RequestState::Held(token.get()),
                _ => RequestState::Pending(made.place),
            };
            let (hashes, mode) = (made.hashes.clone(), made.request.mode);
            let (session, number) = (key.session, key.request);
            let record =
                RequestRecord { slot: 0, session, number, mode, state, until_ms: 0, hashes };
            world.records.insert(key, record);
        }
        world.room = Room::new(world.records.values());
        world
    }

    fn draw(&mut self, session: u32, wait: Wait) -> (RequestKey, Made) {
        let modes = if self.kind == Kind::Plain { 2 } else { 4 };
        let mode = match self.dice.roll(modes) {
            _ if wait == Wait::Overtake => Mode::Shared,
            0 => Mode::Exclusive,
            1 => Mode::Shared,
            limit => Mode::limited(limit as u32).expect("a limit"),
        };
        let count = 1 + self.dice.roll(2);
        let hashes: BTreeSet<u64> = (0..count).map(|_| 1 + self.dice.roll(NAMES)).collect();
        let hashes: Vec<u64> = hashes.into_iter().collect();
        let scope = Scope::new(hashes.iter().copied().map(name)).expect("names");
        self.next += 1;
        let mut place = self.next;
        if wait == Wait::Overtake {
            self.first -= 1;
            place = self.first;
        }
        let request = Request { scope, mode, wait };
        let there = RequestId::from_parts(0, 0);
        let made = Made { request, hashes, place, there, here: None };
        (RequestKey::new(session, self.next), made)
    }

    fn new_request(&self, key: RequestKey) -> NewRequest {
        let Made { request, place, .. } = self.made[&key].clone();
        NewRequest {
            owner: self.clients.1,
            client: ClientKey::new(key.session, 0),
            number: key.request,
            request,
            tag: None,
            traceparent: None,
            since: Instant::now(),
            place,
            is_placed: false,
            slot: 0,
            max_hold_ms: 0,
            within: None,
        }
    }

    fn step(&mut self) {
        let present: Vec<u32> =
            (1..=2 * SESSIONS as u32).filter(|session| !self.absent.contains(session)).collect();
        let session = present[self.dice.roll(present.len() as u64) as usize];
        match self.dice.roll(8) {
            0 => self.come_back(),
            1 => self.end_absent(),
            2 | 3 => self.give_up_one_of(session),
            _ => self.request(session),
        }
        self.pass_on();
        self.check();
    }

    fn request(&mut self, session: u32) {
        let wait = match self.dice.roll(8) {
            0 if self.kind == Kind::All => Wait::Steal,
            1 if self.kind == Kind::All => Wait::Overtake,
            2 if self.kind == Kind::All => Wait::StealAll,
            _ => Wait::Queue,
        };
        let (key, mut made) = self.draw(session, wait);
        made.there = self.whole.request(self.clients.0, &made.request).expect("it is valid").0;
        let hashes = made.hashes.clone();
        self.made.insert(key, made);
        if matches!(wait, Wait::Steal | Wait::StealAll) {
            let mut victims = self.room.holders(&hashes);
            if wait == Wait::StealAll {
                victims.extend(self.room.waiters(&hashes));
            }
            for victim in victims {
                self.room.leave(victim);
                if let Some(record) = self.records.remove(&victim) {
                    self.room.dismiss(&record);
                }
                self.made.remove(&victim);
            }
            self.enter_partition(key);
        } else if self
            .room
            .enter(PartitionIndex::default(), self.new_request(key), &hashes, true)
            .is_some()
        {
            self.enter_partition(key);
        }
    }

    fn enter_partition(&mut self, key: RequestKey) {
        let Some(made) = self.made.get_mut(&key) else { return };
        made.here = Some(self.partition.request(self.clients.1, &made.request).expect("valid").0);
    }

    /// A session claims all that it has.
    fn come_back(&mut self) {
        let Some(session) = self.draw_absent() else { return };
        for record in self.take_records(session) {
            let key = record.key();
            match record.state {
                RequestState::Held(token) => {
                    self.room.dismiss(&record);
                    let made = self.made.get_mut(&key).expect("it was made");
                    let token = FencingToken::new(token);
                    made.here = self.partition.restore(self.clients.1, &made.request, token);
                    assert!(made.here.is_some(), "{key} lost its lock");
                }
                _ => {
                    let new_request =
                        self.room.adopt(PartitionIndex::default(), self.new_request(key));
                    assert!(new_request.is_none(), "{key} has no ghost");
                }
            }
        }
    }

    /// The lease of a session passes.
    fn end_absent(&mut self) {
        let Some(session) = self.draw_absent() else { return };
        for record in self.take_records(session) {
            self.room.dismiss(&record);
            self.forget(record.key());
        }
    }

    fn draw_absent(&mut self) -> Option<u32> {
        let count = self.absent.len() as u64;
        let session = *self.absent.iter().nth(self.dice.roll(count.max(1)) as usize)?;
        self.absent.remove(&session);
        Some(session)
    }

    fn take_records(&mut self, session: u32) -> Vec<RequestRecord> {
        let keys = RequestKey::new(session, 0)..=RequestKey::new(session, u64::MAX);
        let keys: Vec<RequestKey> = self.records.range(keys).map(|(&key, _)| key).collect();
        keys.into_iter().filter_map(|key| self.records.remove(&key)).collect()
    }

    /// A session releases or aborts a request.
    fn give_up_one_of(&mut self, session: u32) {
        let keys = RequestKey::new(session, 0)..=RequestKey::new(session, u64::MAX);
        let keys: Vec<RequestKey> = self.made.range(keys).map(|(&key, _)| key).collect();
        if keys.is_empty() {
            return;
        }
        let key = keys[self.dice.roll(keys.len() as u64) as usize];
        self.give_up(key);
    }

    fn give_up(&mut self, key: RequestKey) {
        self.room.leave(key);
        if let Some(here) = self.made[&key].here {
            let _over = self.partition.release(here) || self.partition.abort(here);
        }
        self.forget(key);
    }

    fn forget(&mut self, key: RequestKey) {
        let Some(made) = self.made.remove(&key) else { return };
        let _over = self.whole.release(made.there) || self.whole.abort(made.there);
    }

    fn pass_on(&mut self) {
        while let Some(partition) = self.room.next_woken() {
            while let Some(new_request) = self.room.next(partition) {
                self.enter_partition(new_request.key());
            }
        }
        while self.whole.poll_event().or_else(|| self.partition.poll_event()).is_some() {}
        self.room.engine.check_invariants();
    }

    fn is_held(manager: &LockManager, id: RequestId) -> bool {
        matches!(manager.state(id), Some(State::Held(_)))
    }

    fn is_held_here(&self, made: &Made) -> bool {
        made.here.is_some_and(|id| Self::is_held(&self.partition, id))
    }

    fn check(&self) {
        let mut together = manager();
        let client = together.add_client();
        for (key, made) in &self.made {
            let is_absent = self.absent.contains(&key.session);
            let here = self.is_held_here(made);
            if self.kind == Kind::Plain && !is_absent {
                assert_eq!(here, Self::is_held(&self.whole, made.there), "{key}");
            }
            if here || self.records.get(key).is_some_and(RequestRecord::is_held) {
                let held = together.restore(client, &made.request, FencingToken::new(1));
                assert!(held.is_some(), "{key} holds its lock beside others that it excludes");
            }
        }
    }

    /// Releases one lock after the other, until nothing is left.
    fn release_all(&mut self) {
        while self.partition.held_count() > 0 {
            let held: Vec<RequestKey> =
                self.made.iter().filter(|it| self.is_held_here(it.1)).map(|it| *it.0).collect();
            let key = held[self.dice.roll(held.len() as u64) as usize];
            self.give_up(key);
            self.check();
        }
        assert_eq!(self.partition.pending_count(), 0);
    }
}

#[test]
fn room_and_partition_are_like_an_engine_that_never_died() {
    for (kind, seed) in [Kind::Plain, Kind::All]
        .into_iter()
        .flat_map(|kind| (0..HISTORIES).map(move |seed| (kind, seed)))
    {
        let mut world = World::new(kind, seed);
        for _ in 0..30 {
            world.step();
        }
        while !world.absent.is_empty() {
            if world.dice.roll(3) == 0 {
                world.end_absent()
            } else {
                world.come_back()
            }
            world.pass_on();
            world.check();
        }
        assert!(world.room.is_empty(), "{kind:?} {seed}: the room is not empty");
        assert!(world.room.engine.name_count() == 0 && world.room.seats.is_empty());
        world.release_all();
    }
}
