//! The requests that a session claims from an earlier service, until the claim is judged.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

use navlocks_core::{Mode, Name};
use navlocks_wire::{Downgrade, Request};

use crate::hub::shares::Share;

/// Bytes of memory that a claimed request takes besides its names, and each name besides its text.
const REQUEST_BYTES: usize = 160;
const NAME_BYTES: usize = 32;

/// The requests of a claim, by number. Their bytes count in the tenant's share as long as they are
/// here.
#[derive(Debug)]
pub(crate) struct Claim {
    requests: BTreeMap<u64, Request>,
    /// All is there, and waits for the claims of other sessions.
    pub(crate) is_whole: bool,
    bytes: usize,
    share: Rc<Share>,
    begun: Instant,
}

impl Claim {
    pub(crate) fn new(share: Rc<Share>, now: Instant) -> Self {
        Self { requests: BTreeMap::new(), is_whole: false, bytes: 0, share, begun: now }
    }

    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Adds a request. Returns false if all claims of the tenant take more bytes than this.
    pub(crate) fn insert(&mut self, request: Request, tenant_bytes_max: usize) -> bool {
        let names = request.names.0.names();
        let text: usize = names.iter().map(|name| name.len_bytes()).sum();
        let tag = request.tag.as_ref().map_or(0, Name::len_bytes);
        let bytes = REQUEST_BYTES + names.len() * NAME_BYTES + text + tag;
        self.bytes += bytes;
        self.share.claimed.add(bytes);
        self.requests.insert(request.id, request);
        self.share.claimed.get() <= tenant_bytes_max
    }

    /// Gives a claimed lock a mode that allows more holders. Returns the mode that it has then.
    pub(crate) fn downgrade(&mut self, asked: Downgrade) -> Option<Mode> {
        let lock = self.requests.get_mut(&asked.id).filter(|it| it.token.is_some())?;
        if lock.mode.downgrades_to(asked.mode) {
            lock.mode = asked.mode;
        }
        Some(lock.mode)
    }

    /// Removes a request that its client gives up or that has no room. Its bytes count until the
    /// claim is judged.
    pub(crate) fn remove(&mut self, number: u64) {
        self.requests.remove(&number);
    }

    /// Takes all requests, with their ages at this moment: a claim may wait long for its judgement.
    pub(crate) fn into_values(mut self, now: Instant) -> impl Iterator<Item = Request> {
        let waited = now.saturating_duration_since(self.begun).as_millis() as u64;
        std::mem::take(&mut self.requests).into_values().map(move |mut request| {
            request.ms = request.ms.map(|ms| ms.saturating_add(waited));
            request
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.share.claimed.sub(self.bytes);
    }
}
