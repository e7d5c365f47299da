//! The numbers that requests and grants get.

#[cfg(target_has_atomic = "64")]
use alloc::sync::Arc;
#[cfg(target_has_atomic = "64")]
use core::sync::atomic::{AtomicU64, Ordering};

/// Where serials and fencing tokens come from.
#[derive(Debug)]
pub(crate) enum Numbers {
    /// Of a manager by itself: the next of each.
    Own { serial: u64, token: u64 },
    /// Of one part of several.
    #[cfg(target_has_atomic = "64")]
    Shared { block: Block, latest: Arc<Latest> },
}

/// Numbers of one part, all of them larger than those of every block before. Each is a serial and a token, so that a lock
/// granted at once looks a single time at what the other parts took.
#[cfg(target_has_atomic = "64")]
#[derive(Debug, Default)]
pub(crate) struct Block {
    serial: u64,
    token: u64,
    end: u64,
    /// Another part took a block between the last two of this one. It will again, so to look first is of no use.
    in_company: bool,
}

/// Where the latest block of all parts ends. Alone in its piece of memory, because all parts look and write here.
#[cfg(target_has_atomic = "64")]
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Latest(AtomicU64);

#[cfg(target_has_atomic = "64")]
impl Block {
    const LENGTH: u64 = 16;

    /// Whether every number here is larger than those that all other parts took before. A part counts in its block as long as
    /// that is so, and one that is alone for a while only has to look. (Who finds its block the latest, while another part is
    /// just about to take a later one, was there before.)
    #[inline]
    fn is_latest(&self, Latest(latest): &Latest) -> bool {
        !self.in_company && latest.load(Ordering::Relaxed) == self.end
    }

    #[inline]
    fn renew(&mut self, Latest(latest): &Latest) {
        let start = latest.fetch_add(Self::LENGTH, Ordering::Relaxed);
        self.in_company = start != self.end && self.end != 0;
        (self.serial, self.token, self.end) = (start, start, start + Self::LENGTH);
    }

    #[inline]
    fn take_serial(&mut self, latest: &Latest) -> u64 {
        if self.serial == self.end || !self.is_latest(latest) {
            self.renew(latest);
        }
        take(&mut self.serial)
    }

    #[inline]
    fn take_token(&mut self, latest: &Latest) -> u64 {
        if self.token == self.end || !self.is_latest(latest) {
            self.renew(latest);
        }
        take(&mut self.token)
    }

    /// The block was the latest when the request got its serial, and that is when it is granted.
    #[inline]
    fn take_token_at_once(&mut self, latest: &Latest) -> u64 {
        if self.token == self.end {
            self.renew(latest);
        }
        take(&mut self.token)
    }
}

impl Numbers {
    pub(crate) const fn own() -> Self {
        Self::Own { serial: 1, token: 1 }
    }

    #[cfg(target_has_atomic = "64")]
    pub(crate) fn shared() -> Self {
        Self::of(Arc::new(Latest(AtomicU64::new(1))))
    }

    #[cfg(target_has_atomic = "64")]
    fn of(latest: Arc<Latest>) -> Self {
        Self::Shared { block: Block::default(), latest }
    }

    /// The numbers of another part.
    #[cfg(target_has_atomic = "64")]
    pub(crate) fn of_another_part(&self) -> Self {
        match self {
            Self::Own { serial, token } => Self::Own { serial: *serial, token: *token },
            Self::Shared { latest, .. } => Self::of(Arc::clone(latest)),
        }
    }

    /// The number of a new request.
    #[inline]
    pub(crate) fn take_serial(&mut self) -> u64 {
        match self {
            Self::Own { serial, .. } => take(serial),
            #[cfg(target_has_atomic = "64")]
            Self::Shared { block, latest } => block.take_serial(latest),
        }
    }

    /// The token of a grant.
    #[inline]
    pub(crate) fn take_token(&mut self) -> u64 {
        match self {
            Self::Own { token, .. } => take(token),
            #[cfg(target_has_atomic = "64")]
            Self::Shared { block, latest } => block.take_token(latest),
        }
    }

    /// The token of a lock that is granted at once, to the request that got the last serial, in the same input.
    #[inline]
    pub(crate) fn take_token_at_once(&mut self) -> u64 {
        match self {
            Self::Own { token, .. } => take(token),
            #[cfg(target_has_atomic = "64")]
            Self::Shared { block, latest } => block.take_token_at_once(latest),
        }
    }

    /// Makes all later tokens at least this.
    pub(crate) fn advance_token(&mut self, at_least: u64) {
        match self {
            Self::Own { token, .. } => *token = at_least.max(*token),
            // Whoever has a block then finds that it is not the latest.
            #[cfg(target_has_atomic = "64")]
            Self::Shared { latest, .. } => {
                latest.0.fetch_max(at_least, Ordering::Relaxed);
            }
        }
    }
}

#[inline]
fn take(next: &mut u64) -> u64 {
    let number = *next;
    *next += 1;
    number
}

#[cfg(all(test, target_has_atomic = "64"))]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn numbers_of_parts_grow_whoever_takes_them() {
        let first = Numbers::shared();
        let mut parts = [first.of_another_part(), first.of_another_part(), first];
        let (mut serial, mut token) = (0, 0);
        for turn in 0..1_000 {
            // Long runs of one part, and short ones; grants at once, later and of others.
            let part = &mut parts[turn / (1 + turn % 37) % 3];
            let next = part.take_serial();
            assert!(next > serial);
            serial = next;
            let tokens = match turn % 4 {
                0 => vec![],
                1 => vec![part.take_token_at_once()],
                2 => vec![part.take_token()],
                _ => vec![part.take_token_at_once(), part.take_token(), part.take_token()],
            };
            for next in tokens {
                assert!(next > token);
                token = next;
            }
            if turn % 100 == 0 {
                parts[turn % 3].advance_token(token + 50);
                parts[0].advance_token(1);
                let next = parts[1].take_token();
                assert!(next >= token + 50);
                token = next;
            }
        }
    }

    #[test]
    fn numbers_of_a_part_that_is_alone_have_no_gaps() {
        let mut part = Numbers::shared();
        assert!(
            (1..100).all(|number| {
                part.take_serial() == number && part.take_token_at_once() == number
            })
        );
        assert!((100..200).all(|number| part.take_token() == number));
    }

    #[test]
    fn the_first_number_is_one() {
        assert_eq!(Numbers::own().take_serial(), 1);
        assert_eq!(Numbers::shared().take_serial(), 1);
    }
}
