//! The sink that a host gives to its spaces: it forgets requests that are over, and passes every
//! notice on under the address of its request.

use core::marker::PhantomData;

use super::numbers::Secret;
use super::table::Table;
use super::{Address, Client, Member};
use crate::kit::{About, Embedder, Notes, Notice, Sink};
use crate::{ClientId, RequestId};

/// How the embedder of a [`Host`](super::Host) is notified. Called in engine order.
pub trait HostSink<Time, Tag> {
    /// Returns the time of the embedder's clock. Called once for each request and each grant.
    fn now(&self) -> Time;

    /// Notifies a client of what happened to its request, as [`Sink::notify`].
    fn notify(&mut self, address: Address, notice: &Notice<'_, Time>);

    /// Publishes a notice to all subscribers, as [`Sink::publish`].
    fn publish(&mut self, address: Address, about: &About<Tag>, notice: &Notice<'_, Time>) {
        let _ = (address, about, notice);
    }

    /// Returns true if the sink takes no more effects of this input for now.
    /// [`Host::go_on`](super::Host::go_on) passes on the rest.
    #[inline]
    fn has_enough(&self) -> bool {
        false
    }

    /// A suspended client was evicted; the embedder may discard it.
    fn evicted(&mut self, member: Member) {
        let _ = member;
    }
}

/// A host attaches to each request its client and number.
pub(super) struct Hosted<Time, Tag>(PhantomData<(Time, Tag)>);

impl<Time: Copy, Tag: Clone> Embedder for Hosted<Time, Tag> {
    type Note = Option<(Member, u64)>;
    type Time = Time;
    type Tag = Tag;
}

/// Whether the sink may leave effects for later.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bounds {
    OfSink,
    None,
}

pub(super) struct Forward<'a, S> {
    pub(super) members: &'a mut Table<Client>,
    /// The members of the partition, by [`ClientId::slot`].
    pub(super) residents: &'a [Option<Member>],
    pub(super) secret: Secret,
    pub(super) bounds: Bounds,
    pub(super) sink: &'a mut S,
}

impl<Time: Copy, Tag: Clone, S: HostSink<Time, Tag>> Sink<Hosted<Time, Tag>> for Forward<'_, S> {
    #[inline]
    fn now(&self) -> Time {
        self.sink.now()
    }

    #[inline(always)]
    fn notify(
        &mut self,
        request: RequestId,
        notes: &mut Notes<Hosted<Time, Tag>>,
        notice: &Notice<'_, Time>,
    ) {
        let Some(&Some((member, number))) = notes.get(request) else { return };
        if notice.is_last()
            && let Some(client) = self.members.get_mut(member.key())
        {
            client.requests.remove(number, self.secret);
        }
        self.sink.notify(Address { member, number, request }, notice);
    }

    fn publish(
        &mut self,
        request: RequestId,
        about: &About<Tag>,
        notes: &Notes<Hosted<Time, Tag>>,
        notice: &Notice<'_, Time>,
    ) {
        let Some(&Some((member, number))) = notes.get(request) else { return };
        self.sink.publish(Address { member, number, request }, about, notice);
    }

    #[inline]
    fn has_enough(&self) -> bool {
        self.bounds == Bounds::OfSink && self.sink.has_enough()
    }

    fn evicted(&mut self, client: ClientId) {
        if let Some(member) = self.residents.get(client.slot()).copied().flatten() {
            self.sink.evicted(member);
        }
    }
}
