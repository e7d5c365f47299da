//! Names without steals: they exclude, and each is first come, first served.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use navlocks::blocking::block_on;
use navlocks::{Lock, Locks, Mode, Request, RequestError, RequestErrorKind};

use crate::dice::Dice;
use crate::supervisor::assert_nothing_left;
use crate::worker::{Scene, play};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

#[test]
fn locks_exclude_each_other_in_order_of_arrival() {
    let locks = Locks::new();
    let (tag, resources) = ("reader".into(), Default::default());
    play(&Arc::new(Fair { locks: locks.clone(), tag, resources }), &locks, 60);
    assert_nothing_left(&locks);
}

struct Fair {
    locks: Locks,
    /// The tag of some of the shared requests.
    tag: Arc<str>,
    resources: [Resource; NAMES.len()],
}

impl Fair {
    fn resources(&self, lock: &Lock) -> impl Iterator<Item = &Resource> {
        let names = lock.scope().names().iter();
        names.map(|name| {
            let place = NAMES.iter().position(|known| name.to_str() == Some(known));
            &self.resources[place.unwrap()]
        })
    }
}

impl Scene for Fair {
    type Held = Lock;

    fn ask(&self, dice: &mut Dice) -> Request {
        let request = self.locks.request(dice.scope(&NAMES));
        let request = match dice.roll(8) {
            0..4 => request,
            4 => request.shared().tag(self.tag.clone()),
            _ => request.shared(),
        };
        match dice.roll(64) {
            0..4 => request.timeout(Duration::ZERO),
            4 => request.timeout(Duration::from_micros(dice.roll(50).into())),
            _ => request,
        }
    }

    fn enter(&self, lock: Lock) -> Lock {
        self.resources(&lock).for_each(|resource| resource.enter(&lock));
        lock
    }

    fn look(&self, lock: &Lock, dice: &mut Dice) {
        assert_eq!(lock.loss(), None);
        if dice.once_in(1000) {
            let snapshot = block_on(self.locks.query()).unwrap();
            assert!(snapshot.held.iter().any(|held| held.request == lock.request_id()));
            assert!(snapshot.held.is_sorted_by_key(|held| held.token));
            assert!(snapshot.pending.is_sorted_by_key(|pending| pending.request.serial()));
            let mut all = snapshot.held.iter().chain(&snapshot.pending);
            assert!(all.all(|info| info.tag.is_none() || info.mode == Mode::Shared));
        }
    }

    fn leave(&self, lock: Lock) {
        self.resources(&lock).for_each(|resource| resource.leave(lock.mode()));
        lock.release().unwrap();
    }

    fn expects(&self, error: &RequestError) -> bool {
        matches!(error.kind(), RequestErrorKind::TimedOut { .. })
    }
}

/// The resource of one name: it detects a holder that should not be there, or not yet.
#[derive(Default)]
struct Resource {
    /// The number of readers, or [`WRITER`].
    inside: AtomicUsize,
    /// The last holder of each mode.
    exclusive: Turn,
    shared: Turn,
}

const WRITER: usize = usize::MAX / 2;

/// The serial and the token of a lock. Both grow when all clients come in turn.
#[derive(Default)]
struct Turn {
    serial: AtomicU64,
    token: AtomicU64,
}

impl Turn {
    fn assert_before(&self, lock: &Lock) {
        let (serial, token) = (lock.request_id().serial(), lock.fencing_token().get());
        let before = (self.serial.load(Ordering::Relaxed), self.token.load(Ordering::Relaxed));
        assert!(before.0 < serial && before.1 < token, "{before:?}, then {lock:?}");
    }

    fn note(&self, lock: &Lock) {
        self.serial.fetch_max(lock.request_id().serial(), Ordering::Relaxed);
        self.token.fetch_max(lock.fencing_token().get(), Ordering::Relaxed);
    }
}

impl Resource {
    /// Enters the resource. Only the locks order these accesses.
    fn enter(&self, lock: &Lock) {
        self.exclusive.assert_before(lock);
        match lock.mode() {
            Mode::Exclusive => {
                assert_eq!(self.inside.swap(WRITER, Ordering::Relaxed), 0, "not alone: {lock:?}");
                self.shared.assert_before(lock);
                self.exclusive.note(lock);
            }
            Mode::Shared | Mode::Limited(_) => {
                let inside = self.inside.fetch_add(1, Ordering::Relaxed);
                assert!(inside < WRITER, "beside an exclusive one: {lock:?}");
                self.shared.note(lock);
            }
        }
    }

    fn leave(&self, mode: Mode) {
        match mode {
            Mode::Exclusive => assert_eq!(self.inside.swap(0, Ordering::Relaxed), WRITER),
            Mode::Shared | Mode::Limited(_) => {
                assert!((1..WRITER).contains(&self.inside.fetch_sub(1, Ordering::Relaxed)))
            }
        }
    }
}
