//! The requests of a session: what is known of each, and how much memory it counts.

use std::collections::HashMap;
use std::rc::Rc;

use super::Known;
use crate::hub::shares::Share;

/// All requests that are not over for their client. They count in the tenant's share as long as
/// they are here.
#[derive(Debug)]
pub(crate) struct Requests {
    known: HashMap<u64, (Known, u32)>,
    bytes: usize,
    share: Rc<Share>,
}

impl Requests {
    pub(super) fn new(share: Rc<Share>) -> Self {
        Self { known: HashMap::new(), bytes: 0, share }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns the bytes that all of them take.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    #[inline]
    pub(crate) fn get(&self, number: u64) -> Option<Known> {
        self.known.get(&number).map(|&(known, _)| known)
    }

    /// Adds a request that takes so many bytes.
    #[inline]
    pub(crate) fn insert(&mut self, number: u64, known: Known, bytes: u32) {
        self.bytes += bytes as usize;
        self.share.requests.add(1);
        self.share.bytes.add(bytes as usize);
        if let Some((_, earlier)) = self.known.insert(number, (known, bytes)) {
            self.gone(earlier);
        }
    }

    /// Changes what is known of a request.
    pub(crate) fn set(&mut self, number: u64, known: Known) {
        match self.known.get_mut(&number) {
            Some((earlier, _)) => *earlier = known,
            None => self.insert(number, known, 0),
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, number: u64) -> Option<Known> {
        let (known, bytes) = self.known.remove(&number)?;
        self.gone(bytes);
        Some(known)
    }

    #[inline]
    fn gone(&mut self, bytes: u32) {
        self.bytes -= bytes as usize;
        self.share.requests.sub(1);
        self.share.bytes.sub(bytes as usize);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Known)> {
        self.known.iter().map(|(&number, &(known, _))| (number, known))
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        self.share.requests.sub(self.known.len());
        self.share.bytes.sub(self.bytes);
    }
}
