//! A host: partitions, clients and requests under the numbers that their owners gave them.

use alloc::collections::{BTreeMap, BTreeSet};
use core::fmt;
use core::marker::PhantomData;

use super::limits::{LimitExceeded, Limits, within};
use super::{Embedder, Notes, Notice, Refusal, Sink, Space};
use crate::{
    Answer, ClientId, DeadlockPolicy, HashKey, LockManager, Name, Request, RequestError, RequestId,
    Snapshot,
};

/// Clients that end together, such as a page and its workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group(u64);

/// A client in one partition of a [`Host`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    group: Group,
    partition: u64,
    client: ClientId,
}

/// How the embedder of a [`Host`] is notified. Called in engine order.
pub trait HostSink<Time> {
    /// Notifies a client of what happened to its request `number`.
    fn notify(&mut self, member: Member, number: u64, notice: &Notice<'_, Time>);
}

/// Lock spaces by partition, for clients that number their own requests: an embedder across
/// processes cannot wait for an id before it sends an abort.
///
/// A request is known by its client and its number, so no client can release or abort the request
/// of another.
pub struct Host<Partition, Time: Copy, Tag: Clone> {
    key: HashKey,
    limits: Limits,
    partitions: BTreeMap<Partition, u64>,
    spaces: BTreeMap<u64, (Partition, Space<Hosted<Time, Tag>>)>,
    groups: BTreeMap<Group, BTreeSet<Member>>,
    requests: Requests,
    next: u64,
}

/// Live requests by client and number, and how many each client has.
#[derive(Default)]
struct Requests {
    ids: BTreeMap<(Member, u64), RequestId>,
    counts: BTreeMap<Member, usize>,
}

impl Requests {
    fn insert(&mut self, member: Member, number: u64, id: RequestId) {
        self.ids.insert((member, number), id);
        *self.counts.entry(member).or_default() += 1;
    }

    fn remove(&mut self, member: Member, number: u64) {
        if self.ids.remove(&(member, number)).is_some()
            && let Some(count) = self.counts.get_mut(&member)
        {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&member);
            }
        }
    }
}

/// A host attaches to each request its client and number.
struct Hosted<Time, Tag>(PhantomData<(Time, Tag)>);

impl<Time: Copy, Tag: Clone> Embedder for Hosted<Time, Tag> {
    type Note = Option<(Member, u64)>;
    type Time = Time;
    type Tag = Tag;
}

/// Why a host refused a call. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostError {
    /// The group ended, or belongs to another host.
    UnknownGroup,
    /// The client was closed, or belongs to another host.
    UnknownMember,
    /// The client has a live request of this number.
    NumberInUse(u64),
    /// A limit was reached.
    Limit(LimitExceeded),
    /// The space refused the request.
    Refused(Refusal),
}

impl From<LimitExceeded> for HostError {
    fn from(exceeded: LimitExceeded) -> Self {
        Self::Limit(exceeded)
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownGroup => f.write_str("the group is not known here: it ended"),
            Self::UnknownMember => f.write_str("the client is not known here: it was closed"),
            Self::NumberInUse(number) => {
                write!(f, "request {number} of this client is still live: use another number")
            }
            Self::Limit(exceeded) => exceeded.fmt(f),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl core::error::Error for HostError {}

/// The memory that a host uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// Partitions with a client.
    pub partitions: usize,
    /// Clients of all groups.
    pub clients: usize,
    /// Live requests.
    pub requests: usize,
    /// Bytes of the spaces, long names and tags aside.
    pub bytes: usize,
}

impl<Partition: Ord + Clone, Time: Copy, Tag: Clone> Host<Partition, Time, Tag> {
    /// Makes a host without partitions.
    pub fn new(key: HashKey, limits: Limits) -> Self {
        Self {
            key,
            limits,
            partitions: BTreeMap::new(),
            spaces: BTreeMap::new(),
            groups: BTreeMap::new(),
            requests: Requests::default(),
            next: 0,
        }
    }

    /// Adds a group without clients.
    pub fn add_group(&mut self) -> Group {
        let group = Group(self.take_number());
        self.groups.insert(group, BTreeSet::new());
        group
    }

    /// Adds a client of `group` to a partition.
    ///
    /// # Errors
    ///
    /// The group is unknown, or a limit was reached.
    pub fn open(&mut self, group: Group, partition: Partition) -> Result<Member, HostError> {
        let members = self.groups.get(&group).ok_or(HostError::UnknownGroup)?;
        let max = self.limits.clients_per_group_max;
        within("clients_per_group_max", members.len() + 1, max)?;
        let index = match self.partitions.get(&partition) {
            Some(&index) => index,
            None => self.add_partition(partition)?,
        };
        let Some((_, space)) = self.spaces.get_mut(&index) else {
            return Err(HostError::UnknownMember);
        };
        let member = Member { group, partition: index, client: space.add_client() };
        self.groups.entry(group).or_default().insert(member);
        Ok(member)
    }

    /// Requests a lock under a number of the client's choice.
    ///
    /// # Errors
    ///
    /// The request was refused, and nothing has changed.
    pub fn request(
        &mut self,
        member: Member,
        number: u64,
        request: &Request,
        tag: Option<Tag>,
        now: Time,
        sink: &mut impl HostSink<Time>,
    ) -> Result<Answer, HostError> {
        let Limits { requests_per_client_max, names_per_request_max, name_bytes_max, .. } =
            self.limits;
        let names = request.scope.names();
        within("names_per_request_max", names.len(), names_per_request_max)?;
        let longest = names.iter().map(Name::len_bytes).max().unwrap_or(0);
        within("name_bytes_max", longest, name_bytes_max)?;
        let live = self.requests.counts.get(&member).copied().unwrap_or(0);
        within("requests_per_client_max", live + 1, requests_per_client_max)?;
        if self.requests.ids.contains_key(&(member, number)) {
            return Err(HostError::NumberInUse(number));
        }
        let Self { spaces, requests, .. } = self;
        let Some((_, space)) = spaces.get_mut(&member.partition) else {
            return Err(HostError::UnknownMember);
        };
        let attached = (Some((member, number)), tag);
        let mut forward = Forward { requests, sink, now };
        let made = space.request(member.client, request, attached, &mut forward);
        let (id, answer) = made.map_err(|refusal| match refusal {
            Refusal::Request(RequestError::UnknownClient) => HostError::UnknownMember,
            refusal => HostError::Refused(refusal),
        })?;
        if answer != Answer::Unavailable {
            self.requests.insert(member, number, id);
        }
        Ok(answer)
    }

    /// Releases a lock of this client. Returns false when its request of this number holds none.
    pub fn release(
        &mut self,
        member: Member,
        number: u64,
        now: Time,
        sink: &mut impl HostSink<Time>,
    ) -> bool {
        self.with((member, number), now, sink, |space, id, sink| space.release(id, sink))
    }

    /// Aborts a pending request of this client. Returns false when its request of this number is
    /// not pending.
    pub fn abort(
        &mut self,
        member: Member,
        number: u64,
        now: Time,
        sink: &mut impl HostSink<Time>,
    ) -> bool {
        self.with((member, number), now, sink, |space, id, sink| space.abort(id, sink))
    }

    /// Returns the locks held and requests pending in the partition of a client.
    pub fn query(&self, member: Member) -> Snapshot {
        let space = self.spaces.get(&member.partition);
        space.map(|(_, space)| space.manager().snapshot()).unwrap_or_default()
    }

    /// Ends a client. Returns false when it is not known.
    pub fn close(&mut self, member: Member, now: Time, sink: &mut impl HostSink<Time>) -> bool {
        let known = self.groups.get_mut(&member.group).is_some_and(|all| all.remove(&member));
        if known {
            self.end(member, now, sink);
        }
        known
    }

    /// Ends a group and all its clients. Returns false when it is not known.
    pub fn end_group(&mut self, group: Group, now: Time, sink: &mut impl HostSink<Time>) -> bool {
        let Some(members) = self.groups.remove(&group) else { return false };
        for member in members {
            self.end(member, now, sink);
        }
        true
    }

    /// Reports the memory in use.
    pub fn memory(&self) -> Memory {
        Memory {
            partitions: self.spaces.len(),
            clients: self.groups.values().map(BTreeSet::len).sum(),
            requests: self.requests.ids.len(),
            bytes: self.spaces.values().map(|(_, space)| space.memory()).sum(),
        }
    }

    fn add_partition(&mut self, partition: Partition) -> Result<u64, HostError> {
        within("partitions_max", self.spaces.len() + 1, self.limits.partitions_max)?;
        let index = self.take_number();
        let space = Space::new(LockManager::new(self.key), DeadlockPolicy::Ignore);
        self.partitions.insert(partition.clone(), index);
        self.spaces.insert(index, (partition, space));
        Ok(index)
    }

    /// Ends a client, and drops its partition with the last one.
    fn end(&mut self, member: Member, now: Time, sink: &mut impl HostSink<Time>) {
        let Self { spaces, requests, partitions, .. } = self;
        let Some((partition, space)) = spaces.get_mut(&member.partition) else { return };
        space.end_client(member.client, &mut Forward { requests, sink, now });
        if space.manager().client_count() == 0 {
            partitions.remove(partition);
            spaces.remove(&member.partition);
        }
    }

    fn with<S: HostSink<Time>>(
        &mut self,
        (member, number): (Member, u64),
        now: Time,
        sink: &mut S,
        verb: impl FnOnce(&mut Space<Hosted<Time, Tag>>, RequestId, &mut Forward<'_, S, Time>) -> bool,
    ) -> bool {
        let Some(&id) = self.requests.ids.get(&(member, number)) else { return false };
        let Self { spaces, requests, .. } = self;
        let Some((_, space)) = spaces.get_mut(&member.partition) else { return false };
        verb(space, id, &mut Forward { requests, sink, now })
    }

    fn take_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// Forgets requests that are over, and passes every notice on.
struct Forward<'a, S, Time> {
    requests: &'a mut Requests,
    sink: &'a mut S,
    now: Time,
}

impl<Time: Copy, Tag: Clone, S: HostSink<Time>> Sink<Hosted<Time, Tag>> for Forward<'_, S, Time> {
    fn now(&self) -> Time {
        self.now
    }

    fn notify(
        &mut self,
        id: RequestId,
        notes: &mut Notes<Hosted<Time, Tag>>,
        notice: &Notice<'_, Time>,
    ) {
        let Some(&Some((member, number))) = notes.get(id) else { return };
        if notice.is_last() {
            self.requests.remove(member, number);
        }
        self.sink.notify(member, number, notice);
    }
}

impl<Partition: fmt::Debug, Time: Copy, Tag: Clone> fmt::Debug for Host<Partition, Time, Tag> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("partitions", &self.partitions)
            .field("groups", &self.groups)
            .finish_non_exhaustive()
    }
}
