//! Compaction: etcd keeps each value that a key ever had until a client tells it not to.

use std::sync::Arc;
use std::time::Duration;

use super::store::Store;
use crate::clock::Moment;

/// The history of etcd, as far as this node knows it.
#[derive(Debug)]
pub(crate) struct Compaction {
    /// For so long history is kept, so that watches can go on where they broke.
    keep: Duration,
    /// A reading: when it was, and the revision of etcd.
    last: Option<(Moment, i64)>,
}

impl Compaction {
    pub(crate) fn new(keep: Duration) -> Self {
        Self { keep, last: None }
    }

    /// Notes a reading. Returns the revision before which history can go, at times.
    pub(crate) fn read(&mut self, now: Moment, revision: i64) -> Option<i64> {
        let (then, old) = *self.last.get_or_insert((now, revision));
        if now.since(then) < self.keep {
            return None;
        }
        self.last = Some((now, revision));
        Some(old)
    }
}

/// Lets etcd forget what was before a revision.
pub(crate) async fn compact(store: Arc<Store>, revision: i64) {
    let compacted = store.compact(revision).await;
    if let Err(error) = compacted {
        // Another client may have done it.
        tracing::debug!(revision, %error, "the history of etcd is not compacted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_goes_when_it_was_kept_long_enough() {
        let at = |seconds| Moment::new(Duration::from_secs(seconds));
        let mut compaction = Compaction::new(Duration::from_secs(300));
        assert_eq!(compaction.read(at(100), 7), None);
        assert_eq!(compaction.read(at(399), 70), None);
        assert_eq!(compaction.read(at(400), 71), Some(7));
        assert_eq!(compaction.read(at(699), 80), None);
        assert_eq!(compaction.read(at(700), 90), Some(71));
    }
}
