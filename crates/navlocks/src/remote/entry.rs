//! One request of a session, from its beginning to its end.

use std::ops::{Deref, DerefMut};
use std::task::Waker;

use navlocks_client::{KnownRequest, Lapsed, Moment, Stage};
use navlocks_core::FencingToken;

use crate::backend::Watched;
use crate::error::{Loss, RequestErrorKind};
use crate::wakes::Wakes;
use navlocks_wire as wire;

/// A request of a session, with the tasks that wait for it.
#[derive(Debug)]
pub(super) struct Entry {
    known: KnownRequest<Over>,
    /// The task that waits for the answer.
    pub(super) waker: Option<Waker>,
    /// Watches of the lock.
    pub(super) watches: Vec<Watch>,
}

impl Deref for Entry {
    type Target = KnownRequest<Over>;

    fn deref(&self) -> &KnownRequest<Over> {
        &self.known
    }
}

impl DerefMut for Entry {
    fn deref_mut(&mut self) -> &mut KnownRequest<Over> {
        &mut self.known
    }
}

/// How it ended.
#[derive(Clone, Debug)]
pub(super) enum Over {
    Unavailable,
    Failed(RequestErrorKind),
    Lost(Loss),
}

#[derive(Debug)]
pub(super) struct Watch {
    number: u64,
    watched: Watched,
    waker: Waker,
    /// True if a request waits for the lock.
    come: bool,
}

impl Entry {
    pub(super) fn new(request: wire::Request, sent: bool, now: Moment, waker: Waker) -> Self {
        let known = KnownRequest::new(request, sent, now);
        Self { known, waker: Some(waker), watches: Vec::new() }
    }

    /// Returns how it was lost, if it was.
    pub(super) fn loss(&self) -> Option<Loss> {
        match &self.stage {
            Stage::Over(Over::Lost(loss)) => Some(loss.clone()),
            _ => None,
        }
    }

    /// Grants it, and returns the waker of its task.
    pub(super) fn grant(&mut self, token: FencingToken, now: Moment) -> Option<Waker> {
        self.known.grant(token, now);
        self.waker.take()
    }

    /// Ends the request by an event of the service, and wakes all its tasks.
    pub(super) fn end(&mut self, over: Over, wakes: &mut Wakes) {
        self.stage = Stage::Over(over);
        wakes.add_all(self.waker.take());
        wakes.add_all(self.watches.drain(..).map(|watch| watch.waker));
    }

    /// Ends the session of the request: locks are lost, and pending requests wait for the next
    /// session. A steal fails: the service may have done it, and another client may hold the lock.
    pub(super) fn lapse(&mut self, loss: &Loss, wakes: &mut Wakes) -> bool {
        let lapsed = self.known.lapse();
        match lapsed {
            Lapsed::Unchanged => {}
            Lapsed::OutcomeUnknown => {
                self.end(Over::Failed(RequestErrorKind::OutcomeUnknown), wakes);
            }
            Lapsed::Lost => self.end(Over::Lost(loss.clone()), wakes),
        }
        lapsed == Lapsed::Lost
    }

    /// Notes that a request waits for the lock, and wakes the watches for that.
    pub(super) fn contended(&mut self, wakes: &mut Wakes) {
        for watch in &mut self.watches {
            if watch.watched == Watched::Contention {
                watch.come = true;
                wakes.add(watch.waker.clone());
            }
        }
    }

    /// Returns whether the event of the watch with this number has come. Makes the watch if there
    /// is none, and returns a waker to be dropped later.
    pub(super) fn watch(
        &mut self,
        number: u64,
        watched: Watched,
        waker: Waker,
    ) -> (bool, Option<Waker>) {
        if let Some(known) = self.watches.iter_mut().find(|known| known.number == number) {
            let earlier = std::mem::replace(&mut known.waker, waker);
            return (known.come, Some(earlier));
        }
        self.watches.push(Watch { number, watched, waker, come: false });
        (false, None)
    }

    /// Ends a watch, and returns a waker to be dropped later.
    pub(super) fn unwatch(&mut self, number: u64) -> Option<Waker> {
        let position = self.watches.iter().position(|watch| watch.number == number)?;
        Some(self.watches.swap_remove(position).waker)
    }

    /// Returns the wakers of all its tasks.
    pub(super) fn into_wakers(self) -> impl Iterator<Item = Waker> {
        self.waker.into_iter().chain(self.watches.into_iter().map(|watch| watch.waker))
    }

    /// Returns true if a watch waits for contention that has not come.
    pub(super) fn watches_contention(&self) -> bool {
        self.watches.iter().any(|watch| watch.watched == Watched::Contention && !watch.come)
    }
}
