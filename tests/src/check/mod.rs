//! The checker: reads a [history](crate::record) and says what cannot have happened if the service
//! is right.
//!
//! It knows nothing but what clients wrote, so it says only what can be proved from that; there are
//! no false alarms. Each file says what that means for its part:
//!
//! | violation | is proved by |
//! |---|---|
//! | two holders | two clients that looked and believed in their locks at the same time (`interval.rs`, `holders.rs`) |
//! | out of turn | a client that saw itself in the queue, and another that asked later and was held first (`order.rs`) |
//! | lost waiters | a client that has no answer in the end, though nobody is in its way (`waiters.rs`) |
//! | lost locks | a client that was told of a loss, though it and the service were there and no other client took the lock (`losses.rs`) |
//! | repeated and shrinking tokens | the tokens that clients were told (`tokens.rs`) |
//! | nonsense | a request that was answered twice, or after its end (`life.rs`) |
//!
//! What it cannot see:
//!
//! - what happened between two looks of a client. Clients look often, and right before they
//!   release;
//! - two locks that the service had granted at the same time, if one client had not yet heard or
//!   did not believe any more;
//! - the order of two requests, unless the first was seen in the queue before the second was asked
//!   for;
//! - that a request was refused or timed out though nobody was in its way;
//! - anything about a process after the last line that it wrote.
//!
//! It assumes that the clock is one for all processes, that names of processes are not used twice,
//! and, for lost waiters and for thieves that were killed before they heard, the conductor's
//! patience.

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

/// Everything that is wrong with a history.
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

/// How much there was to check. A history without a violation is worth what it could have shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Requests made.
    pub requests: usize,
    /// Locks that a client was told of.
    pub locks: usize,
    /// Locks that a client surely believed in for a time.
    pub sure: usize,
    /// Pairs of a request that was known to wait and one that was held meanwhile.
    pub turns: usize,
    /// Steals and forced releases.
    pub robberies: usize,
    /// Requests without an answer.
    pub unanswered: usize,
    /// Locks that a client surely believed in before and after the service was killed.
    pub survivors: usize,
}

impl Weight {
    /// Of this history.
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
