//! The inboxes of subscribers: events wait here until each stream takes them.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

use crate::events::{Event, Gap};
use crate::sync::wakes::Wakes;

/// The events that each stream has yet to take.
#[derive(Debug, Default)]
pub(crate) struct Inboxes {
    inboxes: BTreeMap<u64, Inbox>,
    next: u64,
    /// How many subscriptions were sent to the service over this connection.
    #[cfg(feature = "client")]
    sent: u64,
    /// How many of them the service has answered.
    answered: u64,
}

#[derive(Debug)]
pub(crate) struct Inbox {
    items: VecDeque<Result<Event, Gap>>,
    /// The most events that wait here; the oldest make room for later ones.
    capacity: usize,
    /// How many events were dropped since the subscriber last received the count.
    missed: u64,
    waker: Option<Waker>,
    /// Events before this answer of the service happened before the stream was made.
    begins: u64,
    /// The service has refused its subscription.
    is_over: bool,
}

impl Inbox {
    fn push(&mut self, item: Result<Event, Gap>) {
        // At least the newest item stays.
        self.make_room(self.capacity.max(1) - 1);
        self.items.push_back(item);
    }

    /// Drops the oldest items until no more than this are left.
    fn make_room(&mut self, left: usize) {
        let over = self.items.len().saturating_sub(left);
        self.missed += self.items.drain(..over).filter(Result::is_ok).count() as u64;
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
        let items = VecDeque::new();
        let inbox = Inbox { items, capacity, missed: 0, waker: None, begins: 0, is_over: false };
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

    /// Ends a stream. Returns its inbox, to be dropped after unlocking.
    pub(crate) fn remove(&mut self, number: u64) -> Option<Inbox> {
        self.inboxes.remove(&number)
    }

    /// Takes the next event of a stream, or first the number of events that are missing before it.
    pub(crate) fn take(&mut self, number: u64) -> Option<Result<Event, Gap>> {
        let inbox = self.inboxes.get_mut(&number)?;
        match std::mem::take(&mut inbox.missed) {
            0 => inbox.items.pop_front(),
            missed => Some(Err(Gap::Lagged { missed })),
        }
    }

    /// Takes the wakers of all streams, so that they look whether their client has ended.
    pub(crate) fn take_wakers(&mut self) -> impl Iterator<Item = Waker> {
        self.inboxes.values_mut().filter_map(|inbox| inbox.waker.take())
    }

    /// Keeps the waker of a stream. Returns an earlier one, to be dropped after unlocking.
    pub(crate) fn wait(&mut self, number: u64, waker: Waker) -> Option<Waker> {
        self.inboxes.get_mut(&number)?.waker.replace(waker)
    }

    /// Sends an event to all streams.
    pub(crate) fn deliver(&mut self, event: &Event, wakes: &mut Wakes) {
        for inbox in self.inboxes.values_mut().filter(|inbox| inbox.begins <= self.answered) {
            inbox.push(Ok(event.clone()));
            wakes.add_all(inbox.waker.take());
        }
    }

    #[cfg(feature = "client")]
    pub(crate) fn len(&self) -> usize {
        self.inboxes.len()
    }

    /// Keeps events from the newest stream until the service has answered its subscription.
    #[cfg(feature = "client")]
    pub(crate) fn mute_newest(&mut self) {
        self.sent += 1;
        if let Some(mut newest) = self.inboxes.last_entry() {
            newest.get_mut().begins = self.sent;
        }
    }

    /// Counts an answer of the service to a subscription. Answers come in the order of
    /// subscriptions.
    #[cfg(feature = "client")]
    pub(crate) fn begin(&mut self) {
        self.answered = (self.answered + 1).min(self.sent);
    }

    /// The service refuses the next subscription: ends its streams with the reason.
    #[cfg(feature = "client")]
    pub(crate) fn refuse(&mut self, wakes: &mut Wakes) {
        self.begin();
        for inbox in self.inboxes.values_mut().filter(|inbox| inbox.begins <= self.answered) {
            inbox.push(Err(Gap::Refused));
            inbox.is_over = true;
            wakes.add_all(inbox.waker.take());
        }
    }

    /// Returns true if a stream will get no more events.
    pub(crate) fn is_over(&self, number: u64) -> bool {
        self.inboxes.get(&number).is_none_or(|inbox| inbox.is_over)
    }

    /// Marks in all streams that have begun that events may be missing from here on.
    #[cfg(feature = "client")]
    pub(crate) fn lose_connection(&mut self, wakes: &mut Wakes) {
        for inbox in self.inboxes.values_mut().filter(|inbox| inbox.begins <= self.answered) {
            // One mark is enough where no event came in between.
            if inbox.items.back() != Some(&Err(Gap::ConnectionLost)) {
                inbox.push(Err(Gap::ConnectionLost));
                wakes.add_all(inbox.waker.take());
            }
        }
    }

    /// Begins another connection, with one subscription for all streams.
    #[cfg(feature = "client")]
    pub(crate) fn restart(&mut self) {
        for inbox in self.inboxes.values_mut() {
            let has_begun = inbox.begins <= self.answered;
            inbox.begins = u64::from(!has_begun);
        }
        self.answered = 0;
        self.sent = 1;
    }
}
