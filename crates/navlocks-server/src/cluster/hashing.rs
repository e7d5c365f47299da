//! Which slot a partition is in. All versions must agree.

/// Returns the slot of a partition, given by its parts.
pub fn slot_of(partition: &[&str], slots: u32) -> u32 {
    let mut hash = Hash::new();
    for part in partition {
        // The length keeps ("a", "bc") apart from ("ab", "c").
        hash.add(&(part.len() as u64).to_le_bytes());
        hash.add(part.as_bytes());
    }
    (hash.end() % u64::from(slots.max(1))) as u32
}

/// A hash that all versions compute alike: FNV-1a, with a last mix because its upper bits depend
/// little on the last byte.
#[derive(Debug)]
pub struct Hash(u64);

impl Hash {
    /// Begins a hash.
    #[allow(clippy::new_without_default, reason = "a hash of nothing is of no use")]
    pub fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Returns the hash of all that was added.
    pub fn end(self) -> u64 {
        let mut hash = self.0;
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^ (hash >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_partitions_never_change() {
        assert_eq!(slot_of(&["tenant", "https://a.example", ""], 64), 35);
        assert_ne!(slot_of(&["a", "bc"], 1 << 20), slot_of(&["ab", "c"], 1 << 20));
    }
}
