//! Which slot a partition is in, and which node a slot belongs to. All versions must agree.

/// The slot of a partition, given by its parts.
pub fn slot_of(partition: &[&str], slots: u32) -> u32 {
    let mut hash = Hash::new();
    for part in partition {
        // The length keeps ("a", "bc") apart from ("ab", "c").
        hash.add(&(part.len() as u64).to_le_bytes());
        hash.add(part.as_bytes());
    }
    (hash.end() % u64::from(slots.max(1))) as u32
}

/// The node with the largest weight for a slot: each node has its own order of slots, so that
/// only slots of a node that comes or goes move.
pub(crate) fn node_of<'a>(slot: u32, nodes: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    nodes.max_by_key(|name| (weight(slot, name), *name))
}

fn weight(slot: u32, name: &str) -> u64 {
    let mut hash = Hash::new();
    hash.add(&slot.to_le_bytes());
    hash.add(name.as_bytes());
    hash.end()
}

/// FNV-1a, with a last mix because its upper bits depend little on the last byte.
struct Hash(u64);

impl Hash {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn end(self) -> u64 {
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

    #[test]
    fn slots_are_spread_and_only_those_of_a_lost_node_move() {
        let all = ["n1", "n2", "n3", "n4"];
        let mut count = [0; 4];
        for slot in 0..1024 {
            let node = node_of(slot, all.into_iter()).unwrap();
            count[all.iter().position(|name| *name == node).unwrap()] += 1;
            let without = node_of(slot, all.into_iter().filter(|name| *name != "n2")).unwrap();
            assert!(node == "n2" || node == without);
        }
        assert!(count.iter().all(|slots| (180..350).contains(slots)), "{count:?}");
        assert_eq!(node_of(1, [].into_iter()), None);
    }
}
