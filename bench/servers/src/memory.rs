//! The memory of a process and its children.

use std::fs;
use std::io;

/// Returns the proportional set size of the whole tree: resident memory, with a shared page counted
/// once.
pub(super) fn of_tree(pid: u32) -> io::Result<u64> {
    // A child may end while it is looked at.
    let children = tree(pid).into_iter().skip(1).map(|child| of(child).unwrap_or(0));
    Ok(of(pid)? + children.sum::<u64>())
}

/// Returns the process and its descendants, parents first.
pub(super) fn tree(pid: u32) -> Vec<u32> {
    let mut tree = vec![pid];
    for child in children(pid).unwrap_or_default() {
        tree.extend(self::tree(child));
    }
    tree
}

fn of(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let kibibytes = text
        .lines()
        .find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok())
        .ok_or_else(|| io::Error::other("no Pss in smaps_rollup"))?;
    Ok(kibibytes * 1024)
}

fn children(pid: u32) -> io::Result<Vec<u32>> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    Ok(text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_has_memory() {
        assert!(of_tree(std::process::id()).unwrap() > 100_000);
    }
}
