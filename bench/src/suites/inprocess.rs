//! Locks by name in one process: the async API beside the keyed locks that Rust programs use today.

mod case;
mod limited;
mod peer;
mod side;
mod target;

use navlocks::Locks;

use super::{OURS, Suite};
use crate::harness::Unit::{Bytes, Nanoseconds};
use crate::harness::{Contest, Options};
use crate::workload::Names;
use limited::{AsyncLock, Limited, Tokio};
use peer::{Clean, Keyed, Leak, LeakKnown, Lockable};

/// The peers that drop unused names.
const TIDY: [&str; 3] = ["lockable", "keyed-lock", "dashmap-clean"];
/// The peer that keeps all names, and the same for known names.
const LEAK: &str = "dashmap-leak";
const LEAK_KNOWN: &str = "dashmap-leak-known";

pub(super) const SUITE: Suite = Suite {
    name: "inprocess",
    about: "navlocks beside other locks by name; dashmap-leak and -leak-known never forget a name",
    plan: |options| contests(options).into(),
    targets: target::targets,
};

/// The peers of the cases with a limit.
const SEMAPHORES: [&str; 2] = ["tokio-semaphore", "async-lock"];

/// The same case on all sides; `$side` names the side's type in it.
macro_rules! contest {
    ($cases:expr, $unit:expr, $side:ident => $round:expr) => {
        contest!($cases, $unit, $side => $round,
            OURS; Locks, TIDY[0]; Lockable, TIDY[1]; Keyed, TIDY[2]; Clean, LEAK; Leak, LEAK_KNOWN; LeakKnown)
    };
    ($cases:expr, $unit:expr, $side:ident => $round:expr, $($word:expr; $type:ty),*) => {
        Contest::new(&$cases, $unit)
            $(.side($word, {
                type $side = $type;
                move || $round
            }))*
    };
}

fn contests(options: &Options) -> Vec<Contest> {
    let million = options.scaled(1_000_000);
    let hundred_thousand = options.scaled(100_000);
    // Long enough that a round is tens of milliseconds, far above the clock and the scheduler.
    let operations = options.scaled(300_000);
    vec![
        contest!(["hot"], Nanoseconds, S => case::hot::<S>(operations)),
        contest!(["distinct-1m"], Nanoseconds, S => case::distinct::<S>(Names::first(million))),
        contest!(["hold-1m", "hold-1m-lock", "hold-1m-unlock"], Nanoseconds,
            S => case::hold::<S>(Names::first(million))),
        contest!(["two-threads-own"], Nanoseconds, S => case::two_threads_own::<S>(operations)),
        contest!(["two-threads-same"], Nanoseconds, S => case::two_threads_same::<S>(operations)),
        contest!(["handoff"], Nanoseconds, S => case::handoff::<S>(2, operations)),
        contest!(["handoff-one"], Nanoseconds, S => case::handoff::<S>(0, operations)),
        contest!(["queued-100k"], Nanoseconds, S => case::queued::<S>(hundred_thousand)),
        contest!(["limit-hot"], Nanoseconds, S => case::hot::<S>(operations),
            OURS; Limited, SEMAPHORES[0]; Tokio, SEMAPHORES[1]; AsyncLock),
        contest!(["limit-queued-100k"], Nanoseconds, S => case::queued::<S>(hundred_thousand),
            OURS; Limited, SEMAPHORES[0]; Tokio, SEMAPHORES[1]; AsyncLock),
        contest!(["memory-held", "memory-held-bare"], Bytes,
            S => case::memory_held::<S>(Names::first(million))),
    ]
}
