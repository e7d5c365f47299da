//! Wakers that are woken once the lock space is no longer locked.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
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

    #[cfg(feature = "client")]
    pub(crate) fn discard_all(&mut self, wakers: impl IntoIterator<Item = Waker>) {
        for waker in wakers {
            self.discard(waker);
        }
    }

    /// Adds the wakers of another input.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.add_all(other.first);
        if let Some(more) = other.more {
            let More { rest, discarded } = *more;
            self.add_all(rest);
            discarded.into_iter().for_each(|waker| self.discard(waker));
        }
    }

    /// Wakes all. If a waker panics, the others are woken first.
    #[inline(always)]
    pub(crate) fn wake(self) {
        match (self.first, self.more) {
            (first, Some(more)) => wake_all(first.into_iter().chain(more.rest)),
            (Some(waker), None) => waker.wake(),
            (None, None) => {}
        }
    }
}

/// Wakes all. If a waker panics, the others are woken first.
#[inline(never)]
pub(crate) fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    let mut panic = None;
    for waker in wakers {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            panic.get_or_insert(payload);
        }
    }
    if let Some(payload) = panic {
        resume_unwind(payload);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    struct Counts(AtomicUsize);

    impl Wake for Counts {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    struct Panics;

    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("a waker of the user");
        }
    }

    #[test]
    fn wakers_beside_panicking_ones_are_woken_and_the_panic_resumes() {
        let counts = Arc::new(Counts(AtomicUsize::new(0)));
        let (mut one, mut other) = (Wakes::default(), Wakes::default());
        for wakes in [&mut one, &mut other] {
            wakes.add(Waker::from(Arc::new(Panics)));
            wakes.add(Waker::from(counts.clone()));
            wakes.add(Waker::from(Arc::new(Panics)));
            wakes.add(Waker::from(counts.clone()));
        }
        one.absorb(other);
        let panic = catch_unwind(AssertUnwindSafe(|| one.wake())).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"a waker of the user"));
        assert_eq!(counts.0.load(Ordering::Relaxed), 4);
    }
}
