//! The seam to a recorder of what happens to requests, such as the history of a dashboard.

use std::fmt::Debug;
use std::rc::Rc;
use std::time::Instant;

use navlocks_core::kit::Notice;
use navlocks_core::{Mode, Name, Scope};
use navlocks_wire::{ClientKey, RequestKey};

use super::PartitionKey;

/// The facts about a request that do not change.
#[derive(Clone, Debug)]
pub struct Noted {
    /// The request.
    pub request: RequestKey,
    /// Its client.
    pub client: ClientKey,
    /// Its names.
    pub scope: Scope,
    /// Exclusive, shared, or shared up to a limit.
    pub mode: Mode,
    /// Its tag.
    pub tag: Option<Name>,
    /// The process of its client, where the service knows it.
    pub pid: Option<u32>,
}

/// Records what happens in one partition.
pub trait Recorder: Debug {
    /// Notes a request from before the recording began.
    fn know(&mut self, noted: Noted, since: Instant);

    /// Forgets a request that was refused.
    fn forget(&mut self, key: RequestKey);

    /// Records that a request is made.
    fn record_request(&mut self, noted: Noted, now: Instant);

    /// Records what happened to a request.
    fn record(&mut self, key: RequestKey, notice: &Notice<'_, Instant>, now: Instant);

    /// Notes how many requests are held and pending, after each input.
    fn sample(&mut self, held: usize, pending: usize, now: Instant);

    /// Ends with the partition. True if its requests live on, at another node.
    fn end(self: Box<Self>, moved: bool, now: Instant);
}

/// Makes the recorders of new partitions.
pub trait Recorders {
    /// Returns the recorder of a new partition, if there is a recording.
    fn recorder(&self, key: &PartitionKey, now: Instant) -> Option<Box<dyn Recorder>>;
}

/// The maker of recorders, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Recording(pub(crate) Option<Rc<dyn Recorders>>);

impl Recording {
    pub(crate) fn recorder(&self, key: &PartitionKey, now: Instant) -> Option<Box<dyn Recorder>> {
        self.0.as_ref()?.recorder(key, now)
    }
}

impl Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Recording({})", self.0.is_some())
    }
}
