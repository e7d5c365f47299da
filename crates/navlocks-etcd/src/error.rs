//! Failures between a node and its etcd, each its own error.

use std::fmt;
use std::time::Duration;

/// Why a node cannot take part in its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The address of the cluster cannot be read.
    Address(String),
    /// A file of certificates or keys cannot be used.
    Tls(String),
    /// No member of etcd answers.
    Unreachable {
        /// The members that were tried.
        members: String,
        /// The answer of the last of them.
        reason: String,
    },
    /// etcd refuses the user or the password.
    Credentials(String),
    /// The user may not read or write the keys of the cluster.
    NotPermitted(String),
    /// Members answer, but have no leader.
    NoQuorum(String),
    /// etcd has reached its quota and refuses writes.
    StoreFull,
    /// etcd is older than what the cluster relies on.
    TooOld(String),
    /// The prefix belongs to a cluster with other constants.
    OtherCluster {
        /// The prefix of its keys.
        prefix: String,
        /// The value that this node was told.
        ours: String,
        /// The value that the cluster has.
        theirs: String,
    },
    /// A key has a value that no version of navlocks wrote.
    Record {
        /// The key.
        key: String,
        /// The reason why it is wrong.
        reason: String,
    },
    /// This node's incarnation is over: another node has taken its place, or its key was deleted.
    Ended,
    /// etcd was restored from a backup or lost writes, so nothing that was read before counts.
    Restored,
    /// Sessions would not outlive a fail-over.
    Timing {
        /// The shortest lease of a session.
        session_lease: Duration,
        /// The lease of a node.
        node_lease: Duration,
        /// The time for an election in etcd and for clients to connect again.
        allowance: Duration,
    },
    /// No cluster ever had this epoch.
    Epoch(u64),
    /// No cluster has begun below the prefix.
    NoCluster,
    /// A living node has the name of this one.
    Namesake {
        /// The name.
        name: String,
        /// The address of the other node.
        address: String,
    },
    /// No node has this name.
    NoSuchNode(String),
    /// etcd refused or failed in another way. The outcome of a write is unknown.
    Unknown(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(reason) => write!(
                f,
                "the cluster's address cannot be read: {reason}; it looks like etcd://host1:2379,host2:2379"
            ),
            Self::Tls(reason) => write!(f, "cannot set up TLS for etcd: {reason}"),
            Self::Unreachable { members, reason } => write!(
                f,
                "etcd cannot be reached at {members}: {reason}; check the addresses, that etcd runs, and that etcds:// is written where it speaks TLS"
            ),
            Self::Credentials(reason) => {
                write!(f, "etcd refuses the user or the password: {reason}")
            }
            Self::NotPermitted(reason) => write!(
                f,
                "etcd's user may not use the keys of the cluster: {reason}; grant it read and write on the prefix"
            ),
            Self::NoQuorum(reason) => write!(
                f,
                "etcd has no quorum: {reason}; start the missing members, held locks last until their leases end"
            ),
            Self::StoreFull => f.write_str(
                "etcd's store is full and refuses writes; compact and defragment it, then disarm the NOSPACE alarm",
            ),
            Self::TooOld(version) => {
                write!(f, "etcd {version} is too old: a cluster needs 3.4 or later")
            }
            Self::OtherCluster { prefix, ours, theirs } => write!(
                f,
                "another cluster uses the prefix {prefix}: it has {theirs}, this node was told {ours}; use the same settings or another prefix"
            ),
            Self::Record { key, reason } => write!(
                f,
                "the key {key} in etcd was not written by navlocks: {reason}; use a prefix of its own"
            ),
            Self::Ended => f.write_str(
                "this node's place in the cluster was taken, because it did not renew it in time or its key was deleted",
            ),
            Self::Restored => f.write_str(
                "etcd was restored from a backup or lost writes; the node starts over as a new one",
            ),
            Self::Timing { session_lease, node_lease, allowance } => write!(
                f,
                "sessions would not outlive a fail-over: 5/8 of the session lease {session_lease:?} are shorter than the node lease {node_lease:?} plus {allowance:?} for an election and reconnecting; make the session lease longer"
            ),
            Self::Epoch(epoch) => {
                write!(f, "no cluster ever had the epoch {epoch}, so it is not believed")
            }
            Self::NoCluster => f.write_str(
                "no cluster has begun below this prefix of etcd; check the address and the prefix",
            ),
            Self::Namesake { name, address } => write!(
                f,
                "another node is called {name:?} and lives at {address}; give each node a name of its own with --node"
            ),
            Self::NoSuchNode(name) => {
                write!(f, "no node is called {name:?}; `navlocks cluster` lists them")
            }
            Self::Unknown(reason) => write!(f, "etcd failed: {reason}"),
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    /// Sorts etcd's own words, which are stable across its versions.
    pub(crate) fn of(error: &etcd_client::Error, members: &str) -> Self {
        let unreachable = |words: &str, cause: &dyn std::error::Error| {
            let (members, reason) = (members.to_owned(), with_causes(words, cause));
            Self::Unreachable { members, reason }
        };
        let status = match error {
            etcd_client::Error::GRpcStatus(status) => status,
            etcd_client::Error::TransportError(cause) => {
                return unreachable(&cause.to_string(), cause);
            }
            etcd_client::Error::InvalidUri(_) | etcd_client::Error::InvalidArgs(_) => {
                return Self::Address(error.to_string());
            }
            _ => return unreachable(&error.to_string(), error),
        };
        let words = status.message();
        let says = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
        if says(&["database space exceeded"]) {
            Self::StoreFull
        } else if says(&["authentication failed", "user name is empty", "authentication is not"]) {
            Self::Credentials(words.to_owned())
        } else if says(&["permission denied"]) {
            Self::NotPermitted(words.to_owned())
        } else if says(&["no leader", "leader changed", "etcdserver: request timed out"]) {
            Self::NoQuorum(words.to_owned())
        } else if !says(&["etcdserver"]) {
            // The words are not etcd's own, so it was not reached.
            unreachable(words, status)
        } else {
            Self::Unknown(format!("{:?}: {words}", status.code()))
        }
    }

    /// Whether another member of etcd may answer better.
    pub(crate) fn may_be_the_members(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::NoQuorum(_) | Self::Unknown(_))
    }

    /// Whether a node cannot go on and has to join again.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::Ended | Self::Restored | Self::OtherCluster { .. })
    }
}

/// The words of an error, and those of its causes that are not in them already.
fn with_causes(words: &str, error: &dyn std::error::Error) -> String {
    let mut text = words.to_owned();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.contains(&words) && words != "transport error" {
            text = format!("{text}: {words}");
        }
        next = cause.source();
    }
    text
}
