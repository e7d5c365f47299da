//! A cluster: lists of addresses, and nodes that send the client to the owner of its locks.

use navlocks::{ConnectError, Connection, Locks, RequestErrorKind};
use navlocks_wire::{FaultCode, Pending, QueuePlace, Request, ToClient, ToService, Welcome};
use std::future::IntoFuture as _;
use std::time::Duration;
use tokio_tungstenite::tungstenite::http::StatusCode;

use crate::client::{begun, claimed, connected, connected_by, connecting, held, request_of, to};
use crate::peer::{Peer, clustered, welcome};
use crate::run;

/// A place in the queue of epoch 1.
const PLACE: QueuePlace = QueuePlace { epoch: 1, number: 40 };

/// A node that is down: no process listens there.
async fn dead() -> Peer {
    let mut peer = Peer::tcp().await;
    peer.goes_away();
    peer
}

fn list(peers: &[&Peer]) -> String {
    let urls: Vec<String> = peers.iter().map(|peer| peer.url()).collect();
    urls.join(",").replace(",ws://", ",")
}

#[test]
fn dead_addresses_of_a_list_are_passed_over() {
    run(async {
        // The first address to be dialled differs from client to client.
        for _ in 0..10 {
            let (first, peer, last) = (dead().await, Peer::tcp().await, dead().await);
            let connect = Locks::connect(list(&[&first, &peer, &last]));
            let (locks, mut talk) = connected_by(connect, &peer, clustered(7, 1)).await;
            let lock = held(&locks, "a", &mut talk).await;
            talk.breaks();
            let (mut talk, _) = peer.wants_claim(clustered(7, 2)).await;
            talk.hears_claim(&[claimed(1, "a", 1)]).await;
            assert_eq!(lock.loss(), None);
        }
    });
}

#[test]
fn list_without_a_living_node_fails_with_the_last_error() {
    run(async {
        let (first, last) = (dead().await, dead().await);
        let error = Locks::connect(list(&[&first, &last])).await.unwrap_err();
        assert!(matches!(error, ConnectError::Unreachable(_)), "{error:?}");
        // A refusal that stands is the same everywhere.
        let (first, last) = (Peer::tcp().await, Peer::tcp().await);
        let refused = connecting(Locks::connect(list(&[&first, &last])));
        tokio::select! {
            () = first.refuses(StatusCode::UNAUTHORIZED, "no token") => {}
            () = last.refuses(StatusCode::UNAUTHORIZED, "no token") => {}
        }
        let error = refused.await.unwrap().unwrap_err();
        assert!(matches!(error, ConnectError::Refused(_)), "{error:?}");
    });
}

#[test]
fn bad_list_is_refused_before_anything_is_dialled() {
    run(async {
        let bad = ["ws://a,,b", "ws://a,unix:/b", "unix:/a,unix:/b", "ws://a,wss://b", "a,ws://b"];
        for list in bad {
            let error = Locks::connect(list).await.unwrap_err();
            assert!(matches!(error, ConnectError::BadUrl(_)), "{error:?}");
            assert!(error.to_string().contains(list), "{error}");
        }
        let error = Locks::connect("ws://127.0.0.1:1,10.0.0.1:1").token("t").await.unwrap_err();
        assert!(matches!(&error, ConnectError::TokenInClear { host } if host == "10.0.0.1"));
    });
}

#[test]
fn node_sends_the_client_to_the_owner_with_the_same_hello() {
    run(async {
        let (node, owner) = (Peer::tcp().await, Peer::tcp().await);
        let connect = to(&node).partition("p").token("t").lease(Duration::from_secs(9));
        let locks = connecting(connect);
        let (mut talk, asked) = node.greeted().await;
        talk.moves(Some(&owner)).await;
        let (mut talk, hello) = owner.welcomes(clustered(7, 1)).await;
        assert_eq!((hello, asked.carry), (asked, false));
        assert_eq!(talk.headers["authorization"], "Bearer t");
        let locks = locks.await.unwrap().unwrap();
        drop(held(&locks, "a", &mut talk).await);
    });
}

#[test]
fn first_connection_waits_while_no_node_owns_the_locks() {
    run(async {
        let node = Peer::tcp().await;
        let locks = connecting(to(&node));
        for _ in 0..3 {
            node.greeted().await.0.moves(None).await;
        }
        let _talk = node.begins(clustered(7, 1)).await;
        assert_eq!(locks.await.unwrap().unwrap().connection(), Connection::Up);
    });
}

#[test]
fn lock_and_place_are_claimed_from_the_owner_that_a_planned_move_names() {
    run(async {
        let (node, owner) = (Peer::tcp().await, Peer::tcp().await);
        let (locks, mut talk) = connected(&node, clustered(7, 1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let pending = begun(locks.request("b"));
        talk.hear_request().await;
        talk.says(ToClient::Pending(Pending { id: 2, place: PLACE })).await;
        // The node leaves the connection open: it is not waited for.
        talk.moves(Some(&owner)).await;
        let (mut moved, resume) = owner.wants_claim(clustered(7, 2)).await;
        assert_eq!((resume.session, resume.epoch), (7, 1));
        assert_eq!((locks.connection(), lock.loss()), (Connection::Down, None));
        let with_place = Request { place: Some(PLACE), ..request_of(0, 2, "b") };
        moved.hears_claim(&[claimed(1, "a", 1), with_place]).await;
        assert_eq!((locks.connection(), lock.loss()), (Connection::Up, None));
        moved.grants(2, 20).await;
        assert_eq!(pending.await.unwrap().fencing_token().get(), 20);
        assert_eq!(lock.fencing_token().get(), 1);
        talk.ends().await;
    });
}

#[test]
fn lock_is_claimed_after_a_takeover_that_takes_its_time() {
    run(async {
        let (mut owner, node) = (Peer::tcp().await, Peer::tcp().await);
        let connect = to(&owner);
        let (locks, mut talk) = connected_by(connect, &owner, clustered(7, 1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        talk.moves(Some(&node)).await;
        let (mut talk, _) = node.wants_claim(clustered(7, 2)).await;
        talk.hears_claim(&[claimed(1, "a", 1)]).await;
        // The owner is killed; the other node knows no better, and cannot carry.
        owner.goes_away();
        talk.breaks();
        for _ in 0..3 {
            let (mut talk, hello) = node.greeted().await;
            assert!(!hello.carry);
            talk.moves(Some(&owner)).await;
            let (mut talk, hello) = node.greeted().await;
            assert!(hello.carry, "the owner is dead");
            talk.moves(Some(&owner)).await;
            node.greeted().await.0.moves(None).await;
        }
        assert_eq!((locks.connection(), lock.loss()), (Connection::Down, None));
        let (mut talk, _) = node.wants_claim(clustered(7, 3)).await;
        talk.hears_claim(&[claimed(1, "a", 1)]).await;
        assert_eq!(lock.loss(), None);
    });
}

#[test]
fn node_carries_for_a_client_that_cannot_reach_the_owner() {
    run(async {
        let (node, owner) = (Peer::tcp().await, dead().await);
        let locks = connecting(to(&node));
        node.greeted().await.0.moves(Some(&owner)).await;
        let (mut talk, hello) = node.welcomes(clustered(7, 1)).await;
        assert!(hello.carry);
        let locks = locks.await.unwrap().unwrap();
        let lock = held(&locks, "a", &mut talk).await;
        // It is remembered.
        talk.breaks();
        let (mut talk, hello) = node.greeted().await;
        assert!(!hello.carry, "the owner may be another one by now");
        talk.moves(Some(&owner)).await;
        let (mut talk, hello) = node.welcomes(Welcome { resumed: true, ..clustered(7, 1) }).await;
        assert!(hello.carry && hello.resume.is_some());
        talk.hears_claim(&[claimed(1, "a", 1)]).await;
        lock.release().unwrap();
        talk.hears(ToService::End(1)).await;
    });
}

#[test]
fn owner_that_opens_no_websocket_is_out_of_reach() {
    run(async {
        // A process that is stopped takes connections all the same.
        let (node, owner) = (Peer::tcp().await, Peer::tcp().await);
        let locks = connecting(to(&node).lease(Duration::from_millis(400)));
        node.greeted().await.0.moves(Some(&owner)).await;
        let (_talk, hello) = node.welcomes(clustered(7, 1)).await;
        assert!(hello.carry);
        locks.await.unwrap().unwrap();
        // One that refuses the way in, too.
        let locks = connecting(to(&node));
        node.greeted().await.0.moves(Some(&owner)).await;
        drop(owner.socket().await);
        owner.refuses(StatusCode::UNAUTHORIZED, "not here").await;
        let (_talk, hello) = node.welcomes(clustered(8, 1)).await;
        assert!(hello.carry);
        locks.await.unwrap().unwrap();
    });
}

#[test]
fn nodes_that_disagree_are_asked_until_they_agree() {
    run(async {
        let (one, other) = (Peer::tcp().await, Peer::tcp().await);
        let (locks, mut talk) = connected(&one, clustered(7, 1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        talk.moves(Some(&other)).await;
        for _ in 0..2 {
            other.greeted().await.0.moves(Some(&one)).await;
            one.greeted().await.0.moves(Some(&other)).await;
        }
        let (mut talk, _) = one.wants_claim(clustered(7, 2)).await;
        talk.hears_claim(&[claimed(1, "a", 1)]).await;
        assert_eq!(lock.loss(), None);
    });
}

#[test]
fn owner_that_does_not_know_the_session_begins_another() {
    run(async {
        let (node, owner) = (Peer::tcp().await, Peer::tcp().await);
        let (locks, mut talk) = connected(&node, clustered(7, 1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let pending = begun(locks.request("b"));
        talk.hear_request().await;
        talk.moves(Some(&owner)).await;
        let (mut talk, _) = owner.greeted().await;
        talk.fails(FaultCode::UnknownSession, "never heard of it").await;
        let mut talk = owner.begins(clustered(8, 2)).await;
        assert_eq!(lock.loss(), Some(navlocks::LossCause::ServiceGone));
        assert_eq!(talk.hear_request().await, request_of(0, 2, "b"));
        drop(pending);
    });
}

#[test]
fn session_without_secret_is_over_when_its_locks_move() {
    run(async {
        let (node, owner) = (Peer::tcp().await, Peer::tcp().await);
        let (locks, mut talk) = connected(&node, welcome(7)).await;
        let lock = held(&locks, "a", &mut talk).await;
        talk.moves(Some(&owner)).await;
        assert_eq!(lock.lost().await, navlocks::LossCause::ServiceGone);
    });
}

#[test]
fn requests_end_after_the_limit_while_no_node_owns_the_locks() {
    run(async {
        let node = Peer::tcp().await;
        let connect = to(&node).unreachable_after(Duration::from_millis(100));
        let (locks, talk) = connected_by(connect, &node, clustered(7, 1)).await;
        talk.breaks();
        let pending = tokio::spawn(locks.request("a").into_future());
        loop {
            tokio::select! {
                (mut talk, _) = node.greeted() => talk.moves(None).await,
                () = async { while !pending.is_finished() { tokio::task::yield_now().await } } => break,
            }
        }
        let error = pending.await.unwrap().unwrap_err();
        assert_eq!(*error.kind(), RequestErrorKind::Unreachable);
    });
}
