//! The driver's thread: in a runtime of any kind, or its own; and the end of that runtime.

use std::future::IntoFuture as _;
use std::thread;

use navlocks::blocking::block_on;
use navlocks::{ConnectError, Locks, LossCause, QueryError, RequestErrorKind};
use navlocks_wire::ToService;
use tokio::runtime::{Builder, Runtime};

use crate::client::{begun, connected, held, said, to};
use crate::peer::{Peer, leased};
use crate::run;

fn other_runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

#[test]
fn connection_without_runtime_is_driven_by_own_thread() {
    run(async {
        let peer = Peer::tcp().await;
        let url = peer.url();
        let client = thread::spawn(move || {
            let locks = block_on(Locks::connect(url).into_future()).unwrap();
            let lock = locks.request("a").lock_blocking().unwrap();
            assert_eq!(lock.loss(), None);
            lock.release().unwrap();
            block_on(locks.disconnect());
        });
        let mut talk = peer.begins(leased(1)).await;
        talk.hears(said(1, "a")).await;
        talk.grants(1, 1).await;
        talk.hears(ToService::End(1)).await;
        talk.sees_leave().await;
        client.join().unwrap();
    });
}

#[test]
fn connection_in_multi_thread_runtime_behaves_the_same() {
    run(async {
        let peer = Peer::tcp().await;
        let runtime = other_runtime();
        let connecting = runtime.spawn(to(&peer).into_future());
        let mut talk = peer.begins(leased(1)).await;
        let locks = connecting.await.unwrap().unwrap();
        let lock = held(&locks, "a", &mut talk).await;
        assert_eq!(lock.loss(), None);
        drop(lock);
        talk.hears(ToService::End(1)).await;
        drop(locks);
        talk.hears(ToService::Close(0)).await;
        talk.sees_leave().await;
        runtime.shutdown_background();
    });
}

#[test]
fn runtime_shutdown_ends_its_connections() {
    run(async {
        let peer = Peer::tcp().await;
        let runtime = other_runtime();
        let connecting = runtime.spawn(to(&peer).into_future());
        let mut talk = peer.begins(leased(1)).await;
        let locks = connecting.await.unwrap().unwrap();
        let lock = held(&locks, "a", &mut talk).await;
        let waiting = begun(locks.request("b"));
        talk.hears(said(2, "b")).await;
        let question = tokio::spawn({
            let locks = locks.clone();
            async move { locks.query().await }
        });
        talk.hear().await;
        runtime.shutdown_background();
        assert_eq!(lock.lost().await, LossCause::ServiceGone);
        assert_eq!(waiting.await.unwrap_err(), RequestErrorKind::ClientEnded);
        assert_eq!(question.await.unwrap().unwrap_err(), QueryError::ClientEnded);
        // The client says goodbye, so that the service need not wait for the lease.
        talk.hears(ToService::Bye).await;
        talk.ends().await;
        assert_eq!(locks.request("c").await.unwrap_err(), RequestErrorKind::ClientEnded);
        locks.disconnect().await;
        assert_eq!(lock.release(), Err(LossCause::ServiceGone));
    });
}

#[test]
fn worker_of_runtime_that_drives_may_block() {
    run(async {
        let peer = Peer::tcp().await;
        // One worker, which runs both the driver and the task that blocks.
        let runtime = other_runtime();
        let connecting = runtime.spawn(to(&peer).into_future());
        let mut talk = peer.begins(leased(1)).await;
        let locks = connecting.await.unwrap().unwrap();
        let task = runtime.spawn(async move {
            drop(locks.request("a").lock_blocking().expect("a lock"));
            let blocking = move || locks.request("b").lock_blocking().map(drop);
            tokio::task::spawn_blocking(blocking).await.expect("it ends").expect("a lock");
        });
        for (id, name) in [(1, "a"), (2, "b")] {
            talk.hears(said(id, name)).await;
            talk.grants(id, id).await;
            talk.hears(ToService::End(id)).await;
        }
        task.await.unwrap();
        runtime.shutdown_background();
    });
}

#[test]
fn only_thread_that_drives_may_not_block() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(1)).await;
        let error = locks.request("a").lock_blocking().unwrap_err();
        assert_eq!(error, RequestErrorKind::BlocksConnection);
        let blocking = move || {
            // Another runtime of one thread, which does not drive.
            let other = Builder::new_current_thread().build().expect("a runtime");
            let _inside = other.enter();
            locks.request("a").lock_blocking().map(drop)
        };
        let task = tokio::task::spawn_blocking(blocking);
        talk.hears(said(1, "a")).await;
        talk.grants(1, 1).await;
        task.await.expect("it ends").expect("a lock");
    });
}

#[test]
fn runtime_shutdown_while_connecting_is_an_error() {
    run(async {
        let peer = Peer::tcp().await;
        let runtime = other_runtime();
        let mut connecting = to(&peer).into_future();
        {
            let _inside = runtime.enter();
            assert!(crate::client::polled(&mut connecting).is_pending());
        }
        let talk = peer.greeted().await.0;
        runtime.shutdown_background();
        let error = connecting.await.unwrap_err();
        assert!(matches!(error, ConnectError::Unreachable(_)), "{error:?}");
        talk.ends().await;
    });
}

#[test]
fn runtime_shutdown_while_reconnecting_ends_all() {
    run(async {
        let mut peer = Peer::tcp().await;
        let runtime = other_runtime();
        let connecting = runtime.spawn(to(&peer).into_future());
        let mut talk = peer.begins(leased(1)).await;
        let locks = connecting.await.unwrap().unwrap();
        let lock = held(&locks, "a", &mut talk).await;
        let waiting = begun(locks.request("b"));
        talk.hears(said(2, "b")).await;
        peer.goes_away();
        talk.breaks();
        runtime.shutdown_background();
        assert_eq!(waiting.await.unwrap_err(), RequestErrorKind::ClientEnded);
        assert_eq!(lock.lost().await, LossCause::ServiceGone);
    });
}
