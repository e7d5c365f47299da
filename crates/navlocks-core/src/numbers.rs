//! Numbers: the serials of requests and the tokens of grants.

#[cfg(target_has_atomic = "64")]
use alloc::sync::Arc;
#[cfg(target_has_atomic = "64")]
use core::sync::atomic::{AtomicU64, Ordering};

/// The source of serials and fencing tokens.
#[derive(Debug)]
pub(crate) enum Numbers {
    /// For a manager that is not a shard: the next of each.
    Own { serial: u64, token: u64 },
    /// For one shard of several.
    #[cfg(target_has_atomic = "64")]
    Shared { block: Block, latest: Arc<Latest> },
}

/// Numbers of one shard, all larger than those of every block before. Each is a serial and a token,
/// so that a lock granted at once reads the shared counter a single time.
#[cfg(target_has_atomic = "64")]
#[derive(Debug, Default)]
pub(crate) struct Block {
    serial: u64,
    token: u64,
    end: u64,
    /// True if another shard took a block between the last two of this one. It likely will again,
    /// so checking first does not pay.
    is_contended: bool,
}

/// Where the latest block of all shards ends. On a cache line of its own, because all shards write
/// it.
#[cfg(target_has_atomic = "64")]
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Latest(AtomicU64);

#[cfg(target_has_atomic = "64")]
impl Block {
    const LENGTH: u64 = 16;

    /// Returns true if every number here is larger than all numbers that other shards took before.
    /// A shard counts in its block for as long. (A shard that takes a later block at the same
    /// moment comes after.)
    #[inline]
    fn is_latest(&self, Latest(latest): &Latest) -> bool {
        !self.is_contended && latest.load(Ordering::Relaxed) == self.end
    }

    #[inline]
    fn renew(&mut self, Latest(latest): &Latest) {
        let start = latest.fetch_add(Self::LENGTH, Ordering::Relaxed);
        self.is_contended = start != self.end && self.end != 0;
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

    /// Takes a token without a check: the block was the latest when the request got its serial.
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

    /// Returns the numbers of another shard.
    #[cfg(target_has_atomic = "64")]
    pub(crate) fn of_another_shard(&self) -> Self {
        match self {
            Self::Own { serial, token } => Self::Own { serial: *serial, token: *token },
            Self::Shared { latest, .. } => Self::of(Arc::clone(latest)),
        }
    }

    /// Takes the number of a new request.
    #[inline]
    pub(crate) fn take_serial(&mut self) -> u64 {
        match self {
            Self::Own { serial, .. } => take(serial),
            #[cfg(target_has_atomic = "64")]
            Self::Shared { block, latest } => block.take_serial(latest),
        }
    }

    /// Takes the token of a grant.
    #[inline]
    pub(crate) fn take_token(&mut self) -> u64 {
        match self {
            Self::Own { token, .. } => take(token),
            #[cfg(target_has_atomic = "64")]
            Self::Shared { block, latest } => block.take_token(latest),
        }
    }

    /// Takes the token of a lock granted at once, in the input that took the last serial.
    #[inline]
    pub(crate) fn take_token_at_once(&mut self) -> u64 {
        match self {
            Self::Own { token, .. } => take(token),
            #[cfg(target_has_atomic = "64")]
            Self::Shared { block, latest } => block.take_token_at_once(latest),
        }
    }

    /// Returns a number that is larger than all tokens taken so far.
    pub(crate) fn next_token(&self) -> u64 {
        match self {
            Self::Own { token, .. } => *token,
            #[cfg(target_has_atomic = "64")]
            Self::Shared { latest, .. } => latest.0.load(Ordering::Relaxed),
        }
    }

    /// Makes all later tokens at least this.
    pub(crate) fn advance_token(&mut self, at_least: u64) {
        match self {
            Self::Own { token, .. } => *token = at_least.max(*token),
            // A shard with a block then finds that it is not the latest.
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
    fn numbers_taken_by_several_shards_grow() {
        let first = Numbers::shared();
        let mut shards = [first.of_another_shard(), first.of_another_shard(), first];
        let (mut serial, mut token) = (0, 0);
        for turn in 0..1_000 {
            // Long and short runs of one shard; grants at once, later, and of other shards.
            let shard = &mut shards[turn / (1 + turn % 37) % 3];
            let next = shard.take_serial();
            assert!(next > serial);
            serial = next;
            let tokens = match turn % 4 {
                0 => vec![],
                1 => vec![shard.take_token_at_once()],
                2 => vec![shard.take_token()],
                _ => vec![shard.take_token_at_once(), shard.take_token(), shard.take_token()],
            };
            for next in tokens {
                assert!(next > token);
                token = next;
            }
            if turn % 100 == 0 {
                shards[turn % 3].advance_token(token + 50);
                shards[0].advance_token(1);
                let next = shards[1].take_token();
                assert!(next >= token + 50);
                token = next;
            }
        }
    }

    #[test]
    fn numbers_of_a_single_shard_have_no_gaps() {
        let mut shard = Numbers::shared();
        assert!((1..100).all(|number| {
            shard.take_serial() == number && shard.take_token_at_once() == number
        }));
        assert!((100..200).all(|number| shard.take_token() == number));
    }

    #[test]
    fn first_number_is_one() {
        assert_eq!(Numbers::own().take_serial(), 1);
        assert_eq!(Numbers::shared().take_serial(), 1);
    }
}
