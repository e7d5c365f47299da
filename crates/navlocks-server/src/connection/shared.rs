//! The state that all tasks of a service share. One thread runs them all.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_wire::{Fault, FaultCode};
use rustix::process::{Resource, getrlimit};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

use super::turns::Pacing;
use super::unauthenticated::Unauthenticated;
use crate::config::{Access, Config, Limits, Origins};
use crate::dialing::Dialer;
use crate::hub::metrics::Sessions;
use crate::hub::{Hub, Metrics, Peer, Share};
use crate::hubs::Hubs;
use crate::inspect::{Inspector, Observer};

/// The state that all tasks of a service share.
pub(crate) struct Shared {
    pub(crate) hubs: Hubs,
    /// In a cluster: the way to other nodes.
    pub(crate) dialer: Dialer,
    /// Why the service has to end, if that is known.
    pub(crate) fatal: RefCell<Option<io::Error>>,
    pub(crate) config: Config,
    /// Which pages may come in.
    pub(crate) origins: RefCell<Origins>,
    /// The tokens of clients over TCP, as the file says now.
    pub(crate) access: Rc<RefCell<Access>>,
    /// The certificate for TCP, as its files say now.
    pub(crate) tls: RefCell<Option<TlsAcceptor>>,
    /// The dashboard, if there is one.
    pub(crate) observer: Option<Rc<dyn Observer>>,
    /// True when the service ends.
    pub(crate) ending: watch::Sender<bool>,
    /// Told when the files of both are to be read again.
    pub(crate) reload: Rc<Notify>,
    /// Told when a task has panicked: the books may be wrong, so the service ends.
    pub(crate) panicked: Notify,
    pub(crate) pacing: Pacing,
    /// The turns of connections without a tenant.
    pub(crate) of_strangers: Rc<Share>,
    strangers: Unauthenticated,
    max: ConnectionLimits,
    unix: Cell<usize>,
    tcp: Cell<usize>,
    /// Told when the last connection is gone, or the last session without one.
    pub(crate) emptied: Notify,
    /// The longest lease of those who could not be told that the service ends.
    untold: Cell<Option<Duration>>,
}

/// How many connections there may be, as the limits and the process's file descriptors allow.
#[derive(Debug)]
struct ConnectionLimits {
    unix_max: usize,
    tcp_max: usize,
    per_tenant_max: usize,
    strangers_max: usize,
}

impl ConnectionLimits {
    fn new(config: &Config) -> Self {
        let limits = &config.limits;
        let files = getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| files as usize);
        // The rest is for the Unix socket and for files.
        let tcp = files - files / 8;
        let strangers = limits.strangers_max.min(files / 8).max(1);
        let tenants = tcp - strangers;
        let per_tenant = if config.access.is_open() { tenants } else { tenants / 2 };
        Self {
            unix_max: limits.connections_max,
            tcp_max: limits.connections_max.min(tcp),
            per_tenant_max: limits.connections_per_tenant_max.min(per_tenant),
            strangers_max: strangers,
        }
    }
}

/// One of the connections that are counted. Dropping it is the connection's end.
pub(crate) struct ConnectionPermit {
    shared: Rc<Shared>,
    local: bool,
    /// Its number among those without a tenant.
    stranger: Option<u64>,
    share: Option<Rc<Share>>,
}

impl Shared {
    pub(crate) fn new(
        config: Config,
        origins: Origins,
        tls: Option<TlsAcceptor>,
        hubs: Hubs,
    ) -> Self {
        Self {
            origins: RefCell::new(origins),
            hubs,
            dialer: Dialer::new(config.node_roots.clone()),
            fatal: RefCell::default(),
            max: ConnectionLimits::new(&config),
            access: Rc::new(RefCell::new(config.access.clone())),
            tls: RefCell::new(tls),
            config,
            observer: None,
            ending: watch::Sender::new(false),
            reload: Rc::default(),
            panicked: Notify::new(),
            pacing: Pacing::default(),
            of_strangers: Rc::default(),
            strangers: Unauthenticated::default(),
            unix: Cell::new(0),
            tcp: Cell::new(0),
            emptied: Notify::new(),
            untold: Cell::new(None),
        }
    }

    /// Returns the way of a dashboard to the locks.
    pub(crate) fn inspector(&self) -> Inspector {
        let limits = Rc::new(self.config.limits.clone());
        Inspector::new(self.hubs.clone(), limits, self.access.clone(), self.config.dashboard)
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.hubs.common.metrics
    }

    /// Brings what is counted on demand up to date.
    pub(crate) fn measure(&self) -> &Metrics {
        let metrics = self.metrics();
        let Metrics { held, pending, partitions, slots, slots_recovering, .. } = metrics;
        let Sessions { connected, detached, unclaimed, .. } = &metrics.sessions;
        let states = [connected, detached, unclaimed];
        for gauge in [held, pending, partitions, slots, slots_recovering].into_iter().chain(states)
        {
            gauge.set(0);
        }
        metrics.oldest_waiter.set(0.0);
        let now = Instant::now();
        self.hubs.all().iter().for_each(|hub| hub.borrow_mut().measure(now));
        metrics.recovering.set(i64::from(self.hubs.unready().is_some()));
        metrics.connections.set(self.connections() as i64);
        metrics.strangers.set(self.strangers() as i64);
        metrics
    }

    /// Returns how many connections of tenants over TCP there may be.
    pub(crate) fn seats(&self) -> usize {
        self.max.tcp_max.saturating_sub(self.max.strangers_max)
    }

    pub(crate) fn connections(&self) -> usize {
        self.unix.get() + self.tcp.get()
    }

    pub(crate) fn strangers(&self) -> usize {
        self.strangers.len()
    }

    pub(crate) fn arrivals(&self) -> u64 {
        self.metrics().accepted_connections.get()
    }

    /// Returns true if there is no connection, and no session that may come back.
    pub(crate) fn is_idle(&self) -> bool {
        let is_idle = |hub: &Hub| hub.sessions.len() == 0 && !hub.found.hides_holders();
        self.connections() == 0 && self.hubs.all().iter().all(|hub| is_idle(&hub.borrow()))
    }

    /// Waits until there is room for a further TCP connection without a tenant.
    pub(crate) async fn room_for_stranger(&self) {
        let time = self.config.limits.stranger_time_min;
        while let Err(left) = self.strangers.make_room(self.max.strangers_max, time) {
            // A place may become free earlier.
            tokio::time::sleep(left.min(Duration::from_millis(10))).await;
        }
    }

    /// Counts a new connection, from this address or over the Unix socket; none when there are too
    /// many.
    pub(crate) fn take_permit(
        self: &Rc<Self>,
        address: Option<IpAddr>,
    ) -> Option<ConnectionPermit> {
        let (count, max) = match address {
            None => (&self.unix, self.max.unix_max),
            Some(_) => (&self.tcp, self.max.tcp_max),
        };
        if count.get() >= max {
            return None;
        }
        let Limits { strangers_per_address_max: per_address_max, stranger_time_min: time, .. } =
            self.config.limits;
        let stranger = match address {
            Some(address) => Some(self.strangers.add(address, per_address_max, time)?),
            None => None,
        };
        count.set(count.get() + 1);
        self.metrics().accepted_connections.inc();
        Some(ConnectionPermit {
            shared: self.clone(),
            local: address.is_none(),
            stranger,
            share: None,
        })
    }

    /// Ends the service with this error.
    pub(crate) fn fail(&self, error: io::Error) {
        self.fatal.borrow_mut().get_or_insert(error);
        self.panicked.notify_one();
    }

    /// A client with this lease may not know that the service ends.
    pub(crate) fn could_not_tell(&self, lease: Option<Duration>) {
        self.untold.set(self.untold.get().max(lease));
    }

    pub(crate) fn untold(&self) -> Option<Duration> {
        self.untold.get()
    }
}

impl ConnectionPermit {
    /// The number among strangers, by which the task is noted that serves the connection.
    pub(crate) fn stranger(&self) -> Option<u64> {
        self.stranger
    }

    /// The connection has shown whose it is, and counts in the share of its tenant.
    pub(crate) fn settle(&mut self, peer: &Peer) -> Result<Rc<Share>, Fault> {
        let share = self.shared.hubs.common.shares.borrow_mut().of(peer);
        let max = self.shared.max.per_tenant_max;
        let is_bounded = !self.local || !peer.tenant.is_empty();
        if is_bounded && share.connections.get() >= max {
            let text = format!("the tenant has {max} connections, and takes no more: close some");
            return Err(Fault::new(FaultCode::Limit, text));
        }
        share.connections.add(1);
        self.share = Some(share.clone());
        if let Some(number) = self.stranger.take() {
            self.shared.strangers.settled(number);
        }
        Ok(share)
    }
}

/// Notes which task serves a connection that has no tenant yet.
pub(crate) fn note_task(shared: &Shared, stranger: Option<u64>, task: AbortHandle) {
    if let Some(number) = stranger {
        shared.strangers.served_by(number, task);
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let Self { shared, local, stranger, share } = self;
        let count = if *local { &shared.unix } else { &shared.tcp };
        count.set(count.get() - 1);
        if let Some(number) = stranger {
            shared.strangers.settled(*number);
        }
        if let Some(share) = share {
            share.connections.sub(1);
        }
        if shared.connections() == 0 {
            shared.emptied.notify_waiters();
        }
    }
}
