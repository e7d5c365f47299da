//! Requests that travel with the greeting.

use std::time::Duration;

use navlocks::{Connect, ConnectError, Locks, RequestFuture};
use navlocks_wire::{FaultCode, ToClient, ToService};
use tokio::io::AsyncReadExt as _;
use tokio::task::JoinHandle;

use crate::client::{begun, to};
use crate::peer::{Peer, Talk, clustered, leased};
use crate::run;

/// Opens a session, requests a lock, and lets the greeting go on in the background.
async fn opened(connect: Connect) -> (Locks, RequestFuture, JoinHandle<Result<(), ConnectError>>) {
    let (locks, greeting) = connect.open().await.expect("a socket");
    let waiting = begun(locks.request("a"));
    (locks, waiting, tokio::spawn(greeting))
}

/// Grants a request, whose client then releases the lock.
async fn grants_and_hears_release(talk: &mut Talk, id: u64, waiting: RequestFuture) {
    talk.grants(id, 1).await;
    drop(waiting.await.expect("a lock"));
    talk.hears(ToService::End(id)).await;
}

#[test]
fn early_request_is_sent_once_and_before_the_welcome() {
    run(async {
        let peer = Peer::tcp().await;
        let (_locks, waiting, greeting) = opened(to(&peer)).await;
        let (mut talk, hello) = peer.greeted().await;
        assert_eq!(hello.resume, None);
        let request = talk.hear_request().await;
        talk.says(ToClient::Welcome(leased(7))).await;
        talk.grants(request.id, 1).await;
        greeting.await.unwrap().unwrap();
        let lock = waiting.await.unwrap();
        assert_eq!(lock.locks().client_id().to_string(), "c7.0");
        drop(lock);
        talk.hears(ToService::End(request.id)).await;
    });
}

#[test]
fn early_steal_is_granted() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, greeting) = to(&peer).open().await.expect("a socket");
        let thief = begun(locks.request("a").steal());
        let greeting = tokio::spawn(greeting);
        let mut talk = peer.greeted().await.0;
        let request = talk.hear_request().await;
        talk.says(ToClient::Welcome(leased(7))).await;
        greeting.await.unwrap().unwrap();
        grants_and_hears_release(&mut talk, request.id, thief).await;
    });
}

#[test]
fn early_request_of_no_time_that_overtakes_gets_a_free_lock() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, greeting) = to(&peer).open().await.expect("a socket");
        let trying = begun(locks.request("a").shared().overtake().timeout(Duration::ZERO));
        let greeting = tokio::spawn(greeting);
        let mut talk = peer.greeted().await.0;
        let request = talk.hear_request().await;
        talk.says(ToClient::Welcome(leased(7))).await;
        greeting.await.unwrap().unwrap();
        talk.grants(request.id, 1).await;
        assert!(trying.await.is_ok());
    });
}

#[test]
fn early_request_that_is_dropped_before_the_welcome_is_aborted_after_it() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, waiting, greeting) = opened(to(&peer)).await;
        let (mut talk, _) = peer.greeted().await;
        let request = talk.hear_request().await;
        drop(waiting);
        talk.says(ToClient::Welcome(leased(7))).await;
        greeting.await.unwrap().unwrap();
        talk.hears(ToService::End(request.id)).await;
        drop(locks);
        talk.hears(ToService::Close(0)).await;
        talk.sees_leave().await;
    });
}

#[test]
fn early_requests_leave_with_the_handshake_over_a_unix_socket() {
    run(async {
        let peer = Peer::unix().await;
        let (_locks, _waiting, greeting) = opened(to(&peer)).await;
        let mut socket = peer.socket().await;
        let mut first = vec![0; 4096];
        let length = socket.read(&mut first).await.unwrap();
        let head = first[..length].windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
        // Two text frames, masked: the hello and the request.
        let second = head + 2 + 4 + usize::from(first[head + 1] & 0x7f);
        assert_eq!((first[head], first[second]), (0x81, 0x81));
        assert_eq!(second + 2 + 4 + usize::from(first[second + 1] & 0x7f), length);
        drop(socket);
        let error = greeting.await.unwrap().unwrap_err();
        assert!(matches!(error, ConnectError::Unreachable(_) | ConnectError::Handshake(_)));
    });
}

#[test]
fn greeting_fails_as_a_connection_does() {
    run(async {
        let mut peer = Peer::tcp().await;
        let (_locks, greeting) = to(&peer).open().await.unwrap();
        let greeting = tokio::spawn(greeting);
        let (mut talk, _) = peer.greeted().await;
        let fault = navlocks_wire::Fault::new(FaultCode::Limit, "full");
        talk.says(ToClient::Error(fault)).await;
        let error = greeting.await.unwrap().unwrap_err();
        assert!(matches!(error, ConnectError::Refused(fault) if fault.code == FaultCode::Limit));
        peer.goes_away();
        let error = to(&peer).open().await.unwrap_err();
        assert!(matches!(error, ConnectError::Unreachable(_)), "{error}");
    });
}

#[test]
fn dropped_greeting_ends_the_connection() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, greeting) = to(&peer).open().await.unwrap();
        let mut socket = peer.socket().await;
        drop(greeting);
        assert_eq!(socket.read(&mut [0; 16]).await.unwrap(), 0, "nothing is sent");
        assert!(locks.request("a").await.is_err());
    });
}

#[test]
fn early_request_follows_moved_to_the_owner_once() {
    run(async {
        let (node, owner) = (Peer::tcp().await, Peer::tcp().await);
        let (_locks, waiting, greeting) = opened(to(&node)).await;
        let (mut talk, _) = node.greeted().await;
        let early = talk.hear_request().await;
        talk.moves(Some(&owner)).await;
        let (mut talk, hello) = owner.greeted().await;
        assert_eq!((hello.resume, hello.carry), (None, false));
        // The request follows the welcome, so the answer to a ping comes before it.
        talk.settles().await;
        talk.says(ToClient::Welcome(clustered(7, 1))).await;
        assert_eq!(talk.hear_request().await, early);
        greeting.await.unwrap().unwrap();
        grants_and_hears_release(&mut talk, early.id, waiting).await;
    });
}

#[test]
fn early_request_over_a_unix_socket_is_sent_again_to_the_node_that_carries() {
    run(async {
        let (node, owner) = (Peer::unix().await, Peer::tcp().await);
        let (_locks, waiting, greeting) = opened(to(&node)).await;
        let (mut talk, _) = node.greeted_early().await;
        let early = talk.hear_request().await;
        talk.moves(Some(&owner)).await;
        let (mut talk, hello) = node.welcomes(clustered(7, 1)).await;
        assert!(hello.carry);
        greeting.await.unwrap().unwrap();
        assert_eq!(talk.hear_request().await, early);
        grants_and_hears_release(&mut talk, early.id, waiting).await;
    });
}

#[test]
fn early_request_that_is_dropped_while_the_session_moves_is_never_sent_again() {
    run(async {
        let (node, owner) = (Peer::tcp().await, Peer::tcp().await);
        let (locks, waiting, greeting) = opened(to(&node)).await;
        let (mut talk, _) = node.greeted().await;
        talk.hear_request().await;
        drop(waiting);
        talk.moves(Some(&owner)).await;
        let (mut talk, _) = owner.welcomes(clustered(7, 1)).await;
        greeting.await.unwrap().unwrap();
        drop(locks);
        talk.hears(ToService::Close(0)).await;
        talk.lets_leave().await;
    });
}

#[test]
fn request_to_a_list_of_nodes_waits_for_the_welcome() {
    run(async {
        let mut dead = Peer::tcp().await;
        dead.goes_away();
        let node = Peer::tcp().await;
        // The first address to be dialled differs from client to client.
        for _ in 0..10 {
            let list = format!("{},{}", dead.url(), node.url());
            let (locks, waiting, greeting) = opened(Locks::connect(list)).await;
            let (mut talk, _) = node.greeted().await;
            talk.settles().await;
            talk.says(ToClient::Welcome(clustered(7, 1))).await;
            greeting.await.unwrap().unwrap();
            let request = talk.hear_request().await;
            grants_and_hears_release(&mut talk, request.id, waiting).await;
            tokio::join!(locks.disconnect(), talk.lets_leave());
        }
    });
}
