//! The recording of what happens: a history of each partition, from when a page asked first.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_core::kit::Notice;
use navlocks_server::inspect::{Noted, PartitionKey, Recorder};
use navlocks_wire::RequestKey;

use crate::history::{Board, History};

/// The most histories of partitions that are gone, in all and of one tenant.
const KEPT_MAX: usize = 64;
const KEPT_PER_TENANT_MAX: usize = 8;

/// A recording that no page asked about for so long ends.
const UNASKED_MAX: Duration = Duration::from_secs(600);

/// A history that a partition writes and views read.
pub(crate) type SharedHistory = Rc<RefCell<History>>;

/// The histories of all partitions, while there is a recording.
#[derive(Debug, Default)]
pub(crate) struct Histories {
    pub(crate) board: Rc<Board>,
    recording: RefCell<Option<Recording>>,
}

#[derive(Debug)]
struct Recording {
    begun: Instant,
    /// When a page last asked.
    asked: Instant,
    /// The histories of the partitions that are there.
    live: HashMap<PartitionKey, SharedHistory>,
    /// The histories of those that are gone, oldest first.
    kept: VecDeque<(PartitionKey, SharedHistory)>,
}

impl Histories {
    /// Notes that a page asks. Returns true if the recording begins by that.
    pub(crate) fn begin(&self, now: Instant) -> bool {
        let mut recording = self.recording.borrow_mut();
        if let Some(recording) = &mut *recording {
            recording.asked = now;
            return false;
        }
        let (live, kept) = (HashMap::new(), VecDeque::new());
        *recording = Some(Recording { begun: now, asked: now, live, kept });
        true
    }

    pub(crate) fn is_recording(&self) -> bool {
        self.recording.borrow().is_some()
    }

    /// Ends a recording that no page asks about any more. Returns true if it has ended.
    pub(crate) fn end_unasked(&self, now: Instant) -> bool {
        let over = |it: &mut Recording| now.saturating_duration_since(it.asked) > UNASKED_MAX;
        self.recording.borrow_mut().take_if(over).is_some()
    }

    /// Returns when the recording began.
    pub(crate) fn begun(&self) -> Option<Instant> {
        self.recording.borrow().as_ref().map(|recording| recording.begun)
    }

    /// Returns the recorder of a partition, if there is a recording.
    pub(crate) fn recorder(
        self: &Rc<Self>,
        key: &PartitionKey,
        now: Instant,
    ) -> Option<Box<dyn Recorder>> {
        let mut recording = self.recording.borrow_mut();
        let Recording { live, kept, .. } = recording.as_mut()?;
        let earlier = kept.iter().position(|(kept, _)| kept == key);
        let history = match earlier.and_then(|earlier| kept.remove(earlier)) {
            Some((_, history)) => history,
            None => Rc::new(RefCell::new(History::new(self.board.clone(), now))),
        };
        live.insert(key.clone(), history.clone());
        Some(Box::new(Recorded { key: key.clone(), history, all: self.clone() }))
    }

    /// Returns the history of a partition, which may be gone.
    pub(crate) fn history(&self, key: &PartitionKey) -> Option<SharedHistory> {
        let recording = self.recording.borrow();
        let Recording { live, kept, .. } = recording.as_ref()?;
        let kept = || kept.iter().find(|(kept, _)| kept == key).map(|(_, history)| history);
        live.get(key).or_else(kept).cloned()
    }

    /// Gives all histories to `look`.
    pub(crate) fn for_each(&self, mut look: impl FnMut(&PartitionKey, &History)) {
        let recording = self.recording.borrow();
        let Some(Recording { live, kept, .. }) = &*recording else { return };
        let kept = kept.iter().map(|(key, history)| (key, history));
        live.iter().chain(kept).for_each(|(key, history)| look(key, &history.borrow()));
    }

    /// Keeps the history of a partition that is gone.
    fn keep(&self, key: PartitionKey, history: SharedHistory) {
        let mut recording = self.recording.borrow_mut();
        let Some(Recording { live, kept, .. }) = &mut *recording else { return };
        live.remove(&key);
        let of_tenant = |(other, _): &(PartitionKey, _)| other.tenant() == key.tenant();
        let crowded = kept.iter().filter(|it| of_tenant(it)).count() >= KEPT_PER_TENANT_MAX;
        if crowded && let Some(oldest) = kept.iter().position(of_tenant) {
            kept.remove(oldest);
        } else if kept.len() >= KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back((key, history));
    }
}

/// The recorder of one partition.
#[derive(Debug)]
struct Recorded {
    key: PartitionKey,
    history: SharedHistory,
    all: Rc<Histories>,
}

impl Recorder for Recorded {
    fn know(&mut self, noted: Noted, since: Instant) {
        self.history.borrow_mut().know(noted, since);
    }

    fn forget(&mut self, key: RequestKey) {
        self.history.borrow_mut().forget(key);
    }

    fn record_request(&mut self, noted: Noted, now: Instant) {
        self.history.borrow_mut().record_request(noted, now);
    }

    fn record(&mut self, key: RequestKey, notice: &Notice<'_, Instant>, now: Instant) {
        self.history.borrow_mut().record(key, notice, now);
    }

    fn sample(&mut self, held: usize, pending: usize, now: Instant) {
        self.history.borrow_mut().sample(held, pending, now);
    }

    fn end(self: Box<Self>, moved: bool, now: Instant) {
        let Self { key, history, all } = *self;
        {
            let mut history = history.borrow_mut();
            if moved {
                history.leave(now);
            }
            history.sample(0, 0, now);
        }
        all.keep(key, history);
    }
}
