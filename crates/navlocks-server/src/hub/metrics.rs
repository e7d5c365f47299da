//! Metrics for operators, in the format of Prometheus.

use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// Everything that is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) held: Gauge,
    pub(crate) pending: Gauge,
    pub(crate) partitions: Gauge,
    pub(crate) sessions: Gauge,
    pub(crate) connections: Gauge,
    pub(crate) strangers: Gauge,
    pub(crate) slots: Gauge,
    pub(crate) slots_recovering: Gauge,
    pub(crate) grants: Counter,
    pub(crate) steals: Counter,
    pub(crate) losses: Counter,
    pub(crate) deadlocks: Counter,
    pub(crate) refused_requests: Counter,
    pub(crate) refused_connections: Counter,
    pub(crate) rejected_frames: Counter,
    pub(crate) slow_readers: Counter,
    pub(crate) lapsed_leases: Counter,
    pub(crate) resumed_sessions: Counter,
    pub(crate) reclaimed_sessions: Counter,
    pub(crate) snapshots: Counter,
    pub(crate) wait: Histogram,
    pub(crate) hold: Histogram,
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
            sessions: Gauge::default(),
            connections: Gauge::default(),
            strangers: Gauge::default(),
            slots: Gauge::default(),
            slots_recovering: Gauge::default(),
            grants: Counter::default(),
            steals: Counter::default(),
            losses: Counter::default(),
            deadlocks: Counter::default(),
            refused_requests: Counter::default(),
            refused_connections: Counter::default(),
            rejected_frames: Counter::default(),
            slow_readers: Counter::default(),
            lapsed_leases: Counter::default(),
            resumed_sessions: Counter::default(),
            reclaimed_sessions: Counter::default(),
            snapshots: Counter::default(),
            wait: durations(),
            hold: durations(),
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
            ("sessions", "Sessions now, with and without a connection", &self.sessions),
            ("connections", "Connections now", &self.connections),
            ("strangers", "Connections that have not shown yet whose they are", &self.strangers),
            ("slots", "Slots of a cluster that this node owns now", &self.slots),
            (
                "slots_recovering",
                "Slots of this node that grant nothing until their sessions have claimed or ended",
                &self.slots_recovering,
            ),
        ];
        for (name, help, gauge) in gauges {
            registry.register(name, help, gauge.clone());
        }
        let counters = [
            ("grants", "Locks granted", &self.grants),
            ("steals", "Requests that stole", &self.steals),
            ("losses", "Locks taken away from their holders", &self.losses),
            (
                "deadlocks",
                "Requests that closed a deadlock, under a policy that looks",
                &self.deadlocks,
            ),
            ("requests_refused", "Requests refused for a limit", &self.refused_requests),
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
        let seconds = |registry: &mut Registry, name, help, histogram: &Histogram| {
            registry.register_with_unit(name, help, Unit::Seconds, histogram.clone());
        };
        seconds(registry, "request_wait", "From request to grant", &self.wait);
        seconds(registry, "lock_hold", "From grant to release or loss", &self.hold);
    }

    #[inline]
    pub(crate) fn granted(&self, waited: Duration) {
        self.grants.inc();
        self.wait.observe(waited.as_secs_f64());
    }

    #[inline]
    pub(crate) fn observe_hold(&self, age: Duration) {
        self.hold.observe(age.as_secs_f64());
    }

    /// All of it as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String does not fail.
        let _written = encode(&mut text, &self.registry);
        text
    }
}
