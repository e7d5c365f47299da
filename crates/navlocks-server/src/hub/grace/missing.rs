//! The partitions of a slot whose sessions of the earlier owner have not all claimed or ended.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::hub::partitions::PartitionIndex;

/// The sessions that have not claimed, counted by the partitions in which they may have clients.
#[derive(Debug, Default)]
pub(crate) struct Missing {
    /// Those that may have clients in any partition.
    anywhere: usize,
    /// The others, by the marks of their partitions.
    counts: HashMap<u64, usize>,
    /// The claims and guests of each partition that misses sessions.
    waiting: BTreeMap<u64, Waiting>,
    /// Partitions that miss none any more.
    complete: Vec<u64>,
}

/// The claims and guests that the grace of a partition holds back.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// The requests of claims, by their sessions and numbers.
    pub(crate) claimed: Vec<(u32, u64)>,
    /// The partition, if it has guests; perhaps others that had its index.
    pub(crate) partitions: BTreeSet<PartitionIndex>,
}

impl Missing {
    /// Adds a session that may have clients in these partitions, or in any.
    pub(crate) fn add(&mut self, partitions: Option<&[u64]>) {
        match partitions {
            None => self.anywhere += 1,
            Some(marks) => marks.iter().for_each(|&it| *self.counts.entry(it).or_default() += 1),
        }
    }

    /// Removes a session that has claimed or ended.
    pub(crate) fn remove(&mut self, partitions: Option<&[u64]>) {
        let Some(marks) = partitions else {
            self.anywhere -= 1;
            if self.anywhere == 0 {
                let complete = self.waiting.keys().filter(|it| !self.counts.contains_key(it));
                self.complete.extend(complete);
            }
            return;
        };
        for mark in marks {
            let Some(count) = self.counts.get_mut(mark) else { continue };
            *count -= 1;
            if *count == 0 {
                self.counts.remove(mark);
                self.complete.extend((self.anywhere == 0).then_some(*mark));
            }
        }
    }

    /// Returns true if a session that has not claimed may hold locks of this partition, or if one
    /// has claimed some and is not judged.
    pub(crate) fn has_grace(&self, mark: u64) -> bool {
        self.misses(mark) || self.waiting.contains_key(&mark)
    }

    fn misses(&self, mark: u64) -> bool {
        self.anywhere > 0 || self.counts.contains_key(&mark)
    }

    /// Returns what waits for the sessions of a partition, to add more.
    pub(crate) fn waiting(&mut self, mark: u64) -> &mut Waiting {
        if !self.misses(mark) {
            self.complete.push(mark);
        }
        self.waiting.entry(mark).or_default()
    }

    /// Takes the next partition that misses no session any more, with what has waited for that.
    pub(crate) fn next_complete(&mut self) -> Option<(u64, Waiting)> {
        while let Some(mark) = self.complete.pop() {
            if let Some(waiting) = self.waiting.remove(&mark) {
                return Some((mark, waiting));
            }
        }
        None
    }

    /// Takes all that waits.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Waiting> + use<> {
        std::mem::take(self).waiting.into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(missing: &mut Missing) -> Vec<u64> {
        let mut marks: Vec<u64> =
            std::iter::from_fn(|| missing.next_complete().map(|(mark, _)| mark)).collect();
        marks.sort_unstable();
        marks
    }

    #[test]
    fn partition_is_complete_when_the_last_session_that_may_be_in_it_has_claimed() {
        let mut missing = Missing::default();
        let sessions: [Option<&[u64]>; 4] = [Some(&[1]), Some(&[1, 2]), Some(&[3]), None];
        sessions.into_iter().for_each(|it| missing.add(it));
        for mark in 1..=4 {
            missing.waiting(mark).claimed.push((7, mark));
            assert!(missing.has_grace(mark));
        }
        missing.remove(Some(&[1, 2]));
        assert!(complete(&mut missing).is_empty(), "one may be anywhere");
        missing.remove(None);
        assert_eq!(complete(&mut missing), [2, 4]);
        assert!(missing.has_grace(1) && !missing.has_grace(2));
        missing.remove(Some(&[1]));
        assert!(missing.has_grace(1), "its claims are not judged");
        assert_eq!(complete(&mut missing), [1]);
        missing.waiting(5).claimed.push((7, 5));
        assert_eq!(complete(&mut missing), [5], "no session is missed");
        assert_eq!(missing.take_all().map(|it| it.claimed).collect::<Vec<_>>(), [[(7, 3)]]);
    }
}
