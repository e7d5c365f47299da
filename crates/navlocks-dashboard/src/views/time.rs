//! The last minutes of a partition: counts, histograms, the names that cost most waiting, the locks
//! of a moment, and a lane for each client.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use navlocks_core::{Name, Queued};
use navlocks_server::inspect::{Noted, PartitionView};
use navlocks_wire::ClientKey;

use super::brief::{age, cut, noted};
use crate::history::{BUCKET, BUCKETS, Bucket, DURATIONS, Finished, HEAT_BUCKETS, History};
use crate::shown::{self, Lane, Moment, Span};
use crate::view;

/// The most lanes of an answer, requests of one lane and of a moment, and names with heat.
const LANES_MAX: usize = 40;
const SPANS_MAX: usize = 120;
const MOMENT_MAX: usize = 8;
const HEAT_MAX: usize = 12;

/// How many live requests are looked at.
const LIVE_MAX: usize = 20_000;

/// The shortest and the longest window of lanes.
const WINDOW_MIN: Duration = Duration::from_secs(1);
const WINDOW_MAX: Duration = Duration::from_secs(600);

/// Returns the last minutes of a history. Its partition may be gone.
pub(super) fn time(
    history: &mut History,
    partition: Option<PartitionView<'_>>,
    wanted: &view::TimeOf,
    now: Instant,
) -> shown::Time {
    history.advance(now);
    let end = now.checked_sub(Duration::from_millis(wanted.ago_ms)).unwrap_or(now);
    let window = Duration::from_millis(wanted.window_ms).clamp(WINDOW_MIN, WINDOW_MAX);
    let begin = end.checked_sub(window).unwrap_or(end);
    let seen = requests(history, partition, (begin, end));
    let (lanes, more_lanes) = lanes(&seen, now);
    let live = seen.iter().filter(|request| request.ended.is_none()).count();
    let of_now = partition.filter(|_| wanted.ago_ms == 0).map_or(0, |it| it.requests());
    let counts = |count: fn(&Bucket) -> &[u32; DURATIONS]| -> Vec<u64> {
        let sum = |slot: usize| history.buckets.iter().map(|it| u64::from(count(it)[slot])).sum();
        (0..DURATIONS).map(sum).collect()
    };
    let all = |count: fn(&Bucket) -> u32| history.buckets.iter().map(count).collect();
    let ends = BUCKET * (history.first_bucket + history.buckets.len() as u64) as u32;
    let passed = now.saturating_duration_since(history.begun);
    shown::Time {
        recorded_ms: age(history.begun, now),
        lanes_ms: age(history.dropped_span.unwrap_or(history.begun), now),
        bucket_ms: BUCKET.as_millis() as u64,
        // The last bucket ends later than now.
        ends_ms: ends.saturating_sub(passed).as_millis() as u64,
        waiting: all(|bucket| bucket.waiting),
        held: all(|bucket| bucket.held),
        granted: all(|bucket| bucket.granted),
        wait_counts: counts(|bucket| &bucket.waits),
        hold_counts: counts(|bucket| &bucket.holds),
        heat: heat(history, partition, now),
        heat_ms: BUCKET.as_millis() as u64 * HEAT_BUCKETS,
        moment: moment(&seen, end, now),
        lanes,
        more_lanes,
        unseen: of_now.saturating_sub(live) as u64,
    }
}

/// Returns the names that cost most waiting, with their cost in each cell, oldest first. The last
/// cell has the waits of now, too.
fn heat(history: &History, partition: Option<PartitionView<'_>>, now: Instant) -> Vec<shown::Heat> {
    let last = (history.first_bucket + history.buckets.len() as u64 - 1) / HEAT_BUCKETS;
    let cells = BUCKETS / HEAT_BUCKETS;
    let first = (last + 1).saturating_sub(cells);
    let mut waits: HashMap<&Name, u64> = HashMap::new();
    if let Some(partition) = partition {
        for (name, waiter) in queued(partition).filter(|(_, queued)| !queued.held) {
            *waits.entry(name).or_default() += age(partition.since(waiter.request), now);
        }
    }
    waits.retain(|_, ms| *ms > 0);
    let mut sums = waits.clone();
    for (_, names) in &history.heat {
        for (name, ms) in names {
            *sums.entry(name).or_default() += ms;
        }
    }
    let mut most: Vec<(&Name, u64)> = sums.into_iter().collect();
    most.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let row = |(name, _): &(&Name, u64)| {
        let mut ms = vec![0; (last + 1 - first) as usize];
        for (cell, names) in history.heat.iter().filter(|(cell, _)| *cell >= first) {
            ms[(cell - first) as usize] = names.get(*name).copied().unwrap_or(0);
        }
        if let Some(last) = ms.last_mut() {
            *last += waits.get(*name).copied().unwrap_or(0);
        }
        shown::Heat { name: cut(name).0, ms }
    };
    most.iter().take(HEAT_MAX).map(row).collect()
}

/// A request of the window.
struct Seen<'a> {
    facts: Facts<'a>,
    asked: Instant,
    granted: Option<Instant>,
    ended: Option<Instant>,
    lost: bool,
}

enum Facts<'a> {
    Live(Noted),
    Over(&'a Noted),
}

impl Seen<'_> {
    fn noted(&self) -> &Noted {
        match &self.facts {
            Facts::Live(noted) => noted,
            Facts::Over(noted) => noted,
        }
    }

    fn is_there(&self, moment: Instant) -> bool {
        self.asked <= moment && self.ended.is_none_or(|ended| ended > moment)
    }

    fn is_held(&self, moment: Instant) -> bool {
        self.is_there(moment) && self.granted.is_some_and(|granted| granted <= moment)
    }

    fn show(&self, now: Instant) -> Span {
        Span {
            entry: noted(self.noted()),
            asked_ms: age(self.asked, now),
            granted_ms: self.granted.map(|granted| age(granted, now)),
            ended_ms: self.ended.map(|ended| age(ended, now)),
            lost: self.lost,
        }
    }
}

/// Returns the requests of a window, the newest first: live ones, then by their end.
fn requests<'a>(
    history: &'a History,
    partition: Option<PartitionView<'_>>,
    (begin, end): (Instant, Instant),
) -> Vec<Seen<'a>> {
    let mut seen: Vec<Seen<'a>> = Vec::new();
    let live = partition.into_iter().flat_map(|partition| live(history, partition));
    seen.extend(live.filter(|request| request.asked <= end));
    let over = history.spans.iter().rev().take_while(|it| it.ended >= begin);
    seen.extend(over.filter(|it| it.asked <= end).map(|it| {
        let Finished { noted, asked, granted, ended, lost } = it;
        let (asked, granted, ended) = (*asked, *granted, Some(*ended));
        Seen { facts: Facts::Over(noted), asked, granted, ended, lost: *lost }
    }));
    seen
}

/// Returns the queued requests of a partition, each with the name of the queue.
fn queued<'a>(partition: PartitionView<'a>) -> impl Iterator<Item = (&'a Name, Queued)> {
    let manager = partition.manager();
    let queues = (0..manager.queue_slots()).filter_map(|slot| manager.queue_at(slot));
    let seats = queues.flat_map(|queue| queue.requests().map(move |it| (queue.name(), it)));
    seats.take(LIVE_MAX)
}

/// Returns the live requests of a partition, as many as are looked at.
fn live<'a>(history: &History, partition: PartitionView<'_>) -> Vec<Seen<'a>> {
    let request = |(name, Queued { request: id, held, .. }): (&Name, Queued)| {
        let noted = partition.noted(id)?;
        // A request for several names is in several queues, and counts at its first.
        if noted.scope.names().first() != Some(name) {
            return None;
        }
        let since = partition.since(id);
        let asked = history.asked(noted.request).unwrap_or(since);
        let granted = held.then_some(since);
        Some(Seen { facts: Facts::Live(noted), asked, granted, ended: None, lost: false })
    };
    queued(partition).filter_map(request).collect()
}

/// Returns the requests by client, the busiest first, and how many clients are left out.
fn lanes(seen: &[Seen<'_>], now: Instant) -> (Vec<Lane>, u64) {
    let mut lanes: HashMap<ClientKey, Lane> = HashMap::new();
    for request in seen {
        let Noted { client, pid, .. } = *request.noted();
        let lane =
            lanes.entry(client).or_insert_with(|| Lane { client, pid, spans: Vec::new(), more: 0 });
        if lane.spans.len() < SPANS_MAX {
            lane.spans.push(request.show(now));
        } else {
            lane.more += 1;
        }
    }
    let mut busiest: Vec<Lane> = lanes.into_values().collect();
    let count = busiest.len().saturating_sub(LANES_MAX) as u64;
    // The busiest are shown, in the order of their clients, which does not jump.
    busiest.sort_by_key(|lane| (Reverse(lane.spans.len() as u64 + lane.more), lane.client));
    busiest.truncate(LANES_MAX);
    busiest.sort_by_key(|lane| lane.client);
    (busiest, count)
}

/// Returns the locks and waiters of a moment, the oldest first.
fn moment(seen: &[Seen<'_>], moment: Instant, now: Instant) -> Moment {
    let there = seen.iter().filter(|request| request.is_there(moment));
    let (mut held, mut waiting): (Vec<&Seen<'_>>, Vec<&Seen<'_>>) =
        there.partition(|request| request.is_held(moment));
    let counts = (held.len() as u64, waiting.len() as u64);
    held.sort_by_key(|request| request.granted);
    waiting.sort_by_key(|request| request.asked);
    let shown = held.iter().chain(&waiting).take(MOMENT_MAX);
    let spans = shown.map(|request| request.show(now)).collect();
    Moment { held: counts.0, waiting: counts.1, spans }
}
