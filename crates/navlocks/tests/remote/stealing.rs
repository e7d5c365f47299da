//! Steals, also from oneself: the service decides, and a steal that fails changes nothing.

use std::time::Duration;

use navlocks::{Loss, RequestErrorKind, RequestId};
use navlocks_core::Wait;
use navlocks_wire::{Cause, Fault, FaultCode, Lost, Refused, RequestKey, ToClient, ToService};

use crate::client::{begun, connected, connected_by, held, request_of, said, to};
use crate::peer::{Peer, lasting, leased, welcome};
use crate::run;

fn said_theft(id: u64, name: &str) -> ToService {
    ToService::Request(navlocks_wire::Request { wait: Wait::Steal, ..request_of(0, id, name) })
}

fn stolen_by(number: u64) -> Loss {
    Loss::Stolen { by: RequestId::foreign(1, number) }
}

#[test]
fn client_that_steals_from_itself_holds_until_the_service_decides() {
    run(async {
        for (peer, welcome) in [(Peer::unix().await, welcome(1)), (Peer::tcp().await, leased(1))] {
            let (locks, mut talk) = connected(&peer, welcome).await;
            let lock = held(&locks, "a", &mut talk).await;
            let second = held(&locks, "a", &mut talk).await;
            let thief = begun(locks.request("a").steal());
            assert_eq!((lock.loss(), second.loss()), (None, None));
            // The service receives the steal before this release.
            assert_eq!(lock.release(), Err(stolen_by(3)));
            talk.hears(said_theft(3, "a")).await;
            talk.hears(ToService::Release(1)).await;
            let cause = Cause::Stolen(RequestKey::new(1, 3));
            talk.says(ToClient::Lost(Lost { id: 1, cause })).await;
            talk.says(ToClient::Lost(Lost { id: 2, cause })).await;
            assert_eq!(second.lost().await, stolen_by(3));
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
fn grant_that_crosses_a_later_theft_of_the_same_client_is_lost_afterwards() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let robbed = begun(locks.request("a"));
        let thief = begun(locks.request("a").steal());
        for message in [said(1, "a"), said_theft(2, "a")] {
            talk.hears(message).await;
        }
        talk.grants(1, 1).await;
        let robbed = robbed.await.unwrap();
        let cause = Cause::Stolen(RequestKey::new(1, 2));
        talk.says(ToClient::Lost(Lost { id: 1, cause })).await;
        assert_eq!(robbed.lost().await, stolen_by(2));
        talk.grants(2, 2).await;
        thief.await.unwrap().release().unwrap();
    });
}

#[test]
fn refused_theft_changes_nothing() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let thief = begun(locks.request("a").steal());
        talk.hears(said_theft(2, "a")).await;
        let fault = Fault::new(FaultCode::Limit, "No.");
        talk.says(ToClient::Refused(Refused { id: 2, fault, cycle: None })).await;
        assert!(matches!(thief.await.unwrap_err().kind(), RequestErrorKind::Refused(_)));
        assert_eq!((lock.loss(), lock.release()), (None, Ok(())));
        talk.hears(ToService::Release(1)).await;
    });
}

#[test]
fn theft_that_fails_while_the_service_is_down_changes_nothing() {
    run(async {
        let mut peer = Peer::unix().await;
        let connect = to(&peer).patience(Duration::from_millis(50));
        let (locks, mut talk) = connected_by(connect, &peer, lasting(1, 1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        peer.goes_away();
        talk.breaks();
        let theft = locks.request("a").steal().await;
        assert_eq!(theft.unwrap_err(), RequestErrorKind::Unreachable);
        peer.comes_back().await;
        let (mut talk, resume) = peer.resumes(lasting(1, 1)).await;
        assert_eq!(resume.alive, [1]);
        talk.settles().await;
        assert_eq!((lock.loss(), lock.release()), (None, Ok(())));
        talk.hears(ToService::Release(1)).await;
    });
}

#[test]
fn theft_without_an_answer_is_not_repeated_in_another_session() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let sent = begun(locks.request("a").steal());
        let queued = begun(locks.request("b"));
        talk.hears(said_theft(1, "a")).await;
        talk.hears(said(2, "b")).await;
        // A session without a secret ends with its connection.
        talk.breaks();
        assert_eq!(sent.await.unwrap_err(), RequestErrorKind::Unreachable);
        let unsent = begun(locks.request("c").steal());
        let mut talk = peer.begins(welcome(2)).await;
        talk.hears(said(2, "b")).await;
        talk.hears(said_theft(3, "c")).await;
        drop((queued, unsent));
    });
}
