//! The inputs of a host to its spaces, and the partitions that come and go with their clients.

use alloc::vec::Vec;

use super::forward::{Bounds, Forward, HostSink, Hosted};
use super::{Client, Domain, Host, HostError, Member};
use crate::kit::Space;
use crate::kit::limits::within;
use crate::{ClientId, LockManager, RequestId};

impl<Partition: Ord + Clone, Time: Copy, Tag: Clone> Host<Partition, Time, Tag> {
    pub(super) fn add_partition(&mut self, partition: Partition) -> Result<u64, HostError> {
        within("partitions_max", self.partitions.len() + 1, self.limits.partitions_max)?;
        let mut manager = LockManager::new(self.key);
        // A host that grants one lock a nanosecond reaches the largest start after 292 years.
        let _advanced = manager.advance_token(self.next_token);
        let mut space = Space::new(manager, self.deadlocks);
        space.bound_deadlock_search(self.limits.deadlock_entries_max);
        let domain = Domain { partition: partition.clone(), space, members: Vec::new() };
        let key = self.domains.insert(domain);
        self.partitions.insert(partition, key);
        Ok(key)
    }

    /// Ends clients of one partition, and drops it with the last one.
    pub(super) fn end(&mut self, key: u64, ended: &[Member], sink: &mut impl HostSink<Time, Tag>) {
        let known = ended.iter().filter_map(|member| self.members.get(member.key()));
        let ids: Vec<ClientId> = known.map(|client| client.id).collect();
        self.input(key, sink, |space, sink| space.end_clients(&ids, sink));
        for member in ended {
            self.members.remove(member.key());
        }
        let Some(domain) = self.domains.get_mut(key) else { return };
        for id in ids {
            domain.members[id.slot()] = None;
        }
        let manager = domain.space.manager();
        if manager.client_count() == 0 {
            self.next_token = self.next_token.max(manager.next_token());
            self.partitions.remove(&domain.partition);
            self.domains.remove(key);
            self.unfinished.retain(|&unfinished| unfinished != key);
        }
    }

    /// Returns the key of the domain of a client, or one of no domain.
    pub(super) fn domain_of(&self, member: Member) -> u64 {
        self.members.get(member.key()).map_or(0, |client| client.domain)
    }

    #[inline]
    pub(super) fn find(&self, member: Member, number: u64) -> Option<(&Client, RequestId)> {
        let client = self.members.get(member.key())?;
        Some((client, client.requests.get(number, self.secret)?))
    }

    /// Gives the space of a request an input about it.
    #[inline]
    pub(super) fn with<S: HostSink<Time, Tag>, T>(
        &mut self,
        member: Member,
        number: u64,
        sink: &mut S,
        verb: impl FnOnce(&mut Space<Hosted<Time, Tag>>, RequestId, &mut Forward<'_, S>) -> T,
    ) -> Option<T> {
        let (client, id) = self.find(member, number)?;
        let domain = client.domain;
        self.input(domain, sink, |space, sink| verb(space, id, sink))
    }

    /// Gives a space one input, after the effects that earlier ones left.
    #[inline]
    pub(super) fn input<S: HostSink<Time, Tag>, T>(
        &mut self,
        key: u64,
        sink: &mut S,
        input: impl FnOnce(&mut Space<Hosted<Time, Tag>>, &mut Forward<'_, S>) -> T,
    ) -> Option<T> {
        self.finish(key, sink);
        self.input_within(key, Bounds::OfSink, sink, input)
    }

    /// Passes on all effects that earlier inputs to a domain left.
    #[inline]
    pub(super) fn finish<S: HostSink<Time, Tag>>(&mut self, key: u64, sink: &mut S) {
        if !self.unfinished.is_empty()
            && let Some(at) = self.unfinished.iter().position(|&unfinished| unfinished == key)
        {
            self.unfinished.swap_remove(at);
            self.input_within(key, Bounds::None, sink, |space, sink| space.go_on(sink));
        }
    }

    #[inline]
    pub(super) fn input_within<S: HostSink<Time, Tag>, T>(
        &mut self,
        key: u64,
        bounds: Bounds,
        sink: &mut S,
        input: impl FnOnce(&mut Space<Hosted<Time, Tag>>, &mut Forward<'_, S>) -> T,
    ) -> Option<T> {
        let Self { domains, members, secret, .. } = self;
        let Domain { space, members: residents, .. } = domains.get_mut(key)?;
        let mut forward = Forward { members, residents, secret: *secret, bounds, sink };
        let result = input(space, &mut forward);
        if space.has_effects() {
            self.unfinished.push(key);
        }
        Some(result)
    }
}
