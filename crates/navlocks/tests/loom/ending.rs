//! The end of a client.

use std::future::IntoFuture;
use std::task::Poll;

use loom::future::block_on;
use loom::thread;
use navlocks::{Locks, LossCause, RequestErrorKind};

use crate::{assert_nothing_left, begin_to_wait, held, hold, model, poll, waiter};

#[test]
fn end_of_client_races_with_request() {
    model(|| {
        let locks = Locks::new();
        let ending = locks.new_client();
        let request = waiter(ending.request("a"));
        ending.end_client();
        match request.join().unwrap() {
            Ok(lock) => {
                assert_eq!(lock.loss(), Some(LossCause::ClientEnded));
                assert_eq!(lock.release(), Err(LossCause::ClientEnded));
            }
            Err(error) => assert_eq!(error, RequestErrorKind::ClientEnded),
        }
        let later = block_on(ending.request("a").into_future());
        assert_eq!(later.unwrap_err(), RequestErrorKind::ClientEnded);
        assert_nothing_left(&locks, "a");
    });
}

#[test]
fn end_of_client_races_with_pending_request() {
    model(|| {
        let locks = Locks::new();
        let first = hold(locks.request("a"));
        let ending = locks.new_client();
        let request = waiter(ending.request("a"));
        ending.end_client();
        let ended = request.join().unwrap();
        assert_eq!(ended.unwrap_err(), RequestErrorKind::ClientEnded);
        assert_eq!(held(&locks), [first.request_id()]);
        drop(first);
        assert_nothing_left(&locks, "a");
    });
}

#[test]
fn end_of_client_races_with_grant_and_next_waiter_wakes() {
    model(|| {
        let locks = Locks::new();
        let first = hold(locks.request("a"));
        let ending = locks.new_client();
        let mut ended = begin_to_wait(ending.request("a"));
        let next = waiter(locks.request("a"));
        let other = thread::spawn(move || ending.end_client());
        drop(first);
        next.join().unwrap().unwrap().release().unwrap();
        other.join().unwrap();
        let Poll::Ready(Err(error)) = poll(&mut ended) else { panic!("not ended") };
        assert_eq!(error, RequestErrorKind::ClientEnded);
        assert_nothing_left(&locks, "a");
    });
}

#[test]
fn end_of_client_races_with_drop_of_lock_and_next_waiter_wakes() {
    model(|| {
        let locks = Locks::new();
        let ending = locks.new_client();
        let lock = hold(ending.request("a"));
        let next = waiter(locks.request("a"));
        let other = thread::spawn(move || drop(lock));
        ending.end_client();
        other.join().unwrap();
        next.join().unwrap().unwrap().release().unwrap();
        assert_nothing_left(&locks, "a");
    });
}

/// The last owners of a client are its lock and its request, on two threads.
#[test]
fn client_is_forgotten_with_its_last_lock_and_request() {
    model(|| {
        let locks = Locks::new();
        let client = locks.new_client();
        let lock = hold(client.request("a"));
        let waiting = begin_to_wait(client.request("a"));
        drop(client);
        let other = thread::spawn(move || drop(waiting));
        drop(lock);
        other.join().unwrap();
        assert_nothing_left(&locks, "a");
    });
}
