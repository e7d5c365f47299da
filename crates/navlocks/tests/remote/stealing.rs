//! Steals, also from oneself: the service decides, and a steal that fails changes nothing.

use navlocks_core::Wait;
use navlocks_wire::{Over, RequestKey, ToClient, ToService};

use crate::client::{begun, connected, held, request_of, said};
use crate::peer::{Peer, welcome};
use crate::run;

fn said_theft(id: u64, name: &str) -> ToService {
    ToService::Request(navlocks_wire::Request { wait: Wait::Steal, ..request_of(0, id, name) })
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
fn grant_that_crosses_a_later_theft_of_the_same_client_waits_for_its_outcome() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let robbed = begun(locks.request("a"));
        let thief = begun(locks.request("a").steal());
        for message in [said(1, "a"), said_theft(2, "a")] {
            talk.hears(message).await;
        }
        talk.grants(1, 1).await;
        let cause = navlocks_wire::LossCause::Stolen(RequestKey::new(1, 2));
        talk.says(ToClient::Over(Over::lost(1, cause))).await;
        let error = robbed.await.unwrap_err();
        assert_eq!(error.dom_exception_name(), "AbortError");
        assert!(error.to_string().contains("stole the lock"), "{error}");
        talk.hears(ToService::End(1)).await;
        talk.grants(2, 2).await;
        thief.await.unwrap().release().unwrap();
    });
}
