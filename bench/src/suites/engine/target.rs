//! The targets of the engine.

use super::FLOORS;
use crate::harness::{Cell, Row};
use crate::suites::Target;

/// Returns the targets whose cases were measured.
pub(super) fn targets(rows: &[Row]) -> Vec<Target> {
    let row = |case: &str| rows.iter().find(|row| row.case == case);
    let mut targets = Vec::new();

    let times_peer = |case: &str, limit: f64, targets: &mut Vec<Target>| {
        for theirs in row(case).iter().flat_map(|row| &row.cells[1..]) {
            let ratio = row(case).map_or(1.0, |row| row.ratio(theirs));
            targets.push(Target {
                text: format!("times {} on {case}", theirs.peer),
                measured: 1.0 / ratio,
                limit,
            });
        }
    };
    times_peer("hot", 1.6, &mut targets);
    for case in ["enqueue-1k", "enqueue-100k", "enqueue-1m"] {
        times_peer(case, 2.0, &mut targets);
    }

    times_peer("host", 1.5, &mut targets);

    for (large, small) in [("hot-among-1m", "hot"), ("drain-1m", "drain-1k")] {
        let (Some(large), Some(small)) = (row(large), row(small)) else {
            continue;
        };
        // Fastest rounds, since the two cases ran at different moments of a noisy machine.
        let growth = |large: &Cell, small: &Cell| large.fastest() / small.fastest();
        // The growth of the floor is that of the machine: caches and page faults.
        let floors: Vec<String> = (FLOORS.iter())
            .filter_map(|floor| Some((floor, large.peer(floor)?, small.peer(floor)?)))
            .map(|(floor, large, small)| format!("{floor} {:.2}", growth(large, small)))
            .collect();
        targets.push(Target {
            text: format!("growth {} over {} ({})", large.case, small.case, floors.join(", ")),
            measured: growth(large.ours(), small.ours()),
            limit: 1.5,
        });
    }

    for (case, limit) in [("memory-held", 220.0), ("memory-pending", 96.0)] {
        if let Some(row) = row(case) {
            targets.push(Target {
                text: format!("bytes per entry in {case}"),
                measured: row.ours().median(),
                limit,
            });
        }
    }
    targets
}
