//! Somebody listens to the events.

use loom::future::block_on;
use loom::thread;
use navlocks::Locks;
use navlocks::events::Kind;

use crate::{assert_nothing_left, hold, model};

#[test]
fn a_listener_hears_all_that_happens() {
    model(|| {
        let locks = Locks::new();
        let mut events = locks.events();
        let listener = thread::spawn(move || {
            let mut heard = Vec::new();
            while heard.last() != Some(&Kind::Released) {
                heard.push(block_on(events.recv()).unwrap().unwrap().what);
            }
            heard
        });
        let lock = hold(locks.request("a"));
        let granted = Kind::Granted(lock.fencing_token());
        lock.release().unwrap();
        assert_eq!(listener.join().unwrap(), [Kind::Requested, granted, Kind::Released]);
        assert_nothing_left(&locks, "a");
    });
}

/// A listener that comes and goes hears the end of a story or nothing, never a part from the
/// middle.
#[test]
fn a_listener_comes_and_goes() {
    model(|| {
        let locks = Locks::new();
        let listener = thread::spawn({
            let locks = locks.clone();
            move || {
                let mut events = locks.events();
                std::iter::from_fn(|| events.try_recv()).map(|event| event.unwrap().what).collect()
            }
        });
        let lock = hold(locks.request("a"));
        let granted = Kind::Granted(lock.fencing_token());
        lock.release().unwrap();
        let story = [Kind::Requested, granted, Kind::Released];
        let heard: Vec<Kind> = listener.join().unwrap();
        assert!(
            story.windows(heard.len().max(1)).any(|part| part.starts_with(&heard)),
            "{heard:?}"
        );
        assert_nothing_left(&locks, "a");
    });
}

/// A stream that waits, or is being made, finds the end of its client in every order.
#[test]
fn a_stream_meets_the_end_of_its_client() {
    model(|| {
        let locks = Locks::new();
        let mut events = locks.events();
        let waiting = thread::spawn(move || block_on(events.recv()));
        locks.end();
        assert_eq!(waiting.join().unwrap(), None);
    });
    model(|| {
        let locks = Locks::new();
        let made = thread::spawn({
            let locks = locks.clone();
            move || block_on(locks.events().recv())
        });
        locks.end();
        assert_eq!(made.join().unwrap(), None);
    });
}
