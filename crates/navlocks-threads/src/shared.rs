//! The host behind its mutex.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use navlocks_core::kit::{self, Address, Group, Host, HostError, HostSnapshot, Limits, Member};
use navlocks_core::{
    Answer, Blockers, Deadlock, DeadlockPolicy, DowngradeError, FencingToken, HashKey, Mode, Name,
    Request, RequestId, SuspendPolicy, TokenTooLarge,
};

use crate::inbox::Event;
use crate::mail::Post;
use crate::mailboxes::{Mailboxes, Wake};

/// A [`Host`] for all threads of a process. Partitions, tags and the clients' names are texts, and
/// times are in milliseconds since 1970.
///
/// A mailbox is a [`Group`]: its clients end together.
pub struct SharedHost<W>(Mutex<State<W>>);

struct State<W> {
    host: Host<Name, u64, Name>,
    mailboxes: Mailboxes<W>,
}

/// The answer to a query.
#[derive(Clone, Debug)]
pub struct Report {
    /// The locks and requests.
    pub snapshot: HostSnapshot<u64, Name>,
    /// The names of their clients.
    pub clients: HashMap<Member, Name>,
}

/// How much a host keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Names with a live request, in the partition of the asking client.
    pub names: usize,
    /// Live requests of all partitions.
    pub requests: usize,
    /// Mail that was not taken.
    pub mail: usize,
    /// Partitions.
    pub partitions: usize,
    /// Bytes, long names and tags aside.
    pub bytes: usize,
}

impl<W: Wake> SharedHost<W> {
    /// Makes a host without mailboxes.
    pub fn new(key: HashKey, limits: Limits, deadlocks: DeadlockPolicy) -> Self {
        let host = Host::new(key, limits, deadlocks);
        Self(Mutex::new(State { host, mailboxes: Mailboxes::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, State<W>> {
        // Locks even after a panic of the engine: other threads must still be able to release.
        kit::spin(|| self.0.try_lock().ok())
            .unwrap_or_else(|| self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Gives the host one input and wakes the owners of mailboxes with new mail, except `caller`,
    /// which takes its mail.
    #[inline]
    fn input<T>(
        &self,
        caller: Member,
        post: &mut impl Post,
        input: impl FnOnce(&mut Host<Name, u64, Name>, &mut Mailboxes<W>) -> T,
    ) -> T {
        let mut locked = self.lock();
        let State { host, mailboxes } = &mut *locked;
        mailboxes.caller = mailboxes.mailbox_of(caller);
        let result = input(host, mailboxes);
        if let Some(caller) = mailboxes.caller.take() {
            mailboxes.take(caller, post);
        }
        if !mailboxes.wakers.is_empty() {
            unlock_and_wake(locked);
        }
        result
    }

    /// As [`Host::advance_token`].
    ///
    /// # Errors
    ///
    /// The token leaves too few numbers.
    pub fn advance_token(&self, at_least: FencingToken) -> Result<(), TokenTooLarge> {
        self.lock().host.advance_token(at_least)
    }

    /// Adds a mailbox without clients, whose waker is called when there is mail.
    pub fn add_mailbox(&self, waker: W) -> Group {
        let State { host, mailboxes } = &mut *self.lock();
        let group = host.add_group();
        mailboxes.add(group, waker);
        group
    }

    /// Ends a mailbox and all its clients, as one input. Returns false when it is not known.
    pub fn end(&self, mailbox: Group) -> bool {
        let mut locked = self.lock();
        let State { host, mailboxes } = &mut *locked;
        for member in mailboxes.members_of(mailbox) {
            unsubscribe(host, mailboxes, member);
        }
        let known = host.end_group(mailbox, mailboxes);
        if known {
            mailboxes.remove(mailbox);
        }
        unlock_and_wake(locked);
        known
    }

    /// Adds a client of a mailbox to a partition. `name` is its name in queries.
    ///
    /// # Errors
    ///
    /// The mailbox is unknown, or a limit was reached.
    pub fn open(&self, mailbox: Group, partition: Name, name: Name) -> Result<Member, HostError> {
        let State { host, mailboxes } = &mut *self.lock();
        let member = host.open(mailbox, partition.clone())?;
        mailboxes.add_client(member, mailbox, partition, name);
        Ok(member)
    }

    /// Ends a client and all its requests. Returns false when it is not known.
    pub fn close(&self, member: Member) -> bool {
        let mut locked = self.lock();
        let State { host, mailboxes } = &mut *locked;
        unsubscribe(host, mailboxes, member);
        let known = host.close(member, mailboxes);
        mailboxes.remove_client(member);
        unlock_and_wake(locked);
        known
    }

    /// Requests a lock, as [`Host::request`].
    ///
    /// # Errors
    ///
    /// The request was refused. Nothing of it is left.
    #[inline]
    pub fn request(
        &self,
        member: Member,
        number: u64,
        request: &Request,
        tag: Option<Name>,
        post: &mut impl Post,
    ) -> Result<(RequestId, Answer), HostError> {
        self.input(member, post, |host, sink| host.request(member, number, request, tag, sink))
    }

    /// Requests a lock within a held one, as [`Host::request_within`].
    ///
    /// # Errors
    ///
    /// The request was refused. Nothing of it is left.
    pub fn request_within(
        &self,
        outer: Option<u64>,
        member: Member,
        number: u64,
        request: &Request,
        tag: Option<Name>,
        post: &mut impl Post,
    ) -> Result<(RequestId, Answer), HostError> {
        self.input(member, post, |host, sink| {
            host.request_within(outer, member, number, request, tag, sink)
        })
    }

    /// Releases a lock of this client. Returns false when its request of this number holds none.
    #[inline]
    pub fn release(&self, member: Member, number: u64, post: &mut impl Post) -> bool {
        self.input(member, post, |host, sink| host.release(member, number, sink))
    }

    /// Aborts a pending request of this client. Returns false when it is not pending.
    pub fn abort(&self, member: Member, number: u64, post: &mut impl Post) -> bool {
        self.input(member, post, |host, sink| host.abort(member, number, sink))
    }

    /// Ends a request, pending or held, as [`Host::cancel`]. Returns false when it was over.
    pub fn cancel(&self, member: Member, number: u64, post: &mut impl Post) -> bool {
        self.input(member, post, |host, sink| host.cancel(member, number, sink))
    }

    /// Takes a lock away because its time is over, as [`Host::expire`].
    pub fn expire(&self, member: Member, number: u64, post: &mut impl Post) -> bool {
        self.input(member, post, |host, sink| host.expire(member, number, sink))
    }

    /// Gives a held lock a larger limit in place, as [`Host::downgrade`].
    ///
    /// # Errors
    ///
    /// Nothing has changed.
    pub fn downgrade(
        &self,
        member: Member,
        number: u64,
        mode: Mode,
        post: &mut impl Post,
    ) -> Result<(), DowngradeError> {
        self.input(member, post, |host, sink| host.downgrade(member, number, mode, sink))
    }

    /// Takes away all locks held on a name in the partition of a client. Returns how many there
    /// were.
    pub fn force_release(&self, member: Member, name: &Name, post: &mut impl Post) -> usize {
        self.input(member, post, |host, sink| host.force_release(member, name, sink))
    }

    /// Suspends a client, as [`Host::suspend`].
    pub fn suspend(&self, member: Member, policy: SuspendPolicy, post: &mut impl Post) -> bool {
        self.input(member, post, |host, sink| host.suspend(member, policy, sink))
    }

    /// Resumes a client, as [`Host::resume`].
    pub fn resume(&self, member: Member, post: &mut impl Post) -> bool {
        self.input(member, post, |host, sink| host.resume(member, sink))
    }

    /// Sends mail, once, when a request waits for this lock.
    pub fn watch_contention(&self, member: Member, number: u64, post: &mut impl Post) {
        self.input(member, post, |host, sink| host.watch_contention(member, number, sink));
    }

    /// Takes the mail for which there is room. From now on the owner may be woken again, unless it
    /// polls: then it takes its mail soon by itself.
    pub fn take_mail(&self, mailbox: Group, polls: bool, post: &mut impl Post) {
        let mailboxes = &mut self.lock().mailboxes;
        mailboxes.visit(mailbox, polls);
        mailboxes.take(mailbox, post);
    }

    /// Keeps up to this many events of its partition for a client from now on; 0 ends that.
    pub fn subscribe(&self, member: Member, capacity: usize) {
        let State { host, mailboxes } = &mut *self.lock();
        if capacity == 0 {
            unsubscribe(host, mailboxes, member);
        } else if let Some(inbox) = mailboxes.inbox(member) {
            inbox.set_capacity(capacity);
        } else if mailboxes.subscribe(member, capacity) {
            host.describe(member);
        }
    }

    /// Takes all events of a subscriber, and how many are missing before them.
    pub fn take_events(&self, member: Member) -> (u64, VecDeque<Arc<Event>>) {
        self.lock().mailboxes.inbox(member).map(|inbox| inbox.take()).unwrap_or_default()
    }

    /// Returns all locks and requests in the partition of a client. None for an unknown client.
    pub fn query(&self, member: Member, post: &mut impl Post) -> Option<Report> {
        self.input(member, post, |host, mailboxes| {
            let snapshot = host.query(member, mailboxes)?;
            let mut clients = HashMap::new();
            let mut last = None;
            for lock in snapshot.held.iter().chain(&snapshot.pending) {
                let client = lock.address.member;
                // Neighbours mostly have the same client.
                if last.replace(client) != Some(client)
                    && let Some(name) = mailboxes.name(client)
                {
                    clients.entry(client).or_insert_with(|| name.clone());
                }
            }
            Some(Report { snapshot, clients })
        })
    }

    /// Returns what the request with this serial, in the partition of a client, waits for.
    pub fn blockers(&self, member: Member, serial: u64) -> Blockers {
        let state = self.lock();
        let Some(manager) = state.host.manager(member) else { return Blockers::default() };
        let pending = manager.snapshot().pending;
        let found = pending.iter().find(|info| info.request.serial() == serial);
        found.map(|info| manager.blockers(info.request)).unwrap_or_default()
    }

    /// Returns the certain deadlocks, then the possible ones, each with the names of its clients.
    pub fn deadlocks(&self, member: Member) -> Vec<(Vec<Name>, Deadlock)> {
        let State { host, mailboxes } = &*self.lock();
        let manager = host.manager(member).into_iter();
        let deadlocks =
            manager.flat_map(|manager| [manager.deadlocks(), manager.possible_deadlocks()]);
        let named = deadlocks.flatten().map(|deadlock| {
            let members = deadlock.clients.iter().filter_map(|&id| host.member(member, id));
            let names = members.filter_map(|member| mailboxes.name(member).cloned());
            (names.collect(), deadlock)
        });
        named.collect()
    }

    /// Returns the address of a live request in the partition of a client.
    pub fn address(&self, member: Member, request: RequestId) -> Option<Address> {
        self.lock().host.address(member, request)
    }

    /// Returns how much is kept.
    pub fn census(&self, member: Member) -> Census {
        let State { host, mailboxes } = &*self.lock();
        let memory = host.memory();
        Census {
            names: host.manager(member).map_or(0, |manager| manager.name_count()),
            requests: memory.requests,
            mail: mailboxes.letter_count(),
            partitions: memory.partitions,
            bytes: memory.bytes,
        }
    }
}

/// Ends the subscription of a client; with the last one its partition stops publishing.
fn unsubscribe<W: Wake>(
    host: &mut Host<Name, u64, Name>,
    mailboxes: &mut Mailboxes<W>,
    member: Member,
) {
    if mailboxes.unsubscribe(member) {
        host.stop_describing(member);
    }
}

/// Wakes outside of the mutex: a waker may take long.
fn unlock_and_wake<W: Wake>(mut locked: MutexGuard<'_, State<W>>) {
    let wakers = mem::take(&mut locked.mailboxes.wakers);
    drop(locked);
    wakers.iter().for_each(|waker| waker.wake());
}

impl<W> fmt::Debug for SharedHost<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedHost").finish_non_exhaustive()
    }
}
