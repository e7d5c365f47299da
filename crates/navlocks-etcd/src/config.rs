//! How a node takes part in its cluster.

use std::time::Duration;

use crate::address::{Address, TlsFiles};
use crate::error::Error;

/// The settings that a node needs to take part.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where etcd is.
    pub address: Address,
    /// Certificates for it.
    pub tls: TlsFiles,
    /// The node's name; a node that starts again under its name gets the same slots.
    pub name: String,
    /// The address at which clients and other nodes reach this node.
    pub advertise: String,
    /// How many slots a cluster has; fixed when it begins.
    pub slots: u32,
    /// How long a node may be silent; fixed when the cluster begins.
    pub node_lease: Duration,
    /// How many sessions the node can serve, for operators; 0 if that is not known.
    pub seats: u64,
    /// How long etcd keeps history before one of the nodes compacts it.
    pub compact_after: Duration,
    /// The knowledge of this node's earlier membership, if it joins again.
    pub known: Option<Known>,
}

/// The knowledge of a node about its cluster when its membership ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub(crate) secret: String,
    pub(crate) restored: u64,
    /// The largest revision of etcd.
    pub(crate) revision: i64,
    /// True if the membership ended because etcd was restored.
    pub(crate) saw_restore: bool,
}

impl Config {
    /// A node with the defaults: 64 slots, a node lease of five seconds, five minutes of history.
    pub fn new(address: Address, name: &str, advertise: &str) -> Self {
        Self {
            address,
            tls: TlsFiles::default(),
            name: name.to_owned(),
            advertise: advertise.to_owned(),
            slots: 64,
            node_lease: Duration::from_secs(5),
            seats: 0,
            compact_after: Duration::from_secs(300),
            known: None,
        }
    }

    /// Changes the settings by `change`, and returns them.
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Refuses leases with which every fail-over would cost every lock.
    ///
    /// # Errors
    /// [`Error::Timing`] with the numbers.
    pub fn check_timing(&self, session_lease: Duration, allowance: Duration) -> Result<(), Error> {
        let node_lease = self.node_lease;
        // A client believes for 7/8 of its lease since it sent a ping, and sends the next one when
        // a quarter of that is used.
        if session_lease / 8 * 5 >= node_lease + allowance {
            return Ok(());
        }
        Err(Error::Timing { session_lease, node_lease, allowance })
    }
}
