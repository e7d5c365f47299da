//! One request of a session, during all its life.

use std::task::Waker;

use navlocks_core::{FencingToken, Wait};

use crate::backend::Watched;
use crate::error::{Loss, RequestErrorKind};
use crate::wakes::Wakes;
use navlocks_wire as wire;

/// A request as this side knows it.
#[derive(Debug)]
pub(super) struct Entry {
    /// As it was sent, to be sent again over another connection.
    pub(super) request: wire::Request,
    pub(super) stage: Stage,
    /// The place in the queue, if the service told one.
    pub(super) place: Option<wire::QueuePlace>,
    /// The task that waits for the answer.
    pub(super) waker: Option<Waker>,
    /// Holders that wait for something to happen to the lock.
    pub(super) watches: Vec<Watch>,
}

/// How far it has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// Not answered yet.
    Pending,
    /// Granted, and its future has not received that: if the session ends first, it waits again.
    Granted(FencingToken),
    /// There is a guard.
    Held(FencingToken),
    /// Over, until its future has received that or its guard is dropped.
    Over(Over),
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
    /// Somebody waits for the lock.
    come: bool,
}

impl Entry {
    pub(super) fn new(request: wire::Request, waker: Waker) -> Self {
        let (stage, watches) = (Stage::Pending, Vec::new());
        Self { request, stage, place: None, waker: Some(waker), watches }
    }

    /// Returns true if a later request of the same client takes this lock away: it steals, and
    /// their scopes intersect.
    pub(super) fn is_robbed_by(&self, thief: &wire::Request) -> bool {
        let own = &self.request;
        thief.id > own.id
            && thief.client == own.client
            && matches!(thief.wait, Wait::Steal | Wait::StealAll)
            && thief.names.0.intersects(&own.names.0)
    }

    /// Returns true if the service is to keep it.
    pub(super) fn is_alive(&self) -> bool {
        !matches!(self.stage, Stage::Over(_))
    }

    /// Returns the request as a claim has it: with the token of a held one, or the place of a
    /// pending one. Returns none when it is over.
    pub(super) fn claim(&self) -> Option<wire::Request> {
        let (token, place) = match self.stage {
            Stage::Pending => (None, self.place),
            Stage::Granted(token) | Stage::Held(token) => (Some(token.get()), None),
            Stage::Over(_) => return None,
        };
        Some(wire::Request { token, place, ..self.request.clone() })
    }

    /// Why it is no more, if it was lost.
    pub(super) fn loss(&self) -> Option<Loss> {
        match self.stage {
            Stage::Over(Over::Lost(loss)) => Some(loss),
            _ => None,
        }
    }

    /// It comes to its end by somebody else's doing; all who wait for something here wake.
    pub(super) fn end(&mut self, over: Over, wakes: &mut Wakes) {
        self.stage = Stage::Over(over);
        wakes.add_all(self.waker.take());
        wakes.add_all(self.watches.drain(..).map(|watch| watch.waker));
    }

    /// The session is over; the service that comes next knows nothing of it. Locks are lost, requests keep waiting.
    pub(super) fn lapse(&mut self, loss: Loss, wakes: &mut Wakes) -> bool {
        self.place = None;
        match std::mem::replace(&mut self.stage, Stage::Over(Over::Lost(loss))) {
            Stage::Held(_) => {
                self.end(Over::Lost(loss), wakes);
                true
            }
            Stage::Granted(_) => {
                self.stage = Stage::Pending;
                false
            }
            earlier => {
                self.stage = earlier;
                false
            }
        }
    }

    /// Somebody waits for the lock.
    pub(super) fn contended(&mut self, wakes: &mut Wakes) {
        for watch in &mut self.watches {
            if watch.watched == Watched::Contention {
                watch.come = true;
                wakes.add(watch.waker.clone());
            }
        }
    }

    /// Whether the watch with this number has seen what it waits for. Makes it when there is none, and returns a waker to be
    /// dropped later.
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

    /// All who wait for something here.
    pub(super) fn into_wakers(self) -> impl Iterator<Item = Waker> {
        self.waker.into_iter().chain(self.watches.into_iter().map(|watch| watch.waker))
    }

    /// Whether somebody waits to hear of contention and has not.
    pub(super) fn watches_contention(&self) -> bool {
        self.watches.iter().any(|watch| watch.watched == Watched::Contention && !watch.come)
    }
}
