//! The options by which `navlocks serve` becomes a node of a cluster.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use navlocks_server::Limits;
use navlocks_server::cluster::Membership;

use super::etcd::EtcdOptions;
use crate::command::duration;
use crate::exit::{Exit, Failure};

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct Joining {
    #[command(flatten)]
    pub(crate) etcd: EtcdOptions,
    /// The address at which clients and other nodes reach this node, such as
    /// wss://node1.example:7400 [default: the address to listen on]
    #[arg(long, value_name = "URL", requires = "cluster")]
    advertise: Option<String>,
    /// The name of this node, the same at each start [default: the address that it advertises]
    #[arg(long, value_name = "NAME", requires = "cluster")]
    node: Option<String>,
    /// How many slots the cluster has; fixed when it begins
    #[arg(long, value_name = "COUNT", requires = "cluster", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    slots: u32,
    /// For how long a node may be silent before others take its slots; fixed when the cluster
    /// begins
    #[arg(long, value_name = "TIME", requires = "cluster", default_value = "5s")]
    #[arg(value_parser = duration::parse)]
    node_lease: Duration,
    /// Certificates of authorities to trust when this node connects to others, in PEM [default:
    /// those of the system]
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub(crate) node_ca_file: Option<PathBuf>,
}

/// The time that an election in etcd and a new connection may take, beside the node lease.
const ALLOWANCE: Duration = Duration::from_secs(2);
/// The lease of sessions in a cluster: long enough for a fail-over on busy machines.
const LEASE: Duration = Duration::from_secs(30);

impl Joining {
    /// Returns true if the service is a node of a cluster.
    pub(crate) fn is_wanted(&self) -> bool {
        self.etcd.cluster.is_some()
    }

    /// Returns the lease of clients that ask for none.
    pub(crate) fn lease(&self) -> Duration {
        if self.is_wanted() { LEASE } else { Limits::default().lease_default }
    }

    /// Returns the shortest lease that a client can ask for. In a cluster a session must outlive a
    /// fail-over: 5/8 of the lease are left for that.
    pub(crate) fn lease_min(&self, lease_min: Duration) -> Duration {
        let failover = (self.node_lease + ALLOWANCE) * 8 / 5;
        if self.is_wanted() { lease_min.max(failover) } else { lease_min }
    }

    /// Returns the address to advertise.
    pub(crate) fn advertised(&self, listening: &[String]) -> Result<String, Failure> {
        if let Some(advertise) = &self.advertise {
            if advertise.starts_with("ws://") || advertise.starts_with("wss://") {
                return Ok(advertise.clone());
            }
            let text = format!("'{advertise}' is no address of a node: write wss://host:port");
            return Err(Failure::new(Exit::Usage, text));
        }
        match listening {
            [one] => Ok(one.clone()),
            _ => {
                let text =
                    "a node needs the address at which others reach it: name it with --advertise";
                Err(Failure::new(Exit::Usage, text))
            }
        }
    }

    /// Checks what can be checked without the cluster.
    #[cfg(feature = "etcd")]
    pub(crate) fn check(&self, session_lease: Duration) -> Result<(), Failure> {
        if !self.is_wanted() {
            return Ok(());
        }
        let (address, _) = self.etcd.address()?;
        let config = navlocks_etcd::Config::new(address, "", "");
        let config = config.with(|config| config.node_lease = self.node_lease);
        let checked = config.check_timing(session_lease, ALLOWANCE);
        checked.map_err(|error| super::etcd::failure(&error))
    }

    /// Says how to get a command that can join.
    #[cfg(not(feature = "etcd"))]
    pub(crate) fn check(&self, _session_lease: Duration) -> Result<(), Failure> {
        if self.is_wanted() { Err(super::etcd::missing()) } else { Ok(()) }
    }

    /// Joins the cluster.
    #[cfg(feature = "etcd")]
    pub(crate) async fn join(
        self,
        advertise: String,
        session_lease: Duration,
        seats: usize,
    ) -> Result<Box<dyn Membership>, Failure> {
        use navlocks_etcd::{Config, Node};

        let name = self.node.unwrap_or_else(|| advertise.clone());
        let (address, tls) = self.etcd.address()?;
        let (slots, node_lease) = (self.slots, self.node_lease);
        let config = Config::new(address, &name, &advertise);
        let seats = seats as u64;
        let config = config.with(|config| {
            config.tls = tls;
            (config.slots, config.node_lease, config.seats) = (slots, node_lease, seats);
        });
        let failed = |error: navlocks_etcd::Error| super::etcd::failure(&error);
        config.check_timing(session_lease, ALLOWANCE).map_err(failed)?;
        let node = Node::join(config).await.map_err(failed)?;
        Ok(Box::new(node))
    }

    /// Says how to get a command that can join.
    #[cfg(not(feature = "etcd"))]
    pub(crate) async fn join(
        self,
        _advertise: String,
        _session_lease: Duration,
        _seats: usize,
    ) -> Result<Box<dyn Membership>, Failure> {
        Err(super::etcd::missing())
    }
}
