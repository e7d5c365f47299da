//! The first connection, its state, and watches that outlive the scope in which they were made.

mod handshake;
mod zero_rtt;
mod refusals;
mod bad_peers;

use std::future::IntoFuture as _;
use std::time::Duration;

use navlocks::{ConnectError, Connection, LossCause};
use navlocks_wire::{FaultCode, Over, ToClient, ToService};

use crate::client::{connected_by, connecting, held, polled, to};
use crate::peer::{Peer, leased, welcome};
use crate::run;

const SHORT: Duration = Duration::from_millis(50);

#[test]
fn connection_is_watched_from_its_loss_to_its_end() {
    run(async {
        let mut peer = Peer::tcp().await;
        let connect = to(&peer).unreachable_after(SHORT);
        let (locks, talk) = connected_by(connect, &peer, leased(1)).await;
        assert_eq!(locks.connection(), Connection::Up);
        let mut watch = locks.watch_connection();
        let (told, mut tells) = tokio::sync::mpsc::unbounded_channel();
        let watching = tokio::spawn(async move {
            while let Some(now) = watch.changed().await {
                told.send(now).expect("the test listens");
            }
        });
        peer.goes_away();
        talk.breaks();
        assert_eq!(tells.recv().await, Some(Connection::Down));
        assert_eq!(tells.recv().await, Some(Connection::Unreachable));
        assert_eq!(locks.connection(), Connection::Unreachable);
        peer.comes_back().await;
        let (talk, _) = peer.resumes(leased(1)).await;
        assert_eq!(tells.recv().await, Some(Connection::Up));
        // A watch that is not awaited meanwhile receives the present state, once.
        let mut late = locks.watch_connection();
        locks.disconnect().await;
        talk.sees_leave().await;
        assert_eq!(tells.recv().await, Some(Connection::Closed));
        watching.await.expect("it ends");
        assert_eq!(late.changed().await, Some(Connection::Closed));
        assert_eq!(late.changed().await, None);
    });
}

#[test]
fn connection_watch_ends_with_last_handle_and_keeps_none_alive() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected_by(to(&peer), &peer, leased(1)).await;
        let mut watch = locks.watch_connection();
        let watching = tokio::spawn(async move { watch.changed().await });
        tokio::task::yield_now().await;
        drop(locks);
        talk.hears(ToService::Close(0)).await;
        talk.sees_leave().await;
        assert_eq!(watching.await.expect("it ends"), None);
    });
}

#[test]
fn refusal_is_last_state() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, talk) = connected_by(to(&peer), &peer, leased(1)).await;
        let mut watch = locks.watch_connection();
        talk.breaks();
        let mut talk = peer.greeted().await.0;
        talk.fails(FaultCode::Unauthorized, "Not you.").await;
        let mut last = None;
        while let Some(now) = watch.changed().await {
            last = Some(now);
        }
        assert!(matches!(&last, Some(Connection::Refused(_))), "{last:?}");
        assert_eq!(last, Some(locks.connection()));
    });
}

#[test]
fn loss_is_watched_by_task_of_its_own() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected_by(to(&peer), &peer, leased(1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let kept = held(&locks, "b", &mut talk).await;
        let [first, second] = [&lock, &kept].map(|lock| tokio::spawn(lock.watch_loss()));
        tokio::task::yield_now().await;
        for id in [1, 2] {
            talk.says(ToClient::Over(Over::lost(id, navlocks_wire::LossCause::ForceReleased)))
                .await;
        }
        assert_eq!(first.await.expect("it ends"), Some(LossCause::ForceReleased));
        assert_eq!(second.await.expect("it ends"), Some(LossCause::ForceReleased));
        // A watch that is made later knows the loss, and none does after the guard.
        assert_eq!(lock.watch_loss().await, Some(LossCause::ForceReleased));
        let (watch, clone) = (lock.watch_loss(), lock.watch_loss().clone());
        drop(lock);
        assert_eq!((watch.await, clone.await), (None, None));
    });
}

#[test]
fn watch_of_released_lock_ends_and_keeps_no_connection() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected_by(to(&peer), &peer, leased(1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let (mut early, late) = (lock.watch_loss(), lock.watch_loss());
        assert!(polled(&mut early).is_pending());
        lock.release().expect("it is held");
        talk.hears(ToService::End(1)).await;
        drop(locks);
        talk.hears(ToService::Close(0)).await;
        talk.sees_leave().await;
        assert_eq!((early.await, late.await), (None, None));
    });
}

#[test]
fn first_connection_is_tried_again_until_service_is_there() {
    run(async {
        let mut peer = Peer::unix().await;
        peer.goes_away();
        let error = to(&peer).await.expect_err("there is no service");
        assert!(matches!(error, ConnectError::Unreachable(_)), "{error}");
        let connecting = connecting(to(&peer).retry());
        peer.comes_back().await;
        let mut talk = peer.greeted().await.0;
        talk.fails(FaultCode::ShuttingDown, "Come back later.").await;
        drop(talk);
        let _talk = peer.begins(welcome(1)).await;
        let locks = connecting.await.expect("it ends").expect("a connection");
        assert_eq!(locks.connection(), Connection::Up);
    });
}

#[test]
fn first_connection_that_is_refused_is_not_tried_again() {
    run(async {
        let peer = Peer::unix().await;
        let connecting = connecting(to(&peer).retry());
        let mut talk = peer.greeted().await.0;
        talk.fails(FaultCode::Unauthorized, "Not you.").await;
        let error = connecting.await.expect("it ends").expect_err("it is refused");
        assert!(matches!(error, ConnectError::Refused(_)), "{error}");
    });
}

#[test]
fn first_connection_times_out_with_the_error_of_the_last_attempt() {
    run(async {
        let mut peer = Peer::unix().await;
        let silent = to(&peer).timeout(SHORT).into_future();
        let error = silent.await.expect_err("no answer");
        assert!(matches!(error, ConnectError::TimedOut { last: None, .. }), "{error}");
        peer.goes_away();
        let error = to(&peer).retry().timeout(SHORT).await.expect_err("no service");
        assert!(matches!(error, ConnectError::TimedOut { last: Some(_), .. }), "{error}");
        let text = error.to_string();
        assert!(text.starts_with("no connection was made within 50ms: the lock service"), "{text}");
    });
}
