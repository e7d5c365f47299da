//! Answers as columns: a few large values cross to JavaScript faster than many small ones.
//! `js/native/columns.js` reads them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use navlocks_core::kit::Member;
use navlocks_core::{Blockers, Deadlock, Mode, Name, RequestId};
use navlocks_threads::{Census, Event, Report};

use crate::mail;

/// Numbers, and texts as one text with the end of each: JavaScript cuts one text faster than it
/// receives many.
#[derive(Default)]
pub(crate) struct Columns {
    pub(crate) numbers: Vec<f64>,
    pub(crate) text: Vec<u16>,
    pub(crate) ends: Vec<f64>,
}

impl Columns {
    fn push(&mut self, name: &Name) {
        self.text.extend(name.encode_utf16());
        self.ends.push(self.text.len() as f64);
    }

    fn push_all<'a>(&mut self, names: impl IntoIterator<Item = &'a Name>) {
        names.into_iter().for_each(|name| self.push(name));
    }
}

/// The numbers of each entry: serial, limit, index of the client's name, count of names, token,
/// time, serial of the outer lock, and 1 if it has a tag.
const ENTRY_LENGTH: usize = 8;

/// Numbers: how many are held, how many names there are, how many clients, then each entry. Texts:
/// all names, the names of the clients, the tags.
pub(crate) fn snapshot(report: &Report) -> Columns {
    let Report { snapshot, clients } = report;
    let (held, entries) = (snapshot.held.len(), snapshot.held.len() + snapshot.pending.len());
    let all = || snapshot.held.iter().chain(&snapshot.pending);

    let mut columns = Columns::default();
    columns.numbers.reserve(3 + entries * ENTRY_LENGTH);
    columns.ends.reserve(entries);
    columns.numbers.extend([held as f64, 0.0, 0.0]);
    let mut known = Known::default();
    for lock in all() {
        columns.numbers.extend([
            lock.address.request.serial() as f64,
            limit(lock.mode),
            known.index(lock.address.member) as f64,
            lock.scope.names().len() as f64,
            lock.token.map_or(0.0, |token| token.get() as f64),
            lock.since as f64,
            lock.within.map_or(0.0, |outer| outer.serial() as f64),
            f64::from(u8::from(lock.tag.is_some())),
        ]);
        columns.push_all(lock.scope.names());
    }
    columns.numbers[1] = columns.ends.len() as f64;
    columns.numbers[2] = known.order.len() as f64;
    let nameless = Name::from("");
    columns.push_all(known.order.iter().map(|client| clients.get(client).unwrap_or(&nameless)));
    columns.push_all(all().filter_map(|lock| lock.tag.as_ref()));
    columns
}

/// Numbers: how many events are missing, then of each its kind, serial, limit, token or cause,
/// serial of the thief, count of names, and 1 if it has a tag. Texts of each: its names, the name
/// of its client, its tag.
pub(crate) fn events(missed: u64, events: &VecDeque<Arc<Event>>) -> Columns {
    let mut columns = Columns::default();
    columns.numbers.push(missed as f64);
    for event in events {
        let about = &event.about;
        let (kind, value) = mail::numbers(event.news);
        columns.numbers.extend([
            f64::from(kind),
            event.address.request.serial() as f64,
            limit(about.mode),
            value,
            event.thief().map_or(0.0, |thief| thief.serial() as f64),
            about.scope.names().len() as f64,
            f64::from(u8::from(about.tag.is_some())),
        ]);
        columns.push_all(about.scope.names());
        columns.push(&event.client);
        columns.push_all(&about.tag);
    }
    columns
}

/// Numbers: how many locks block, their serials, then those of the requests that do.
pub(crate) fn blockers(blockers: &Blockers) -> Columns {
    let mut columns = Columns::default();
    columns.numbers.push(blockers.hard.len() as f64);
    columns.numbers.extend(serials(&blockers.hard).chain(serials(&blockers.soft)));
    columns
}

/// Numbers of each deadlock: how many clients, how many requests, 1 if it is certain, their
/// serials. Texts: the names of its clients.
pub(crate) fn deadlocks(deadlocks: &[(Vec<Name>, Deadlock)]) -> Columns {
    let mut columns = Columns::default();
    for (clients, deadlock) in deadlocks {
        let certain = f64::from(u8::from(deadlock.certain));
        let counts = [clients.len() as f64, deadlock.requests.len() as f64, certain];
        columns.numbers.extend(counts.into_iter().chain(serials(&deadlock.requests)));
        columns.push_all(clients);
    }
    columns
}

/// Reports a lock that would wait for itself. Numbers: its serial, then those of the requests.
/// Texts: a sentence.
pub(crate) fn own_deadlock(deadlock: &Deadlock) -> Columns {
    let mut columns = Columns::default();
    let outer = deadlock.outer.or_else(|| deadlock.requests.first().copied());
    columns.numbers.extend(serials(outer.as_slice()).chain(serials(&deadlock.requests)));
    if let Some(outer) = outer {
        columns.push(&Name::from(&*Deadlock::describe_own(outer.serial())));
    }
    columns
}

/// Returns how many names, requests, bytes, pieces of mail and partitions there are.
pub(crate) fn census(census: Census) -> [f64; 5] {
    let Census { names, requests, bytes, mail, partitions } = census;
    [names, requests, bytes, mail, partitions].map(|count| count as f64)
}

fn serials(requests: &[RequestId]) -> impl Iterator<Item = f64> {
    requests.iter().map(|request| request.serial() as f64)
}

/// The limit of a request; 0 for shared ones, which have none.
fn limit(mode: Mode) -> f64 {
    mode.limit().unwrap_or_default().into()
}

/// The clients that occur, each numbered by its first occurrence.
#[derive(Default)]
struct Known {
    indices: HashMap<Member, usize>,
    order: Vec<Member>,
    /// The client looked up last: neighbours mostly have the same client.
    last: Option<(Member, usize)>,
}

impl Known {
    fn index(&mut self, client: Member) -> usize {
        if let Some((last, index)) = self.last
            && last == client
        {
            return index;
        }
        let Self { indices, order, last } = self;
        let index = *indices.entry(client).or_insert_with(|| {
            order.push(client);
            order.len() - 1
        });
        *last = Some((client, index));
        index
    }
}
