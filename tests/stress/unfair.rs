//! Names with frequent steals: a client that lost its lock knows it.

use std::collections::HashMap;
use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use navlocks::EventKind;
use navlocks::blocking::block_on;
use navlocks::{
    Event, Events, FencingToken, Lock, Locks, Mode, Request, RequestError, RequestErrorKind,
    RequestId,
};

use crate::dice::{Dice, operations};
use crate::supervisor::assert_nothing_left;
use crate::worker::{Scene, play};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const CLIENTS: usize = 8;
/// The tag of the request after which the subscriber stops.
const LAST: &str = "last";

#[test]
fn victim_knows_its_loss_before_the_next_grant() {
    let locks = Locks::new();
    let clients = (0..CLIENTS).map(|_| Mutex::new(locks.new_client())).collect();
    let (holders, losses) = Default::default();
    let scene = Arc::new(Unfair { locks: locks.clone(), clients, holders, losses });
    let events = locks.events().capacity(usize::MAX);
    let listener = thread::spawn(|| read_stories(events));
    play(&scene, &locks, 35);
    let losses = scene.losses.load(Ordering::Relaxed);
    assert!(losses >= operations(35) / 100, "only {losses} losses");
    block_on(locks.request("end").tag(LAST).into_future()).unwrap().release().unwrap();
    listener.join().unwrap();
    assert_nothing_left(&locks);
}

struct Unfair {
    locks: Locks,
    clients: Vec<Mutex<Locks>>,
    /// The holders of each name that have not released yet.
    holders: [Mutex<Vec<Arc<Lock>>>; NAMES.len()],
    losses: AtomicU64,
}

impl Unfair {
    fn holders(&self, lock: &Lock) -> impl Iterator<Item = MutexGuard<'_, Vec<Arc<Lock>>>> {
        let names = lock.scope().names().iter();
        names.map(|name| {
            let place = NAMES.iter().position(|known| name.to_str() == Some(known));
            self.holders[place.unwrap()].lock().unwrap()
        })
    }
}

impl Scene for Unfair {
    type Held = Arc<Lock>;

    fn ask(&self, dice: &mut Dice) -> Request {
        let place = dice.pick(&self.clients);
        let client = place.lock().unwrap().clone();
        match dice.roll(1024) {
            0 => {
                *place.lock().unwrap() = self.locks.new_client();
                client.end_client();
            }
            1..4 => {
                block_on(self.locks.force_release(*dice.pick(&NAMES))).unwrap();
            }
            _ => {}
        }
        let request = client.request(dice.scope(&NAMES));
        match dice.roll(32) {
            0 => request.steal(),
            1 => request.shared().steal(),
            2 | 3 => request.shared().overtake(),
            4 => request.timeout(Duration::ZERO),
            5..16 => request.shared(),
            _ => request,
        }
    }

    /// Checks that of two locks that exclude each other, the first was lost before the other was
    /// granted.
    fn enter(&self, lock: Lock) -> Arc<Lock> {
        let lock = Arc::new(lock);
        for mut holders in self.holders(&lock) {
            let shared = |lock: &Lock| lock.mode() == Mode::Shared;
            for other in holders.iter().filter(|other| !(shared(&lock) && shared(other))) {
                let earlier =
                    if other.fencing_token() < lock.fencing_token() { other } else { &lock };
                assert_ne!(earlier.loss(), None, "{earlier:?} of {lock:?} and {other:?}");
            }
            holders.push(lock.clone());
        }
        lock
    }

    fn look(&self, lock: &Arc<Lock>, dice: &mut Dice) {
        if dice.once_in(8) {
            let mut cx = Context::from_waker(Waker::noop());
            let lost = pin!(lock.lost()).poll(&mut cx);
            let contended = pin!(lock.contended()).poll(&mut cx);
            // Once lost, always lost.
            assert!(lost.is_pending() || matches!(contended, Poll::Ready(Err(_))));
        }
    }

    fn leave(&self, lock: Arc<Lock>) {
        for mut holders in self.holders(&lock) {
            holders.retain(|other| !Arc::ptr_eq(other, &lock));
        }
        let lock = Arc::into_inner(lock).unwrap();
        let loss = lock.loss();
        let released = lock.release();
        assert!(loss.is_none() || released.as_ref().err() == loss.as_ref());
        self.losses.fetch_add(released.is_err().into(), Ordering::Relaxed);
    }

    fn expects(&self, error: &RequestError) -> bool {
        matches!(
            error.kind(),
            RequestErrorKind::TimedOut { .. }
                | RequestErrorKind::Stolen { .. }
                | RequestErrorKind::ForceReleased
                | RequestErrorKind::ClientEnded
        )
    }
}

/// Checks that every request has a beginning and one end; only granted ones are released or lost,
/// and only others are withdrawn or aborted. Tokens grow.
fn read_stories(mut events: Events) {
    let mut open: HashMap<RequestId, Option<FencingToken>> = HashMap::new();
    let mut last_token = None;
    loop {
        let next = block_on(events.recv()).unwrap();
        let Event { request, kind, tag, .. } = next.unwrap();
        let was_granted = match kind {
            EventKind::Requested => {
                assert_eq!(open.insert(request, None), None);
                continue;
            }
            EventKind::Granted(token) => {
                assert!(last_token < Some(token));
                last_token = Some(token);
                assert_eq!(open.insert(request, last_token), Some(None));
                continue;
            }
            EventKind::Released | EventKind::Lost(_) => true,
            _ => false,
        };
        let granted = open.remove(&request).unwrap();
        assert_eq!(granted.is_some(), was_granted, "{request}: {kind:?}");
        if tag.as_deref() == Some(LAST) {
            assert!(open.is_empty(), "{open:?}");
            return;
        }
    }
}
