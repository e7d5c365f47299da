//! Subscribers of the event stream.

use loom::future::block_on;
use loom::thread;
use navlocks::EventKind;
use navlocks::Locks;

use crate::{assert_nothing_left, hold, model};

#[test]
fn subscriber_receives_all_events() {
    model(|| {
        let locks = Locks::new();
        let mut events = locks.events();
        let subscriber = thread::spawn(move || {
            let mut received = Vec::new();
            while received.last() != Some(&EventKind::Released) {
                received.push(block_on(events.recv()).unwrap().unwrap().kind);
            }
            received
        });
        let lock = hold(locks.request("a"));
        let granted = EventKind::Granted(lock.fencing_token());
        lock.release().unwrap();
        assert_eq!(
            subscriber.join().unwrap(),
            [EventKind::Requested, granted, EventKind::Released]
        );
        assert_nothing_left(&locks, "a");
    });
}

/// A subscriber that comes and goes receives the end of a request's events or none, never a middle
/// part.
#[test]
fn subscriber_that_comes_and_goes_receives_no_middle_part() {
    model(|| {
        let locks = Locks::new();
        let subscriber = thread::spawn({
            let locks = locks.clone();
            move || {
                let mut events = locks.events();
                std::iter::from_fn(|| events.try_recv()).map(|event| event.unwrap().kind).collect()
            }
        });
        let lock = hold(locks.request("a"));
        let granted = EventKind::Granted(lock.fencing_token());
        lock.release().unwrap();
        let story = [EventKind::Requested, granted, EventKind::Released];
        let received: Vec<EventKind> = subscriber.join().unwrap();
        assert!(
            story.windows(received.len().max(1)).any(|part| part.starts_with(&received)),
            "{received:?}"
        );
        assert_nothing_left(&locks, "a");
    });
}

/// A stream that waits, or is being made, finds the end of its client in every order.
#[test]
fn stream_races_with_end_of_its_client() {
    model(|| {
        let locks = Locks::new();
        let mut events = locks.events();
        let waiting = thread::spawn(move || block_on(events.recv()));
        locks.end_client();
        assert_eq!(waiting.join().unwrap(), None);
    });
    model(|| {
        let locks = Locks::new();
        let made = thread::spawn({
            let locks = locks.clone();
            move || block_on(locks.events().recv())
        });
        locks.end_client();
        assert_eq!(made.join().unwrap(), None);
    });
}
