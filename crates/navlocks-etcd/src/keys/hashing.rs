//! Which node a slot belongs to. All versions must agree.

use navlocks_server::cluster::Hash;

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

#[cfg(test)]
mod tests {
    use super::*;

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
