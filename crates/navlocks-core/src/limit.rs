//! Limits: how many holders a request allows beside itself.

use alloc::collections::BTreeMap;
use core::fmt;
use core::num::NonZeroU32;

/// The largest number of holders of a name, itself included, beside which a request may hold it: at
/// least 2. Exclusive requests allow 1, and shared ones have no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Limit(NonZeroU32);

impl Limit {
    /// The largest limit.
    pub const MAX: u32 = (1 << Self::BITS) - 1;

    /// How many bits a seat has for it, beside its marks.
    pub(crate) const BITS: u32 = 28;

    /// Makes a limit of 2 to [`MAX`](Self::MAX) holders.
    #[inline]
    pub const fn new(holders: u32) -> Option<Self> {
        match NonZeroU32::new(holders) {
            Some(number) if holders >= 2 && holders <= Self::MAX => Some(Self(number)),
            _ => None,
        }
    }

    /// Returns the number of holders.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The limit of any request as one number, so that limits compare: 1 for exclusive requests, the
/// largest for shared ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Allowance(u32);

impl Allowance {
    pub(crate) const ONE: Self = Self(1);
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// Makes one of a limit, if there is one.
    pub(crate) fn new(limit: Option<u32>) -> Self {
        limit.map_or(Self::NONE, Self)
    }

    /// Returns the most holders that it allows.
    pub(crate) fn holders(self) -> u32 {
        self.0
    }

    /// Returns true if a request that allows this may be one of so many holders.
    pub(crate) fn covers(self, holders: u32) -> bool {
        holders <= self.0
    }
}

/// The limits of the clear seats of one queue, counted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    seats: u32,
    by_limit: BTreeMap<Allowance, u32>,
}

impl Tally {
    fn smallest(&self) -> Allowance {
        self.by_limit.first_key_value().map_or(Allowance::NONE, |(&limit, _)| limit)
    }

    /// Returns true if a seat with this limit can be clear beside all that are.
    pub(crate) fn admits(&self, limit: Allowance) -> bool {
        self.smallest().min(limit).covers(self.seats + 1)
    }

    /// Returns true if the seats are more than one of them allows.
    pub(crate) fn is_exceeded(&self) -> bool {
        !self.smallest().covers(self.seats)
    }

    pub(crate) fn add(&mut self, limit: Allowance) {
        self.seats += 1;
        *self.by_limit.entry(limit).or_default() += 1;
    }

    pub(crate) fn remove(&mut self, limit: Allowance) {
        if let Some(count) = self.by_limit.get_mut(&limit) {
            self.seats -= 1;
            *count -= 1;
            if *count == 0 {
                self.by_limit.remove(&limit);
            }
        }
    }
}
