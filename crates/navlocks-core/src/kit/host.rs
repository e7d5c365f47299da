//! A host: partitions, clients and requests under the numbers that their owners gave them.

mod forward;
mod inputs;
mod numbers;
mod table;
mod types;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::fmt;
use core::mem;

pub use self::forward::HostSink;
pub use self::types::{Address, Group, HostError, HostLock, HostSnapshot, Member, Memory};

use self::forward::{Bounds, Forward, Hosted};
use self::numbers::{Numbers, Secret};
use self::table::Table;
use super::limits::{Limits, within};
use super::{Space, SpaceError};
use crate::{
    Answer, ClientId, DeadlockPolicy, DowngradeError, FencingToken, HashKey, LockManager, Mode,
    Name, Request, RequestError, RequestId, RequestInfo, SuspendPolicy, TokenTooLarge,
};

/// Lock spaces by partition, for clients that number their own requests: an embedder across
/// processes cannot wait for an id before it sends an abort.
///
/// A request is known by its client and its number, so no client can release or abort the request
/// of another. Fencing tokens of a partition grow as long as the host lives, also after its last
/// client was closed.
pub struct Host<Partition, Time: Copy, Tag: Clone> {
    key: HashKey,
    secret: Secret,
    limits: Limits,
    deadlocks: DeadlockPolicy,
    partitions: BTreeMap<Partition, u64>,
    domains: Table<Domain<Partition, Time, Tag>>,
    groups: Table<BTreeSet<Member>>,
    members: Table<Client>,
    /// The domains whose last input has effects that a sink had no room for.
    unfinished: Vec<u64>,
    /// Larger than the tokens of all partitions that were dropped.
    next_token: FencingToken,
}

/// A partition that has a client.
struct Domain<Partition, Time: Copy, Tag: Clone> {
    partition: Partition,
    space: Space<Hosted<Time, Tag>>,
    /// By [`ClientId::slot`].
    members: Vec<Option<Member>>,
}

/// A client of a partition.
struct Client {
    group: Group,
    domain: u64,
    id: ClientId,
    requests: Numbers,
}

impl<Partition: Ord + Clone, Time: Copy, Tag: Clone> Host<Partition, Time, Tag> {
    /// Makes a host without partitions.
    pub fn new(key: HashKey, limits: Limits, deadlocks: DeadlockPolicy) -> Self {
        Self {
            key,
            secret: Secret::new(key),
            limits,
            deadlocks,
            partitions: BTreeMap::new(),
            domains: Table::new(),
            groups: Table::new(),
            members: Table::new(),
            unfinished: Vec::new(),
            next_token: FencingToken::new(1),
        }
    }

    /// Makes the tokens of all later grants at least this, for a host that continues where an
    /// earlier one ended. Never makes them smaller.
    ///
    /// # Errors
    ///
    /// As [`LockManager::advance_token`].
    pub fn advance_token(&mut self, at_least: FencingToken) -> Result<(), TokenTooLarge> {
        if at_least > FencingToken::START_MAX {
            return Err(TokenTooLarge(at_least));
        }
        self.next_token = self.next_token.max(at_least);
        self.domains.iter_mut().try_for_each(|domain| domain.space.advance_token(at_least))
    }

    /// Adds a group without clients.
    pub fn add_group(&mut self) -> Group {
        Group::from_key(self.groups.insert(BTreeSet::new()))
    }

    /// Adds a client of `group` to a partition.
    ///
    /// # Errors
    ///
    /// The group is unknown, or a limit was reached.
    pub fn open(&mut self, group: Group, partition: Partition) -> Result<Member, HostError> {
        let members = self.groups.get(group.key()).ok_or(HostError::UnknownGroup)?;
        let max = self.limits.clients_per_group_max;
        within("clients_per_group_max", members.len() + 1, max)?;
        let key = match self.partitions.get(&partition) {
            Some(&key) => key,
            None => self.add_partition(partition)?,
        };
        let Self { domains, groups, members, .. } = self;
        let domain = domains.get_mut(key).ok_or(HostError::UnknownMember)?;
        let id = domain.space.add_client();
        let client = Client { group, domain: key, id, requests: Numbers::default() };
        let member = Member::from_key(members.insert(client));
        let slots = domain.members.len().max(id.slot() + 1);
        domain.members.resize(slots, None);
        domain.members[id.slot()] = Some(member);
        if let Some(members) = groups.get_mut(group.key()) {
            members.insert(member);
        }
        Ok(member)
    }

    /// Requests a lock under a number of the client's choice. The sink receives the outcome, and
    /// the caller as well, with the id that other clients see in queries and events.
    ///
    /// # Errors
    ///
    /// The request was refused. Nothing of it is left.
    #[inline]
    pub fn request(
        &mut self,
        member: Member,
        number: u64,
        request: &Request,
        tag: Option<Tag>,
        sink: &mut impl HostSink<Time, Tag>,
    ) -> Result<(RequestId, Answer), HostError> {
        self.request_within(None, member, number, request, tag, sink)
    }

    /// Requests a lock within the held lock `outer` of the same client, as
    /// [`Space::request_within`]; otherwise as [`request`](Self::request).
    ///
    /// # Errors
    ///
    /// The request was refused, also because it would wait for its own outer lock. Nothing of it is
    /// left.
    #[inline]
    pub fn request_within(
        &mut self,
        outer: Option<u64>,
        member: Member,
        number: u64,
        request: &Request,
        tag: Option<Tag>,
        sink: &mut impl HostSink<Time, Tag>,
    ) -> Result<(RequestId, Answer), HostError> {
        let Self { members, limits, secret, .. } = self;
        let Some(client) = members.get(member.key()) else { return Err(HostError::UnknownMember) };
        limits.check_names(request.scope.names())?;
        let max = limits.requests_per_client_max;
        within("requests_per_client_max", client.requests.len() + 1, max)?;
        if client.requests.get(number, *secret).is_some() {
            return Err(HostError::NumberInUse(number));
        }
        let (domain, id) = (client.domain, client.id);
        let outer = outer.and_then(|outer| client.requests.get(outer, *secret));
        self.finish(domain, sink);
        let Self { domains, members, secret, unfinished, .. } = self;
        let Some(Domain { space, members: residents, .. }) = domains.get_mut(domain) else {
            return Err(HostError::UnknownMember);
        };
        let attached = (Some((member, number)), tag);
        let bounds = Bounds::OfSink;
        let mut forward = Forward { members, residents, secret: *secret, bounds, sink };
        let made = space.request_within(outer, id, request, attached, &mut forward);
        if space.has_effects() {
            unfinished.push(domain);
        }
        let (id, answer) = match made {
            Ok(made) => made,
            Err(refusal) => return Err(HostError::of(refusal)),
        };
        if answer != Answer::Unavailable
            && let Some(client) = members.get_mut(member.key())
        {
            client.requests.insert(number, id, *secret);
        }
        Ok((id, answer))
    }

    /// Releases a lock of this client. Returns false when its request of this number holds none.
    #[inline]
    pub fn release(
        &mut self,
        member: Member,
        number: u64,
        sink: &mut impl HostSink<Time, Tag>,
    ) -> bool {
        self.with(member, number, sink, |space, id, sink| space.release(id, sink)) == Some(true)
    }

    /// Aborts a pending request of this client. Returns false when its request of this number is
    /// not pending.
    pub fn abort(
        &mut self,
        member: Member,
        number: u64,
        sink: &mut impl HostSink<Time, Tag>,
    ) -> bool {
        self.with(member, number, sink, |space, id, sink| space.abort(id, sink)) == Some(true)
    }

    /// Ends a request of this client, pending or held: for a client that does not want it any more,
    /// and cannot know whether a grant is on its way. Returns false when it was over.
    pub fn cancel(
        &mut self,
        member: Member,
        number: u64,
        sink: &mut impl HostSink<Time, Tag>,
    ) -> bool {
        let ended = self.with(member, number, sink, |space, id, sink| {
            space.abort(id, sink) || space.release(id, sink)
        });
        ended == Some(true)
    }

    /// Takes a lock of this client away because its time is over, as [`LockManager::expire`].
    /// Returns false when its request of this number holds none.
    pub fn expire(
        &mut self,
        member: Member,
        number: u64,
        sink: &mut impl HostSink<Time, Tag>,
    ) -> bool {
        self.with(member, number, sink, |space, id, sink| space.expire(id, sink)) == Some(true)
    }

    /// Gives a held lock of this client a larger limit in place, as [`LockManager::downgrade`].
    ///
    /// # Errors
    ///
    /// Nothing has changed: the request holds no lock, or the limit would become smaller.
    pub fn downgrade(
        &mut self,
        member: Member,
        number: u64,
        mode: Mode,
        sink: &mut impl HostSink<Time, Tag>,
    ) -> Result<(), DowngradeError> {
        self.with(member, number, sink, |space, id, sink| space.downgrade(id, mode, sink))
            .unwrap_or(Err(DowngradeError::NotHeld))
    }

    /// Notifies a holder, once, when a request waits for its lock: at once if one does already.
    pub fn watch_contention(
        &mut self,
        member: Member,
        number: u64,
        sink: &mut impl HostSink<Time, Tag>,
    ) {
        self.with(member, number, sink, |space, id, sink| space.watch_contention(id, sink));
    }

    /// Ends a [watch](Self::watch_contention).
    pub fn unwatch_contention(&mut self, member: Member, number: u64) {
        if let Some((client, id)) = self.find(member, number)
            && let Some(domain) = self.domains.get_mut(client.domain)
        {
            domain.space.unwatch_contention(id);
        }
    }

    /// Takes away all locks held on a name in the partition of a client. Returns how many there
    /// were.
    pub fn force_release(
        &mut self,
        member: Member,
        name: &Name,
        sink: &mut impl HostSink<Time, Tag>,
    ) -> usize {
        let domain = self.domain_of(member);
        self.input(domain, sink, |space, sink| space.force_release(name, sink)).unwrap_or(0)
    }

    /// Suspends a client, as [`LockManager::suspend`]: the sink receives its notices when it is
    /// resumed. Returns false when it is not known or already suspended.
    pub fn suspend(
        &mut self,
        member: Member,
        policy: SuspendPolicy,
        sink: &mut impl HostSink<Time, Tag>,
    ) -> bool {
        let Some(client) = self.members.get(member.key()) else { return false };
        let (domain, id) = (client.domain, client.id);
        self.input(domain, sink, |space, sink| space.suspend(id, policy, sink)) == Some(true)
    }

    /// Resumes a client, as [`LockManager::resume`]. Returns false when it is not known or not
    /// suspended.
    pub fn resume(&mut self, member: Member, sink: &mut impl HostSink<Time, Tag>) -> bool {
        let Some(client) = self.members.get(member.key()) else { return false };
        let (domain, id) = (client.domain, client.id);
        self.input(domain, sink, |space, sink| space.resume(id, sink)) == Some(true)
    }

    /// Returns the locks held and requests pending in the partition of a client, as it sees them:
    /// the question evicts suspended clients. None for an unknown client.
    pub fn query(
        &mut self,
        member: Member,
        sink: &mut impl HostSink<Time, Tag>,
    ) -> Option<HostSnapshot<Time, Tag>> {
        let domain = self.domain_of(member);
        let snapshot = self.input(domain, sink, |space, sink| space.query(sink))?;
        let space = &self.domains.get(domain)?.space;
        let describe = |info: RequestInfo| {
            let RequestInfo { request, scope, mode, token, within, .. } = info;
            let &(member, number) = space.notes().get(request)?.as_ref()?;
            let address = Address { member, number, request };
            let (since, tag) = (space.notes().since(request), space.tag(request).cloned());
            Some(HostLock { address, scope, mode, token, since, tag, within })
        };
        Some(HostSnapshot {
            held: snapshot.held.into_iter().filter_map(describe).collect(),
            pending: snapshot.pending.into_iter().filter_map(describe).collect(),
        })
    }

    /// Returns the engine of the partition of a client, for questions. Its ids have
    /// [addresses](Self::address) and [members](Self::member).
    pub fn manager(&self, member: Member) -> Option<&LockManager> {
        self.domains.get(self.domain_of(member)).map(|domain| domain.space.manager())
    }

    /// Returns the address of a live request in the partition of a client.
    pub fn address(&self, member: Member, request: RequestId) -> Option<Address> {
        let space = &self.domains.get(self.domain_of(member))?.space;
        space.manager().state(request)?;
        let &(member, number) = space.notes().get(request)?.as_ref()?;
        Some(Address { member, number, request })
    }

    /// Returns the member that a client of the partition of `member` is.
    pub fn member(&self, member: Member, client: ClientId) -> Option<Member> {
        let domain = self.domains.get(self.domain_of(member))?;
        let found = domain.members.get(client.slot()).copied().flatten()?;
        (self.members.get(found.key())?.id == client).then_some(found)
    }

    /// Begins to publish the partition of a client: its sinks receive every notice for
    /// subscribers.
    pub fn describe(&mut self, member: Member) {
        let domain = self.domain_of(member);
        if let Some(domain) = self.domains.get_mut(domain) {
            domain.space.describe();
        }
    }

    /// Ends [publishing](Self::describe).
    pub fn stop_describing(&mut self, member: Member) {
        let domain = self.domain_of(member);
        if let Some(domain) = self.domains.get_mut(domain) {
            domain.space.stop_describing();
        }
    }

    /// Ends a client. Returns false when it is not known.
    pub fn close(&mut self, member: Member, sink: &mut impl HostSink<Time, Tag>) -> bool {
        let Some(client) = self.members.get(member.key()) else { return false };
        if let Some(members) = self.groups.get_mut(client.group.key()) {
            members.remove(&member);
        }
        self.end(client.domain, &[member], sink);
        true
    }

    /// Ends a group and all its clients. In each partition they end as one input, so that none of
    /// them is granted a lock of another. Returns false when it is not known.
    pub fn end_group(&mut self, group: Group, sink: &mut impl HostSink<Time, Tag>) -> bool {
        let Some(members) = self.groups.remove(group.key()) else { return false };
        let mut by_domain: BTreeMap<u64, Vec<Member>> = BTreeMap::new();
        for member in members {
            by_domain.entry(self.domain_of(member)).or_default().push(member);
        }
        for (domain, members) in by_domain {
            self.end(domain, &members, sink);
        }
        true
    }

    /// Returns true if earlier inputs have effects that their sinks had no room for. Only a sink
    /// that [has enough](HostSink::has_enough) leaves some.
    #[inline]
    pub fn has_effects(&self) -> bool {
        !self.unfinished.is_empty()
    }

    /// Passes on what earlier inputs left, until the sink has enough again. The next input to the
    /// same partition passes on all of it.
    pub fn go_on(&mut self, sink: &mut impl HostSink<Time, Tag>) {
        for key in mem::take(&mut self.unfinished) {
            self.input_within(key, Bounds::OfSink, sink, |space, sink| space.go_on(sink));
        }
    }

    /// Reports the memory in use.
    pub fn memory(&self) -> Memory {
        let spaces: usize = self.domains.iter().map(|domain| domain.space.memory()).sum();
        let numbers: usize = self.members.iter().map(|client| client.requests.memory()).sum();
        Memory {
            partitions: self.partitions.len(),
            clients: self.members.len(),
            requests: self.members.iter().map(|client| client.requests.len()).sum(),
            bytes: spaces + numbers,
        }
    }
}

impl HostError {
    fn of(refusal: SpaceError) -> Self {
        match refusal {
            SpaceError::Request(RequestError::UnknownClient) => Self::UnknownMember,
            refusal => Self::Refused(refusal),
        }
    }
}

impl<Partition: fmt::Debug, Time: Copy, Tag: Clone> fmt::Debug for Host<Partition, Time, Tag> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("partitions", &self.partitions).finish_non_exhaustive()
    }
}
