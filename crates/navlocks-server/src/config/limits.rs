//! The limits of the service, each named with its unit. A client that reaches one gets an error
//! that names it.

use std::time::Duration;

use navlocks_wire as wire;

/// No lease is longer than ten years, so that the end of each is a moment of all clocks.
pub(crate) const LEASE_BOUND: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// The limits of the service. The defaults are generous for honest clients and bound what
/// others can do. More may follow, so begin with the default and change it [`with`](Self::with).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The longest message that a client may send. Long enough to name all requests of a session
    /// when it is resumed.
    pub message_bytes_max: usize,
    /// The longest name, in bytes of UTF-8.
    pub name_bytes_max: usize,
    /// The most names in one request.
    pub names_per_request_max: usize,
    /// The longest tag.
    pub tag_bytes_max: usize,
    /// The longest name of a partition.
    pub partition_name_bytes_max: usize,
    /// The most requests of one session, held, pending and lost together.
    pub requests_per_session_max: usize,
    /// The most clients of one session.
    pub clients_per_session_max: usize,
    /// The most requests of one partition, held and pending together.
    pub requests_per_partition_max: usize,
    /// The most bytes that names and tags of one partition's requests take.
    pub partition_bytes_max: usize,
    /// The most subscribers of one partition's events.
    pub subscribers_per_partition_max: usize,
    /// The most partitions at a time, over TCP and over the Unix socket each.
    pub partitions_max: usize,
    /// The most partitions that one tenant has open.
    pub partitions_per_tenant_max: usize,
    /// The most sessions at a time, with and without a connection; over TCP and over the Unix
    /// socket each.
    pub sessions_max: usize,
    /// The most sessions of one tenant.
    pub sessions_per_tenant_max: usize,
    /// The most connections at a time, over TCP and over the Unix socket each. An eighth of the
    /// process's file descriptors stays free of TCP connections.
    pub connections_max: usize,
    /// The most connections of one tenant.
    pub connections_per_tenant_max: usize,
    /// The most TCP connections that have not shown yet whose they are. A further one takes the
    /// place of the oldest.
    pub strangers_max: usize,
    /// The most of these from one address other than loopback. A further one takes the place of the
    /// oldest from there.
    pub strangers_per_address_max: usize,
    /// How long a connection keeps its place among these at least, while others come.
    pub stranger_time_min: Duration,
    /// The most requests of one tenant, held, pending and lost together.
    pub requests_per_tenant_max: usize,
    /// The most bytes of memory that the clients and requests of one session take.
    pub bytes_per_session_max: usize,
    /// The most bytes of memory that the sessions, clients and requests of one tenant take.
    pub bytes_per_tenant_max: usize,
    /// The longest answer to a question.
    pub answer_bytes_max: usize,
    /// The most entries before a request that a question about its place or blockers looks at.
    pub blocker_entries_max: usize,
    /// The most entries that one search for deadlocks looks at.
    pub deadlock_entries_max: usize,
    /// The most entries that the deadlock policy looks at when a request has to wait. A request
    /// behind more waits without a search.
    pub deadlock_wait_entries_max: usize,
    /// The bytes that one session may leave unread before it counts as a slow reader.
    pub outbox_bytes_max: usize,
    /// The bytes that all sessions of one tenant may leave unread. Beyond it, those with more than
    /// an even part are slow readers.
    pub unread_bytes_per_tenant_max: usize,
    /// How often the service looks whether the files of tokens and certificates have changed.
    pub reload_interval: Duration,
    /// How long the connections of one tenant run before those of others have their turn.
    pub tenant_turn_max: Duration,
    /// The longest header of an HTTP request.
    pub header_bytes_max: usize,
    /// How long a connection may take until its first message is there.
    pub handshake_max: Duration,
    /// How long a connection that is being closed is waited for.
    pub closing_max: Duration,
    /// The shortest lease that a client can ask for.
    pub lease_min: Duration,
    /// The longest lease that a client can ask for.
    pub lease_max: Duration,
    /// The lease of a client that does not ask.
    pub lease_default: Duration,
    /// So many fencing tokens are reserved on the disk at a time; a crash skips as many at most.
    pub tokens_reserved_ahead: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes_max: 1 << 20,
            name_bytes_max: 64 << 10,
            names_per_request_max: 1000,
            tag_bytes_max: 1 << 10,
            partition_name_bytes_max: 256,
            requests_per_session_max: 100_000,
            clients_per_session_max: 10_000,
            requests_per_partition_max: 1_000_000,
            partition_bytes_max: 256 << 20,
            subscribers_per_partition_max: 20_000,
            partitions_max: 10_000,
            partitions_per_tenant_max: 2_500,
            sessions_max: 100_000,
            sessions_per_tenant_max: 25_000,
            connections_max: 100_000,
            connections_per_tenant_max: 25_000,
            strangers_max: 1_000,
            strangers_per_address_max: 100,
            stranger_time_min: Duration::from_secs(1),
            requests_per_tenant_max: 500_000,
            bytes_per_session_max: 256 << 20,
            bytes_per_tenant_max: 512 << 20,
            answer_bytes_max: 8 << 20,
            blocker_entries_max: 100_000,
            deadlock_entries_max: 100_000,
            deadlock_wait_entries_max: 10_000,
            outbox_bytes_max: 16 << 20,
            unread_bytes_per_tenant_max: 64 << 20,
            reload_interval: Duration::from_secs(5),
            tenant_turn_max: Duration::from_millis(2),
            header_bytes_max: 16 << 10,
            handshake_max: Duration::from_secs(10),
            closing_max: Duration::from_secs(1),
            lease_min: Duration::from_secs(1),
            lease_max: Duration::from_secs(60),
            lease_default: Duration::from_secs(10),
            tokens_reserved_ahead: 1 << 24,
        }
    }
}

impl Limits {
    /// Changes the limits by `change`, and returns them.
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The lease that a client gets who asks for so many milliseconds, or for none.
    pub(crate) fn lease(&self, asked_ms: Option<u64>) -> Duration {
        let asked = asked_ms.map_or(self.lease_default, Duration::from_millis);
        let max = self.lease_max.min(LEASE_BOUND);
        asked.clamp(self.lease_min.min(max), max)
    }

    /// Returns the limits that a welcome has.
    pub(crate) fn of_a_session(&self) -> wire::Limits {
        wire::Limits {
            message_bytes_max: self.message_bytes_max,
            name_bytes_max: self.name_bytes_max,
            names_per_request_max: self.names_per_request_max,
            tag_bytes_max: self.tag_bytes_max,
            requests_per_session_max: self.requests_per_session_max,
            clients_per_session_max: self.clients_per_session_max,
        }
    }
}
