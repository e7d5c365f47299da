//! The arm in this process, and the promises that only hold without a network.

use std::sync::Barrier;
use std::thread;

use navlocks::EventKind;
use navlocks::{DeadlockPolicy, Locks};

use crate::backend::Backend;
use crate::patience::soon;
use crate::watch::{caught_up, hold, received, subscribe};

#[path = "body/mod.rs"]
mod body;

pub(crate) struct Arm(Locks);

impl Backend for Arm {
    const ROUNDS: usize = 3_000;

    fn start(deadlocks: DeadlockPolicy) -> Self {
        Self(Locks::builder().deadlocks(deadlocks).build())
    }

    fn client(&self) -> Locks {
        self.0.new_client()
    }
}

#[test]
fn decision_3_release_that_races_with_a_steal_returns_the_outcome() {
    let arm = Arm::start(DeadlockPolicy::Ignore);
    let [holder, thief] = arm.clients();
    let together = Barrier::new(2);
    let mut events = subscribe(&holder);
    for _ in 0..Arm::ROUNDS {
        let lock = hold(holder.request("a"), "lock");
        let released = thread::scope(|scope| {
            scope.spawn(|| {
                together.wait();
                drop(soon(thief.request("a").steal()).unwrap());
            });
            together.wait();
            lock.release()
        });
        let seen = received(&holder, &mut events);
        let mut seen = seen.iter().filter(|event| event.tag.is_some());
        let end = seen.next_back().map(|event| event.kind.clone());
        match released {
            Ok(()) => assert_eq!(end, Some(EventKind::Released)),
            Err(loss) => assert_eq!(end, Some(EventKind::Lost(loss))),
        }
        caught_up(&thief);
    }
}
