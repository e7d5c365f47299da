//! The client's side of a test.

use std::future::{Future, IntoFuture as _};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use navlocks::{Connect, ConnectError, Lock, Locks, Mode, Request, RequestFuture};
use navlocks_wire::{Names, Request as Said, ToService, Welcome};
use tokio::task::JoinHandle;

use crate::peer::{Peer, Talk};

/// Returns the options of a client of this peer.
pub(crate) fn to(peer: &Peer) -> Connect {
    Locks::connect(peer.url())
}

/// Connects in the background.
pub(crate) fn connecting(connect: Connect) -> JoinHandle<Result<Locks, ConnectError>> {
    tokio::spawn(connect.into_future())
}

/// Connects a client to this peer, which welcomes it.
pub(crate) async fn connected(peer: &Peer, welcome: Welcome) -> (Locks, Talk) {
    connected_by(to(peer), peer, welcome).await
}

pub(crate) async fn connected_by(connect: Connect, peer: &Peer, welcome: Welcome) -> (Locks, Talk) {
    let (locks, talk) = tokio::join!(connect.into_future(), peer.begins(welcome));
    (locks.expect("a connection"), talk)
}

/// Requests a lock that the peer grants, with the number of the request as its token.
pub(crate) async fn held(locks: &Locks, name: &str, talk: &mut Talk) -> Lock {
    let waiting = begun(locks.request(name));
    let Said { id, .. } = talk.hear_request().await;
    talk.grants(id, id).await;
    waiting.await.expect("a lock")
}

/// Connects a client that holds `a` and waits for `b` when its connection breaks. Returns them, and
/// the connection over which the client greets again.
pub(crate) async fn greeting_again(
    peer: &Peer,
    welcome: Welcome,
) -> (Locks, Lock, RequestFuture, Talk) {
    let (locks, mut talk) = connected(peer, welcome).await;
    let lock = held(&locks, "a", &mut talk).await;
    let waiting = begun(locks.request("b"));
    talk.hears(said(2, "b")).await;
    talk.breaks();
    let (talk, hello) = peer.greeted().await;
    assert!(hello.resume.is_some());
    (locks, lock, waiting, talk)
}

/// Sends a request; the next poll of the future may be on any task.
pub(crate) fn begun(request: Request) -> RequestFuture {
    let mut waiting = request.into_future();
    assert!(polled(&mut waiting).is_pending());
    waiting
}

/// Polls once, with a waker that wakes no task.
pub(crate) fn polled<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Returns the message of an exclusive request of client 0.
pub(crate) fn said(id: u64, name: &str) -> ToService {
    ToService::Request(request_of(0, id, name))
}

/// Returns the claim of a held request of client 0.
pub(crate) fn claimed(id: u64, name: &str, token: u64) -> Said {
    Said { token: Some(token), ..request_of(0, id, name) }
}

pub(crate) fn request_of(client: u64, id: u64, name: &str) -> Said {
    Said {
        id,
        client,
        names: Names(name.into()),
        mode: Mode::Exclusive,
        wait: navlocks_core::Wait::Queue,
        tag: None,
        traceparent: None,
        max_hold_ms: None,
        within: None,
        token: None,
        place: None,
        ms: None,
    }
}
