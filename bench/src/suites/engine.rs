//! The engine alone, one thread, no input or output, beside a bare floor with two hashes.

mod case;
mod kit;
mod side;
mod target;

use std::collections::hash_map::RandomState;

use super::{OURS, Suite};
use crate::floor::Floor;
use crate::harness::Unit::{Bytes, Nanoseconds};
use crate::harness::{Contest, Options};
use crate::workload::Names;
use side::Engine;

/// The names of the peers.
const FLOORS: [&str; 2] = ["floor-sip", "floor-fast"];

/// The peer of a host: the space that it is made of.
const SPACE: &str = "space";

type FloorSip = Floor<RandomState>;
type FloorFast = Floor<foldhash::fast::RandomState>;

pub(super) const SUITE: Suite = Suite {
    name: "engine",
    about: "navlocks-core beside a bare hash map and queue, in one thread",
    plan: |options| contests(options).into(),
    targets: target::targets,
};

/// The same case on all three sides; `$side` names the side's type in it.
macro_rules! contest {
    ($cases:expr, $unit:expr, $side:ident => $round:expr) => {
        Contest::new(&$cases, $unit)
            .side(OURS, {
                type $side = Engine;
                move || $round
            })
            .side(FLOORS[0], {
                type $side = FloorSip;
                move || $round
            })
            .side(FLOORS[1], {
                type $side = FloorFast;
                move || $round
            })
    };
}

fn contests(options: &Options) -> Vec<Contest> {
    let thousand = options.scaled(1_000);
    let hundred_thousand = options.scaled(100_000);
    let million = options.scaled(1_000_000);
    let ten_thousand = options.scaled(10_000);
    // Long enough that a round is tens of milliseconds, far above the clock and the scheduler.
    let operations = options.scaled(300_000);
    let fillings = options.scaled(300);
    let sessions = options.scaled(2_000);
    let looks = options.scaled(20);
    vec![
        contest!(["hot"], Nanoseconds, S => case::hot::<S>(Names::first(0), operations)),
        contest!(["hot-among-1m"], Nanoseconds,
            S => case::hot::<S>(Names::first(million), operations)),
        contest!(["queue-abort-among-100k"], Nanoseconds,
            S => case::queue_abort::<S>(hundred_thousand, operations)),
        contest!(["handoff-among-100k"], Nanoseconds,
            S => case::handoff::<S>(hundred_thousand, operations)),
        contest!(["hold-1m-request", "hold-1m-release"], Nanoseconds,
            S => case::hold::<S>(Names::first(million))),
        contest!(["enqueue-1k", "drain-1k"], Nanoseconds,
            S => case::drain::<S>(thousand, fillings)),
        contest!(["enqueue-100k", "drain-100k"], Nanoseconds,
            S => case::drain::<S>(hundred_thousand, 3)),
        contest!(["enqueue-1m", "drain-1m"], Nanoseconds, S => case::drain::<S>(million, 1)),
        contest!(["abort-half-1m"], Nanoseconds, S => case::abort_half::<S>(million)),
        contest!(["terminate-10-among-1m"], Nanoseconds,
            S => case::terminate::<S>(Names::first(million), sessions)),
        contest!(["scope-2"], Nanoseconds, S => case::scope::<S, 2>(operations)),
        contest!(["scope-4"], Nanoseconds, S => case::scope::<S, 4>(operations)),
        contest!(["shared-10k"], Nanoseconds, S => case::shared::<S>(ten_thousand, operations)),
        contest!(["steal"], Nanoseconds, S => case::steal::<S>(operations)),
        Contest::new(&["host"], Nanoseconds)
            .side(OURS, move || kit::host(operations))
            .side(SPACE, move || kit::space(operations)),
        Contest::new(&["snapshot-20k"], Nanoseconds)
            .side(OURS, move || case::snapshot(Names::first(ten_thousand), looks)),
        contest!(["memory-held", "memory-held-peak"], Bytes,
            S => case::memory_held::<S>(Names::first(million))),
        contest!(["memory-pending", "memory-pending-peak"], Bytes,
            S => case::memory_pending::<S>(million)),
    ]
}
