//! The seam to a cluster: how a node learns which slots it owns.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::registry::{Inherited, Registry};

/// An event in the life of a node.
#[derive(Debug)]
pub enum Event {
    /// The node owns a slot from now on, and its grace begins.
    Gained(Box<dyn Registry>, Inherited),
    /// The node does not own a slot any more.
    Lost(u32),
    /// Another node should have the slot: the owner stops to serve it and then gives it away.
    Give {
        /// The slot.
        slot: u32,
        /// The address of the node that will take it.
        to: String,
    },
    /// Slots have other owners than before.
    Moved,
}

/// A future that a node waits for on its own thread.
pub type Task<T> = Pin<Box<dyn Future<Output = T>>>;

/// A node's part in a cluster.
pub trait Membership: fmt::Debug {
    /// Returns how many slots the cluster has.
    fn slots(&self) -> u32;

    /// Returns the address at which clients and other nodes reach this node.
    fn address(&self) -> &str;

    /// Returns the secret that the nodes of the cluster share now, and no client knows.
    fn secret(&self) -> String;

    /// Waits for the next event.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>>;

    /// Returns the address of the node that owns a slot, if one does.
    fn owner(&self, slot: u32) -> Option<String>;

    /// Returns true if this node reads nothing of the cluster: slots may have other owners.
    fn is_deaf(&self) -> bool;

    /// Gives a slot away that is not served any more and whose changes are all confirmed.
    fn give(&self, slot: u32) -> Task<io::Result<()>>;

    /// Makes all epochs from now on larger than one that a client has seen: the registry has lost
    /// writes.
    fn raise_epochs(&self, seen: u64);

    /// Gives all slots away and leaves. Nothing may be served any more.
    fn leave(&mut self) -> Task<io::Result<()>>;
}
