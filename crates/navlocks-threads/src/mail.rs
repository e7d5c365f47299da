//! Mail: one event of a request of the own client.

use std::collections::VecDeque;

use navlocks_core::kit::{Member, Notice};
use navlocks_core::{FencingToken, LossCause, Mode};

/// An event of a request, for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mail {
    /// The client of the request.
    pub member: Member,
    /// The number that the client gave to the request.
    pub number: u64,
    /// The event.
    pub news: News,
}

/// Something that happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// It was made. For subscribers alone.
    Requested,
    /// It holds its lock.
    Granted(FencingToken),
    /// It wanted the lock only if available, and it is not.
    Unavailable,
    /// Its client gave the lock this mode. For subscribers alone.
    Downgraded(Mode),
    /// Its client released the lock. For subscribers alone.
    Released,
    /// Its client aborted it. For subscribers alone.
    Withdrawn,
    /// It was pending, and was aborted by another client; none for the end of its own.
    Aborted(Option<LossCause>),
    /// The lock was taken away; none for the end of its own client.
    Lost(Option<LossCause>),
    /// A request waits for this lock, which its client watches. In mail alone.
    Contended,
    /// There are events of the partition to take. In mail alone, and of no request.
    Events,
}

impl News {
    /// Returns what subscribers are told; none for a notice that is not for them.
    pub(crate) fn published(notice: &Notice<'_, u64>) -> Option<Self> {
        Some(match *notice {
            Notice::Requested => Self::Requested,
            Notice::Downgraded(mode) => Self::Downgraded(mode),
            Notice::Released { .. } => Self::Released,
            Notice::Withdrawn => Self::Withdrawn,
            Notice::ClientEnded { held_since: Some(_) } => Self::Lost(None),
            Notice::ClientEnded { held_since: None } => Self::Aborted(None),
            Notice::Contended => return None,
            _ => return Self::mailed(notice),
        })
    }

    /// Returns what the client of the request is told; none where it did this itself, or is gone.
    #[inline]
    pub(crate) fn mailed(notice: &Notice<'_, u64>) -> Option<Self> {
        Some(match *notice {
            Notice::Granted { token, .. } => Self::Granted(token),
            Notice::Unavailable => Self::Unavailable,
            Notice::Lost { cause, .. } => Self::Lost(Some(cause)),
            Notice::Aborted(cause) => Self::Aborted(Some(cause)),
            Notice::Contended => Self::Contended,
            Notice::Downgraded(_)
            | Notice::Released { .. }
            | Notice::Withdrawn
            | Notice::ClientEnded { .. } => return None,
            Notice::Requested | Notice::Deadlock(_) => return None,
        })
    }
}

/// Room for mail that is taken in one call.
pub trait Post {
    /// Takes a piece of mail. Returns false, and the mail stays in its box, if there is no room.
    fn put(&mut self, mail: &Mail) -> bool;
}

impl Post for Vec<Mail> {
    fn put(&mut self, mail: &Mail) -> bool {
        self.push(*mail);
        true
    }
}

/// Room for a single piece of mail.
impl Post for Option<Mail> {
    fn put(&mut self, mail: &Mail) -> bool {
        let is_free = self.is_none();
        if is_free {
            *self = Some(*mail);
        }
        is_free
    }
}

/// Above this many letters, an empty box drops its memory.
const IDLE_CAPACITY: usize = 1024;

/// Moves mail from its box as long as there is room.
#[inline]
pub(crate) fn empty(letters: &mut VecDeque<Mail>, post: &mut impl Post) {
    while let Some(mail) = letters.front() {
        if !post.put(mail) {
            return;
        }
        letters.pop_front();
    }
    if letters.capacity() > IDLE_CAPACITY {
        *letters = VecDeque::new();
    }
}
