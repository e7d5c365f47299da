//! The bugs that are seeded into services, clients and etcd. The seams are messages and calls, so
//! the shipped code has no trace of them.

use std::cell::Cell;
use std::rc::Rc;

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A waiter is granted although there is a holder.
    GrantTwo,
    /// A grant is not sent.
    DropGrant,
    /// A later request overtakes a waiter.
    Overtake,
    /// A token is used twice.
    RepeatToken,
    /// A token is smaller than the last one.
    ShrinkToken,
    /// The first claim ends the wait for all others, so that other clients are granted their locks.
    GrantEarly,
    /// The record of a steal is missing after a restart, so that the victim can claim.
    ForgetSteal,
    /// A service that is killed while it waits for claims has forgotten the sessions at its next
    /// start.
    ForgetGrace,
    /// A claimed request goes to the tail of the queue.
    LoseOrder,
    /// A held lock is refused although its claim is correct.
    RefuseClaim,
    /// A close frame without `bye` ends the session.
    CloseIsBye,
    /// A stranger's wrong secret ends a session that waits for its claim.
    StrangerEndsClaim,
    /// A stranger's epoch makes a node drop its slots.
    StrangerMovesSlots,
    /// A forced release whose answer was lost is asked again.
    RepeatForce,
    /// A request that cannot be taken ends its connection, and its client makes it again.
    RepeatFault,
    /// A disk that was full once leaves tables that no later service can read.
    LoseTables,
    /// A further client of a session is in another partition.
    WrongPartition,
    /// A claim of many requests is too long for the service.
    LongClaim,
    /// The registry of a slot keeps the sessions that have ended.
    KeepEnded,
    /// A new owner of a slot does not know the sessions of the earlier one.
    ForgetSessions,
    /// The limit of a claimed lock does not count any more.
    ForgetLimit,
    /// A downgrade is a release, so that a writer comes between.
    ReleaseToDowngrade,
    /// The longest hold of a claimed lock begins anew.
    RestartHold,
}

/// The bug of a world, if it has one, and how often it struck.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seeded {
    bug: Option<Bug>,
    struck: Rc<Cell<u32>>,
}

impl Seeded {
    pub(crate) fn new(bug: Option<Bug>) -> Self {
        Self { bug, struck: Rc::default() }
    }

    /// Returns true if it is this one. The caller strikes.
    pub(crate) fn is(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// Returns true if this bug strikes now.
    pub(crate) fn strikes(&self, bug: Bug) -> bool {
        let strikes = self.is(bug);
        self.struck.set(self.struck.get() + u32::from(strikes));
        strikes
    }

    /// Returns true if this bug strikes now, for the first time.
    pub(crate) fn strikes_once(&self, bug: Bug) -> bool {
        self.struck.get() == 0 && self.strikes(bug)
    }

    pub(crate) fn has_struck(&self) -> bool {
        self.struck.get() > 0
    }
}
