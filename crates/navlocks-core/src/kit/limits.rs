//! Limits, each named with its unit.

use core::fmt;

use crate::Name;

/// The limits of a [`Host`](super::Host). The engine itself has none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Partitions that have a client.
    pub partitions_max: usize,
    /// Clients of one group.
    pub clients_per_group_max: usize,
    /// Requests of one client, held and pending.
    pub requests_per_client_max: usize,
    /// Names of one request.
    pub names_per_request_max: usize,
    /// Bytes of one name.
    pub name_bytes_max: usize,
    /// Entries that the search of the deadlock policy reads for one request.
    pub deadlock_entries_max: usize,
}

impl Limits {
    /// No limits, for an embedder whose clients are all its own.
    pub const NONE: Self = Self {
        partitions_max: usize::MAX,
        clients_per_group_max: usize::MAX,
        requests_per_client_max: usize::MAX,
        names_per_request_max: usize::MAX,
        name_bytes_max: usize::MAX,
        deadlock_entries_max: usize::MAX,
    };

    /// Changes the limits by `change`, and returns them.
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    #[inline]
    pub(super) fn check_names(&self, names: &[Name]) -> Result<(), LimitExceeded> {
        within("names_per_request_max", names.len(), self.names_per_request_max)?;
        names
            .iter()
            .try_for_each(|name| within("name_bytes_max", name.len_bytes(), self.name_bytes_max))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            partitions_max: 10_000,
            clients_per_group_max: 1_000,
            requests_per_client_max: 100_000,
            names_per_request_max: 1_000,
            name_bytes_max: 64 * 1024,
            deadlock_entries_max: 100_000,
        }
    }
}

/// A limit was reached. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitExceeded {
    /// The name of the limit, as in [`Limits`].
    pub limit: &'static str,
    /// Its value.
    pub max: usize,
}

impl fmt::Display for LimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the limit {} of {} is reached", self.limit, self.max)
    }
}

impl core::error::Error for LimitExceeded {}

/// Returns an error if `count` exceeds `max`.
#[inline]
pub(super) fn within(limit: &'static str, count: usize, max: usize) -> Result<(), LimitExceeded> {
    if count > max { Err(LimitExceeded { limit, max }) } else { Ok(()) }
}
