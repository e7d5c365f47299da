//! The checker: reads a [history](crate::record) and returns the events that a correct service
//! cannot cause.
//!
//! It knows only the records of clients, and reports only what they prove; there are no false
//! alarms. Each file explains its part:
//!
//! | violation | is proved by |
//! |---|---|
//! | two holders | two clients took their locks for held at the same time (`interval.rs`, `holders.rs`) |
//! | out of turn | a request was seen pending, and a later one was held first (`order.rs`) |
//! | lost waiters | a request has no answer in the end, though nothing blocks it (`waiters.rs`) |
//! | lost locks | a lock was lost without an absence or a thief (`losses.rs`) |
//! | repeated and shrinking tokens | the tokens that clients received (`tokens.rs`) |
//! | nonsense | a request that was answered twice, or after its end (`life.rs`) |
//!
//! Its limits:
//!
//! - it does not see events between two checks of a client. Clients check often, and right before
//!   they release;
//! - it does not see two simultaneous grants if one client had not received its grant, or had given
//!   up its lock;
//! - it does not know the order of two requests, unless the first was seen pending before the
//!   second was made;
//! - it does not see that a request was refused or timed out without a blocker;
//! - it knows nothing about a process after its last line.
//!
//! It assumes one clock for all processes, unique names of processes, and, for lost waiters and for
//! thieves that were killed early, the conductor's patience.

mod fate;
mod holders;
mod interval;
mod life;
mod lives;
mod losses;
mod order;
mod tokens;
mod violation;
mod waiters;

use std::fmt;
use std::ops::AddAssign;

pub use violation::{Key, Violation};

use crate::record::History;
use interval::{Interval, intervals};
use lives::Lives;

/// Returns all violations of a history.
pub fn check(history: &History) -> Vec<Violation> {
    let mut lives = Lives::of(history);
    let mut violations = std::mem::take(&mut lives.nonsense);
    let (tokens, wrong) = tokens::wrong_tokens(&lives);
    let intervals = intervals(&lives, &wrong);
    violations.extend(tokens);
    violations.extend(holders::two_holders(&lives, &intervals));
    violations.extend(order::out_of_turn(&lives, &intervals));
    violations.extend(waiters::lost_waiters(&lives));
    violations.extend(losses::lost_locks(&lives, &wrong));
    violations
}

/// How much there was to check: a history without violations is worth what it could have shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Requests made.
    pub requests: usize,
    /// Locks that a client received.
    pub locks: usize,
    /// Locks that a client surely took for held for a time.
    pub sure: usize,
    /// Pairs of a request that was known to wait and one that was held meanwhile.
    pub turns: usize,
    /// Steals and forced releases.
    pub robberies: usize,
    /// Requests without an answer.
    pub unanswered: usize,
    /// Locks that a client surely took for held before and after the service was killed.
    pub survivors: usize,
}

impl Weight {
    /// Weighs this history.
    pub fn of(history: &History) -> Self {
        let lives = Lives::of(history);
        let intervals = intervals(&lives, &tokens::wrong_tokens(&lives).1);
        let survives = |it: &&Interval| lives.service().was_killed(it.from, it.until);
        let count = |is: fn(&life::Life) -> bool| lives.all.iter().filter(|life| is(life)).count();
        Self {
            requests: lives.all.len(),
            locks: count(|life| life.held.is_some()),
            sure: intervals.iter().flatten().count(),
            turns: order::comparisons(&lives, &intervals),
            robberies: count(life::Life::robs),
            unanswered: count(|life| life.answered().is_none()),
            survivors: intervals.iter().flatten().filter(survives).count(),
        }
    }
}

impl AddAssign for Weight {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.locks += other.locks;
        self.sure += other.sure;
        self.turns += other.turns;
        self.robberies += other.robberies;
        self.unanswered += other.unanswered;
        self.survivors += other.survivors;
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requests, locks, sure, turns, robberies, unanswered, survivors } = self;
        write!(f, "{requests} requests, {locks} locks, {sure} of them sure; {turns} turns; ")?;
        write!(f, "{robberies} robberies; {unanswered} without an answer; ")?;
        write!(f, "{survivors} locks outlived a service")
    }
}
