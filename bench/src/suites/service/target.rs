//! The targets of the service.

use super::peer::{POSTGRES, REDIS};
use crate::harness::Row;
use crate::stats;
use crate::suites::{OURS, Target};

/// Bytes in the server for an idle client.
const IDLE_BYTES_MAX: f64 = 20.0 * 1024.0;

/// Returns the targets whose cases were measured: our cost as a part of theirs, and bytes.
pub(super) fn targets(rows: &[Row]) -> Vec<Target> {
    let mut targets = Vec::new();
    for row in rows.iter().filter(|row| row.ours().peer == OURS) {
        let case = row.case.as_str();
        if case.starts_with("cycle-") {
            targets.extend(target(row, REDIS, 1.0));
        } else if case.starts_with("handoff-p50") {
            targets.extend(target(row, POSTGRES, 0.5));
        } else if case == "memory-idle" {
            let text = "bytes per client in memory-idle".to_string();
            targets.push(Target { text, measured: row.ours().median(), limit: IDLE_BYTES_MAX });
        } else if case == "restart-lost" {
            let text = "locks lost in a restart".to_string();
            targets.push(Target { text, measured: stats::max(&row.ours().rounds), limit: 0.0 });
        }
    }
    targets
}

fn target(row: &Row, peer: &str, limit: f64) -> Option<Target> {
    let theirs = row.peer(peer)?;
    let text = format!("times {peer} on {}", row.case);
    Some(Target { text, measured: 1.0 / row.ratio(theirs), limit })
}
