//! Locks between the end of a service and their claim.

use std::time::Duration;

use navlocks::{LossCause, RequestErrorKind};
use navlocks_wire::{FaultCode, ToClient, ToService, Welcome};

use crate::client::{
    begun, claimed, connected, connected_by, greeting_again, held, polled, request_of, said, to,
};
use crate::peer::{Peer, lasting, leased, leased_for};
use crate::run;

/// Long enough for a busy machine to run the steps within it.
const LEASE_MS: u64 = 1600;
const LEASE: Duration = Duration::from_millis(LEASE_MS);

#[test]
fn service_that_shuts_down_leaves_locks_to_its_successor() {
    run(async {
        for (mut peer, welcome) in
            [(Peer::unix().await, lasting(7, 1)), (Peer::tcp().await, leased(7))]
        {
            let (locks, mut talk) = connected(&peer, welcome.clone()).await;
            let lock = held(&locks, "a", &mut talk).await; // 1
            let mut waiting = begun(locks.request("b")); // 2
            talk.hears(said(2, "b")).await;
            talk.fails(FaultCode::ShuttingDown, "until soon").await;
            // Messages after the last one are ignored.
            talk.grants(2, 2).await;
            peer.goes_away();
            talk.closes().await;
            let mut lost = Box::pin(lock.lost());
            assert!(polled(&mut lost).is_pending());
            let mut late = begun(locks.request("c")); // 3
            assert!(polled(&mut waiting).is_pending() && polled(&mut late).is_pending());
            peer.comes_back().await;
            let (mut talk, _) = peer.wants_claim(Welcome { epoch: 2, ..welcome }).await;
            let pending = [request_of(0, 2, "b"), request_of(0, 3, "c")];
            talk.hears_claim(&[&[claimed(1, "a", 1)], &pending[..]].concat()).await;
            talk.grants(2, 20).await;
            assert_eq!(waiting.await.unwrap().fencing_token().get(), 20);
            assert!(polled(&mut lost).is_pending());
            drop(lost);
            drop(lock);
            drop(late);
        }
    });
}

#[test]
fn successor_that_shuts_down_during_hello_is_dialled_again() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, lasting(7, 1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        talk.breaks();
        let mut talk = peer.greeted().await.0;
        talk.fails(FaultCode::ShuttingDown, "until soon").await;
        talk.ends().await;
        let (mut talk, _) = peer.wants_claim(lasting(7, 3)).await;
        talk.hears_claim(&[claimed(1, "a", 1)]).await;
        assert_eq!(lock.loss(), None);
    });
}

#[test]
fn lock_over_unix_socket_stays_in_doubt_while_unreachable() {
    run(async {
        let mut peer = Peer::unix().await;
        let connect = to(&peer).unreachable_after(Duration::from_millis(50));
        let (locks, mut talk) = connected_by(connect, &peer, lasting(7, 1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let waiting = begun(locks.request("b"));
        talk.hears(said(2, "b")).await;
        peer.goes_away();
        talk.breaks();
        assert_eq!(waiting.await.unwrap_err(), RequestErrorKind::Unreachable);
        assert_eq!(lock.loss(), None);
        assert_eq!(locks.lease_left(), None);
        peer.comes_back().await;
        let (mut talk, _) = peer.wants_claim(lasting(7, 2)).await;
        talk.hears_claim(&[claimed(1, "a", 1)]).await;
        assert_eq!(lock.release(), Ok(()));
    });
}

#[test]
fn lease_that_ends_in_doubt_is_loss_with_eighth_of_it_left() {
    run(async {
        let mut peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased_for(7, LEASE_MS)).await;
        let lock = held(&locks, "a", &mut talk).await; // 1
        let waiting = begun(locks.request("b")); // 2
        talk.hears(said(2, "b")).await;
        let left = locks.lease_left().unwrap();
        assert!(left > LEASE / 8 && left <= LEASE, "{left:?}");
        talk.fails(FaultCode::ShuttingDown, "until soon").await;
        peer.goes_away();
        talk.closes().await;
        assert_eq!(lock.loss(), None);
        assert_eq!(lock.lost().await, LossCause::LeaseLapsed);
        assert!(locks.lease_left().unwrap() <= LEASE / 8);
        // The next session begins with the pending request alone.
        peer.comes_back().await;
        let mut talk = peer.begins(leased(8)).await;
        talk.hears(said(2, "b")).await;
        talk.grants(2, 2).await;
        assert!(locks.lease_left().unwrap() > LEASE);
        drop(waiting.await.unwrap());
    });
}

#[test]
fn lease_that_ends_while_last_message_is_waited_for_is_loss_in_time() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased_for(7, 400)).await;
        let lock = held(&locks, "a", &mut talk).await;
        talk.fails(FaultCode::ShuttingDown, "until soon").await;
        // The peer does not close, so the client waits longer than the lease.
        assert_eq!(lock.lost().await, LossCause::LeaseLapsed);
        drop(talk);
    });
}

#[test]
fn lock_whose_lease_ended_between_hello_and_welcome_is_not_claimed() {
    run(async {
        let peer = Peer::tcp().await;
        let (_locks, lock, waiting, mut talk) =
            greeting_again(&peer, leased_for(7, LEASE_MS)).await;
        assert_eq!(lock.lost().await, LossCause::LeaseLapsed);
        let claim = Welcome { resumed: true, epoch: 1, ..leased(7) };
        talk.says(ToClient::Welcome(claim)).await;
        talk.hears_claim(&[request_of(0, 2, "b")]).await;
        drop(waiting);
    });
}

#[test]
fn client_disconnects_while_service_is_down() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("presence");
        let mut peer = Peer::unix().await;
        let welcome =
            Welcome { presence: Some(path.to_str().unwrap().to_owned()), ..lasting(7, 1) };
        let (locks, mut talk) = connected(&peer, welcome).await;
        talk.hears(ToService::Present).await;
        let lock = held(&locks, "a", &mut talk).await;
        peer.goes_away();
        talk.breaks();
        assert_eq!(lock.loss(), None);
        locks.disconnect().await;
        assert_eq!(lock.loss(), Some(LossCause::ClientEnded));
        // A successor finds that the client is gone although its process is not.
        std::os::unix::net::UnixStream::connect(&path).unwrap_err();
    });
}
