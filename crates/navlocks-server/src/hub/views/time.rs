//! The last minutes of a partition: counts, histograms, the names that cost most waiting, and a
//! lane for each client.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use navlocks_core::{Name, RequestId, State};
use navlocks_wire::{self as wire, ClientKey, Lane, Span};

use super::brief::{age, cut, names};
use super::history::{BUCKET, BUCKETS, Bucket, DURATIONS, Finished, HEAT_BUCKETS, History, Noted};
use crate::hub::partitions::Partition;

/// The most lanes of an answer, requests of one lane, and names with heat.
const LANES_MAX: usize = 40;
const SPANS_MAX: usize = 120;
const HEAT_MAX: usize = 12;

/// How many live requests are looked at.
const LIVE_MAX: usize = 20_000;

/// The shortest and the longest window of lanes.
const WINDOW_MIN: Duration = Duration::from_secs(1);
const WINDOW_MAX: Duration = Duration::from_secs(600);

/// Returns the last minutes of a history. Its partition may be gone.
pub(super) fn time(
    history: &mut History,
    partition: Option<&Partition>,
    wanted: &wire::TimeOf,
    now: Instant,
) -> wire::Time {
    history.advance(now);
    let end = now.checked_sub(Duration::from_millis(wanted.ago_ms)).unwrap_or(now);
    let window = Duration::from_millis(wanted.window_ms).clamp(WINDOW_MIN, WINDOW_MAX);
    let begin = end.checked_sub(window).unwrap_or(end);
    let (lanes, more_lanes) = lanes(history, partition, (begin, end), now);
    let counts = |count: fn(&Bucket) -> &[u32; DURATIONS]| -> Vec<u64> {
        let sum = |slot: usize| history.buckets.iter().map(|it| u64::from(count(it)[slot])).sum();
        (0..DURATIONS).map(sum).collect()
    };
    let all = |count: fn(&Bucket) -> u32| history.buckets.iter().map(count).collect();
    let ends = BUCKET * (history.first_bucket + history.buckets.len() as u64) as u32;
    let passed = now.saturating_duration_since(history.begun);
    wire::Time {
        recorded_ms: age(history.begun, now),
        lanes_ms: history
            .spans
            .front()
            .map_or_else(|| age(history.begun, now), |span| age(span.ended, now)),
        bucket_ms: BUCKET.as_millis() as u64,
        // The last bucket ends later than now.
        ends_ms: ends.saturating_sub(passed).as_millis() as u64,
        waiting: all(|bucket| bucket.waiting),
        held: all(|bucket| bucket.held),
        granted: all(|bucket| bucket.granted),
        wait_counts: counts(|bucket| &bucket.waits),
        hold_counts: counts(|bucket| &bucket.holds),
        heat: heat(history),
        heat_ms: BUCKET.as_millis() as u64 * HEAT_BUCKETS,
        lanes,
        more_lanes,
    }
}

/// Returns the names that cost most waiting, with their cost in each cell, oldest first.
fn heat(history: &History) -> Vec<wire::Heat> {
    let last = (history.first_bucket + history.buckets.len() as u64 - 1) / HEAT_BUCKETS;
    let cells = BUCKETS / HEAT_BUCKETS;
    let first = (last + 1).saturating_sub(cells);
    let mut sums: HashMap<&Name, u64> = HashMap::new();
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
        wire::Heat { name: cut(name).0, ms }
    };
    most.iter().take(HEAT_MAX).map(row).collect()
}

/// Returns the requests of a window by client, the busiest first, and how many clients are left
/// out.
fn lanes(
    history: &History,
    partition: Option<&Partition>,
    (begin, end): (Instant, Instant),
    now: Instant,
) -> (Vec<Lane>, u64) {
    let mut lanes: HashMap<ClientKey, (Option<u32>, Vec<Span>)> = HashMap::new();
    let mut add = |span: Span| {
        let lane = lanes.entry(span.entry.client).or_default();
        lane.0 = lane.0.or(span.entry.pid);
        if lane.1.len() < SPANS_MAX {
            lane.1.push(span);
        }
    };
    for finished in history.spans.iter().filter(|it| it.ended >= begin && it.asked <= end) {
        add(finished_span(finished, now));
    }
    if let Some(partition) = partition {
        for span in live_spans(history, partition, now) {
            let asked = now.checked_sub(Duration::from_millis(span.asked_ms)).unwrap_or(now);
            if asked <= end {
                add(span);
            }
        }
    }
    let mut busiest: Vec<_> = lanes.into_iter().collect();
    let count = busiest.len().saturating_sub(LANES_MAX) as u64;
    // The busiest are shown, in the order of their clients, which does not jump.
    busiest.sort_by_key(|(client, (_, spans))| (Reverse(spans.len()), *client));
    busiest.truncate(LANES_MAX);
    busiest.sort_by_key(|(client, _)| *client);
    let lane = |(client, (pid, spans))| Lane { client, pid, spans };
    (busiest.into_iter().map(lane).collect(), count)
}

fn finished_span(finished: &Finished, now: Instant) -> Span {
    let Finished { noted, asked, granted, ended, lost } = finished;
    Span {
        entry: noted.entry(),
        asked_ms: age(*asked, now),
        granted_ms: granted.map(|granted| age(granted, now)),
        ended_ms: Some(age(*ended, now)),
        lost: *lost,
    }
}

/// Returns the live requests of a partition, as many as are looked at.
fn live_spans(history: &History, partition: &Partition, now: Instant) -> Vec<Span> {
    let manager = partition.manager();
    let queues = (0..manager.queue_slots()).filter_map(|slot| manager.queue_at(slot));
    let seats = queues.flat_map(|queue| queue.requests().map(move |it| (queue.name(), it.request)));
    let span = |(name, id): (&Name, RequestId)| {
        let info = manager.info(id)?;
        // A request for several names is in several queues, and counts at its first.
        if info.scope.names().first() != Some(name) {
            return None;
        }
        let since = partition.since(id);
        let held = matches!(manager.state(id), Some(State::Held(_)));
        let entry = partition.entry(id, now)?;
        Some(Span {
            asked_ms: age(history.asked(entry.request).unwrap_or(since), now),
            entry,
            granted_ms: held.then(|| age(since, now)),
            ended_ms: None,
            lost: false,
        })
    };
    seats.take(LIVE_MAX).filter_map(span).collect()
}

impl Noted {
    /// Returns what a dashboard shows of a request that may be over.
    pub(super) fn entry(&self) -> wire::Entry {
        let (names, more) = names(&self.scope);
        let Self { request, client, mode, tag, pid, .. } = self;
        let (request, client, mode, pid) = (*request, *client, *mode, *pid);
        let tag = tag.clone();
        wire::Entry {
            request,
            client,
            names,
            more,
            mode,
            tag,
            pid,
            token: None,
            ms: 0,
            stopped: false,
        }
    }
}
