//! Nests: the requests that were made within a held one, which is kept until they are over.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::RequestId;

/// The outer request of each nested one that is live. Only the search for deadlocks reads it.
#[derive(Debug, Default)]
pub(crate) struct Nests {
    outers: BTreeMap<RequestId, RequestId>,
    /// The same pairs, each with the outer request first.
    inners: BTreeSet<(RequestId, RequestId)>,
}

impl Nests {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.outers.is_empty()
    }

    pub(crate) fn insert(&mut self, outer: RequestId, inner: RequestId) {
        if let Some(earlier) = self.outers.insert(inner, outer) {
            self.inners.remove(&(earlier, inner));
        }
        self.inners.insert((outer, inner));
    }

    /// Adds those of another shard.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.outers.extend(&other.outers);
        self.inners.extend(&other.inners);
    }

    /// Removes a request that ends. Those within it keep its id, which means nothing from then on.
    #[cold]
    pub(crate) fn remove(&mut self, inner: RequestId) {
        if let Some(outer) = self.outers.remove(&inner) {
            self.inners.remove(&(outer, inner));
        }
    }

    /// Returns the request within which this one was made. It may be over.
    pub(crate) fn outer(&self, inner: RequestId) -> Option<RequestId> {
        self.outers.get(&inner).copied()
    }

    /// Returns the live requests that were made within this one.
    pub(crate) fn inners(&self, outer: RequestId) -> impl Iterator<Item = RequestId> + '_ {
        let from = self.inners.range((outer, RequestId::new(0, 0))..);
        from.take_while(move |pair| pair.0 == outer).map(|&(_, inner)| inner)
    }

    /// Checks that both directions have the same pairs, and that the nested requests are live.
    pub(crate) fn check(&self, is_live: impl Fn(RequestId) -> bool) {
        assert_eq!(self.outers.len(), self.inners.len(), "a nest is not known from both ends");
        for (&inner, &outer) in &self.outers {
            assert!(self.inners.contains(&(outer, inner)), "a nest is not known from both ends");
            assert!(is_live(inner), "a request that is over is still within another one");
        }
    }

    /// Returns each request within which another one was made. It may be over.
    pub(crate) fn all_outers(&self) -> impl Iterator<Item = RequestId> + '_ {
        let mut last = None;
        let outers = self.inners.iter().map(|&(outer, _)| outer);
        outers.filter(move |&outer| last.replace(outer) != Some(outer))
    }
}
