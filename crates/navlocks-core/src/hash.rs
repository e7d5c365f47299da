//! SipHash-1-3, the keyed hash of std, for names that come from strangers.
//!
//! Written out, because every request hashes a name: hashing a whole name takes half the time of a
//! hasher that is fed in pieces.

use crate::Name;
use crate::name::last_word;

/// The key under which a manager hashes names. A client that cannot guess the key cannot choose
/// names that all collide. Nothing that a caller can observe depends on it.
#[derive(Clone, Copy)]
pub struct HashKey([u8; 16]);

impl HashKey {
    /// Makes a key of these bytes. Take them from a random source wherever names may come from
    /// outside.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Draws a key from a random source, such as std's `RandomState`.
    pub fn drawn_from(source: &impl core::hash::BuildHasher) -> Self {
        let (low, high) = (source.hash_one(0), source.hash_one(1));
        Self((u128::from(high) << 64 | u128::from(low)).to_ne_bytes())
    }

    /// Returns the keyed hash of a name, for embedders that keep hashes instead of names.
    #[inline]
    pub fn hash_name(self, name: &Name) -> u64 {
        Seed::new(self).hash(name.as_wtf8())
    }

    /// Returns the keyed hash of some bytes.
    #[inline]
    pub fn hash_bytes(self, bytes: &[u8]) -> u64 {
        Seed::new(self).hash(bytes)
    }
}

/// Hides the key, which is a secret.
impl core::fmt::Debug for HashKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("HashKey(..)")
    }
}

/// The state before the first word.
#[derive(Clone, Copy)]
pub(crate) struct Seed([u64; 4]);

/// Hides the key, which is a secret.
impl core::fmt::Debug for Seed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Seed(..)")
    }
}

impl Seed {
    pub(crate) fn new(HashKey(key): HashKey) -> Self {
        let key = u128::from_le_bytes(key);
        let (low, high) = (key as u64, (key >> 64) as u64);
        Self([
            low ^ 0x736f_6d65_7073_6575,
            high ^ 0x646f_7261_6e64_6f6d,
            low ^ 0x6c79_6765_6e65_7261,
            high ^ 0x7465_6462_7974_6573,
        ])
    }

    #[inline]
    pub(crate) fn hash(self, bytes: &[u8]) -> u64 {
        let Self(mut state) = self;
        let (words, rest) = bytes.as_chunks();
        for &word in words {
            absorb(&mut state, u64::from_le_bytes(word));
        }
        absorb(&mut state, last_word(bytes, rest.len()) | (bytes.len() as u64) << 56);
        state[2] ^= 0xff;
        for _ in 0..3 {
            round(&mut state);
        }
        state[0] ^ state[1] ^ state[2] ^ state[3]
    }
}

#[inline]
fn absorb(state: &mut [u64; 4], word: u64) {
    state[3] ^= word;
    round(state);
    state[0] ^= word;
}

#[inline]
fn round([a, b, c, d]: &mut [u64; 4]) {
    *a = a.wrapping_add(*b);
    *c = c.wrapping_add(*d);
    *b = b.rotate_left(13) ^ *a;
    *d = d.rotate_left(16) ^ *c;
    *a = a.rotate_left(32);
    *c = c.wrapping_add(*b);
    *a = a.wrapping_add(*d);
    *b = b.rotate_left(17) ^ *c;
    *d = d.rotate_left(21) ^ *a;
    *c = c.rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::hash::Hasher as _;

    #[test]
    fn hash_of_known_inputs_is_siphash_1_3() {
        let key = *b"sixteen bytes ok";
        for length in 0..80_u8 {
            let bytes: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(37) ^ 0x5A).collect();
            let mut known = siphasher::sip::SipHasher13::new_with_key(&key);
            known.write(&bytes);
            let own = Seed::new(HashKey::from_bytes(key)).hash(&bytes);
            assert_eq!(own, known.finish(), "{length} bytes");
        }
    }
}
