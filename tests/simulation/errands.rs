//! Errands: the requests that the tasks of clients make, by their dice or by a script.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use navlocks_core::Scope;
use navlocks_tests::chaos::Dice;
use navlocks_tests::record::{Mode, Wait};
use navlocks_wire::{self as wire, Names};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// One random request in so many steals, one forces a release, one overtakes.
const KINDS: u64 = 32;
/// The longest timeout of a random request.
const TIMEOUT_MAX: u64 = 2000;
/// A waiting client queries fewer times than this.
const LOOKS: u64 = 6;
/// A random lock is held for less than this.
const HOLD: u64 = 1600;
/// The longest pause between two checks of a lock.
const CHECK: u64 = 400;

/// A request, and the life of its lock.
#[derive(Clone, Debug)]
pub(crate) struct Errand {
    /// When it is made, if a script tells.
    pub(crate) at: u64,
    pub(crate) names: Vec<Arc<str>>,
    pub(crate) mode: Mode,
    pub(crate) wait: Wait,
    /// The client aborts the request if it still waits after its queries.
    pub(crate) gives_up: bool,
    pub(crate) looks: u64,
    pub(crate) hold: u64,
    pub(crate) max_hold: Option<u64>,
    /// The lock becomes a shared one when it was held for so long.
    pub(crate) shared_after: Option<u64>,
    /// The client of the session.
    pub(crate) client: u64,
}

impl Errand {
    /// Makes an exclusive request that waits for its turn, with some queries.
    pub(crate) fn new(at: u64, name: &str, hold: u64) -> Self {
        Self {
            at,
            names: vec![name.into()],
            mode: Mode::Exclusive,
            wait: Wait::Queue,
            gives_up: false,
            looks: 2,
            hold,
            max_hold: None,
            shared_after: None,
            client: 0,
        }
    }

    /// Returns the message.
    pub(crate) fn request(&self) -> wire::Request {
        let names = self.names.iter().map(|name| &**name);
        let scope = Scope::new(names).expect("clients ask for a name");
        wire::Request {
            id: 0,
            client: self.client,
            names: Names(scope),
            mode: self.mode.into(),
            wait: match self.wait {
                Wait::Queue | Wait::AtMost(_) | Wait::Force => navlocks_core::Wait::Queue,
                Wait::IfAvailable => navlocks_core::Wait::IfAvailable,
                Wait::Overtake => navlocks_core::Wait::Overtake,
                Wait::Steal => navlocks_core::Wait::Steal,
            },
            tag: None,
            traceparent: None,
            token: None,
            max_hold_ms: self.max_hold,
            within: None,
            place: None,
            ms: None,
        }
    }
}

/// The requests of one task.
#[derive(Clone, Debug)]
pub(crate) enum Errands {
    /// So many random ones.
    Random(u32),
    Script {
        errands: VecDeque<Errand>,
        check_every: u64,
    },
}

impl Errands {
    pub(crate) fn script(errands: impl IntoIterator<Item = Errand>) -> Self {
        Self::Script { errands: errands.into_iter().collect(), check_every: CHECK }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Random(rounds) => *rounds == 0,
            Self::Script { errands, .. } => errands.is_empty(),
        }
    }

    /// Returns the longest pause between two checks of a lock.
    pub(crate) fn check_every(&self) -> u64 {
        match self {
            Self::Random(_) => CHECK,
            Self::Script { check_every, .. } => *check_every,
        }
    }

    /// Returns when the next request is made, if a script tells.
    pub(crate) fn first_at(&self) -> Option<u64> {
        match self {
            Self::Random(_) => None,
            Self::Script { errands, .. } => errands.front().map(|errand| errand.at),
        }
    }

    pub(crate) fn next(&mut self, dice: &mut Dice) -> Option<Errand> {
        match self {
            Self::Random(0) => None,
            Self::Random(rounds) => {
                *rounds -= 1;
                Some(random(dice))
            }
            Self::Script { errands, .. } => errands.pop_front(),
        }
    }
}

fn random(dice: &mut Dice) -> Errand {
    let mut names: Vec<Arc<str>> = dice.names(&NAMES).into_iter().map(Arc::from).collect();
    let shared = dice.once_in(3);
    let (mode, wait) = match dice.roll(KINDS) {
        0 => (Mode::Exclusive, Wait::Steal),
        1 => (Mode::Exclusive, Wait::Force),
        2 => (Mode::Shared, Wait::Overtake),
        roll => (
            match (shared, dice.once_in(4)) {
                (_, true) => Mode::Limited(2),
                (true, false) => Mode::Shared,
                (false, false) => Mode::Exclusive,
            },
            match roll {
                3..6 => Wait::IfAvailable,
                6..9 => Wait::AtMost(Duration::from_nanos(dice.roll(TIMEOUT_MAX))),
                _ => Wait::Queue,
            },
        ),
    };
    if wait == Wait::Force {
        names.truncate(1);
    }
    let timed = matches!(wait, Wait::AtMost(_));
    let gives_up = timed || (wait == Wait::Queue && dice.once_in(8));
    let looks = if timed || wait == Wait::Queue { dice.roll(LOOKS) } else { 0 };
    let (hold, client) = (dice.roll(HOLD), dice.roll(2));
    let rest = Errand::new(0, "", hold);
    Errand { names, mode, wait, gives_up, looks, client, ..rest }
}
