//! The event stream of a client.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::backend::inbox::Inboxes;
use crate::events::{Event, Gap};
use crate::owner::Client;

/// The most events that a stream keeps for a slow subscriber, unless it sets another
/// [capacity](Events::capacity).
const CAPACITY: usize = 4096;

/// Every event of a lock space from the moment this was made, in order. Ends when its client
/// [ends](crate::Locks::end_client).
///
/// Events that are not taken are kept, up to a [capacity](Self::capacity). A subscriber that reads
/// too slowly then loses the oldest ones, and receives how many they were: [`Gap::Lagged`]. A lost
/// connection to a service is [`Gap::ConnectionLost`], at once. Without a stream, events cost
/// nothing.
pub struct Events {
    client: Arc<Client>,
    number: u64,
}

impl Events {
    pub(crate) fn new(client: Arc<Client>) -> Self {
        client.add_stream();
        // A client that has ended has no inboxes, and its streams have no number.
        let number = client.backend.inboxes(client.id, |inboxes| inboxes.add(CAPACITY));
        let number = number.unwrap_or_default();
        Self { client, number }
    }

    /// Keeps at most this many events, and at least one. The default is 4096.
    pub fn capacity(self, events: usize) -> Self {
        self.change(|inboxes, number| inboxes.resize(number, events));
        self
    }

    /// Returns the next event; `None` when the client has ended.
    ///
    /// # Errors
    ///
    /// [`Gap`]: events are missing before the next one, or may be.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no event.
    pub async fn recv(&mut self) -> Option<Result<Event, Gap>> {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    /// Returns the next event, if it has happened already.
    ///
    /// # Errors
    ///
    /// [`Gap`]: events are missing before the next one, or may be.
    pub fn try_recv(&mut self) -> Option<Result<Event, Gap>> {
        self.change(Inboxes::take).flatten()
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event, Gap>>> {
        let waker = cx.waker().clone();
        let polled = self.change(|inboxes, number| match inboxes.take(number) {
            Some(event) => (Poll::Ready(Some(event)), Some(waker)),
            // Read while the inboxes are locked: the end of a client is noted before it wakes the
            // streams.
            None if self.client.has_ended() || inboxes.is_over(number) => {
                (Poll::Ready(None), Some(waker))
            }
            None => (Poll::Pending, inboxes.wait(number, waker)),
        });
        let (poll, _dropped_unlocked) = polled.unwrap_or((Poll::Ready(None), None));
        poll
    }

    /// Runs `work` on the inboxes. Returns none when no event will come any more.
    fn change<T>(&self, work: impl FnOnce(&mut Inboxes, u64) -> T) -> Option<T> {
        self.client.backend.inboxes(self.client.id, |inboxes| work(inboxes, self.number))
    }
}

impl Stream for Events {
    type Item = Result<Event, Gap>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll(cx)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let _dropped_unlocked = self.change(Inboxes::remove);
        self.client.remove_stream();
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client, number } = self;
        f.debug_struct("Events").field("backend", &client.backend).field("number", number).finish()
    }
}
