//! A client that starts its service again.

use std::future::IntoFuture as _;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use navlocks::{Connect, RequestErrorKind};
use tokio::sync::Notify;

use crate::client::{begun, claimed, connected_by, held, polled, request_of, said, to};
use crate::peer::{Peer, lasting};
use crate::run;

/// Makes a start that the test awaits and ends with a result of its choice.
fn started(connect: Connect) -> (Connect, Arc<Notify>, mpsc::Sender<io::Result<()>>) {
    let called = Arc::new(Notify::new());
    let (end, ended) = mpsc::channel();
    let ended = Mutex::new(ended);
    let connect = connect.restart_with({
        let called = called.clone();
        move || {
            called.notify_one();
            ended
                .lock()
                .expect("no panic")
                .recv()
                .unwrap_or_else(|_| Err(io::Error::other("no more")))
        }
    });
    (connect, called, end)
}

#[test]
fn service_that_ended_under_a_lock_or_a_request_is_started_again() {
    for pending in [false, true] {
        run(async move {
            let mut peer = Peer::unix().await;
            let (connect, called, end) = started(to(&peer));
            let (locks, mut talk) = connected_by(connect, &peer, lasting(7, 1)).await;
            let mut lock = None;
            let mut waiting = None;
            if pending {
                waiting = Some(begun(locks.request("a")));
                talk.hears(said(1, "a")).await;
            } else {
                lock = Some(held(&locks, "a", &mut talk).await);
            }
            peer.goes_away();
            talk.breaks();
            called.notified().await;
            // The first attempt fails, and the next one succeeds.
            end.send(Err(io::Error::other("not yet"))).unwrap();
            called.notified().await;
            peer.comes_back().await;
            end.send(Ok(())).unwrap();
            let (mut talk, _) = peer.wants_claim(lasting(7, 2)).await;
            let claim = if pending { request_of(0, 1, "a") } else { claimed(1, "a", 1) };
            talk.hears_claim(&[claim]).await;
            assert_eq!(lock.as_ref().and_then(|lock| lock.loss()), None);
            drop((lock, waiting));
        });
    }
}

#[test]
fn idle_client_does_not_start_a_service_until_it_needs_one() {
    run(async {
        let mut peer = Peer::unix().await;
        let (connect, called, end) = started(to(&peer));
        let (locks, mut talk) = connected_by(connect, &peer, lasting(7, 1)).await;
        held(&locks, "a", &mut talk).await.release().unwrap();
        talk.hear().await;
        peer.goes_away();
        talk.breaks();
        let idle = tokio::time::timeout(Duration::from_millis(300), called.notified()).await;
        assert!(idle.is_err(), "an idle client started a service");
        let mut waiting = begun(locks.request("b"));
        called.notified().await;
        peer.comes_back().await;
        end.send(Ok(())).unwrap();
        let (mut talk, _) = peer.wants_claim(lasting(7, 2)).await;
        talk.hears_claim(&[request_of(0, 2, "b")]).await;
        assert!(polled(&mut waiting).is_pending());
    });
}

#[test]
fn service_that_does_not_start_is_not_started_without_a_pause() {
    run(async {
        let mut peer = Peer::unix().await;
        let starts = Arc::new(AtomicUsize::new(0));
        let patience = Duration::from_millis(700);
        let connect = to(&peer).unreachable_after(patience).restart_with({
            let starts = starts.clone();
            move || {
                starts.fetch_add(1, Ordering::Relaxed);
                Err(io::Error::other("never"))
            }
        });
        let (locks, mut talk) = connected_by(connect, &peer, lasting(7, 1)).await;
        let waiting = begun(locks.request("a"));
        talk.hears(said(1, "a")).await;
        peer.goes_away();
        talk.breaks();
        assert_eq!(waiting.await.unwrap_err(), RequestErrorKind::Unreachable);
        // Pauses double from ten milliseconds.
        let starts = starts.load(Ordering::Relaxed);
        assert!((1..=8).contains(&starts), "{starts} starts");
    });
}

#[test]
fn client_that_leaves_during_a_start_does_not_wait_for_it() {
    run(async {
        let mut peer = Peer::unix().await;
        let (connect, called, end) = started(to(&peer));
        let (locks, mut talk) = connected_by(connect, &peer, lasting(7, 1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        peer.goes_away();
        talk.breaks();
        called.notified().await;
        locks.disconnect().await;
        assert!(lock.loss().is_some());
        drop(end);
    });
}

#[test]
fn first_connection_starts_nothing() {
    run(async {
        let mut peer = Peer::unix().await;
        peer.goes_away();
        let (connect, _called, _end) = started(to(&peer));
        assert!(connect.into_future().await.is_err());
    });
}
