//! The life of one request, put together from the lines about it.

use std::sync::Arc;

use crate::check::violation::{Key, Violation};
use crate::record::{Mode, Moment, Step, Wait};

/// A request from its beginning to its end, as far as its client recorded it.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) key: Key,
    pub(super) names: Vec<Arc<str>>,
    pub(super) mode: Mode,
    pub(super) wait: Wait,
    pub(super) asked: Moment,
    /// When it was seen pending, in order.
    pub(super) seen: Vec<Seen>,
    pub(super) held: Option<Held>,
    /// The last moment at which its client checked and took the lock for held.
    pub(super) believed: Option<Moment>,
    /// The client was about to release. It counts as a check when the release succeeded.
    releasing: Option<Moment>,
    /// The service had granted the lock, or taken the names away, by then.
    pub(super) done: Option<Moment>,
    /// When the client knew that it is over.
    pub(super) over: Option<Moment>,
    /// The cause of the loss that the client received.
    pub(super) lost: Option<Arc<str>>,
}

/// The request was pending at some moment between the two.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) since: Moment,
    pub(super) until: Moment,
    pub(super) id: Arc<str>,
}

#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) at: Moment,
    pub(super) token: u64,
    pub(super) id: Arc<str>,
}

impl Life {
    pub(super) fn new(
        key: Key,
        asked: Moment,
        names: Vec<Arc<str>>,
        mode: Mode,
        wait: Wait,
    ) -> Self {
        Self {
            key,
            names,
            mode,
            wait,
            asked,
            seen: Vec::new(),
            held: None,
            believed: None,
            releasing: None,
            done: None,
            over: None,
            lost: None,
        }
    }

    /// Takes the next step, or returns why it cannot be the next.
    pub(super) fn step(&mut self, at: Moment, step: &Step) -> Result<(), Violation> {
        let strange = |what| Err(Violation::Nonsense { request: self.key.clone(), what });
        if self.over.is_some() {
            return strange("goes on after its end");
        }
        match (step, &self.held) {
            (Step::Asked { .. }, _) => return strange("is asked twice"),
            (Step::Pending { since, id }, None) => {
                self.seen.push(Seen { since: *since, until: at, id: id.clone() });
            }
            (Step::Held { token, id }, None) => {
                self.held = Some(Held { at, token: *token, id: id.clone() });
                self.done = Some(at);
            }
            (Step::Still, Some(_)) => self.believed = self.believed.max(Some(at)),
            (Step::Releasing, Some(_)) => self.releasing = Some(at),
            (Step::Released, Some(_)) => {
                self.believed = self.believed.max(self.releasing);
                self.over = Some(at);
            }
            (Step::Forced, None) => (self.done, self.over) = (Some(at), Some(at)),
            (Step::Lost(why), Some(_)) => {
                (self.over, self.lost) = (Some(at), Some(why.clone()));
            }
            (Step::Withdrawn | Step::Unavailable | Step::TimedOut | Step::Failed(_), None) => {
                self.over = Some(at);
            }
            (Step::Held { .. }, Some(_)) => return strange("is granted twice"),
            (Step::Still | Step::Releasing | Step::Released | Step::Lost(_), None) => {
                return strange("had no lock to keep, release or lose");
            }
            (_, Some(_)) => return strange("was granted and is still told an outcome"),
        }
        Ok(())
    }

    /// Returns true if the request takes the locks of others away.
    pub(super) fn robs(&self) -> bool {
        matches!(self.wait, Wait::Steal | Wait::Force)
    }

    /// Returns when the client received the outcome of the request.
    pub(super) fn answered(&self) -> Option<Moment> {
        self.done.or(self.over)
    }

    /// Returns the first name that two requests have in common.
    pub(super) fn common_name(&self, other: &Self) -> Option<&Arc<str>> {
        self.names.iter().find(|name| other.names.contains(name))
    }

    /// Returns the first name on which two requests exclude each other.
    pub(super) fn conflict(&self, other: &Self) -> Option<&Arc<str>> {
        let exclusive = self.mode == Mode::Exclusive || other.mode == Mode::Exclusive;
        self.common_name(other).filter(|_| exclusive)
    }
}
