//! Maximum holds: a timer for each lock that has one, which takes the lock away.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use futures_timer::Delay;
use navlocks_core::RequestId;

use super::space::Space;
use crate::sync::wakes::Wakes;

/// The live requests of a shard that have a maximum hold. Empty most of the time, and then free of
/// cost.
#[derive(Debug, Default)]
pub(super) struct Holds(HashMap<RequestId, Arc<Hold>>);

/// A request with a maximum hold. Woken, it starts its timer, and then takes the lock away.
#[derive(Debug)]
struct Hold {
    id: RequestId,
    max: Duration,
    space: Weak<Space>,
    /// There is one while the request holds its lock.
    timer: Mutex<Option<Delay>>,
}

impl Holds {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the holds of another shard.
    pub(super) fn absorb(&mut self, mut other: Self) {
        self.0.extend(other.0.drain());
    }

    /// Adds a request.
    pub(super) fn add(&mut self, id: RequestId, max: Duration, space: Weak<Space>) {
        self.0.insert(id, Arc::new(Hold { id, max, space, timer: Mutex::default() }));
    }

    /// Returns for how long a request may hold its lock.
    pub(super) fn max(&self, id: RequestId) -> Option<Duration> {
        self.0.get(&id).map(|hold| hold.max)
    }

    /// Starts the time of a request that holds its lock, once the shard is unlocked.
    #[inline]
    pub(super) fn begin(&self, id: RequestId, wakes: &mut Wakes) {
        if let Some(hold) = self.0.get(&id) {
            *hold.timer() = Some(Delay::new(hold.max));
            wakes.add(Waker::from(hold.clone()));
        }
    }

    /// Removes a request that is over.
    #[inline]
    pub(super) fn end(&mut self, id: RequestId) {
        if !self.is_empty() {
            self.0.remove(&id).inspect(|hold| hold.stop());
        }
    }
}

impl Drop for Holds {
    fn drop(&mut self) {
        self.0.values().for_each(|hold| hold.stop());
    }
}

impl Hold {
    fn timer(&self) -> MutexGuard<'_, Option<Delay>> {
        self.timer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the timer, which refers to this hold by its waker.
    fn stop(&self) {
        self.timer().take();
    }

    /// Returns true once, when the time is over.
    fn is_over(&self, waker: &Waker) -> bool {
        let mut timer = self.timer();
        let Some(delay) = timer.as_mut() else { return false };
        let over = Pin::new(delay).poll(&mut Context::from_waker(waker)).is_ready();
        if over {
            *timer = None;
        }
        over
    }
}

impl Wake for Hold {
    fn wake(self: Arc<Self>) {
        if self.is_over(&Waker::from(self.clone()))
            && let Some(space) = self.space.upgrade()
        {
            space.expire(self.id);
        }
    }
}
