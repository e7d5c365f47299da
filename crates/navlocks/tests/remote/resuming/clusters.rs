//! Partitions of a cluster: a session of its own for each.

use navlocks::{Connection, Locks, QueryError, RequestErrorKind};
use navlocks_wire::{Open, ToService, Welcome};
use std::time::Duration;

use crate::client::{begun, connected, connected_by, held, request_of, to};
use crate::peer::{Peer, Talk, clustered};
use crate::{bounded, run};

/// The partition of this name, and its session.
async fn opened(locks: &Locks, name: &str, peer: &Peer, session: u32) -> (Locks, Talk) {
    let partition = locks.partition(name);
    let (mut talk, hello) = peer.welcomes(clustered(session, 1)).await;
    talk.settles().await;
    assert_eq!((hello.partition.as_str(), hello.resume), (name, None));
    (partition, talk)
}

#[test]
fn partition_of_a_cluster_is_a_session_of_its_own() {
    run(async {
        let peer = Peer::tcp().await;
        let connect = to(&peer).partition("a").lease(Duration::from_secs(9)).token("t");
        let (locks, mut talk) = connected_by(connect, &peer, clustered(7, 1)).await;
        let other = locks.partition("b");
        assert_eq!(other.connection(), Connection::Down);
        let waiting = begun(other.request("x"));
        let (mut second, hello) = peer.welcomes(clustered(8, 1)).await;
        assert_eq!((hello.partition.as_str(), hello.lease_ms), ("b", Some(9000)));
        assert_eq!(second.headers["authorization"], "Bearer t");
        assert_eq!(second.hear_request().await, request_of(0, 1, "x"));
        second.grants(1, 1).await;
        let lock = waiting.await.unwrap();
        assert_eq!(other.client_id().to_string(), "c8.0");
        assert_eq!(other.connection(), Connection::Up);
        // Nothing of it concerns the first session, and each end is its own.
        drop(held(&locks, "x", &mut talk).await);
        talk.hears(ToService::End(1)).await;
        drop((lock, other));
        second.hears(ToService::End(1)).await;
        second.hears(ToService::Close(0)).await;
        second.lets_leave().await;
        drop(held(&locks, "y", &mut talk).await);
        talk.hears(ToService::End(2)).await;
        drop(locks);
        talk.hears(ToService::Close(0)).await;
        talk.lets_leave().await;
    });
}

#[test]
fn clients_of_one_partition_share_its_session() {
    run(async {
        let peer = Peer::tcp().await;
        let connect = to(&peer).partition("a");
        let (locks, mut talk) = connected_by(connect, &peer, clustered(7, 1)).await;
        let open =
            |client, partition: &str| ToService::Open(Open { client, partition: partition.into() });
        let _clients = (locks.new_client(), locks.partition("a"));
        talk.hears(open(1, "a")).await;
        talk.hears(open(2, "a")).await;
        let (other, mut second) = opened(&locks, "b", &peer, 8).await;
        let _more = (locks.partition("b"), other.new_client(), other.partition("a"));
        second.hears(open(1, "b")).await;
        second.hears(open(2, "b")).await;
        talk.hears(open(3, "a")).await;
        // A client that ended has left no other partition behind.
        other.end_client();
        second.hears(ToService::Close(0)).await;
        let _late = other.new_client();
        second.hears(open(3, "b")).await;
    });
}

#[test]
fn partition_that_nobody_uses_is_forgotten() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, _talk) = connected(&peer, clustered(7, 1)).await;
        for session in [8, 9] {
            let (partition, mut talk) = opened(&locks, "b", &peer, session).await;
            drop(partition);
            talk.hears(ToService::Close(0)).await;
            talk.lets_leave().await;
        }
    });
}

#[test]
fn disconnect_ends_all_sessions_of_the_connection() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, talk) = connected(&peer, clustered(7, 1)).await;
        let (other, second) = opened(&locks, "b", &peer, 8).await;
        let left = tokio::spawn({
            let other = other.clone();
            async move { other.disconnect().await }
        });
        talk.lets_leave().await;
        second.lets_leave().await;
        left.await.unwrap();
        for locks in [&locks, &other, &locks.partition("c")] {
            assert_eq!(locks.connection(), Connection::Closed);
            let error = locks.request("x").await.unwrap_err();
            assert_eq!(*error.kind(), RequestErrorKind::ClientEnded);
        }
    });
}

#[test]
fn each_session_of_a_connection_follows_its_own_owner() {
    run(async {
        let (peer, owner) = (Peer::tcp().await, Peer::tcp().await);
        let (locks, mut talk) = connected(&peer, clustered(7, 5)).await;
        let other = locks.partition("b");
        peer.greeted().await.0.moves(Some(&owner)).await;
        // Epochs are those of a slot: a smaller one of another session is no earlier service.
        let (mut second, hello) = owner.welcomes(clustered(7, 2)).await;
        assert_eq!(hello.partition, "b");
        drop(held(&other, "x", &mut second).await);
        drop(held(&locks, "x", &mut talk).await);
        second.breaks();
        let (_second, _) = owner.resumes(clustered(7, 2)).await;
        talk.hears(ToService::End(1)).await;
        assert_eq!(locks.connection(), Connection::Up);
    });
}

#[test]
fn partition_of_one_service_is_a_client_of_the_same_session() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) =
            connected(&peer, Welcome { cluster: false, ..clustered(7, 1) }).await;
        let _partition = locks.partition("b");
        talk.hears(ToService::Open(Open { client: 1, partition: "b".into() })).await;
    });
}

#[test]
fn partition_outlives_no_runtime_and_says_so() {
    bounded(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (locks, _talk) = runtime.block_on(async {
            let peer = Peer::tcp().await;
            connected(&peer, clustered(7, 1)).await
        });
        // The driver of the partition is on the runtime of the connection, wherever it is opened.
        let partition = locks.partition("b");
        drop(runtime);
        assert_eq!(partition.connection(), Connection::Closed);
        let asked = navlocks::blocking::block_on(partition.query());
        assert_eq!(asked.unwrap_err(), QueryError::ClientEnded);
    });
}
