//! Ids of clients and requests, and fencing tokens, each its own type.

use core::fmt;

/// The position of something in one of the engine's slabs, and "none" as [`NIL`].
pub(crate) type Index = u32;
pub(crate) const NIL: Index = Index::MAX;

/// Marks ids that another process gave. No slab grows so large that an index has it.
const FOREIGN: Index = 1 << 31;

/// The position of one manager among the shards of a lock space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shard {
    /// The number of this shard, of 2^`bits` shards.
    pub(crate) number: Index,
    pub(crate) bits: u32,
}

impl Shard {
    /// The only shard of a lock space that is not divided.
    pub(crate) const WHOLE: Self = Self { number: 0, bits: 0 };

    /// Returns how many slots a shard can have: ids name the shard too, and must not look foreign.
    pub(crate) const fn limit(self) -> Index {
        FOREIGN >> self.bits
    }

    /// Returns the slot that ids show for a slot of this shard. No two shards show the same.
    #[inline]
    pub(crate) const fn shown(self, slot: Index) -> Index {
        slot << self.bits | self.number
    }

    /// Returns the id of the request with this serial in a slot of this shard.
    #[inline]
    pub(crate) fn id(self, slot: Index, serial: u64) -> RequestId {
        RequestId::new(self.shown(slot), serial)
    }

    /// Returns the slot in this shard that ids show as `slot`.
    #[inline]
    pub(crate) const fn own(self, slot: usize) -> usize {
        slot >> self.bits
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name {
            serial: u64,
            slot: Index,
        }

        impl $name {
            #[inline]
            pub(crate) fn new(slot: Index, serial: u64) -> Self {
                Self { serial, slot }
            }

            /// Returns a small number for indexing a table: dense, and reused once its request or
            /// client is gone.
            #[inline]
            pub fn slot(self) -> usize {
                self.slot as usize
            }

            /// Returns a number that grows with each new id and never repeats.
            #[inline]
            pub fn serial(self) -> u64 {
                self.serial
            }

            /// Makes an id again from its slot and serial. The manager does not know ids that it
            /// never gave.
            pub fn from_parts(slot: u32, serial: u64) -> Self {
                Self { serial, slot }
            }

            /// Makes an id that another process gave, for passing on: no manager here knows it.
            /// `place` names that process and is below 2³¹.
            pub fn foreign(place: u32, number: u64) -> Self {
                Self { serial: number, slot: place | FOREIGN }
            }

            /// Returns the place and the number of an id that [`foreign`](Self::foreign) made.
            pub fn foreign_parts(self) -> Option<(u32, u64)> {
                (self.slot & FOREIGN != 0).then_some((self.slot & !FOREIGN, self.serial))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.foreign_parts() {
                    None => write!(f, concat!($prefix, "{}"), self.serial),
                    Some((place, number)) => write!(f, concat!($prefix, "{}.{}"), place, number),
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

id! {
    /// One owner of requests, whose end releases its locks: the standard's agent, by environment.
    ///
    /// Belongs to the [`LockManager`](crate::LockManager) that made it; another manager does not
    /// know it.
    ClientId, "c"
}

id! {
    /// One request during all its life: while it is pending, and while its lock is held.
    ///
    /// Once the request is over, its id means nothing: every input that names it is a no-op.
    RequestId, "r"
}

/// A number that grows with every grant of a manager and never repeats. A resource that remembers
/// the largest token it saw can refuse a late writer, because a later holder has a larger one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    /// The largest token that a manager can start from: half of all numbers are left for later
    /// grants.
    pub const START_MAX: Self = Self(1 << 63);

    /// Makes the token with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number, for storing beside the data that the lock protects.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// The error of starting from a token that leaves too few numbers for later grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenTooLarge(pub FencingToken);

impl fmt::Display for TokenTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let max = FencingToken::START_MAX;
        write!(f, "fencing token {} is too large to start from: at most {max} is taken", self.0)
    }
}

impl core::error::Error for TokenTooLarge {}
