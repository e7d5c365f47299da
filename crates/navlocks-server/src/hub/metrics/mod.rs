//! Metrics for operators, in the format of Prometheus.

mod process;
mod tenants;

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use self::process::Process;
use super::shares::Shares;

type Label = [(&'static str, &'static str); 1];
type NoLabel = [(&'static str, &'static str); 0];

/// Everything that is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) held: Gauge,
    pub(crate) pending: Gauge,
    pub(crate) partitions: Gauge,
    pub(crate) sessions: Sessions,
    pub(crate) connections: Gauge,
    pub(crate) strangers: Gauge,
    pub(crate) carried: Gauge,
    pub(crate) parked: Gauge,
    pub(crate) slots: Gauge,
    pub(crate) slots_recovering: Gauge,
    /// 1 while no lock can be granted.
    pub(crate) recovering: Gauge,
    pub(crate) oldest_waiter: Gauge<f64, AtomicU64>,
    /// When the certificate expires; none without one.
    certificate_expiry: Family<NoLabel, Gauge>,
    pub(crate) requests: Requests,
    pub(crate) steals: Counter,
    pub(crate) losses: Losses,
    pub(crate) deadlocks: Counter,
    pub(crate) accepted_connections: Counter,
    pub(crate) refused_connections: Counter,
    pub(crate) rejected_frames: Counter,
    pub(crate) slow_readers: Counter,
    pub(crate) lapsed_leases: Counter,
    pub(crate) resumed_sessions: Counter,
    pub(crate) reclaimed_sessions: Counter,
    pub(crate) snapshots: Counter,
    pub(crate) wait: Histogram,
    pub(crate) hold: Histogram,
    process: Process,
}

/// Sessions by their state.
#[derive(Debug)]
pub(crate) struct Sessions {
    pub(crate) connected: Gauge,
    pub(crate) detached: Gauge,
    /// Sessions of an earlier service whose clients have not come back.
    pub(crate) unclaimed: Gauge,
    family: Family<Label, Gauge>,
}

impl Default for Sessions {
    fn default() -> Self {
        let family = Family::<Label, Gauge>::default();
        let of = |state| family.get_or_create(&[("state", state)]).clone();
        let (connected, detached, unclaimed) = (of("connected"), of("detached"), of("unclaimed"));
        Self { connected, detached, unclaimed, family }
    }
}

/// Requests by their outcomes.
#[derive(Debug)]
pub(crate) struct Requests {
    pub(crate) granted: Counter,
    pub(crate) unavailable: Counter,
    pub(crate) aborted: Counter,
    pub(crate) timed_out: Counter,
    pub(crate) refused: Counter,
    family: Family<Label, Counter>,
}

impl Default for Requests {
    fn default() -> Self {
        let family = Family::<Label, Counter>::default();
        let of = |outcome| family.get_or_create(&[("outcome", outcome)]).clone();
        let (granted, unavailable) = (of("granted"), of("unavailable"));
        let (aborted, timed_out, refused) = (of("aborted"), of("timed-out"), of("refused"));
        Self { granted, unavailable, aborted, timed_out, refused, family }
    }
}

impl Requests {
    /// Counts a request that its client takes out of the queue.
    pub(crate) fn withdrawn(&self, reason: Reason) {
        match reason {
            Reason::Aborted => self.aborted.inc(),
            Reason::TimedOut => self.timed_out.inc(),
        };
    }
}

/// Why a client takes a request out of the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reason {
    Aborted,
    TimedOut,
}

/// Losses of locks by their causes.
#[derive(Debug)]
pub(crate) struct Losses {
    pub(crate) stolen: Counter,
    pub(crate) force_released: Counter,
    pub(crate) held_too_long: Counter,
    pub(crate) evicted: Counter,
    pub(crate) suspended: Counter,
    /// Locks that ended with their clients.
    pub(crate) client_ended: Counter,
    pub(crate) not_reclaimed: Counter,
    family: Family<Label, Counter>,
}

impl Default for Losses {
    fn default() -> Self {
        let family = Family::<Label, Counter>::default();
        let of = |cause| family.get_or_create(&[("cause", cause)]).clone();
        Self {
            stolen: of("stolen"),
            force_released: of("force-released"),
            held_too_long: of("held-too-long"),
            evicted: of("evicted"),
            suspended: of("suspended"),
            client_ended: of("client-ended"),
            not_reclaimed: of("not-reclaimed"),
            family,
        }
    }
}

impl Losses {
    /// Counts a lock that its holder has lost.
    pub(crate) fn count(&self, cause: navlocks_core::LossCause) {
        use navlocks_core::LossCause;
        let counter = match cause {
            LossCause::Stolen { .. } => &self.stolen,
            LossCause::ForceReleased => &self.force_released,
            LossCause::HeldTooLong => &self.held_too_long,
            LossCause::Evicted => &self.evicted,
            LossCause::Suspended => &self.suspended,
        };
        counter.inc();
    }
}

impl Default for Metrics {
    fn default() -> Self {
        // From a tenth of a millisecond to a little more than an hour. A power would need the
        // library of mathematics, which every start of the command would have to load.
        let bounds = || std::iter::successors(Some(0.0001), |bound| Some(bound * 4.0)).take(14);
        let durations = || Histogram::new(bounds());
        let mut metrics = Self {
            registry: Registry::with_prefix("navlocks"),
            held: Gauge::default(),
            pending: Gauge::default(),
            partitions: Gauge::default(),
            sessions: Sessions::default(),
            connections: Gauge::default(),
            strangers: Gauge::default(),
            carried: Gauge::default(),
            parked: Gauge::default(),
            slots: Gauge::default(),
            slots_recovering: Gauge::default(),
            recovering: Gauge::default(),
            oldest_waiter: Gauge::default(),
            certificate_expiry: Family::default(),
            requests: Requests::default(),
            steals: Counter::default(),
            losses: Losses::default(),
            deadlocks: Counter::default(),
            accepted_connections: Counter::default(),
            refused_connections: Counter::default(),
            rejected_frames: Counter::default(),
            slow_readers: Counter::default(),
            lapsed_leases: Counter::default(),
            resumed_sessions: Counter::default(),
            reclaimed_sessions: Counter::default(),
            snapshots: Counter::default(),
            wait: durations(),
            hold: durations(),
            process: Process::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let Self { registry, .. } = self;
        let gauges = [
            ("locks_held", "Locks held now", &self.held),
            ("requests_pending", "Requests that wait now", &self.pending),
            ("partitions", "Partitions that have a client now", &self.partitions),
            ("connections", "Connections now", &self.connections),
            ("strangers", "Connections that have not shown yet whose they are", &self.strangers),
            (
                "connections_carried",
                "Connections whose messages this node carries to another one now",
                &self.carried,
            ),
            (
                "connections_parked",
                "Connections that wait now until a node in reach owns their slot",
                &self.parked,
            ),
            ("slots", "Slots of a cluster that this node owns now", &self.slots),
            (
                "slots_recovering",
                "Slots of this node that grant nothing until their sessions have claimed or ended",
                &self.slots_recovering,
            ),
            ("recovering", "1 while no lock can be granted: see /readyz", &self.recovering),
        ];
        for (name, help, gauge) in gauges {
            registry.register(name, help, gauge.clone());
        }
        let counters = [
            ("steals", "Requests that stole", &self.steals),
            (
                "deadlocks",
                "Requests that closed a deadlock, under a policy that looks",
                &self.deadlocks,
            ),
            ("connections_accepted", "Connections accepted", &self.accepted_connections),
            ("connections_refused", "Connections refused", &self.refused_connections),
            (
                "frames_rejected",
                "Frames that were no message, too long or out of place",
                &self.rejected_frames,
            ),
            ("slow_readers", "Sessions ended because they did not read", &self.slow_readers),
            (
                "leases_lapsed",
                "Sessions ended because nothing was heard of them",
                &self.lapsed_leases,
            ),
            (
                "sessions_resumed",
                "Sessions that went on over another connection",
                &self.resumed_sessions,
            ),
            (
                "sessions_reclaimed",
                "Sessions of an earlier service that went on with their locks",
                &self.reclaimed_sessions,
            ),
            ("snapshots", "Partitions read for an answer", &self.snapshots),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        let sessions = self.sessions.family.clone();
        registry.register("sessions", "Sessions now, by their state", sessions);
        let requests = self.requests.family.clone();
        registry.register("requests", "Requests by their outcome", requests);
        let losses = self.losses.family.clone();
        registry.register("losses", "Locks taken from their holders, by the cause", losses);
        let expiry = self.certificate_expiry.clone();
        let text = "When the certificate for TCP expires";
        registry.register("certificate_expiry_timestamp_seconds", text, expiry);
        let text = "For how long the oldest pending request has waited";
        registry.register("oldest_waiter_age_seconds", text, self.oldest_waiter.clone());
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The version of the service", version);
        let seconds = |registry: &mut Registry, name, help, histogram: &Histogram| {
            registry.register_with_unit(name, help, Unit::Seconds, histogram.clone());
        };
        seconds(registry, "request_wait", "From request to grant", &self.wait);
        seconds(registry, "lock_hold", "From grant to release or loss", &self.hold);
    }

    #[inline]
    pub(crate) fn granted(&self, waited: Duration) {
        self.requests.granted.inc();
        self.wait.observe(waited.as_secs_f64());
    }

    /// Notes when the certificate expires, in seconds of Unix time.
    pub(crate) fn set_certificate_expiry(&self, seconds: u64) {
        self.certificate_expiry.get_or_create(&[]).set(seconds as i64);
    }

    #[inline]
    pub(crate) fn observe_hold(&self, age: Duration) {
        self.hold.observe(age.as_secs_f64());
    }

    /// Returns all of it as text.
    pub(crate) fn text(&self, shares: &Shares) -> String {
        self.process.measure();
        let tenants = tenants::registry(shares, None);
        write(&[&self.registry, &tenants, &self.process.registry])
    }

    /// Returns what one tenant uses as text.
    pub(crate) fn text_of_tenant(shares: &Shares, tenant: &str) -> String {
        write(&[&tenants::registry(shares, Some(tenant))])
    }
}

fn write(registries: &[&Registry]) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    for registry in registries {
        let _written = encode_registry(&mut text, registry);
    }
    let _written = encode_eof(&mut text);
    text
}
