//! One request of a session, from its beginning to its end.

use std::task::Waker;

use navlocks_core::{FencingToken, Wait};

use crate::backend::Watched;
use crate::clock::Moment;
use crate::error::{Loss, RequestErrorKind};
use crate::wakes::Wakes;
use navlocks_wire as wire;

/// A request as the client knows it.
#[derive(Debug)]
pub(super) struct Entry {
    /// The message, to be sent again over another connection.
    pub(super) request: wire::Request,
    pub(super) stage: Stage,
    /// Whether a service may have received it.
    pub(super) sent: bool,
    /// When it was made, or granted.
    pub(super) since: Moment,
    /// The place in the queue, if the service sent one.
    pub(super) place: Option<wire::QueuePlace>,
    /// The task that waits for the answer.
    pub(super) waker: Option<Waker>,
    /// Watches of the lock.
    pub(super) watches: Vec<Watch>,
}

/// The stage of a request.
#[derive(Debug)]
pub(super) enum Stage {
    /// Not answered yet.
    Pending,
    /// Granted, and its future has not received that: if the session ends first, it is requested
    /// again.
    Granted(FencingToken),
    /// Its lock has a guard.
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
    /// True if a request waits for the lock.
    come: bool,
}

impl Entry {
    pub(super) fn new(request: wire::Request, sent: bool, waker: Waker) -> Self {
        let (stage, watches) = (Stage::Pending, Vec::new());
        let since = Moment::now();
        Self { request, stage, sent, since, place: None, waker: Some(waker), watches }
    }

    /// Returns true if a later request of the same client takes this lock away: it steals, and
    /// their scopes intersect.
    pub(super) fn is_robbed_by(&self, thief: &wire::Request) -> bool {
        let own = &self.request;
        thief.id > own.id
            && thief.client == own.client
            && is_steal(thief)
            && thief.names.0.intersects(&own.names.0)
    }

    /// Returns true if the service must keep it.
    pub(super) fn is_alive(&self) -> bool {
        !matches!(self.stage, Stage::Over(_))
    }

    /// Returns the request as a claim has it: with its age, and the token of a held one or the
    /// place of a pending one. Returns none when it is over.
    pub(super) fn claim(&self) -> Option<wire::Request> {
        let (token, place) = match self.stage {
            Stage::Pending => (None, self.place),
            Stage::Granted(token) | Stage::Held(token) => (Some(token.get()), None),
            Stage::Over(_) => return None,
        };
        let ms = u64::try_from(self.since.age().as_millis()).ok();
        Some(wire::Request { token, place, ms, ..self.request.clone() })
    }

    /// Returns how it was lost, if it was.
    pub(super) fn loss(&self) -> Option<Loss> {
        match &self.stage {
            Stage::Over(Over::Lost(loss)) => Some(loss.clone()),
            _ => None,
        }
    }

    /// Grants it.
    pub(super) fn grant(&mut self, token: FencingToken) -> Option<Waker> {
        self.stage = Stage::Granted(token);
        self.since = Moment::now();
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
        self.place = None;
        let unseen = matches!(self.stage, Stage::Pending | Stage::Granted(_));
        if unseen && std::mem::take(&mut self.sent) && is_steal(&self.request) {
            self.end(Over::Failed(RequestErrorKind::OutcomeUnknown), wakes);
        }
        match std::mem::replace(&mut self.stage, Stage::Over(Over::Lost(loss.clone()))) {
            Stage::Held(_) => {
                self.end(Over::Lost(loss.clone()), wakes);
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

/// Returns true if the request takes locks away from their holders.
pub(super) fn is_steal(request: &wire::Request) -> bool {
    matches!(request.wait, Wait::Steal | Wait::StealAll)
}
