//! The registry of a slot and its ownership: the state that outlives the slot's owner.
//!
//! A hub writes changes in order and goes on; frames that a change makes visible are held back
//! until the change is confirmed.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Grows with every owner of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// The name of a session: random above its lower 32 bits, and never used again. The lower 32 bits
/// are the number of the session on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey(pub u128);

impl SessionKey {
    /// Returns the number of the session on the wire.
    pub fn number(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

/// A lock or a place that was taken from its client by a steal or a forced release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenRecord {
    /// The victim's session and request.
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

/// The registry of one slot, for its owner during one epoch.
pub trait Registry: fmt::Debug {
    /// Returns the number of the slot.
    fn slot(&self) -> u32;

    /// Returns the owner's epoch.
    fn epoch(&self) -> Epoch;

    /// Returns true while the owner may send grants, welcomes and pongs.
    fn may_send(&self) -> bool;

    /// Writes a change. It is durable when its number is confirmed.
    fn write(&self, change: Change) -> ChangeNumber;

    /// Returns the last change that is durable, as are all before it.
    fn confirmed(&self) -> ChangeNumber;

    /// Returns true if all changes so far are durable.
    fn is_flushed(&self) -> bool;

    /// Returns true if this owner must not serve any more.
    fn is_over(&self) -> bool;

    /// Returns the signal that is given when a change is confirmed or the ownership ends.
    fn news(&self) -> Arc<Notify>;
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
    pub won_at: Instant,
    /// False if sessions may be missing: then all claims are refused and the longest lease passes.
    pub is_complete: bool,
}
