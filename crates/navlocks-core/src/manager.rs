//! The lock manager: the inputs, and the events they cause.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::borrow::Borrow;

use crate::client::Clients;
use crate::entry::Entries;
use crate::id::{Index, Part};
use crate::numbers::Numbers;
use crate::queue::{HashKey, Queues};
use crate::{Answer, HandOver, Mode, Snapshot, State};
use crate::{
    ClientId, Event, FencingToken, Name, Request, RequestError, RequestId, TokenTooLarge, Wait,
};

/// One lock space: the standard's lock manager, one for each storage bucket (or tenant, or program).
///
/// # Grammar
///
/// *Inputs* are the standard's verbs and take `&mut self`: [`request`](Self::request), [`release`](Self::release),
/// [`abort`](Self::abort), [`terminate`](Self::terminate), [`force_release`](Self::force_release),
/// [`suspend`](Self::suspend), [`resume`](Self::resume), [`query`](Self::query). An input says by its return value what it
/// did to the thing it names; an input that names something finished does nothing and says so.
///
/// *Outputs* are events: after each input call [`poll_event`](Self::poll_event) until it returns `None` and pass each event
/// on to its client, in this order.
///
/// *Questions* take `&self` and disturb nobody: [`state`](Self::state), [`snapshot`](Self::snapshot),
/// [`blockers`](Self::blockers), [`deadlocks`](Self::deadlocks).
///
/// # Policy
///
/// Everything that asked for a lock and is not finished is an *entry*; entries stand in one order, that of arrival. An entry is
/// held exactly when no earlier entry conflicts with it, and two entries conflict when their scopes intersect and at least one
/// of them is exclusive. So each name is first come, first served; neighbouring shared requests hold together; a shared
/// request waits behind an earlier exclusive one, even if that one is still waiting; and a request for several
/// names gets all of them at once and keeps its place on each meanwhile. A steal, and a shared
/// request that [overtakes](Wait::Overtake), stand before all pending entries.
///
/// When an entry leaves, whatever the reason, all that it alone held up are granted in the same step, in queue order.
///
/// # Cost
///
/// `request`, `release` and `abort` cost O(names of the scope), however many other entries there are on these names or others;
/// `terminate` O(entries of the client); `snapshot` O(n log n) in what it returns. A steal also passes
/// once over the holders it robs and the compatible requests next in line.
/// An idle manager gives its memory back.
#[derive(Debug)]
pub struct LockManager {
    pub(crate) queues: Queues,
    pub(crate) entries: Entries,
    pub(crate) clients: Clients,
    events: VecDeque<Event>,
    pub(crate) numbers: Numbers,
    /// How many entries there are, and how many of them are held.
    pub(crate) live: usize,
    pub(crate) held: usize,
    /// Queues that lost a seat and are to be processed. Empty between inputs, like the next.
    pub(crate) disturbed: Vec<Index>,
    /// Entries that became clear on all their names and are to be granted.
    pub(crate) ready: Vec<Index>,
    #[cfg(debug_assertions)]
    inputs_since_check: usize,
}

/// Below this many slots, memory is kept for the next burst.
const IDLE_CAPACITY: usize = 1024;

impl LockManager {
    /// A manager without clients. The first grant gets token 1.
    pub fn new(key: HashKey) -> Self {
        Self::with(Queues::new(key), Entries::new(Part::WHOLE), Clients::new(), Numbers::own())
    }

    pub(crate) fn with(
        queues: Queues,
        entries: Entries,
        clients: Clients,
        numbers: Numbers,
    ) -> Self {
        Self {
            queues,
            entries,
            clients,
            numbers,
            events: VecDeque::new(),
            live: 0,
            held: 0,
            disturbed: Vec::new(),
            ready: Vec::new(),
            #[cfg(debug_assertions)]
            inputs_since_check: 0,
        }
    }

    /// Makes the tokens of all grants from now on at least this: for a manager that continues where an
    /// earlier one ended. Never makes them smaller.
    ///
    /// # Errors
    ///
    /// [`TokenTooLarge`], and nothing has changed: the number is beyond [`FencingToken::START_MAX`], which no honest
    /// count of grants reaches.
    pub fn advance_token(&mut self, at_least: FencingToken) -> Result<(), TokenTooLarge> {
        if at_least > FencingToken::START_MAX {
            return Err(TokenTooLarge(at_least));
        }
        self.numbers.advance_token(at_least.get());
        Ok(())
    }

    /// A new client, known until it is [terminated](Self::terminate).
    pub fn add_client(&mut self) -> ClientId {
        self.clients.insert()
    }

    /// Requests a lock for `client`. The outcome is an event: at once or later, as the request says.
    ///
    /// # Errors
    ///
    /// The request was not taken, and nothing has changed.
    #[inline]
    pub fn request(
        &mut self,
        client: ClientId,
        request: impl Borrow<Request>,
    ) -> Result<RequestId, RequestError> {
        let owner = self.admit(client, request.borrow())?;
        let (id, _told) = self.request_any_lock(owner, request.borrow(), false);
        Ok(id)
    }

    /// As [`request`](Self::request), for an embedder that is quicker with an answer than with an event: an outcome that
    /// is known at once is returned and not told again. Only a `Pending` request is heard of later.
    ///
    /// # Errors
    ///
    /// The request was not taken, and nothing has changed.
    #[inline]
    pub fn request_answer(
        &mut self,
        client: ClientId,
        request: impl Borrow<Request>,
    ) -> Result<(RequestId, Answer), RequestError> {
        let request = request.borrow();
        let owner = self.admit(client, request)?;
        Ok(match self.hold_the_only_lock(owner, request) {
            Ok((id, token)) => {
                self.check_in_turn();
                (id, Answer::Granted(token))
            }
            Err(queue) => self.request_answer_among_others(owner, request, queue),
        })
    }

    /// The same where others use the names.
    #[cold]
    fn request_answer_among_others(
        &mut self,
        owner: Index,
        request: &Request,
        queue: Option<Index>,
    ) -> (RequestId, Answer) {
        match queue.and_then(|queue| self.request_the_last_lock(owner, request, queue)) {
            Some(answer) => {
                self.check_in_turn();
                answer
            }
            None => self.request_any_lock(owner, request, true),
        }
    }

    /// What became of a request that was just made.
    #[inline]
    pub fn answer(&self, request: RequestId) -> Answer {
        match self.state(request) {
            Some(State::Held(token)) => Answer::Granted(token),
            Some(State::Pending) => Answer::Pending,
            None => Answer::Unavailable,
        }
    }

    #[inline(never)]
    fn request_any_lock(
        &mut self,
        owner: Index,
        request: &Request,
        answered: bool,
    ) -> (RequestId, Answer) {
        let answer = self.request_a_lock(owner, request, answered);
        self.settle();
        answer
    }

    /// Who requests, if it may.
    #[inline]
    fn admit(&self, client: ClientId, request: &Request) -> Result<Index, RequestError> {
        let owner = self.clients.find(client).ok_or(RequestError::UnknownClient)?;
        if self.clients[owner].suspension.is_some() {
            return Err(RequestError::ClientSuspended);
        }
        if request.wait == Wait::Overtake && request.mode == Mode::Exclusive {
            return Err(RequestError::ExclusiveOvertake);
        }
        Ok(owner)
    }

    /// Releases the lock that `request` holds. False, and nothing happens, when it holds none: because it is
    /// still pending, was released before, or was lost.
    pub fn release(&mut self, request: RequestId) -> bool {
        let Some(entry) = self.entries.find(request) else { return false };
        let held = self.entries[entry].life.is_held();
        if held {
            self.release_the_lock(entry);
            self.settle();
        }
        held
    }

    /// As [`release`](Self::release), for an embedder that is quicker with an answer than with an event: when the lock passes
    /// on to exactly one request, that is returned and not told again.
    #[inline]
    pub fn release_answer(&mut self, request: RequestId) -> HandOver {
        let Some(entry) = self.entries.find(request) else { return HandOver::Nothing };
        if !self.entries[entry].life.is_held() {
            return HandOver::Nothing;
        }
        if self.release_the_only_lock(entry) {
            self.settle();
            return HandOver::Told;
        }
        self.hand_over(entry)
    }

    /// Releases a lock that others may want.
    #[inline(never)]
    fn hand_over(&mut self, entry: Index) -> HandOver {
        let mut next = self.hand_over_a_single_lock(entry);
        if next.is_none() {
            self.depart(entry);
            next = self.grant_the_only_next();
        }
        self.settle();
        match next {
            Some((request, token)) => HandOver::To(request, token),
            None => HandOver::Told,
        }
    }

    /// Takes the pending `request` out of the queue. False, and nothing happens, when it is not pending: because it
    /// was granted already, or is over.
    pub fn abort(&mut self, request: RequestId) -> bool {
        let Some(entry) = self.entries.find(request) else { return false };
        let pending = !self.entries[entry].life.is_held();
        if pending {
            self.abort_the_request(entry);
            self.settle();
        }
        pending
    }

    /// Ends a client: all it holds is released and all it waits for aborted, in one step. It hears of nothing any more, not
    /// even of what happened before and was not polled yet. False when the client is not known.
    pub fn terminate(&mut self, client: ClientId) -> bool {
        let Some(index) = self.clients.find(client) else { return false };
        self.terminate_remaining_locks_and_requests(index);
        self.settle();
        true
    }

    /// Takes away all held locks that have `name` in their scope, in one step, and lets the queue go on. Returns how many
    /// there were.
    pub fn force_release(&mut self, name: &Name) -> usize {
        let count = self.force_release_locks(name);
        self.settle();
        count
    }

    /// The locks held and requests pending now, as a client sees them: asking evicts every client that is suspended until
    /// contention and has any.
    ///
    /// [`snapshot`](Self::snapshot) shows the same and evicts nobody.
    pub fn query(&mut self) -> Snapshot {
        self.evict_all_sleeping();
        self.settle();
        self.snapshot()
    }

    /// The next event, or `None` when all are told.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        if self.has_events() { self.take_event() } else { None }
    }

    /// Whether there are events, most likely: a terminated client hears of nothing any more.
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    fn take_event(&mut self) -> Option<Event> {
        let event = loop {
            let event = self.events.pop_front()?;
            // A terminated client hears of nothing any more.
            if self.knows(event.client()) {
                break event;
            }
        };
        if self.events.is_empty() && self.events.capacity() > IDLE_CAPACITY {
            self.events = VecDeque::new();
        }
        Some(event)
    }

    /// How many locks are held.
    pub fn held_count(&self) -> usize {
        self.held
    }

    /// How many requests are pending.
    pub fn pending_count(&self) -> usize {
        self.live - self.held
    }

    /// Whether this client is known: added here, and not terminated.
    pub fn knows(&self, client: ClientId) -> bool {
        self.clients.find(client).is_some()
    }

    /// How many clients are known.
    pub fn client_count(&self) -> usize {
        self.clients.len()
    }

    /// How many names have a lock held or pending. Of all others, only the short ones among the last eight in use take memory.
    pub fn name_count(&self) -> usize {
        self.queues.len()
    }

    /// Tells the owner of an event: now, or when it wakes.
    #[inline]
    pub(crate) fn tell(&mut self, owner: Index, event: Event) {
        match &mut self.clients[owner].suspension {
            None => self.events.push_back(event),
            Some(suspension) => suspension.deferred.push(event),
        }
    }

    /// Takes back what a client was to be told and has not been yet.
    pub(crate) fn recall_events(&mut self, client: ClientId) -> Vec<Event> {
        let own =
            |event: &Event| event.client() == client && !matches!(event, Event::Evicted { .. });
        let (recalled, rest): (VecDeque<Event>, _) =
            core::mem::take(&mut self.events).into_iter().partition(own);
        self.events = rest;
        recalled.into()
    }

    /// Tells the embedder, whatever the client's state.
    pub(crate) fn tell_now(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Ends every input that changes something.
    #[inline]
    pub(crate) fn settle(&mut self) {
        debug_assert!(self.disturbed.is_empty() && self.ready.is_empty());
        if self.entries.is_empty() && self.entries.capacity() > IDLE_CAPACITY {
            self.entries.clear();
            self.queues.clear();
            self.disturbed = Vec::new();
            self.ready = Vec::new();
        }
        self.check_in_turn();
    }

    /// Checks the invariants after every input while there are few entries, and in a large manager once in as many inputs
    /// as there are entries, so that debug builds stay linear.
    #[inline]
    fn check_in_turn(&mut self) {
        #[cfg(debug_assertions)]
        {
            self.inputs_since_check += 1;
            if self.live <= 64 || self.inputs_since_check > self.live {
                self.inputs_since_check = 0;
                self.check_invariants();
            }
        }
    }
}
