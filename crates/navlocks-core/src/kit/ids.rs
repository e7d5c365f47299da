//! Maps by request id.

use core::hash::{BuildHasherDefault, Hasher};

use crate::RequestId;

/// A map by request id. The engine gives the ids, so no client can choose ones that collide.
pub(super) type IdMap<T> = hashbrown::HashMap<RequestId, T, BuildHasherDefault<IdHasher>>;

/// Mixes serial and slot by multiplication.
#[derive(Debug, Default)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(29) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    /// Folds the high half in: the table reads both ends, and multiplication mixes only upwards.
    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}
