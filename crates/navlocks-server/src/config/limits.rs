//! What the service allows, each limit named with its unit. Whoever reaches one gets an error that names it.

use std::time::Duration;

use navlocks_wire as wire;

/// What the service allows anybody. The defaults are generous for honest clients and bound what others can do.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The longest message that a client may send. Long enough to name all requests of a session when it is resumed.
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
    /// The most partitions at a time.
    pub partitions_max: usize,
    /// The most sessions at a time, with and without a connection.
    pub sessions_max: usize,
    /// The most connections at a time.
    pub connections_max: usize,
    /// What may lie unread for one session before it counts as a slow reader.
    pub outbox_bytes_max: usize,
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
            name_bytes_max: 4 << 10,
            names_per_request_max: 1000,
            tag_bytes_max: 1 << 10,
            partition_name_bytes_max: 256,
            requests_per_session_max: 100_000,
            clients_per_session_max: 10_000,
            requests_per_partition_max: 1_000_000,
            partition_bytes_max: 256 << 20,
            partitions_max: 10_000,
            sessions_max: 100_000,
            connections_max: 100_000,
            outbox_bytes_max: 16 << 20,
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
    /// The lease that a client gets who asks for so many milliseconds, or for none.
    pub(crate) fn lease(&self, asked_ms: Option<u64>) -> Duration {
        let asked = asked_ms.map_or(self.lease_default, Duration::from_millis);
        asked.clamp(self.lease_min.min(self.lease_max), self.lease_max)
    }

    /// What clients are told.
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
