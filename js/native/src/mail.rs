//! Mail and events as numbers for JavaScript.

use navlocks_core::LossCause;
use navlocks_threads::{Mail, News, Post};

// The kinds of events and of mail, see `EVENT_TYPES` in `js/native/columns.js`.
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

/// Returns the number of a cause in JavaScript, see `CAUSES` in `js/native/columns.js`.
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

/// The array of a client begins with the number of the request of a call, the count of mail, and
/// whether there is more; mail follows.
const MAIL_START: usize = 3;

/// Lets `work` fill the array of a client with mail. It gets the number of the request that the
/// call is about.
#[inline]
pub(crate) fn fill<T>(array: &mut [f64], work: impl FnOnce(u64, &mut Postbag<'_>) -> T) -> T {
    let (head, mail) = array.split_at_mut(MAIL_START);
    let mut bag = Postbag { numbers: mail, filled: 0, more: false };
    let result = work(head[0] as u64, &mut bag);
    head[1] = (bag.filled / MAIL_LENGTH) as f64;
    head[2] = f64::from(u8::from(bag.more));
    result
}

/// The numbers of a piece of mail: its kind, the number of its request, and a token or a cause.
const MAIL_LENGTH: usize = 3;

/// Space for mail that is taken in one call.
pub(crate) struct Postbag<'a> {
    numbers: &'a mut [f64],
    /// How many numbers are written.
    filled: usize,
    /// True if something did not fit.
    more: bool,
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
