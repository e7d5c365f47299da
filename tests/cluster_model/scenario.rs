//! The scenario of a run of the model: clients with their requests, and the faults that may happen.

use crate::state::{Age, Ask, Epoch, Wait};

/// The bounds of one run.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) nodes: u8,
    /// The node lease in ticks. An owner serves for seven eighths of it.
    pub(crate) node_lease: Age,
    pub(crate) session_lease: Age,
    /// The most owners; no take-over follows.
    pub(crate) epochs: Epoch,
    pub(crate) restarts: u8,
    pub(crate) hand_over: bool,
    /// The most renewals of each node, and pings of each client.
    pub(crate) renewals: u8,
    pub(crate) pings: u8,
    /// True if the first client holds its first lock when the run begins.
    pub(crate) is_held: bool,
    pub(crate) scripts: Vec<Script>,
}

/// The steps of one client, at times that the model chooses.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// True if its session began before the run.
    pub(crate) begun: bool,
    pub(crate) says_bye: bool,
    /// Its requests, one after the other; each is released before the next.
    pub(crate) asks: Vec<Ask>,
}

pub(crate) const X: Ask = Ask { scope: 1, shared: false, wait: Wait::Queue };
pub(crate) const Y: Ask = Ask { scope: 2, ..X };
pub(crate) const X_AND_Y: Ask = Ask { scope: 3, ..X };
pub(crate) const X_SHARED: Ask = Ask { shared: true, ..X };
pub(crate) const X_IF_AVAILABLE: Ask = Ask { wait: Wait::IfAvailable, ..X };
pub(crate) const X_STOLEN: Ask = Ask { wait: Wait::Steal, ..X };

impl Scenario {
    /// Makes a scenario of two nodes, two clients, one take-over, and leases short enough to reach
    /// all their points.
    fn new(name: &'static str, first: &[Ask], second: &[Ask]) -> Self {
        let script = |asks: &[Ask]| Script { begun: true, says_bye: false, asks: asks.to_vec() };
        Self {
            name,
            nodes: 2,
            node_lease: 1,
            session_lease: 2,
            epochs: 2,
            restarts: 0,
            hand_over: false,
            renewals: 1,
            pings: 0,
            is_held: true,
            scripts: vec![script(first), script(second)],
        }
    }

    /// One client begins its session during the run.
    pub(crate) fn beginning() -> Self {
        let mut scenario = Self::new("beginning", &[X], &[X]);
        (scenario.scripts[0].begun, scenario.is_held) = (false, false);
        scenario
    }

    pub(crate) fn stealing() -> Self {
        Self::new("stealing", &[X], &[X_STOLEN])
    }

    pub(crate) fn sharing() -> Self {
        Self::new("sharing", &[X_SHARED], &[X])
    }

    pub(crate) fn scopes() -> Self {
        Self::new("scopes", &[X_AND_Y], &[Y])
    }

    /// Both clients can wait at once: the holder requests again behind the waiter.
    pub(crate) fn queueing() -> Self {
        Self::new("queueing", &[X, X], &[X])
    }

    pub(crate) fn if_available() -> Self {
        Self::new("if-available", &[X], &[X_IF_AVAILABLE])
    }

    pub(crate) fn leaving() -> Self {
        let mut scenario = Self::new("leaving", &[X], &[X]);
        scenario.scripts[0].says_bye = true;
        scenario
    }

    pub(crate) fn handing_over() -> Self {
        Self { hand_over: true, ..Self::new("handing over", &[X], &[X]) }
    }

    /// Two take-overs, the second perhaps during the grace of the first.
    pub(crate) fn twice() -> Self {
        Self { epochs: 3, ..Self::new("twice", &[X], &[X]) }
    }

    /// A node restarts and finds its own key.
    pub(crate) fn restarting() -> Self {
        Self { restarts: 1, ..Self::new("restarting", &[X], &[]) }
    }

    pub(crate) fn all() -> Vec<Self> {
        vec![
            Self::beginning(),
            Self::stealing(),
            Self::sharing(),
            Self::scopes(),
            Self::queueing(),
            Self::if_available(),
            Self::leaving(),
            Self::handing_over(),
            Self::twice(),
            Self::restarting().pinging(),
        ]
    }

    /// Returns the same with a ping of each client.
    pub(crate) fn pinging(self) -> Self {
        Self { pings: 1, ..self }
    }

    /// Returns the same with leases of eight ticks and more, so that a tick is an eighth of the
    /// node lease.
    pub(crate) fn in_eighths(self) -> Self {
        Self { node_lease: 8, session_lease: 16, ..self }
    }
}
