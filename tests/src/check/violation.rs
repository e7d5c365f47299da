//! The violations that a history can prove.

use std::fmt;
use std::sync::Arc;

use crate::record::{Moment, RequestNo, Who};

/// A request of a history: the client and the number that the client gave it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The client.
    pub who: Who,
    /// The number of the request.
    pub number: RequestNo,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.who, self.number)
    }
}

/// An event that a correct service cannot cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Two clients took locks that exclude each other for held at the same time.
    #[allow(missing_docs, reason = "the two, the first name they have in common, and the time")]
    TwoHolders { name: Arc<str>, first: Key, second: Key, from: Moment, until: Moment },
    /// More clients took their locks on a name for held than the limit of one of them allows.
    #[allow(missing_docs, reason = "the name, the last holder, how many there were, the moment")]
    TooManyHolders { name: Arc<str>, last: Key, holders: usize, limit: u32, at: Moment },
    /// A request was granted before one that excludes it and was already pending when it was made.
    #[allow(missing_docs, reason = "the two, the first name they have in common, and two moments")]
    OutOfTurn {
        name: Arc<str>,
        waiting: Key,
        /// When it was in the queue.
        queued: Moment,
        overtaker: Key,
        /// When the overtaker held its lock, and the other did not.
        held: Moment,
    },
    /// These wait for no other request except perhaps each other, and at least one of them should
    /// have been answered.
    #[allow(missing_docs, reason = "who they are")]
    LostWaiters { waiters: Vec<Key> },
    /// A live client lost its lock, and no other client can have taken it.
    #[allow(missing_docs, reason = "whose lock it was, when it was told, and why")]
    LockLost { request: Key, at: Moment, why: Arc<str> },
    /// Two locks have the same token.
    #[allow(missing_docs, reason = "the token and the two")]
    TokenRepeated { token: u64, first: Key, second: Key },
    /// A lock has a smaller token than one that was held before it was requested.
    #[allow(missing_docs, reason = "the two with their tokens")]
    TokenShrank { earlier: Key, earlier_token: u64, later: Key, later_token: u64 },
    /// A client received an answer that contradicts the state of the request, or its record is
    /// wrong.
    #[allow(missing_docs, reason = "the request and what is strange about it")]
    Nonsense { request: Key, what: &'static str },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoHolders { name, first, second, from, until } => {
                write!(f, "two holders of {name}: {first} and {second} from {from} to {until}")
            }
            Self::TooManyHolders { name, last, holders, limit, at } => write!(
                f,
                "{holders} holders of {name} from {at} on, when {last} held it: the limit is {limit}"
            ),
            Self::OutOfTurn { name, waiting, queued, overtaker, held } => write!(
                f,
                "out of turn on {name}: {waiting} was in the queue at {queued}, {overtaker} asked later and was held at {held}, before it"
            ),
            Self::LostWaiters { waiters } => {
                f.write_str("lost waiters: nothing blocks")?;
                waiters.iter().try_for_each(|waiter| write!(f, " {waiter}"))
            }
            Self::LockLost { request, at, why } => {
                write!(f, "{request} lost its lock by {at}, and no other client took it: {why}")
            }
            Self::TokenRepeated { token, first, second } => {
                write!(f, "token {token} was given twice: to {first} and to {second}")
            }
            Self::TokenShrank { earlier, earlier_token, later, later_token } => write!(
                f,
                "tokens shrank: {earlier} had {earlier_token}, and {later}, asked for after that, has {later_token}"
            ),
            Self::Nonsense { request, what } => write!(f, "{request}: {what}"),
        }
    }
}
