//! Queries of a lock space until it is as it should be. Tags name the requests.

use navlocks::{Event, Events, Lock, Locks, Request, RequestError, RequestInfo, Snapshot};

use crate::patience::{eventually, soon};
use crate::task::Task;

/// Returns the tags of locks or requests, in order.
pub(crate) fn tags(infos: &[RequestInfo]) -> Vec<&str> {
    infos.iter().map(|info| info.tag.as_deref().unwrap_or("untagged")).collect()
}

/// Queries until exactly these are held and pending, in this order.
///
/// Query through the client that acted last: it sees at least its own acts, so a wrong state after
/// its act is seen too.
#[track_caller]
pub(crate) fn shows<const HELD: usize, const PENDING: usize>(
    locks: &Locks,
    held: [&str; HELD],
    pending: [&str; PENDING],
) -> Snapshot {
    eventually(|| {
        let now = caught_up(locks);
        if tags(&now.held) == held && tags(&now.pending) == pending {
            return Ok(now);
        }
        let found = (tags(&now.held), tags(&now.pending));
        Err(format!("held and pending are {found:?}, expected {:?}", (held, pending)))
    })
}

/// Queries and waits for the answer: by then all earlier acts of this client are done, and all its
/// notices have arrived.
#[track_caller]
pub(crate) fn caught_up(locks: &Locks) -> Snapshot {
    soon(locks.query()).unwrap()
}

/// Holds a lock that is free, by its tag.
#[track_caller]
pub(crate) fn hold(request: Request, tag: &'static str) -> Lock {
    soon(request.tag(tag)).unwrap()
}

/// Makes a request that has to wait. It is in the queue when this returns.
#[track_caller]
pub(crate) fn queue(
    locks: &Locks,
    request: Request,
    tag: &'static str,
) -> Task<'static, Result<Lock, RequestError>> {
    let mut task = Task::start(request.tag(tag));
    assert!(!task.poll(), "{tag} does not wait: {:?}", task.join());
    eventually(|| match tags(&caught_up(locks).pending) {
        pending if pending.contains(&tag) => Ok(()),
        pending => Err(format!("{tag} is not in the queue: {pending:?}")),
    });
    task
}

/// Makes a stream of all events from now on, of any client.
#[track_caller]
pub(crate) fn subscribe(locks: &Locks) -> Events {
    let events = locks.events();
    caught_up(locks);
    events
}

/// Returns the next events, up to a request that is made to end them.
#[track_caller]
pub(crate) fn received(locks: &Locks, events: &mut Events) -> Vec<Event> {
    const END: &str = "the end of what is received";
    drop(hold(locks.request(END), END));
    let mut received = Vec::new();
    let mut ending = 3; // requested, granted, released
    while ending > 0 {
        let event = soon(events.recv()).expect("the client has not ended").unwrap();
        if event.tag.as_deref() == Some(END) {
            ending -= 1;
        } else {
            received.push(event);
        }
    }
    received
}

/// Returns events as text: `second granted`.
pub(crate) fn words(events: &[Event]) -> Vec<String> {
    use navlocks::EventKind::*;
    let word = |event: &Event| {
        let word = match event.kind {
            Requested => "requested",
            Granted(_) => "granted",
            Unavailable => "unavailable",
            Released => "released",
            Downgraded => "downgraded",
            Withdrawn => "withdrawn",
            Aborted(_) => "aborted",
            Lost(_) => "lost",
            Deadlock(_) => "deadlocked",
            _ => "something else",
        };
        format!("{} {word}", event.tag.as_deref().unwrap_or("untagged"))
    };
    events.iter().map(word).collect()
}
