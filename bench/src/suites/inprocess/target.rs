//! The targets of the async API, in process.

use super::{LEAK, TIDY};
use crate::harness::Row;
use crate::suites::Target;

/// Returns the targets whose cases were measured: our cost as a part of theirs.
pub(super) fn targets(rows: &[Row]) -> Vec<Target> {
    let mut targets = Vec::new();
    for row in rows {
        for &peer in &TIDY {
            let limit = match row.case.as_str() {
                "hot" | "two-threads-own" => 0.667, // 1.5 times as fast
                _ => 1.0,
            };
            targets.extend(target(row, peer, limit));
        }
        // A side that never cleans up has half of the work, so only the sum is compared.
        if !matches!(row.case.as_str(), "hold-1m-lock" | "hold-1m-unlock") {
            targets.extend(target(row, LEAK, 1.2));
        }
    }
    targets
}

fn target(row: &Row, peer: &str, limit: f64) -> Option<Target> {
    let theirs = row.peer(peer)?;
    let text = format!("times {peer} on {}", row.case);
    Some(Target { text, measured: 1.0 / row.ratio(theirs), limit })
}
