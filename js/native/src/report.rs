//! The result of a query, as columns: a few large values cross to JavaScript faster than many small
//! ones.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use navlocks_core::kit::Member;
use navlocks_core::{Mode, Name, RequestId};
use navlocks_threads::{Event, Report};

use crate::mail;
use crate::napi::{Env, Failure, Result, Value};

/// The numbers of each entry: serial, limit, index of the client's name, count of names, token,
/// time, serial of the outer lock.
const NUMBERS: usize = 7;

/// JavaScript has no strings of more than half a billion code units.
const TOO_LONG: Failure =
    Failure("all names together are too long for a query: use shorter names, or hold fewer locks");

/// Returns `[count of held, numbers, all names in one text, end of each name in it, names of
/// clients, tags by entry]`.
pub(crate) fn columns<'call>(env: Env<'call>, report: &Report) -> Result<Value<'call>> {
    let Report { snapshot, clients } = report;
    let (held, entries) = (snapshot.held.len(), snapshot.held.len() + snapshot.pending.len());
    let all = || snapshot.held.iter().chain(&snapshot.pending);
    let has_tags = all().any(|lock| lock.tag.is_some());

    let mut numbers = Vec::with_capacity(entries * NUMBERS);
    // One text instead of many strings: JavaScript cuts it faster than Node-API makes strings.
    let mut names = Vec::new();
    let mut ends = Vec::with_capacity(entries);
    let tag_list = env.array(if has_tags { entries } else { 0 })?;
    let mut known = Known::default();
    let mut text = Vec::new();
    for (entry, lock) in all().enumerate() {
        numbers.extend([
            lock.address.request.serial() as f64,
            limit(lock.mode),
            known.index(lock.address.member) as f64,
            lock.scope.names().len() as f64,
            lock.token.map_or(0.0, |token| token.get() as f64),
            lock.since as f64,
            lock.within.map_or(0.0, |outer| outer.serial() as f64),
        ]);
        for name in lock.scope.names() {
            names.extend(name.encode_utf16());
            ends.push(names.len() as f64);
        }
        if let Some(tag) = &lock.tag {
            env.set(tag_list, entry, string(env, tag, &mut text)?)?;
        }
    }

    let client_names = env.array(known.order.len())?;
    for (index, client) in known.order.iter().enumerate() {
        if let Some(name) = clients.get(client) {
            env.set(client_names, index, string(env, name, &mut text)?)?;
        }
    }
    let names = env.string(&names).map_err(|_| TOO_LONG)?;
    let (numbers, ends) = (env.numbers(&numbers)?, env.numbers(&ends)?);
    list(env, &[env.number(held as f64)?, numbers, names, ends, client_names, tag_list])
}

/// Returns `[count of missing events, event, …]`. An event is its numbers (kind, serial, limit,
/// token or cause, serial of the thief), its names, the name of its client, its tag.
pub(crate) fn events<'call>(
    env: Env<'call>,
    missed: u64,
    events: &VecDeque<Arc<Event>>,
) -> Result<Value<'call>> {
    let mut text = Vec::new();
    let mut rows = Vec::with_capacity(1 + events.len());
    rows.push(env.number(missed as f64)?);
    for event in events {
        let about = &event.about;
        let (kind, value) = mail::numbers(event.news);
        let numbers = env.numbers(&[
            f64::from(kind),
            event.address.request.serial() as f64,
            limit(about.mode),
            value,
            event.thief().map_or(0.0, |thief| thief.serial() as f64),
        ])?;
        let scope = names(env, about.scope.names())?;
        let client = string(env, &event.client, &mut text)?;
        let mut row = vec![numbers, scope, client];
        if let Some(tag) = &about.tag {
            row.push(string(env, tag, &mut text)?);
        }
        rows.push(list(env, &row)?);
    }
    list(env, &rows)
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

pub(crate) fn list<'call>(env: Env<'call>, values: &[Value<'call>]) -> Result<Value<'call>> {
    let array = env.array(values.len())?;
    for (index, &value) in values.iter().enumerate() {
        env.set(array, index, value)?;
    }
    Ok(array)
}

pub(crate) fn names<'call>(env: Env<'call>, names: &[Name]) -> Result<Value<'call>> {
    let mut text = Vec::new();
    let values: Result<Vec<_>> = names.iter().map(|name| string(env, name, &mut text)).collect();
    list(env, &values?)
}

pub(crate) fn serials<'call>(env: Env<'call>, requests: &[RequestId]) -> Result<Value<'call>> {
    let numbers: Vec<f64> = requests.iter().map(|request| request.serial() as f64).collect();
    env.numbers(&numbers)
}

fn string<'call>(env: Env<'call>, name: &Name, text: &mut Vec<u16>) -> Result<Value<'call>> {
    text.clear();
    text.extend(name.encode_utf16());
    env.string(text)
}
