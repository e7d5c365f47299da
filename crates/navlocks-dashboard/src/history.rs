//! The history of a partition: counts of the last ten minutes, its latest requests, its latest
//! events. All of it is bounded, and there is none while no dashboard asks.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_core::kit::Notice;
use navlocks_core::{Name, Scope};
use navlocks_server::inspect::Noted;
use navlocks_wire::RequestKey;
use tokio::sync::Notify;

/// The length of one bucket of counts, and how many there are: ten minutes.
pub(crate) const BUCKET: Duration = Duration::from_secs(2);
pub(crate) const BUCKETS: u64 = 300;

/// The length of one cell of heat, in buckets.
pub(crate) const HEAT_BUCKETS: u64 = 10;

/// The most names that one cell of heat has.
const HEAT_NAMES_MAX: usize = 64;

/// The most finished requests that are kept, and the most bytes of their names and tags.
const SPANS_MAX: usize = 10_000;
const SPAN_BYTES_MAX: usize = 4 << 20;

/// The most events that are kept.
const EVENTS_MAX: usize = 2_000;

/// How many counts a histogram has: below 1 ms, 2 ms, 4 ms and so on.
pub(crate) const DURATIONS: usize = 22;

/// The state that the histories of all partitions share.
#[derive(Debug, Default)]
pub(crate) struct Board {
    /// The number of the last event.
    pub(crate) last_event: Cell<u64>,
    /// True when a deadlock was noticed that no page has shown.
    pub(crate) look: Cell<bool>,
    /// Told when there is something to do.
    pub(crate) wake: Notify,
}

/// A request that is over.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) noted: Rc<Noted>,
    pub(crate) asked: Instant,
    pub(crate) granted: Option<Instant>,
    pub(crate) ended: Instant,
    pub(crate) lost: bool,
}

/// An event.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) number: u64,
    pub(crate) at: Instant,
    pub(crate) what: &'static str,
    pub(crate) noted: Option<Rc<Noted>>,
    /// The operator who did it, if one did.
    pub(crate) author: Option<Rc<str>>,
}

/// Counts of two seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bucket {
    pub(crate) waiting: u32,
    pub(crate) held: u32,
    pub(crate) granted: u32,
    pub(crate) waits: [u32; DURATIONS],
    pub(crate) holds: [u32; DURATIONS],
}

/// The history of one partition.
#[derive(Debug)]
pub(crate) struct History {
    board: Rc<Board>,
    pub(crate) begun: Instant,
    /// The number of the first bucket that is kept, counted from the beginning.
    pub(crate) first_bucket: u64,
    pub(crate) buckets: VecDeque<Bucket>,
    /// The waiting that each name cost, by the number of the cell.
    pub(crate) heat: VecDeque<(u64, HashMap<Name, u64>)>,
    /// The living requests, each with when it was made.
    live: HashMap<RequestKey, (Rc<Noted>, Instant)>,
    pub(crate) spans: VecDeque<Finished>,
    span_bytes: usize,
    /// When the last request ended that was dropped.
    pub(crate) dropped_span: Option<Instant>,
    pub(crate) events: VecDeque<Recorded>,
    /// The number of the last event that was dropped.
    pub(crate) dropped_event: u64,
    held: u32,
    pending: u32,
}

impl History {
    pub(crate) fn new(board: Rc<Board>, now: Instant) -> Self {
        Self {
            board,
            begun: now,
            first_bucket: 0,
            buckets: VecDeque::from([Bucket::default()]),
            heat: VecDeque::new(),
            live: HashMap::new(),
            spans: VecDeque::new(),
            span_bytes: 0,
            dropped_span: None,
            events: VecDeque::new(),
            dropped_event: 0,
            held: 0,
            pending: 0,
        }
    }

    /// Notes how many requests are held and pending, after each input.
    #[inline]
    pub(crate) fn sample(&mut self, held: usize, pending: usize, now: Instant) {
        self.advance(now);
        (self.held, self.pending) = (held as u32, pending as u32);
        let Some(bucket) = self.buckets.back_mut() else { return };
        bucket.held = self.held;
        bucket.waiting = bucket.waiting.max(self.pending);
    }

    /// Begins the buckets that are due, with the counts that have not changed since.
    pub(crate) fn advance(&mut self, now: Instant) {
        let number = self.bucket_of(now);
        let mut next = self.first_bucket + self.buckets.len() as u64;
        if number < next {
            return;
        }
        // After a long silence only the last buckets are of interest.
        if number - next >= BUCKETS {
            self.buckets.clear();
            next = number - BUCKETS + 1;
            self.first_bucket = next;
        }
        for _ in next..=number {
            let (waiting, held) = (self.pending, self.held);
            self.buckets.push_back(Bucket { waiting, held, ..Bucket::default() });
        }
        while self.buckets.len() as u64 > BUCKETS {
            self.buckets.pop_front();
            self.first_bucket += 1;
        }
        let oldest = self.first_bucket / HEAT_BUCKETS;
        while self.heat.front().is_some_and(|(cell, _)| *cell < oldest) {
            self.heat.pop_front();
        }
        let limit = BUCKET * BUCKETS as u32;
        let old = |ended: Instant| now.saturating_duration_since(ended) > limit;
        while self.spans.front().is_some_and(|span| old(span.ended)) {
            self.drop_span();
        }
    }

    fn bucket_of(&self, moment: Instant) -> u64 {
        let since = moment.saturating_duration_since(self.begun);
        since.as_millis() as u64 / BUCKET.as_millis() as u64
    }

    /// Notes a request from before the recording began.
    pub(crate) fn know(&mut self, noted: Noted, since: Instant) {
        self.live.insert(noted.request, (Rc::new(noted), since));
    }

    /// Forgets a request that was refused.
    pub(crate) fn forget(&mut self, key: RequestKey) {
        self.live.remove(&key);
    }

    /// Records that a request is made.
    pub(crate) fn record_request(&mut self, noted: Noted, now: Instant) {
        let (key, noted) = (noted.request, Rc::new(noted));
        self.live.insert(key, (noted.clone(), now));
        self.push_event("requested", Some(noted), None, now);
    }

    /// Records what happened to a request.
    pub(crate) fn record(&mut self, key: RequestKey, notice: &Notice<'_, Instant>, now: Instant) {
        if matches!(notice, Notice::Contended | Notice::Requested) {
            return;
        }
        self.advance(now);
        let known = match notice.is_last() {
            true => self.live.remove(&key),
            false => self.live.get(&key).cloned(),
        };
        let Some((noted, asked)) = known else { return };
        let (what, granted, lost) = match *notice {
            Notice::Granted { since, .. } => {
                self.count_grant(now.saturating_duration_since(since), &noted.scope, now);
                ("granted", None, false)
            }
            Notice::Unavailable => ("unavailable", None, false),
            Notice::Downgraded(_) => ("downgraded", None, false),
            Notice::Released { since } => ("released", Some(since), false),
            Notice::Withdrawn => ("withdrawn", None, false),
            Notice::Aborted(_) => ("aborted", None, true),
            Notice::Lost { since, .. } => ("lost", Some(since), true),
            Notice::ClientEnded { held_since } => {
                ("client ended", held_since, held_since.is_some())
            }
            Notice::Deadlock(_) => {
                self.board.look.set(true);
                self.board.wake.notify_one();
                ("deadlock", None, false)
            }
            Notice::Contended | Notice::Requested => return,
        };
        if let Some(since) = granted
            && let Some(bucket) = self.buckets.back_mut()
        {
            bucket.holds[slot(now.saturating_duration_since(since))] += 1;
        }
        if notice.is_last() && !matches!(notice, Notice::Unavailable) {
            self.keep_span(Finished { noted: noted.clone(), asked, granted, ended: now, lost });
        }
        self.push_event(what, Some(noted), None, now);
    }

    /// Records an action of an operator.
    pub(crate) fn push_event(
        &mut self,
        what: &'static str,
        noted: Option<Rc<Noted>>,
        author: Option<Rc<str>>,
        now: Instant,
    ) {
        let number = self.board.last_event.get() + 1;
        self.board.last_event.set(number);
        if self.events.len() >= EVENTS_MAX
            && let Some(dropped) = self.events.pop_front()
        {
            self.dropped_event = dropped.number;
        }
        self.events.push_back(Recorded { number, at: now, what, noted, author });
    }

    /// Ends with a slot that moves to another node, where its requests live on.
    pub(crate) fn leave(&mut self, now: Instant) {
        self.live.clear();
        self.push_event("moved to another node", None, None, now);
    }

    fn count_grant(&mut self, waited: Duration, scope: &Scope, now: Instant) {
        let cell = self.bucket_of(now) / HEAT_BUCKETS;
        if let Some(bucket) = self.buckets.back_mut() {
            bucket.granted += 1;
            bucket.waits[slot(waited)] += 1;
        }
        let ms = waited.as_millis() as u64;
        if ms == 0 {
            return;
        }
        if self.heat.back().is_none_or(|(last, _)| *last != cell) {
            self.heat.push_back((cell, HashMap::new()));
        }
        let Some((_, names)) = self.heat.back_mut() else { return };
        for name in scope.names().iter().take(HEAT_NAMES_MAX) {
            if let Some(known) = names.get_mut(name) {
                *known += ms;
                continue;
            }
            if names.len() >= HEAT_NAMES_MAX {
                // The one that cost least gives way, and the new one takes its cost over: a name
                // that costs much is never missed.
                let least = names.iter().min_by_key(|(_, cost)| **cost);
                let Some((least, cost)) = least.map(|(name, cost)| (name.clone(), *cost)) else {
                    return;
                };
                names.remove(&least);
                names.insert(name.clone(), cost + ms);
            } else {
                names.insert(name.clone(), ms);
            }
        }
    }

    fn keep_span(&mut self, span: Finished) {
        self.span_bytes += bytes(&span.noted);
        self.spans.push_back(span);
        while self.spans.len() > SPANS_MAX || self.span_bytes > SPAN_BYTES_MAX {
            self.drop_span();
        }
    }

    fn drop_span(&mut self) {
        if let Some(span) = self.spans.pop_front() {
            self.span_bytes -= bytes(&span.noted);
            self.dropped_span = Some(span.ended);
        }
    }

    /// Returns when a live request was made, if that was recorded.
    pub(crate) fn asked(&self, key: RequestKey) -> Option<Instant> {
        self.live.get(&key).map(|(_, asked)| *asked)
    }
}

fn bytes(noted: &Noted) -> usize {
    let names = noted.scope.names().iter().map(Name::len_bytes);
    names.sum::<usize>() + noted.tag.as_ref().map_or(0, Name::len_bytes) + size_of::<Noted>()
}

/// Returns the place of a duration in a histogram.
fn slot(duration: Duration) -> usize {
    let ms = duration.as_millis() as u64;
    let bits = u64::BITS - ms.leading_zeros();
    (bits as usize).min(DURATIONS - 1)
}

#[cfg(test)]
mod tests {
    use navlocks_core::Mode;
    use navlocks_wire::ClientKey;

    use super::*;

    fn noted(number: u64, name: &str) -> Noted {
        let (request, client) = (RequestKey::new(1, number), ClientKey::new(1, 0));
        let (scope, mode) = (name.into(), Mode::Exclusive);
        Noted { request, client, scope, mode, tag: None, pid: None }
    }

    fn granted(since: Instant) -> Notice<'static, Instant> {
        Notice::Granted { token: navlocks_core::FencingToken::new(1), since }
    }

    #[test]
    fn durations_below_a_power_of_two_share_a_count() {
        let slots = [0, 1, 2, 3, 4, u64::MAX / 2].map(|ms| slot(Duration::from_millis(ms)));
        assert_eq!(slots, [0, 1, 2, 2, 3, DURATIONS - 1]);
    }

    #[test]
    fn counts_go_on_through_a_silence_and_reach_back_ten_minutes() {
        let begun = Instant::now();
        let mut history = History::new(Rc::default(), begun);
        history.sample(1, 7, begun);
        history.advance(begun + 3 * BUCKET);
        let waiting: Vec<u32> = history.buckets.iter().map(|bucket| bucket.waiting).collect();
        assert_eq!(waiting, [7, 7, 7, 7]);
        history.sample(1, 9, begun + BUCKET * 2 * BUCKETS as u32);
        assert_eq!(history.buckets.len() as u64, BUCKETS);
        assert_eq!(history.first_bucket + BUCKETS, 2 * BUCKETS + 1);
        assert_eq!(history.buckets.back().unwrap().waiting, 9);
    }

    #[test]
    fn request_is_a_span_when_it_ends_and_every_step_is_an_event() {
        let begun = Instant::now();
        let mut history = History::new(Rc::default(), begun);
        let key = RequestKey::new(1, 1);
        let later = |ms| begun + Duration::from_millis(ms);
        history.record_request(noted(1, "a"), begun);
        history.record(key, &granted(begun), later(5));
        history.record(key, &Notice::Released { since: later(5) }, later(9));
        let span = history.spans.back().unwrap();
        assert_eq!((span.asked, span.granted, span.ended), (begun, Some(later(5)), later(9)));
        let words: Vec<&str> = history.events.iter().map(|event| event.what).collect();
        assert_eq!(words, ["requested", "granted", "released"]);
        assert_eq!(history.heat.back().unwrap().1, HashMap::from([("a".into(), 5)]));
        assert!(history.live.is_empty());
    }

    #[test]
    fn everything_that_is_kept_is_bounded() {
        let begun = Instant::now();
        let mut history = History::new(Rc::default(), begun);
        let later = begun + Duration::from_millis(3);
        for number in 0..2 * SPANS_MAX as u64 {
            let key = RequestKey::new(1, number);
            history.record_request(noted(number, &format!("name {number}")), begun);
            history.record(key, &granted(begun), later);
            history.record(key, &Notice::Released { since: later }, later);
        }
        assert_eq!((history.spans.len(), history.events.len()), (SPANS_MAX, EVENTS_MAX));
        assert_eq!(history.heat.back().unwrap().1.len(), HEAT_NAMES_MAX);
        let long = "x".repeat(SPAN_BYTES_MAX / 2);
        for number in 0..3 {
            history.record_request(noted(number, &long), begun);
            history.record(RequestKey::new(1, number), &Notice::Withdrawn, later);
        }
        assert_eq!(history.spans.len(), 1);
        let counted: usize = history.spans.iter().map(|span| bytes(&span.noted)).sum();
        assert_eq!(history.span_bytes, counted);
    }
}
