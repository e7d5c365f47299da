//! A service that is out of reach.

use std::time::Duration;

use navlocks::{Locks, LossCause, QueryError, RequestErrorKind};
use navlocks_wire::{Answer, Reply, ToClient, ToService};
use tokio::io::AsyncReadExt as _;
use tokio::task::JoinHandle;

use crate::client::{begun, connected_by, held, polled, said, to};
use crate::peer::{Peer, Pings, leased, welcome};
use crate::run;

const SHORT: Duration = Duration::from_millis(50);

fn asking(locks: &Locks) -> JoinHandle<Result<Vec<navlocks::deadlock::Cycle>, QueryError>> {
    let locks = locks.clone();
    tokio::spawn(async move { locks.deadlocks().await })
}

#[test]
fn pending_requests_fail_fast_while_service_is_down_and_recover() {
    run(async {
        let mut peer = Peer::unix().await;
        let (locks, mut talk) =
            connected_by(to(&peer).unreachable_after(SHORT), &peer, welcome(1)).await;
        let waiting = begun(locks.request("a"));
        talk.hears(said(1, "a")).await;
        let question = asking(&locks);
        talk.hear().await;
        peer.goes_away();
        talk.breaks();
        assert_eq!(waiting.await.unwrap_err(), RequestErrorKind::Unreachable);
        assert_eq!(question.await.unwrap().unwrap_err(), QueryError::Unreachable);
        assert!(polled(&mut locks.request("b").into_future()).is_ready());
        let Err(error) = locks.request("b").await else { panic!("there is no service") };
        assert_eq!(error.dom_exception_name(), "NetworkError");
        assert!(polled(&mut Box::pin(locks.query())).is_ready());

        peer.comes_back().await;
        let mut talk = peer.begins(welcome(2)).await;
        talk.settles().await;
        let question = asking(&locks);
        talk.hear().await;
        // No message of a failed request is sent.
        let waiting = begun(locks.request("c"));
        assert_eq!(talk.hear_request().await.names.0.to_string(), "c");
        talk.grants(2, 2).await;
        drop(waiting.await.unwrap());
        let reply = Reply::Waits(navlocks_wire::Waits::default());
        talk.says(ToClient::Answer(Answer { id: 3, reply })).await;
        question.await.unwrap().unwrap();
    });
}

#[test]
fn lock_outlives_unreachable_service_as_long_as_its_lease() {
    run(async {
        let mut peer = Peer::tcp().await;
        let (locks, mut talk) =
            connected_by(to(&peer).unreachable_after(SHORT), &peer, leased(7)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let waiting = begun(locks.request("b"));
        talk.hears(said(2, "b")).await;
        peer.goes_away();
        talk.breaks();
        assert_eq!(waiting.await.unwrap_err(), RequestErrorKind::Unreachable);
        assert_eq!(lock.loss(), None);
        peer.comes_back().await;
        let (_talk, resume) = peer.resumes(leased(7)).await;
        assert_eq!(resume.alive, [1], "what failed is not wanted any more");
        assert_eq!(lock.loss(), None);
    });
}

#[test]
fn limit_passes_during_an_attempt() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) =
            connected_by(to(&peer).unreachable_after(SHORT), &peer, welcome(1)).await;
        let waiting = begun(locks.request("a"));
        talk.hears(said(1, "a")).await;
        talk.breaks();
        let mut silent = peer.socket().await;
        crate::peer::read_head(&mut *silent).await;
        assert_eq!(waiting.await.unwrap_err(), RequestErrorKind::Unreachable);
        assert!(polled(&mut Box::pin(silent.read_u8())).is_pending(), "the attempt was given up");
        assert!(polled(&mut locks.request("b").into_future()).is_ready());
    });
}

#[test]
fn request_without_limit_waits() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) =
            connected_by(to(&peer).unreachable_after(None), &peer, welcome(1)).await;
        let mut waiting = begun(locks.request("a"));
        talk.hears(said(1, "a")).await;
        let question = asking(&locks);
        talk.hear().await;
        talk.breaks();
        for _ in 0..5 {
            drop(peer.socket().await);
            assert!(polled(&mut waiting).is_pending());
            assert!(!question.is_finished());
        }
        let mut talk = peer.begins(welcome(2)).await;
        talk.hears(said(1, "a")).await;
        talk.grants(1, 1).await;
        drop(waiting.await.unwrap());
    });
}

#[test]
fn request_whose_time_is_over_without_a_service_tells_that() {
    run(async {
        let mut peer = Peer::unix().await;
        let (locks, mut talk) =
            connected_by(to(&peer).unreachable_after(None), &peer, welcome(1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        peer.goes_away();
        talk.breaks();
        assert_eq!(lock.lost().await, LossCause::ServiceGone);
        let after = Duration::from_millis(20);
        let error = locks.request("a").timeout(after).await.unwrap_err();
        assert_eq!(error, RequestErrorKind::Unreachable);
        assert_eq!(error.dom_exception_name(), "NetworkError");
    });
}

/// The connection is up, and nothing arrives over it.
#[test]
fn silent_service_fails_pending_requests_within_limit_and_keeps_locks() {
    run(async {
        let peer = Peer::unix().await;
        let connect = to(&peer).answer_timeout(SHORT);
        let (locks, mut talk) = connected_by(connect, &peer, welcome(1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        talk.pings = Pings::Ignored;
        let waiting = begun(locks.request("b"));
        let question = asking(&locks);
        let tried = locks.request("c").if_available().await;
        assert_eq!(tried.unwrap_err(), RequestErrorKind::Unreachable);
        assert_eq!(waiting.await.unwrap_err(), RequestErrorKind::Unreachable);
        assert_eq!(question.await.unwrap().unwrap_err(), QueryError::Unreachable);
        assert_eq!(lock.loss(), None);
        // The service continues, and receives that the client wants nothing of it any more.
        talk.pings = Pings::Answered;
        talk.hears(said(2, "b")).await;
        talk.hear().await;
        talk.hear().await;
        let mut aborted = [talk.hear().await, talk.hear().await];
        aborted.sort_by_key(|abort| format!("{abort:?}"));
        assert_eq!(aborted, [ToService::End(2), ToService::End(3)]);
        drop(held(&locks, "d", &mut talk).await);
    });
}

#[test]
fn request_in_queue_waits_as_long_as_pings_are_answered() {
    run(async {
        let peer = Peer::unix().await;
        let connect = to(&peer).answer_timeout(SHORT);
        let (locks, mut talk) = connected_by(connect, &peer, welcome(1)).await;
        talk.pings = Pings::Heard;
        let waiting = begun(locks.request("a"));
        talk.hears(said(1, "a")).await;
        for _ in 0..4 {
            talk.hears(ToService::Ping(0)).await;
            talk.says(ToClient::Pong(0)).await;
        }
        talk.grants(1, 1).await;
        drop(waiting.await.unwrap());
    });
}
