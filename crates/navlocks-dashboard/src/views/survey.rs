//! The overview: a walk over all names that a dashboard may see, in small steps, which keeps the
//! rows of one page.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use navlocks_core::{Mode, Name, QueueView};
use navlocks_server::inspect::{Inspect, PartitionKey, PartitionView};
use navlocks_wire as wire;

use super::brief::{age, cut, watched_entry};
use crate::shown;
use crate::view;

/// How many names and requests one step looks at.
const STEP: usize = 4096;

/// The most rows of an answer, and the most that can be left out before them.
pub(super) const ROWS_MAX: usize = 50;
const SKIP_MAX: usize = 10_000;

/// The most partitions that an answer lists.
const SPACES_MAX: usize = 200;

/// An overview that is being made.
#[derive(Debug)]
pub(crate) struct Survey {
    wanted: Wanted,
    keys: Vec<PartitionKey>,
    /// How many partitions are done, and the next position in this one.
    done: usize,
    slot: usize,
    rows: Vec<Candidate>,
    answer: shown::Overview,
    begun: Instant,
}

/// A row that may be on the page.
#[derive(Debug)]
struct Candidate {
    partition: usize,
    name: Name,
    look: Look,
}

/// The state of a queue at a look.
#[derive(Clone, Copy, Debug, Default)]
struct Look {
    held: u64,
    waiting: u64,
    /// Not in milliseconds, so that two rows keep their order from one look to the next.
    wait: Duration,
    hold: Duration,
    seats: usize,
    matches: bool,
}

/// A filter, prepared.
#[derive(Debug)]
pub(super) struct Wanted {
    filter: view::Filter,
    name: String,
    tag: String,
    mode: Option<Mode>,
    client: Whose,
}

/// Which clients are wanted.
#[derive(Debug, PartialEq, Eq)]
enum Whose {
    All,
    Session(u32),
    Client(wire::ClientKey),
    Process(u32),
    /// The typed text names no client.
    None,
}

impl Wanted {
    pub(super) fn new(filter: view::Filter) -> Self {
        let text = filter.client.trim();
        let client = match text.strip_prefix("pid") {
            Some(number) => number.trim().parse().map_or(Whose::None, Whose::Process),
            None if text.is_empty() => Whose::All,
            None => match (text.parse(), text.parse()) {
                (Ok(key), _) => Whose::Client(key),
                (_, Ok(session)) => Whose::Session(session),
                _ => Whose::None,
            },
        };
        let (name, tag) = (filter.name.to_lowercase(), filter.tag.to_lowercase());
        let mode = filter.mode.map(Mode::from);
        Self { filter, name, tag, mode, client }
    }

    pub(super) fn wants_name(&self, name: &Name) -> bool {
        self.name.is_empty() || has(name, &self.name)
    }

    pub(super) fn wants_client(&self, client: wire::ClientKey, pid: Option<u32>) -> bool {
        match self.client {
            Whose::All => true,
            Whose::Session(session) => client.session == session,
            Whose::Client(key) => client == key,
            Whose::Process(wanted) => pid == Some(wanted),
            Whose::None => false,
        }
    }

    pub(super) fn wants_tag(&self, tag: Option<&Name>) -> bool {
        self.tag.is_empty() || tag.is_some_and(|tag| has(tag, &self.tag))
    }

    pub(super) fn wants_mode(&self, mode: Mode) -> bool {
        // A request with a limit shares its lock.
        let excludes = |mode| mode == Mode::Exclusive;
        self.mode.is_none_or(|wanted| excludes(wanted) == excludes(mode))
    }

    /// Returns true if a request decides whether its name is wanted.
    fn asks_for_requests(&self) -> bool {
        !self.tag.is_empty() || self.mode.is_some() || self.client != Whose::All
    }
}

/// Returns true if a name or a tag contains a text, in any case.
fn has(name: &Name, text: &str) -> bool {
    match name.to_str() {
        Some(name) => name.to_lowercase().contains(text),
        None => name.to_string().to_lowercase().contains(text),
    }
}

impl Survey {
    pub(super) fn new(filter: view::Filter, keys: Vec<PartitionKey>, now: Instant) -> Self {
        let answer = shown::Overview::default();
        let wanted = Wanted::new(filter);
        Self { wanted, keys, done: 0, slot: 0, rows: Vec::new(), answer, begun: now }
    }

    /// Looks at some more names. Returns the overview when all were looked at.
    pub(super) fn step(&mut self, inspect: &Inspect<'_>, now: Instant) -> Option<shown::Overview> {
        let mut left = STEP;
        while let Some(key) = self.keys.get(self.done) {
            let found = inspect.find(key);
            let Some(partition) = found.filter(|_| self.wants_space(key)) else {
                self.end_partition(found);
                continue;
            };
            let slots = partition.manager().queue_slots();
            while self.slot < slots {
                if left == 0 {
                    return None;
                }
                let queue = partition.manager().queue_at(self.slot);
                self.slot += 1;
                left = left.saturating_sub(1);
                if let Some(queue) = queue {
                    left = left.saturating_sub(self.look_at(partition, queue));
                }
            }
            self.end_partition(Some(partition));
        }
        Some(self.finish(inspect, now))
    }

    fn wants_space(&self, key: &PartitionKey) -> bool {
        self.wanted.filter.space.as_ref().is_none_or(|space| *space == key.into())
    }

    /// Counts a partition that is done.
    fn end_partition(&mut self, partition: Option<PartitionView<'_>>) {
        let key = &self.keys[self.done];
        if let Some(partition) = partition {
            let held = partition.manager().held_count() as u64;
            let pending = partition.requests() as u64 - held;
            self.answer.space_count += 1;
            if self.wants_space(key) {
                self.answer.held += held;
                self.answer.pending += pending;
            }
            if self.answer.spaces.len() < SPACES_MAX {
                let space = key.into();
                self.answer.spaces.push(shown::SpaceInfo { space, held, pending });
            }
        }
        (self.done, self.slot) = (self.done + 1, 0);
    }

    /// Looks at one name. Returns how many requests it has.
    fn look_at(&mut self, partition: PartitionView<'_>, queue: QueueView<'_>) -> usize {
        self.answer.names += 1;
        let name = queue.name();
        if !self.wanted.wants_name(name) {
            return 0;
        }
        // All steps look from one moment, so that their ages compare.
        let look = look(partition, queue, &self.wanted, self.begun);
        let wanted_wait = Duration::from_millis(self.wanted.filter.waiting_ms);
        if look.matches && look.wait >= wanted_wait {
            self.answer.matching += 1;
            self.rows.push(Candidate { partition: self.done, name: name.clone(), look });
            if self.rows.len() >= 2 * self.keep() {
                self.sort();
            }
        }
        look.seats
    }

    fn skip(&self) -> usize {
        (self.wanted.filter.skip as usize).min(SKIP_MAX)
    }

    /// Returns how many rows may be on the page or before it.
    fn keep(&self) -> usize {
        self.skip() + ROWS_MAX
    }

    /// Sorts the rows and drops those behind the page.
    fn sort(&mut self) {
        let order = self.wanted.filter.order;
        self.rows.sort_by(|a, b| {
            let by = |row: &Candidate| {
                let Look { waiting, wait, hold, .. } = row.look;
                Reverse(match order {
                    view::Order::Wait => (u64::from(waiting > 0), wait, hold),
                    view::Order::Queue => (waiting, wait, hold),
                    view::Order::Hold => (0, hold, wait),
                    view::Order::Name => (0, Duration::ZERO, Duration::ZERO),
                })
            };
            by(a).cmp(&by(b)).then_with(|| a.name.cmp(&b.name)).then(a.partition.cmp(&b.partition))
        });
        self.rows.truncate(self.keep());
    }

    fn finish(&mut self, inspect: &Inspect<'_>, now: Instant) -> shown::Overview {
        self.sort();
        let mut answer = std::mem::take(&mut self.answer);
        let page = self.rows.drain(..).skip((self.wanted.filter.skip as usize).min(SKIP_MAX));
        for candidate in page {
            let key = &self.keys[candidate.partition];
            // It may be free by now, or its partition gone.
            let Some(partition) = inspect.find(key) else { continue };
            let Some(queue) = partition.manager().queue_of(&candidate.name) else { continue };
            let first = queue.requests().next();
            let first = first.and_then(|first| watched_entry(partition, first.request, now));
            let Some(first) = first else { continue };
            let Look { held, waiting, wait, hold, .. } = look(partition, queue, &self.wanted, now);
            let (name, length) = cut(&candidate.name);
            let space = key.into();
            answer.rows.push(shown::Row {
                space,
                name,
                length,
                held,
                waiting,
                wait_ms: wait.as_millis() as u64,
                hold_ms: hold.as_millis() as u64,
                first,
            });
        }
        answer.took_ms = age(self.begun, now);
        answer
    }
}

fn look(partition: PartitionView<'_>, queue: QueueView<'_>, wanted: &Wanted, now: Instant) -> Look {
    let picky = wanted.asks_for_requests();
    let mut look = Look { matches: !picky, ..Look::default() };
    for queued in queue.requests() {
        look.seats += 1;
        let count = if queued.held { &mut look.held } else { &mut look.waiting };
        *count += 1;
        if *count == 1 {
            let since = now.saturating_duration_since(partition.since(queued.request));
            if queued.held {
                look.hold = since;
            } else {
                look.wait = since;
            }
        }
        if picky && !look.matches {
            let (client, pid) = partition.owner_of(queued.request);
            look.matches = wanted.wants_mode(queued.mode)
                && wanted.wants_client(client, pid)
                && wanted.wants_tag(partition.tag(queued.request));
        }
    }
    look
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_is_wanted_by_key_session_or_process() {
        let wanted = |client: &str| {
            Wanted::new(view::Filter { client: client.into(), ..view::Filter::default() }).client
        };
        assert_eq!(wanted(""), Whose::All);
        assert_eq!(wanted("12.7"), Whose::Client(wire::ClientKey::new(12, 7)));
        assert_eq!(wanted(" 12 "), Whose::Session(12));
        assert_eq!(wanted("pid 4711"), Whose::Process(4711));
        assert_eq!(wanted("a name"), Whose::None);
    }
}
