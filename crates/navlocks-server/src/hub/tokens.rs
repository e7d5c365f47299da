//! Fencing tokens: one count for all partitions, so that a partition that comes again never repeats
//! one.

use navlocks_core::FencingToken;

/// The tokens given so far.
#[derive(Debug)]
pub(crate) struct Tokens {
    largest: u64,
}

impl Tokens {
    /// Tokens that are all larger than this.
    pub(crate) fn above(largest: u64) -> Self {
        Self { largest }
    }

    /// A token was given.
    #[inline]
    pub(crate) fn given(&mut self, token: FencingToken) {
        self.largest = self.largest.max(token.get());
    }

    /// The smallest token that was never given.
    pub(crate) fn next(&self) -> FencingToken {
        FencingToken::new(self.largest + 1)
    }

    /// The largest token that was given.
    #[inline]
    pub(crate) fn largest(&self) -> u64 {
        self.largest
    }
}
