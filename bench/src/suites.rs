//! The suites. A new one is a file here and its lines below.

use crate::harness::{Contest, Options, Row};

mod engine;
mod inprocess;
mod service;
mod cluster;
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
    cli::SUITE,
    node::SUITE,
    abuse::SUITE,
    dashboard::SUITE,
];

/// The word for our own side.
pub(crate) const OURS: &str = "navlocks";

/// One word of the command line.
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// What to measure. Called once, right before it is measured: what it needs to run is started here.
    pub(crate) plan: fn(&Options) -> Plan,
    /// What was aimed at and what was reached, from the measured rows.
    pub(crate) targets: fn(&[Row]) -> Vec<Target>,
}

/// What a suite will do, and what its reader has to know.
pub(crate) struct Plan {
    pub(crate) notes: Vec<String>,
    pub(crate) contests: Vec<Contest>,
}

impl From<Vec<Contest>> for Plan {
    fn from(contests: Vec<Contest>) -> Self {
        Self { notes: Vec::new(), contests }
    }
}

/// Something aimed at: a cost that should not be above its limit.
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
