//! The keys, answers and errors of a host.

use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU64;

use super::table::slot_of;
use crate::kit::SpaceError;
use crate::kit::limits::LimitExceeded;
use crate::{FencingToken, Mode, RequestId, Scope};

macro_rules! key {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// Never repeats in its host.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(NonZeroU64);

        impl $name {
            #[inline]
            pub(super) fn from_key(key: u64) -> Self {
                Self(NonZeroU64::new(key).unwrap_or(NonZeroU64::MAX))
            }

            #[inline]
            pub(super) fn key(self) -> u64 {
                self.0.get()
            }

            /// Returns the same as a number, for embedders in other languages.
            pub fn to_bits(self) -> u64 {
                self.0.get()
            }

            /// Makes a key again from its number. A host knows only those that it gave.
            pub fn from_bits(bits: u64) -> Option<Self> {
                NonZeroU64::new(bits).map(Self)
            }

            /// Returns a small number for indexing a table: dense, and reused later.
            #[inline]
            pub fn slot(self) -> usize {
                slot_of(self.0.get())
            }
        }
    };
}

key! {
    /// Clients that end together, such as a page and its workers.
    Group
}

key! {
    /// A client in one partition of a [`Host`](super::Host).
    Member
}

/// The address of a request: its client, the number that the client gave it, and the id under which
/// all clients of the partition know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The client of the request.
    pub member: Member,
    /// The number that the client chose.
    pub number: u64,
    /// The id in the partition.
    pub request: RequestId,
}

/// All locks and requests of a partition at one moment, as a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSnapshot<Time, Tag> {
    /// The locks held, in the order in which they were granted.
    pub held: Vec<HostLock<Time, Tag>>,
    /// The requests pending, in the order in which they stand in the queue.
    pub pending: Vec<HostLock<Time, Tag>>,
}

/// One lock or request in a [`HostSnapshot`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLock<Time, Tag> {
    /// Its client, number and id.
    pub address: Address,
    /// The names it asks for.
    pub scope: Scope,
    /// Exclusive, shared, or shared up to a limit.
    pub mode: Mode,
    /// Its fencing token; none while it is pending.
    pub token: Option<FencingToken>,
    /// When it was requested, and once held when it was granted.
    pub since: Time,
    /// The text of the client.
    pub tag: Option<Tag>,
    /// The held lock within which it was requested.
    pub within: Option<RequestId>,
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
    Refused(SpaceError),
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
