//! The state that a cluster of navlocks services keeps in etcd: which node owns which slots, in
//! which epoch, and which sessions exist. Locks are not in it.
//!
//! A [`Node`] is what a service takes part with: a [`Member`] that begins anew when it has ended.
//! It gains and loses slots; each [`OwnedSlot`] is a [`Registry`] for the service that serves the
//! slot. An [`Inspection`] looks from outside. `docs/cluster.md` has the keys, the transactions and
//! the reasons.

#![forbid(unsafe_code)]

mod address;
mod keys;
mod slots;
mod clock;
mod config;
mod members;
mod error;
mod node;
mod view;

pub use address::{Address, TlsFiles};
pub use clock::{BootClock, Clock, Moment, belief};
pub use config::{Config, Known};
pub use error::Error;
pub use keys::record::Incarnation;
pub use members::driver::Event;
pub use members::inspection::{ClusterView, Health, Inspection, NodeView, SlotView};
pub use members::member::Member;
pub use navlocks_server::cluster::{
    Change, ChangeNumber, Epoch, Inherited, Registry, SessionKey, SessionRecord, TakenRecord,
    slot_of,
};
pub use node::Node;
pub use slots::ended::Ended;
pub use slots::slot::OwnedSlot;
