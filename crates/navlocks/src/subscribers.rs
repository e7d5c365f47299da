//! The subscribers of a lock space: events wait here until each stream takes them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use navlocks_core::{ClientId, LockManager, Mode, RequestId, Scope};

use crate::events::{Event, Kind, Lagged};
use crate::wakes::Wakes;

/// The events that were told and not taken yet, for each stream.
#[derive(Debug, Default)]
pub(crate) struct Inboxes {
    inboxes: BTreeMap<u64, Inbox>,
    next: u64,
    /// How often a service was told over this connection that somebody listens.
    #[cfg(feature = "service")]
    listens: u64,
    /// How often it has answered that.
    answers: u64,
}

#[derive(Debug)]
pub(crate) struct Inbox {
    events: VecDeque<Event>,
    /// The most events that wait here; the oldest make room for later ones.
    capacity: usize,
    /// How many events were dropped since the subscriber was last told.
    missed: u64,
    waker: Option<Waker>,
    /// Events before this answer of the service happened before this stream was made.
    begins: u64,
    /// Events may be missing since the last one, because the connection was lost.
    gap: bool,
}

impl Inbox {
    fn push(&mut self, event: Event) {
        let after_gap = std::mem::take(&mut self.gap);
        // At least the newest event stays.
        self.make_room(self.capacity.max(1) - 1);
        self.events.push_back(Event { after_gap, ..event });
    }

    /// Drops the oldest events until no more than this are left.
    fn make_room(&mut self, left: usize) {
        let over = self.events.len().saturating_sub(left);
        self.events.drain(..over);
        self.missed += over as u64;
    }
}

impl Inboxes {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.inboxes.is_empty()
    }

    /// Adds a stream that keeps at most so many events.
    pub(crate) fn add(&mut self, capacity: usize) -> u64 {
        self.next += 1;
        let events = VecDeque::new();
        let inbox = Inbox { events, capacity, missed: 0, waker: None, begins: 0, gap: false };
        self.inboxes.insert(self.next, inbox);
        self.next
    }

    /// Changes how many events a stream keeps.
    pub(crate) fn resize(&mut self, number: u64, capacity: usize) {
        if let Some(inbox) = self.inboxes.get_mut(&number) {
            inbox.capacity = capacity;
            inbox.make_room(capacity);
        }
    }

    /// Ends a stream. Returns what is to be dropped later.
    pub(crate) fn remove(&mut self, number: u64) -> Option<Inbox> {
        self.inboxes.remove(&number)
    }

    /// Takes the next event of a stream, or first how many are missing before it.
    pub(crate) fn take(&mut self, number: u64) -> Option<Result<Event, Lagged>> {
        let inbox = self.inboxes.get_mut(&number)?;
        match std::mem::take(&mut inbox.missed) {
            0 => inbox.events.pop_front().map(Ok),
            missed => Some(Err(Lagged { missed })),
        }
    }

    /// Takes the wakers of all streams, so that they look whether their client has ended.
    pub(crate) fn take_wakers(&mut self) -> impl Iterator<Item = Waker> {
        self.inboxes.values_mut().filter_map(|inbox| inbox.waker.take())
    }

    /// Returns a waker to be dropped later.
    pub(crate) fn wait(&mut self, number: u64, waker: Waker) -> Option<Waker> {
        self.inboxes.get_mut(&number)?.waker.replace(waker)
    }

    /// Sends an event to all streams.
    pub(crate) fn deliver(&mut self, event: &Event, wakes: &mut Wakes) {
        for inbox in self.inboxes.values_mut().filter(|inbox| inbox.begins <= self.answers) {
            inbox.push(event.clone());
            wakes.add_all(inbox.waker.take());
        }
    }

    #[cfg(feature = "service")]
    pub(crate) fn len(&self) -> usize {
        self.inboxes.len()
    }

    /// Nothing is for the newest stream until the service has answered that it listens.
    #[cfg(feature = "service")]
    pub(crate) fn deafen_newest(&mut self) {
        self.listens += 1;
        if let Some(mut newest) = self.inboxes.last_entry() {
            newest.get_mut().begins = self.listens;
        }
    }

    /// The service has answered that somebody listens, in its turn.
    #[cfg(feature = "service")]
    pub(crate) fn begin(&mut self) {
        self.answers = (self.answers + 1).min(self.listens);
    }

    /// Another connection begins, over which nothing was said yet. Whether the service is to be told that somebody listens, once
    /// for all.
    #[cfg(feature = "service")]
    pub(crate) fn restart(&mut self) -> bool {
        for inbox in self.inboxes.values_mut() {
            let has_begun = inbox.begins <= self.answers;
            inbox.begins = u64::from(!has_begun);
            inbox.gap |= has_begun;
        }
        self.answers = 0;
        self.listens = u64::from(!self.inboxes.is_empty());
        !self.inboxes.is_empty()
    }
}

/// All streams of a space in this process.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    inboxes: Inboxes,
    /// Facts about each live request; empty without a subscriber.
    requests: HashMap<RequestId, About>,
}

/// The facts that every event of a request repeats.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) client: ClientId,
    pub(crate) scope: Scope,
    pub(crate) mode: Mode,
    pub(crate) tag: Option<Arc<str>>,
}

impl Subscribers {
    /// Whether there is no subscriber.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.inboxes.is_empty()
    }

    /// Runs `work` on the streams. When the first one begins, what is there is noted; after the last one it is forgotten.
    pub(crate) fn change<T>(
        &mut self,
        work: impl FnOnce(&mut Inboxes) -> T,
        manager: &LockManager,
        tag: impl Fn(RequestId) -> Option<Arc<str>>,
    ) -> T {
        let before = self.inboxes.is_empty();
        let result = work(&mut self.inboxes);
        match (before, self.inboxes.is_empty()) {
            (true, false) => {
                let now = manager.snapshot();
                self.requests.extend(now.held.into_iter().chain(now.pending).map(|info| {
                    let tag = tag(info.request);
                    let (client, scope, mode) = (info.client, info.scope, info.mode);
                    (info.request, About { client, scope, mode, tag })
                }));
            }
            (false, true) => self.requests = HashMap::new(),
            _ => {}
        }
        result
    }

    pub(crate) fn requested(&mut self, id: RequestId, about: About, wakes: &mut Wakes) {
        self.requests.insert(id, about);
        self.tell(id, || Kind::Requested, wakes);
    }

    /// Sends an event to all subscribers.
    #[inline]
    pub(crate) fn tell(&mut self, id: RequestId, kind: impl FnOnce() -> Kind, wakes: &mut Wakes) {
        if self.inboxes.is_empty() {
            return;
        }
        let Some(about) = self.requests.get(&id) else { return };
        let About { client, scope, mode, tag } = about.clone();
        let what = kind();
        let event =
            Event { request: id, client, scope, mode, tag, pid: None, what, after_gap: false };
        self.inboxes.deliver(&event, wakes);
    }

    /// Sends all subscribers the last event to a request.
    #[inline]
    pub(crate) fn end(&mut self, id: RequestId, kind: impl FnOnce() -> Kind, wakes: &mut Wakes) {
        self.tell(id, kind, wakes);
        if !self.inboxes.is_empty() {
            self.requests.remove(&id);
        }
    }
}
