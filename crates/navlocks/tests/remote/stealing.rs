//! Locks that a client steals from itself: it knows before the service does.

use navlocks::{Loss, RequestErrorKind, RequestId};
use navlocks_core::Wait;
use navlocks_wire::{Cause, Fault, FaultCode, Lost, Refused, RequestKey, ToClient, ToService};

use crate::client::{begun, connected, held, polled, request_of, said};
use crate::peer::{Peer, leased, welcome};
use crate::run;

fn said_theft(id: u64, name: &str) -> ToService {
    ToService::Request(navlocks_wire::Request { wait: Wait::Steal, ..request_of(0, id, name) })
}

fn stolen_by(number: u64) -> Loss {
    Loss::Stolen { by: RequestId::foreign(1, number) }
}

#[test]
fn client_that_steals_from_itself_knows_the_loss_at_once() {
    run(async {
        for (peer, welcome) in [(Peer::unix().await, welcome(1)), (Peer::tcp().await, leased(1))] {
            let (locks, mut talk) = connected(&peer, welcome).await;
            let lock = held(&locks, "a", &mut talk).await;
            let second = held(&locks, "a", &mut talk).await;
            let mut lost = Box::pin(lock.lost());
            assert!(polled(&mut lost).is_pending());
            let thief = begun(locks.request("a").steal());
            // The peer has sent nothing since.
            assert_eq!(lock.loss(), Some(stolen_by(3)));
            assert_eq!(lost.as_mut().await, stolen_by(3));
            drop(lost);
            assert_eq!(lock.release(), Err(stolen_by(3)));
            talk.hears(said_theft(3, "a")).await;
            talk.hears(ToService::Release(1)).await;
            // The message of the service changes nothing.
            let cause = Cause::Stolen(RequestKey::new(1, 3));
            talk.says(ToClient::Lost(Lost { id: 1, cause })).await;
            talk.says(ToClient::Lost(Lost { id: 2, cause })).await;
            talk.grants(3, 9).await;
            let thief = thief.await.unwrap();
            assert_eq!((thief.loss(), second.loss()), (None, Some(stolen_by(3))));
            drop(second);
            talk.hears(ToService::Release(2)).await;
        }
    });
}

#[test]
fn theft_spares_other_names_and_other_clients_until_the_service_decides() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let other = locks.new_client();
        talk.hear().await;
        let elsewhere = held(&locks, "b", &mut talk).await;
        let others = held(&other, "a", &mut talk).await;
        let _thief = begun(locks.request(["a", "c"]).steal());
        assert_eq!((elsewhere.loss(), others.loss()), (None, None));
        let _queued = begun(locks.request("b"));
        assert_eq!(elsewhere.loss(), None);
    });
}

#[test]
fn grant_that_crosses_a_later_theft_of_the_same_client_is_a_loss() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let robbed = begun(locks.request("a"));
        let thief = begun(locks.request("a").steal());
        let later = begun(locks.request("a"));
        for message in [said(1, "a"), said_theft(2, "a"), said(3, "a")] {
            talk.hears(message).await;
        }
        talk.grants(1, 1).await;
        let RequestErrorKind::Stolen { by } = robbed.await.unwrap_err().into_kind() else {
            panic!("not stolen")
        };
        assert_eq!(by, RequestId::foreign(1, 2));
        talk.hears(ToService::Release(1)).await;
        talk.grants(2, 2).await;
        thief.await.unwrap().release().unwrap();
        talk.hears(ToService::Release(2)).await;
        talk.grants(3, 3).await;
        later.await.unwrap().release().unwrap();
    });
}

#[test]
fn refused_theft_leaves_no_lock_that_its_client_does_not_know() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let thief = begun(locks.request("a").steal());
        talk.hears(said_theft(2, "a")).await;
        let fault = Fault::new(FaultCode::Limit, "No.");
        talk.says(ToClient::Refused(Refused { id: 2, fault, cycle: None })).await;
        assert!(matches!(thief.await.unwrap_err().kind(), RequestErrorKind::Refused(_)));
        assert_eq!(lock.loss(), Some(stolen_by(2)));
        drop(lock);
        talk.hears(ToService::Release(1)).await;
        // A theft that failed robs no later grant.
        held(&locks, "a", &mut talk).await.release().unwrap();
    });
}
