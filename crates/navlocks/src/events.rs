//! The event stream: everything that happens in a lock space, for those who watch.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use navlocks_core::{ClientId, FencingToken, LockManager, Mode, RequestId, Scope};

use crate::error::{Cycle, Loss};
use crate::home::Home;
use crate::wakes::Wakes;

/// Something that happened to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The request, and once granted the lock.
    pub request: RequestId,
    /// Whose it is.
    pub client: ClientId,
    /// The names it asks for.
    pub scope: Scope,
    /// Shared or exclusive.
    pub mode: Mode,
    /// The text given with [`tag`](crate::Request::tag).
    pub tag: Option<Arc<str>>,
    /// The process whose it is, where a service knows it. In process there is only one.
    pub pid: Option<u32>,
    /// What happened.
    pub what: What,
    /// Whether events before this one may be missing, because the connection to the service was lost meanwhile.
    pub after_gap: bool,
}

/// What happened to a request. Each begins with `Requested`; `Granted` comes once at most; exactly one of the others but
/// `Deadlock` is the last.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// It was made.
    Requested,
    /// It holds its lock.
    Granted(FencingToken),
    /// It wanted the lock only if available, which it is not.
    Unavailable,
    /// Its lock was released by its holder.
    Released,
    /// It was given up by its owner while it waited: dropped, timed out, or refused for a deadlock.
    Withdrawn,
    /// It was thrown out of the queue by somebody else.
    Aborted(Loss),
    /// Its lock was taken away.
    Lost(Loss),
    /// It waits, and thereby closes a cycle of clients that wait for each other.
    Deadlock(Cycle),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { request, client, scope, mode, tag, pid, .. } = self;
        write!(f, "{request} of {client}")?;
        if let Some(tag) = tag {
            write!(f, " [{tag}]")?;
        }
        if let Some(pid) = pid {
            write!(f, " (pid {pid})")?;
        }
        write!(f, " ({mode} {scope}) ")?;
        match &self.what {
            What::Requested => f.write_str("requested"),
            What::Granted(token) => write!(f, "granted with token {token}"),
            What::Unavailable => f.write_str("unavailable"),
            What::Released => f.write_str("released"),
            What::Withdrawn => f.write_str("withdrawn"),
            What::Aborted(loss) => write!(f, "aborted: {loss}"),
            What::Lost(loss) => write!(f, "lost: {loss}"),
            What::Deadlock(cycle) => write!(f, "deadlocked: {cycle}"),
        }
    }
}

/// Everything that happens in a lock space from the moment this was made, in order. A stream without an end.
///
/// Of a service, events that happen while there is no connection are missing; the next one says so
/// ([`after_gap`](Event::after_gap)).
///
/// Events that are not taken are kept; drop the stream when you have seen enough. While there is none, events
/// cost nothing.
#[derive(Debug)]
pub struct Events {
    home: Home,
    client: ClientId,
    number: u64,
}

impl Events {
    pub(crate) fn new(home: Home, client: ClientId) -> Self {
        // A client of a service that was ended hears of nothing.
        let number = home.listen(client, Inboxes::add).unwrap_or_default();
        Self { home, client, number }
    }

    /// The next event.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Event {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    /// The next event, if it has happened already.
    pub fn try_next(&mut self) -> Option<Event> {
        self.home.listen(self.client, |inboxes| inboxes.take(self.number)).flatten()
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        let waker = cx.waker().clone();
        let polled = self.home.listen(self.client, |inboxes| match inboxes.take(self.number) {
            Some(event) => (Poll::Ready(event), Some(waker)),
            None => (Poll::Pending, inboxes.wait(self.number, waker)),
        });
        let (poll, _dropped_unlocked) = polled.unwrap_or((Poll::Pending, None));
        poll
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.poll(cx).map(Some)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let _dropped_unlocked =
            self.home.listen(self.client, |inboxes| inboxes.remove(self.number));
    }
}

/// The events that were told and not taken yet, for each stream.
#[derive(Debug, Default)]
pub(crate) struct Inboxes {
    inboxes: BTreeMap<u64, Inbox>,
    next: u64,
    /// How often a service was told over this connection that somebody listens.
    #[cfg(feature = "connect")]
    listens: u64,
    /// How often it has answered that.
    answers: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Inbox {
    events: VecDeque<Event>,
    waker: Option<Waker>,
    /// What is told before this answer of the service happened before this stream was made.
    begins: u64,
    /// Something may have happened since the last event that nobody told.
    gap: bool,
}

impl Inboxes {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.inboxes.is_empty()
    }

    /// A new stream.
    fn add(&mut self) -> u64 {
        self.next += 1;
        self.inboxes.insert(self.next, Inbox::default());
        self.next
    }

    /// Ends a stream. Returns what is to be dropped later.
    fn remove(&mut self, number: u64) -> Option<Inbox> {
        self.inboxes.remove(&number)
    }

    fn take(&mut self, number: u64) -> Option<Event> {
        self.inboxes.get_mut(&number)?.events.pop_front()
    }

    /// Returns a waker to be dropped later.
    fn wait(&mut self, number: u64, waker: Waker) -> Option<Waker> {
        self.inboxes.get_mut(&number)?.waker.replace(waker)
    }

    /// Tells all streams.
    pub(crate) fn deliver(&mut self, event: &Event, wakes: &mut Wakes) {
        for inbox in self.inboxes.values_mut().filter(|inbox| inbox.begins <= self.answers) {
            let after_gap = std::mem::take(&mut inbox.gap);
            inbox.events.push_back(Event { after_gap, ..event.clone() });
            wakes.add_all(inbox.waker.take());
        }
    }

    #[cfg(feature = "connect")]
    pub(crate) fn len(&self) -> usize {
        self.inboxes.len()
    }

    /// Nothing is for the newest stream until the service has answered that it listens.
    #[cfg(feature = "connect")]
    pub(crate) fn deafen_newest(&mut self) {
        self.listens += 1;
        if let Some(mut newest) = self.inboxes.last_entry() {
            newest.get_mut().begins = self.listens;
        }
    }

    /// The service has answered that somebody listens, in its turn.
    #[cfg(feature = "connect")]
    pub(crate) fn begin(&mut self) {
        self.answers = (self.answers + 1).min(self.listens);
    }

    /// Another connection begins, over which nothing was said yet. Whether the service is to be told that somebody listens, once
    /// for all.
    #[cfg(feature = "connect")]
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

    /// The wakers of all who wait, for a space that is no more.
    #[cfg(feature = "connect")]
    pub(crate) fn into_wakers(self) -> impl Iterator<Item = Waker> {
        self.inboxes.into_values().filter_map(|inbox| inbox.waker)
    }
}

/// All streams of a space in this process.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    inboxes: Inboxes,
    /// What to say of each live request; empty while nobody listens.
    requests: HashMap<RequestId, About>,
}

/// What every event of a request repeats.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) client: ClientId,
    pub(crate) scope: Scope,
    pub(crate) mode: Mode,
    pub(crate) tag: Option<Arc<str>>,
}

impl Listeners {
    /// Whether nobody listens.
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
        self.tell(id, || What::Requested, wakes);
    }

    /// Tells all listeners.
    #[inline]
    pub(crate) fn tell(&mut self, id: RequestId, what: impl FnOnce() -> What, wakes: &mut Wakes) {
        if self.inboxes.is_empty() {
            return;
        }
        let Some(about) = self.requests.get(&id) else { return };
        let About { client, scope, mode, tag } = about.clone();
        let (pid, what, after_gap) = (None, what(), false);
        let event = Event { request: id, client, scope, mode, tag, pid, what, after_gap };
        self.inboxes.deliver(&event, wakes);
    }

    /// Tells all listeners the last that happens to a request.
    #[inline]
    pub(crate) fn end(&mut self, id: RequestId, what: impl FnOnce() -> What, wakes: &mut Wakes) {
        self.tell(id, what, wakes);
        if !self.inboxes.is_empty() {
            self.requests.remove(&id);
        }
    }
}
