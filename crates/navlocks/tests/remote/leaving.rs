//! `Locks::disconnect`.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use navlocks::{Locks, LossCause, QueryError, RequestErrorKind};
use navlocks_wire::ToService;
use tokio::sync::Notify;

use crate::client::{begun, connected, held, polled, said};
use crate::peer::{Peer, leased, welcome};
use crate::run;

#[test]
fn disconnect_returns_after_all_messages_are_sent() {
    run(async {
        for (peer, welcome) in [(Peer::unix().await, welcome(1)), (Peer::tcp().await, leased(1))] {
            let (locks, mut talk) = connected(&peer, welcome).await;
            let lock = held(&locks, "a", &mut talk).await;
            let other = held(&locks, "b", &mut talk).await;
            lock.release().unwrap();
            locks.disconnect().await;
            talk.hears(ToService::End(1)).await;
            talk.sees_leave().await;
            // The handles that are left know that their client ended.
            assert_eq!(other.loss(), Some(LossCause::ClientEnded));
            assert_eq!(other.lost().await, LossCause::ClientEnded);
            assert_eq!(other.release(), Err(LossCause::ClientEnded));
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
fn disconnect_loses_locks_before_the_service_receives_it() {
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
        // No other task has run: the service has received nothing.
        assert_eq!(lock.loss(), Some(LossCause::ClientEnded));
        assert_eq!(waiting.await.unwrap_err(), RequestErrorKind::ClientEnded);
        assert_eq!(question.await.unwrap().unwrap_err(), QueryError::ClientEnded);
        leaving.await;
        talk.hears(ToService::Bye).await;
    });
}

#[test]
fn disconnect_not_awaited_ends_the_session() {
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
fn disconnect_without_connection_returns_at_once() {
    run(async {
        let mut peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        peer.goes_away();
        talk.breaks();
        locks.disconnect().await;
        assert_eq!(lock.loss(), Some(LossCause::ClientEnded));
    });
    run(async {
        // The client leaves while it connects.
        let peer = Peer::tcp().await;
        let (locks, talk) = connected(&peer, leased(1)).await;
        talk.breaks();
        let talk = peer.greeted().await.0;
        locks.disconnect().await;
        talk.ends().await;
    });
}

#[test]
fn disconnect_from_service_that_does_not_read_returns() {
    for stuck_before in [false, true] {
        run(async move {
            for (peer, welcome) in
                [(Peer::unix().await, welcome(1)), (Peer::tcp().await, leased(1))]
            {
                let (locks, talk) = connected(&peer, welcome).await;
                // More than the buffers of sockets hold.
                let name = "x".repeat(4000);
                let waiting: Vec<_> =
                    (0..5000).map(|_| begun(locks.request(name.as_str()))).collect();
                if stuck_before {
                    // The driver writes as long as it can, and all other tasks wait.
                    for _ in 0..1000 {
                        tokio::task::yield_now().await;
                    }
                }
                let mut leaving = Box::pin(locks.disconnect());
                assert!(polled(&mut leaving).is_pending());
                leaving.await;
                drop((waiting, talk));
            }
        });
    }
}

/// A task that polls its future inside the wake call.
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
fn task_woken_by_the_end_finds_the_session_ended() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, _talk) = connected(&peer, welcome(1)).await;
        let leaving: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin({
            let locks: Locks = locks.clone();
            async move { locks.disconnect().await }
        });
        let eager = Arc::new(Eager { future: Mutex::new(Some(leaving)), done: Notify::new() });
        eager.clone().wake();
        // The future is polled inside the wake call, and never again.
        eager.done.notified().await;
    });
}
