//! The registry of a slot and its ownership: the state that outlives a service.
//!
//! A service writes changes in order and goes on; what a change makes visible is held back until
//! the change is confirmed.

use std::time::Duration;

use crate::clock::Moment;

/// Grows with every owner of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// The name of a session: random, and never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey(pub u128);

impl std::fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A session as the registry has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// Its name.
    pub key: SessionKey,
    /// How long it lives without a message. A new owner waits for this one, whatever is configured.
    pub lease: Duration,
    /// The proof that its client must show to claim it; not the secret itself.
    pub proof: String,
}

/// A held lock that was taken from its holder by a steal or a forced release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenRecord {
    /// The holder's session and request.
    pub victim: (SessionKey, u64),
    /// The session and the request of the thief; none for a forced release.
    pub thief: Option<(SessionKey, u64)>,
}

/// A change of the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A session begins: before its welcome.
    Begin(SessionRecord),
    /// A session ends: before anything that follows from that.
    End(SessionKey),
    /// A lock is taken away: before the loss and the grant are sent.
    Taken(TakenRecord),
    /// The victim knows of its loss.
    Heard(SessionKey, u64),
    /// Tokens up to here may be given.
    Reserve(u64),
    /// Grace is over, and these sessions did not claim: before the first grant.
    GraceOver(Vec<SessionKey>),
}

/// Changes are numbered in the order in which they were written, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangeNumber(pub u64);

/// Why an owner is none any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Another node owns the slot, or it was given away.
    Lost,
    /// The node's own place in the cluster is gone.
    Node(crate::Error),
}

/// The registry of one slot, for its owner during one epoch.
pub trait Registry: Send {
    /// The owner's epoch.
    fn epoch(&self) -> Epoch;

    /// Until when the owner may send grants, welcomes and pongs.
    fn may_serve_until(&self) -> Moment;

    /// Writes a change. It is durable when its number is confirmed.
    fn write(&mut self, change: Change) -> ChangeNumber;

    /// The last change that is durable, as are all before it.
    fn confirmed(&self) -> ChangeNumber;

    /// Why this owner must not serve any more, if so.
    fn ended(&self) -> Option<Ended>;
}

/// The state that earlier owners left, read in the transaction that made the new owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inherited {
    /// The sessions that may claim.
    pub sessions: Vec<SessionRecord>,
    /// The locks that must not be claimed.
    pub taken: Vec<TakenRecord>,
    /// No token above this was ever given.
    pub tokens_reserved_to: u64,
    /// The last epoch whose grace ended.
    pub grace_over: Option<Epoch>,
    /// The leases of sessions that do not claim are counted from here.
    pub won_at: Moment,
    /// False if sessions may be missing: then all claims are refused and the longest lease passes.
    pub is_complete: bool,
}
