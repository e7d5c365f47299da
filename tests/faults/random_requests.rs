//! The requests that clients of both simulations make, by their dice.

use std::sync::Arc;
use std::time::Duration;

use navlocks_tests::chaos::Dice;
use navlocks_tests::record::{Mode, Wait};

/// The tasks of a client, and the requests of each task.
pub(crate) const TASKS: usize = 2;
pub(crate) const ROUNDS: u32 = 6;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// The preferences of the clients of one simulation.
#[derive(Clone, Copy)]
pub(crate) struct Taste {
    /// One request in so many steals, one forces a release, one overtakes.
    pub(crate) kinds: u64,
    /// The longest timeout of a request, in units of the simulation.
    pub(crate) patience: u64,
    /// A waiting client queries fewer times than this.
    pub(crate) looks: u64,
}

/// A request in the making.
pub(crate) struct Wish {
    pub(crate) names: Vec<Arc<str>>,
    pub(crate) mode: Mode,
    pub(crate) wait: Wait,
    /// The client aborts the request if it still waits after its queries.
    pub(crate) gives_up: bool,
    pub(crate) looks: u64,
}

impl Taste {
    pub(crate) fn wish(self, dice: &mut Dice) -> Wish {
        let mut names: Vec<Arc<str>> = dice.names(&NAMES).into_iter().map(Arc::from).collect();
        let shared = dice.once_in(3);
        let (mode, wait) = match dice.roll(self.kinds) {
            0 => (Mode::Exclusive, Wait::Steal),
            1 => (Mode::Exclusive, Wait::Force),
            2 => (Mode::Shared, Wait::Overtake),
            roll => (
                if shared { Mode::Shared } else { Mode::Exclusive },
                match roll {
                    3..6 => Wait::IfAvailable,
                    6..9 => Wait::AtMost(Duration::from_nanos(dice.roll(self.patience))),
                    _ => Wait::Queue,
                },
            ),
        };
        if wait == Wait::Force {
            names.truncate(1);
        }
        let timed = matches!(wait, Wait::AtMost(_));
        let gives_up = timed || (wait == Wait::Queue && dice.once_in(8));
        let looks = if timed || wait == Wait::Queue { dice.roll(self.looks) } else { 0 };
        Wish { names, mode, wait, gives_up, looks }
    }
}
