//! The event stream: all events, in order, for subscribers.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::thread;

use futures_core::Stream;
use navlocks::events::{EventKind, Gap};
use navlocks::{Event, LossCause, Mode, RequestId, Scope};

use super::{Arm, start};
use crate::backend::Backend;
use crate::patience::soon;
use crate::task::Task;
use crate::watch::{caught_up, hold, queue, received, shows, subscribe, words};

const LIFE: [&str; 3] = ["lock requested", "lock granted", "lock released"];

#[test]
fn event_has_kind_request_and_client() {
    let arm = start();
    let [locks, watcher] = arm.clients();
    let mut events = subscribe(&watcher);
    let lock = hold(locks.request(["b", "a"]).shared(), "reading");
    let (request, token) = (lock.request_id(), lock.fencing_token());
    // If the service knows the process, both show it.
    let pid = soon(locks.query()).unwrap().held[0].pid;
    drop(lock);
    caught_up(&locks);
    let seen = received(&watcher, &mut events);
    for event in &seen {
        assert_eq!((event.request, event.client), (request, locks.client_id()));
        assert_eq!((&event.scope, event.mode), (&Scope::from(["a", "b"]), Mode::Shared));
        assert_eq!((event.tag.as_deref(), event.pid), (Some("reading"), pid));
    }
    let kinds: Vec<EventKind> = seen.iter().map(|event| event.kind.clone()).collect();
    assert_eq!(kinds, [EventKind::Requested, EventKind::Granted(token), EventKind::Released]);
    let text = seen[1].to_string();
    for word in [request.to_string(), locks.client_id().to_string(), token.to_string()] {
        assert!(text.contains(&word), "{word} is not in: {text}");
    }
}

#[test]
fn every_end_of_a_request_has_its_event() {
    let arm = start();
    let [one, two, watcher] = arm.clients();
    let mut events = subscribe(&watcher);
    let first = hold(one.request("a"), "first");
    assert!(soon(two.request("a").if_available().tag("missed")).unwrap().is_none());
    drop(queue(&two, two.request("a"), "dropped"));
    caught_up(&two);
    let ended = queue(&two, two.request("a"), "ended");
    let thief = hold(one.request("a").steal(), "thief");
    two.end_client();
    assert!(ended.join().is_err());
    shows(&watcher, ["thief"], []);
    assert_eq!(soon(watcher.force_release("a")), Ok(1));
    let last = hold(watcher.request("a"), "last");
    let seen = received(&watcher, &mut events);
    let expected = [
        "first requested",
        "first granted",
        "missed requested",
        "missed unavailable",
        "dropped requested",
        "dropped withdrawn",
        "ended requested",
        "thief requested",
        "first lost",
        "thief granted",
        "ended aborted",
        "thief lost",
        "last requested",
        "last granted",
    ];
    assert_eq!(words(&seen), expected);
    assert_eq!(seen[8].kind, EventKind::Lost(LossCause::Stolen { by: thief.request_id().into() }));
    assert_eq!(seen[10].kind, EventKind::Aborted(LossCause::ClientEnded));
    assert_eq!(seen[11].kind, EventKind::Lost(LossCause::ForceReleased));
    // Lost locks are not released as well.
    drop((first, thief));
    caught_up(&one);
    drop(last);
    assert_eq!(words(&received(&watcher, &mut events)), ["last released"]);
}

#[test]
fn end_event_comes_before_the_grants_that_it_causes() {
    let arm = start();
    let [one, two, watcher] = arm.clients();
    let held = hold(one.request("a"), "X");
    let run = ["S1", "S2"].map(|tag| queue(&two, two.request("a").shared(), tag));
    let writer = queue(&one, one.request("a"), "X2");
    let late = queue(&two, two.request("a").shared(), "S3");
    let mut events = subscribe(&watcher);
    drop(held);
    caught_up(&one);
    assert_eq!(words(&received(&watcher, &mut events)), ["X released", "S1 granted", "S2 granted"]);
    drop(writer);
    caught_up(&one);
    assert_eq!(words(&received(&watcher, &mut events)), ["X2 withdrawn", "S3 granted"]);
    drop((run, late));
}

#[test]
fn stream_begins_when_it_is_made() {
    let arm = start();
    let [locks, watcher] = arm.clients();
    drop(hold(locks.request("a"), "before"));
    let held = hold(locks.request("a"), "held");
    let waiting = queue(&locks, locks.request("a").shared(), "waiting");
    let mut events = subscribe(&watcher);
    drop(held);
    drop(waiting.join().unwrap());
    caught_up(&locks);
    // Events of earlier requests have all their facts.
    let seen = received(&watcher, &mut events);
    assert_eq!(words(&seen), ["held released", "waiting granted", "waiting released"]);
    assert_eq!((seen[1].mode, &seen[1].scope), (Mode::Shared, &Scope::from("a")));
    assert_eq!(seen[1].client, locks.client_id());
}

#[test]
fn later_stream_receives_no_earlier_events() {
    let arm = start();
    let [locks, watcher] = arm.clients();
    drop(subscribe(&watcher));
    let lock = hold(locks.request("a"), "unheard");
    let request = queue(&locks, locks.request("a"), "unheard too");
    drop(request);
    drop(lock);
    caught_up(&locks);
    let mut events = subscribe(&watcher);
    assert_eq!(words(&received(&watcher, &mut events)), [""; 0]);
    assert_eq!(events.try_recv(), None);
}

#[test]
fn every_stream_receives_all_events() {
    let arm = start();
    let [locks, watcher, other] = arm.clients();
    let mut early = subscribe(&watcher);
    let dropped = subscribe(&other);
    let lock = hold(locks.request("a"), "lock");
    let mut late = subscribe(&other);
    drop(dropped);
    drop(lock);
    caught_up(&locks);
    assert_eq!(words(&received(&other, &mut late)), ["lock released"]);
    let expected = ["lock requested", "lock granted", "lock released"];
    assert_eq!(words(&received(&watcher, &mut early))[..3], expected);
}

#[test]
fn dropping_the_future_of_the_next_event_loses_none() {
    let arm = start();
    let [locks, watcher] = arm.clients();
    let mut events = subscribe(&watcher);
    drop(Task::start(events.recv()));
    drop(hold(locks.request("a"), "lock"));
    caught_up(&locks);
    let expected = ["lock requested", "lock granted", "lock released"];
    assert_eq!(words(&received(&watcher, &mut events)), expected);
}

#[test]
fn blocked_subscriber_is_woken_by_each_event() {
    let arm = start();
    let [locks, watcher] = arm.clients();
    let mut events = subscribe(&watcher);
    let rounds = Arm::ROUNDS / 10;
    thread::scope(|scope| {
        let subscriber = scope.spawn(move || {
            // The same as a `Stream`, for combinators.
            let mut next =
                || soon(poll_fn(|cx| Pin::new(&mut events).poll_next(cx))).unwrap().unwrap();
            (0..3 * rounds).map(|_| next()).collect::<Vec<_>>()
        });
        for _ in 0..rounds {
            drop(hold(locks.request("a"), "lock"));
        }
        let seen = words(&subscriber.join().unwrap());
        let expected = ["lock requested", "lock granted", "lock released"];
        assert!(seen.chunks(3).all(|chunk| chunk == expected));
    });
}

#[test]
fn stream_of_ended_client_ends_and_others_continue() {
    let arm = start();
    let [locks, watcher, other] = arm.clients();
    let (mut ending, mut lasting) = (subscribe(&watcher), subscribe(&other));
    drop(hold(locks.request("a"), "lock"));
    caught_up(&locks);
    assert_eq!(words(&received(&other, &mut lasting)), LIFE);
    watcher.end_client();
    while soon(ending.recv()).is_some() {}
    assert_eq!(ending.try_recv(), None);
    assert_eq!(soon(watcher.events().recv()), None);
    drop(hold(locks.request("a"), "lock"));
    caught_up(&locks);
    assert_eq!(words(&received(&other, &mut lasting)), LIFE);
}

#[test]
fn stream_keeps_its_client_until_it_is_dropped() {
    let arm = start();
    let [locks, watcher] = arm.clients();
    let mut events = subscribe(&watcher);
    drop(watcher);
    drop(hold(locks.request("a"), "lock"));
    assert_eq!(words(&received(&locks, &mut events)), LIFE);
}

#[test]
fn slow_subscriber_loses_the_oldest_events_and_gets_their_number() {
    let arm = start();
    let [locks, watcher] = arm.clients();
    let (mut slow, mut patient) = (subscribe(&watcher).capacity(2), subscribe(&watcher));
    for _ in 0..5 {
        drop(hold(locks.request("a"), "lock"));
    }
    caught_up(&locks);
    assert_eq!(received(&watcher, &mut patient).len(), 15);
    // The three events of the ending request came after; the last two are kept.
    assert_eq!(slow.try_recv(), Some(Err(Gap::Lagged { missed: 15 + 3 - 2 })));
    let kept: Vec<Event> = std::iter::from_fn(|| slow.try_recv()).map(Result::unwrap).collect();
    assert_eq!(kept.len(), 2);
    assert!(matches!(kept[1].kind, EventKind::Released), "{kept:?}");
    // The count begins again.
    drop(hold(locks.request("a"), "lock"));
    caught_up(&locks);
    caught_up(&watcher);
    assert_eq!(slow.try_recv(), Some(Err(Gap::Lagged { missed: 1 })));
}

#[test]
fn stream_without_capacity_of_its_own_is_bounded() {
    const CAPACITY: usize = 4096;
    let arm = start();
    let [locks, watcher] = arm.clients();
    let mut slow = subscribe(&watcher);
    for _ in 0..CAPACITY / 3 + 2 {
        drop(hold(locks.request("a"), "lock"));
    }
    caught_up(&locks);
    caught_up(&watcher);
    let lagged = slow.try_recv().unwrap().unwrap_err();
    let missed = ((CAPACITY / 3 + 2) * 3 - CAPACITY) as u64;
    assert_eq!(lagged, Gap::Lagged { missed });
    assert!(lagged.to_string().starts_with("5 events were dropped"), "{lagged}");
    assert_eq!(std::iter::from_fn(|| slow.try_recv()).map(Result::unwrap).count(), CAPACITY);
}

#[test]
fn events_of_each_request_are_in_a_valid_order() {
    let arm = start();
    let watcher = arm.client();
    let mut events = subscribe(&watcher);
    thread::scope(|scope| {
        for number in 0..3 {
            let locks = arm.client();
            scope.spawn(move || {
                for round in number..number + 60 {
                    let request = locks.request("a").tag("any");
                    match round % 5 {
                        0 => drop(soon(request.shared())),
                        1 => drop(soon(request.steal())),
                        2 => drop(Task::start(request)),
                        3 => drop(soon(request.if_available())),
                        _ => drop(soon(request)),
                    }
                    caught_up(&locks);
                }
            });
        }
    });
    let mut lives: HashMap<RequestId, Vec<String>> = HashMap::new();
    for event in received(&watcher, &mut events) {
        lives.entry(event.request).or_default().extend(words(&[event]));
    }
    shows(&watcher, [], []);
    assert_eq!(lives.len(), 3 * 60);
    for life in lives.values() {
        let life: Vec<&str> = life.iter().filter_map(|word| word.strip_prefix("any ")).collect();
        let lived = ["granted released", "granted lost", "unavailable", "withdrawn"];
        let (first, rest) = (life[0], life[1..].join(" "));
        assert!(first == "requested" && lived.contains(&rest.as_str()), "{life:?}");
    }
}
