//! The targets of a cluster.

use super::{CARRIED, ETCD, SERVICE};
use crate::harness::Row;
use crate::suites::{OURS, Target};

/// The default node lease and one second; half a second for an owner that leaves.
const KILL_MAX: f64 = 6e9;
const LEAVE_MAX: f64 = 0.5e9;

/// The targets whose cases were measured: our cost as a part of theirs, writes, times, locks.
pub(super) fn targets(rows: &[Row]) -> Vec<Target> {
    let mut targets = Vec::new();
    for row in rows.iter().filter(|row| row.ours().peer == OURS) {
        let case = row.case.as_str();
        let mut absolute = |text: &str, limit: f64| {
            let measured = row.ours().rounds.iter().copied().fold(0.0, f64::max);
            targets.push(Target { text: text.to_owned(), measured, limit });
        };
        match case {
            "writes-per-1k" => absolute("writes to etcd per 1,000 cycles", 1.0),
            "kill-first-grant" => absolute("nanoseconds to the first grant after a kill", KILL_MAX),
            "leave-first-grant" => {
                absolute("nanoseconds to the first grant after an owner left", LEAVE_MAX);
            }
            "kill-locks-lost" => absolute("locks lost by kills", 0.0),
            "leave-locks-lost" => absolute("locks lost by owners that left", 0.0),
            _ if case.starts_with("cycle-") => {
                targets.extend(target(row, SERVICE, 1.0 / 0.9));
                targets.extend(target(row, ETCD, 0.1));
                // A carried cycle should cost at most twice that of one service.
                let carried = row.peer(CARRIED).zip(row.peer(SERVICE));
                targets.extend(carried.map(|(carried, service)| Target {
                    text: format!("carried, times {SERVICE} on {case}"),
                    measured: row.ratio(carried) / row.ratio(service),
                    limit: 2.0,
                }));
            }
            "handoff-p50" => targets.extend(target(row, ETCD, 0.1)),
            _ => {}
        }
    }
    targets
}

fn target(row: &Row, peer: &str, limit: f64) -> Option<Target> {
    let theirs = row.peer(peer)?;
    let text = format!("times {peer} on {}", row.case);
    Some(Target { text, measured: 1.0 / row.ratio(theirs), limit })
}
