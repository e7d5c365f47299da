//! `Locks::disconnect`.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use navlocks::{Locks, Loss, QueryError, RequestErrorKind};
use navlocks_wire::ToService;
use tokio::sync::Notify;

use crate::client::{begun, connected, held, polled, said};
use crate::peer::{Peer, leased, welcome};
use crate::run;

#[test]
fn everything_is_said_before_it_returns() {
    run(async {
        for (peer, welcome) in [(Peer::unix().await, welcome(1)), (Peer::tcp().await, leased(1))] {
            let (locks, mut talk) = connected(&peer, welcome).await;
            let lock = held(&locks, "a", &mut talk).await;
            let other = held(&locks, "b", &mut talk).await;
            lock.release().unwrap();
            locks.disconnect().await;
            talk.hears(ToService::Release(1)).await;
            talk.sees_leave().await;
            // What is left behind knows that it is over.
            assert_eq!(other.loss(), Some(Loss::ClientEnded));
            assert_eq!(other.lost().await, Loss::ClientEnded);
            assert_eq!(other.release(), Err(Loss::ClientEnded));
            assert_eq!(locks.request("c").await.unwrap_err(), RequestErrorKind::ClientEnded);
            assert_eq!(locks.query().await.unwrap_err(), QueryError::ClientEnded);
            assert_eq!(
                locks.new_client().request("c").await.unwrap_err(),
                RequestErrorKind::ClientEnded
            );
            locks.disconnect().await;
        }
    });
}

#[test]
fn locks_are_lost_before_the_service_can_hear_of_the_leave() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let waiting = begun(locks.request("b"));
        talk.hears(said(2, "b")).await;
        let question = tokio::spawn({
            let locks = locks.clone();
            async move { locks.query().await }
        });
        talk.hear().await;
        let mut leaving = Box::pin(locks.disconnect());
        assert!(polled(&mut leaving).is_pending());
        // Nothing else has run: the service has heard nothing.
        assert_eq!(lock.loss(), Some(Loss::ClientEnded));
        assert_eq!(waiting.await.unwrap_err(), RequestErrorKind::ClientEnded);
        assert_eq!(question.await.unwrap().unwrap_err(), QueryError::ClientEnded);
        leaving.await;
        talk.hears(ToService::Bye).await;
    });
}

#[test]
fn a_leave_that_nobody_waits_for_is_one() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, talk) = connected(&peer, welcome(1)).await;
        let mut leaving = Box::pin(locks.disconnect());
        assert!(polled(&mut leaving).is_pending());
        drop(leaving);
        talk.sees_leave().await;
        locks.disconnect().await;
    });
}

#[test]
fn without_a_connection_there_is_nothing_to_wait_for() {
    run(async {
        let mut peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        peer.goes_away();
        talk.breaks();
        locks.disconnect().await;
        assert_eq!(lock.loss(), Some(Loss::ClientEnded));
    });
    run(async {
        // In the middle of an attempt.
        let peer = Peer::tcp().await;
        let (locks, talk) = connected(&peer, leased(1)).await;
        talk.breaks();
        let talk = peer.greeted().await.0;
        locks.disconnect().await;
        talk.ends().await;
    });
}

#[test]
fn a_service_that_does_not_read_is_not_waited_for() {
    for stuck_before in [false, true] {
        run(async move {
            for (peer, welcome) in
                [(Peer::unix().await, welcome(1)), (Peer::tcp().await, leased(1))]
            {
                let (locks, talk) = connected(&peer, welcome).await;
                // More than sockets keep.
                let name = "x".repeat(4000);
                let waiting: Vec<_> =
                    (0..5000).map(|_| begun(locks.request(name.as_str()))).collect();
                if stuck_before {
                    // The driver writes as long as it can, and all others wait.
                    for _ in 0..1000 {
                        tokio::task::yield_now().await;
                    }
                }
                let mut leaving = Box::pin(locks.disconnect());
                assert!(polled(&mut leaving).is_pending());
                tokio::time::pause();
                leaving.await;
                tokio::time::resume();
                drop((waiting, talk));
            }
        });
    }
}

/// Polls its future wherever it is woken.
struct Eager {
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    done: Notify,
}

impl Wake for Eager {
    fn wake(self: Arc<Self>) {
        let waker = Waker::from(self.clone());
        let mut future = self.future.lock().expect("no panic");
        let Some(running) = &mut *future else { return };
        if running.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            *future = None;
            self.done.notify_one();
        }
    }
}

#[test]
fn whoever_is_told_of_the_end_finds_it_over() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, _talk) = connected(&peer, welcome(1)).await;
        let leaving: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin({
            let locks: Locks = locks.clone();
            async move { locks.disconnect().await }
        });
        let eager = Arc::new(Eager { future: Mutex::new(Some(leaving)), done: Notify::new() });
        eager.clone().wake();
        // It is polled at the very moment at which it is woken, and never again.
        eager.done.notified().await;
    });
}
