//! The suites. A new one is a file here and its lines below.

use crate::harness::{Contest, Options, Row};

mod engine;
mod inprocess;

/// Every suite, in the order they are listed.
pub(crate) const SUITES: &[Suite] = &[engine::SUITE, inprocess::SUITE];

/// One word of the command line.
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// What to measure.
    pub(crate) contests: fn(&Options) -> Vec<Contest>,
    /// What was aimed at and what was reached, from the measured rows.
    pub(crate) targets: fn(&[Row]) -> Vec<Target>,
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
