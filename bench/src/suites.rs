//! The suites. A new one is a file here and its lines below.

use crate::harness::{Contest, Options, Row};

mod engine;
mod inprocess;
mod service;
mod cluster;
pub(crate) mod scale;
mod cli;
mod node;
mod abuse;
mod dashboard;

/// Every suite, in the order they are listed.
pub(crate) const SUITES: &[Suite] = &[
    engine::SUITE,
    inprocess::SUITE,
    service::SUITE,
    cluster::SUITE,
    scale::SUITE,
    cli::SUITE,
    node::SUITE,
    abuse::SUITE,
    dashboard::SUITE,
];

/// The name of our own side.
pub(crate) const OURS: &str = "navlocks";

/// A suite, by its word on the command line.
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Returns the plan. Called once, right before the measurement: it starts the servers.
    pub(crate) plan: fn(&Options) -> Plan,
    /// Compares the measured rows with the targets.
    pub(crate) targets: fn(&[Row]) -> Vec<Target>,
}

/// The contests of a suite, and notes for its reader.
pub(crate) struct Plan {
    pub(crate) notes: Vec<String>,
    pub(crate) contests: Vec<Contest>,
}

impl From<Vec<Contest>> for Plan {
    fn from(contests: Vec<Contest>) -> Self {
        Self { notes: Vec::new(), contests }
    }
}

/// A target: a cost that should not exceed its limit.
pub(crate) struct Target {
    pub(crate) text: String,
    pub(crate) measured: f64,
    pub(crate) limit: f64,
}

impl Target {
    pub(crate) fn met(&self) -> bool {
        self.measured <= self.limit
    }
}
