//! Wakers that are woken once the lock space is no longer locked.

use std::task::Waker;

/// Wakers collected while the state is locked, and woken after: a waker may run anything, this
/// crate included. One waker is the common case and takes no allocation.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Wakes {
    first: Option<Waker>,
    more: Option<Box<More>>,
}

#[derive(Debug, Default)]
struct More {
    rest: Vec<Waker>,
    /// To be dropped without waking: dropping may run anything, too.
    discarded: Vec<Waker>,
}

impl Wakes {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none() && self.more.is_none()
    }

    /// Takes all wakers. Field by field: a waker was written as two words, and moving it as one
    /// costs a store-forwarding stall.
    #[inline]
    pub(crate) fn take(&mut self) -> Self {
        Self { first: self.first.take(), more: self.more.take() }
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, waker: Waker) {
        match self.first {
            None => self.first = Some(waker),
            Some(_) => self.add_more(waker),
        }
    }

    #[inline(never)]
    fn add_more(&mut self, waker: Waker) {
        self.more.get_or_insert_default().rest.push(waker);
    }

    #[inline]
    pub(crate) fn add_all(&mut self, wakers: impl IntoIterator<Item = Waker>) {
        for waker in wakers {
            self.add(waker);
        }
    }

    pub(crate) fn discard(&mut self, waker: Waker) {
        self.more.get_or_insert_default().discarded.push(waker);
    }

    #[cfg(feature = "service")]
    pub(crate) fn discard_all(&mut self, wakers: impl IntoIterator<Item = Waker>) {
        for waker in wakers {
            self.discard(waker);
        }
    }

    #[inline(always)]
    pub(crate) fn wake(self) {
        if let Some(waker) = self.first {
            waker.wake();
        }
        if let Some(mut more) = self.more {
            more.wake();
        }
    }
}

impl More {
    #[inline(never)]
    fn wake(&mut self) {
        self.rest.drain(..).for_each(Waker::wake);
    }
}
