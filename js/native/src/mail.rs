//! Mail and events as numbers for JavaScript.

use std::sync::{Arc, LazyLock};

use coarsetime::Clock;
use navlocks_core::kit::Limits;
use navlocks_core::{DeadlockPolicy, HashKey, LossCause};
use navlocks_threads::{Mail, News, Post, SharedHost, Wake};

use crate::napi::LoopWaker;

/// The lock spaces of the process.
pub(crate) static HOST: LazyLock<SharedHost<Waker>> = LazyLock::new(|| {
    let key = HashKey::drawn_from(&std::hash::RandomState::new());
    SharedHost::new(key, Limits::NONE, DeadlockPolicy::Ignore)
});

/// Wakes the event loop of a thread.
pub(crate) struct Waker(pub(crate) Arc<LoopWaker>);

impl Wake for Waker {
    fn wake(&self) {
        self.0.wake();
    }

    #[inline]
    fn now() -> u64 {
        Clock::now_since_epoch().as_millis()
    }
}

// The kinds of events and of mail, see `EVENT_TYPES` in `js/native/native.js`.
const REQUESTED: u8 = 0;
const GRANTED: u8 = 1;
const UNAVAILABLE: u8 = 2;
const RELEASED: u8 = 3;
const WITHDRAWN: u8 = 4;
const ABORTED: u8 = 5;
const LOST: u8 = 6;
const DOWNGRADED: u8 = 7;
/// For mail alone.
const CONTENDED: u8 = 8;
/// There are events to take; for mail alone, and of no request.
const EVENTS: u8 = 9;

/// Returns the kind of some news, and the token or the cause.
#[inline]
pub(crate) fn numbers(news: News) -> (u8, f64) {
    match news {
        News::Requested => (REQUESTED, 0.0),
        News::Granted(token) => (GRANTED, token.get() as f64),
        News::Unavailable => (UNAVAILABLE, 0.0),
        News::Released => (RELEASED, 0.0),
        News::Withdrawn => (WITHDRAWN, 0.0),
        News::Aborted(cause) => (ABORTED, cause.map_or(CLIENT_ENDED, number)),
        News::Lost(cause) => (LOST, cause.map_or(CLIENT_ENDED, number)),
        News::Downgraded(_) => (DOWNGRADED, 0.0),
        News::Contended => (CONTENDED, 0.0),
        News::Events => (EVENTS, 0.0),
    }
}

/// Returns the number of a cause in JavaScript, see `CAUSES` in `js/native/native.js`.
fn number(cause: LossCause) -> f64 {
    match cause {
        LossCause::Stolen { .. } => 0.0,
        LossCause::ForceReleased => 1.0,
        LossCause::HeldTooLong => 2.0,
        LossCause::Evicted => 3.0,
        LossCause::Suspended => 4.0,
    }
}

const CLIENT_ENDED: f64 = 5.0;

/// The numbers of a piece of mail: its kind, the number of its request, and a token or a cause.
const MAIL_LENGTH: usize = 3;

/// Space for mail that is taken in one call.
pub(crate) struct Postbag<'a> {
    numbers: &'a mut [f64],
    /// How many numbers are written.
    filled: usize,
    /// True if something did not fit.
    pub(crate) more: bool,
}

impl<'a> Postbag<'a> {
    pub(crate) fn new(numbers: &'a mut [f64]) -> Self {
        Self { numbers, filled: 0, more: false }
    }

    pub(crate) fn count(&self) -> usize {
        self.filled / MAIL_LENGTH
    }
}

impl Post for Postbag<'_> {
    #[inline]
    fn put(&mut self, mail: &Mail) -> bool {
        let end = self.filled + MAIL_LENGTH;
        let Some(room) = self.numbers.get_mut(self.filled..end) else {
            self.more = true;
            return false;
        };
        let (kind, value) = numbers(mail.news);
        room.copy_from_slice(&[f64::from(kind), mail.number as f64, value]);
        self.filled = end;
        true
    }
}
