//! The memory of a process and its children.

use std::fs;
use std::io;

/// Returns the proportional set size of the whole tree: resident memory, with a shared page counted
/// once.
pub(super) fn of_tree(pid: u32) -> io::Result<u64> {
    let mut bytes = of(pid)?;
    for child in children(pid)? {
        // A child may end while it is read.
        bytes += of_tree(child).unwrap_or(0);
    }
    Ok(bytes)
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
