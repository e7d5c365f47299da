//! The last minutes of a partition.

use navlocks_core::Name;
use serde::{Deserialize, Serialize};

use super::{ClientKey, Entry, is_zero, single};

/// The last minutes of one partition. Every moment is a time before now, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Time {
    /// How long the service has recorded events, in milliseconds.
    pub recorded_ms: u64,
    /// How far back the lanes and the moment reach: requests that ended earlier were dropped.
    pub lanes_ms: u64,
    /// The length of one bucket of the counts.
    pub bucket_ms: u64,
    /// The age of the last bucket's end.
    pub ends_ms: u64,
    /// The most waiters of each bucket, oldest first.
    pub waiting: Vec<u32>,
    /// The locks held at the end of each bucket.
    pub held: Vec<u32>,
    /// Grants of each bucket.
    pub granted: Vec<u32>,
    /// How long requests waited until they were granted: counts below 1 ms, 2 ms, 4 ms and so on.
    pub wait_counts: Vec<u64>,
    /// How long locks were held, in the same buckets.
    pub hold_counts: Vec<u64>,
    /// The names with the most waiting time.
    pub heat: Vec<Heat>,
    /// The length of one cell of heat.
    pub heat_ms: u64,
    /// The locks and waiters of the moment that was asked for.
    #[serde(default)]
    pub moment: Moment,
    /// The requests of the window, by client.
    pub lanes: Vec<Lane>,
    /// Clients that are left out.
    pub more_lanes: u64,
    /// Live requests that the service did not look at, because there are too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unseen: u64,
}

/// How long requests for a name waited, in each slice of time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heat {
    /// The name, or its beginning.
    #[serde(with = "single")]
    pub name: Name,
    /// Total milliseconds of the waits that ended in each slice, oldest first. The last slice also
    /// has the waits that last.
    pub ms: Vec<u64>,
}

/// The requests of one client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// The client.
    pub client: ClientKey,
    /// Its process, where the service knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Its requests, the newest first.
    pub spans: Vec<Span>,
    /// Earlier requests that are left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
}

/// The locks and waiters of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// How many locks were held.
    pub held: u64,
    /// How many requests waited.
    pub waiting: u64,
    /// The first of them: locks, then waiters, each with the oldest first.
    pub spans: Vec<Span>,
}

/// A request from its beginning to its end. Moments are milliseconds before now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Span {
    /// The request.
    pub entry: Entry,
    /// When it was made.
    pub asked_ms: u64,
    /// When it was granted, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted_ms: Option<u64>,
    /// When it ended, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// True if the lock was lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
}
