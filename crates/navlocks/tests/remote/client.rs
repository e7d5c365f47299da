//! The client's side of a test, in few words.

use std::future::{Future, IntoFuture as _};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use navlocks::{Acquire, Connect, ConnectError, Lock, Locks, Mode, Request};
use navlocks_wire::{Names, Request as Said, ToService, Welcome};
use tokio::task::JoinHandle;

use crate::peer::{Peer, Talk};

/// A client of this peer.
pub(crate) fn to(peer: &Peer) -> Connect {
    Locks::connect(peer.url())
}

/// Connects in the background.
pub(crate) fn connecting(connect: Connect) -> JoinHandle<Result<Locks, ConnectError>> {
    tokio::spawn(connect.into_future())
}

/// A client of this peer, welcomed.
pub(crate) async fn connected(peer: &Peer, welcome: Welcome) -> (Locks, Talk) {
    connected_by(to(peer), peer, welcome).await
}

pub(crate) async fn connected_by(connect: Connect, peer: &Peer, welcome: Welcome) -> (Locks, Talk) {
    let (locks, talk) = tokio::join!(connect.into_future(), peer.begins(welcome));
    (locks.expect("a connection"), talk)
}

/// Gets a lock that the peer grants, with the number of the request as its token.
pub(crate) async fn held(locks: &Locks, name: &str, talk: &mut Talk) -> Lock {
    let waiting = begun(locks.request(name));
    let Said { id, .. } = talk.hear_request().await;
    talk.grants(id, id).await;
    waiting.await.expect("a lock")
}

/// Makes a request, for whoever polls the future next.
pub(crate) fn begun(request: Request) -> Acquire {
    let mut waiting = request.into_future();
    assert!(polled(&mut waiting).is_pending());
    waiting
}

/// Polls once, as a task that nobody needs to wake.
pub(crate) fn polled<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// An exclusive request of client 0, as it is said.
pub(crate) fn said(id: u64, name: &str) -> ToService {
    ToService::Request(request_of(0, id, name))
}

/// A held request of client 0, as it is claimed.
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
        token: None,
        place: None,
    }
}
