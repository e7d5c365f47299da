//! A connection that breaks, and a session that is resumed over the next one.

mod claiming;
mod ends_before_claims;
mod restarting;
mod clusters;
mod moving;
mod unreachable;

use navlocks::{LossCause, RequestErrorKind};
use navlocks_wire::{Open, Over, RequestKey, ToClient, ToService};

use crate::client::{begun, connected, held, polled, said};
use crate::peer::{Peer, leased, leased_for};
use crate::run;

fn open(client: u64, partition: &str) -> Open {
    Open { client, partition: partition.into() }
}

#[test]
fn claim_has_all_clients_and_live_requests() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(7)).await;
        let second = locks.partition("p");
        let third = locks.new_client();
        let kept = held_after_opens(&locks, &mut talk).await; // 1
        let released = held(&locks, "b", &mut talk).await; // 2
        let mut unheard = begun(locks.request("c")); // 3: granted, and not polled
        let aborted = begun(locks.request("d")); // 4
        let pending = begun(second.request("e")); // 5
        let unavailable = begun(locks.request("f")); // 6: its answer gets lost
        for _ in 3..=6 {
            talk.hear_request().await;
        }
        talk.grants(3, 3).await;
        talk.settles().await;
        talk.breaks();
        // Dropped while there is no connection.
        drop((released, aborted, third));
        assert_eq!(kept.loss(), None);

        let (mut talk, resume) = peer.resumes(leased(7)).await;
        assert_eq!(resume.session, 7);
        assert_eq!(resume.secret, "secret of 7");
        assert_eq!(resume.clients, [open(0, ""), open(1, "p")]);
        assert_eq!(resume.alive, [1, 3, 5, 6]);
        let tokens: Vec<_> = resume.requests.iter().map(|request| request.token).collect();
        assert_eq!(tokens, [Some(1), Some(3), None, None]);
        talk.grants(5, 50).await;
        assert_eq!(pending.await.unwrap().fencing_token().get(), 50);
        talk.hears(ToService::End(5)).await;
        assert_eq!(kept.loss(), None);
        assert!(polled(&mut unheard).is_ready(), "it was granted before");
        drop(unheard);
        talk.hears(ToService::End(3)).await;
        drop((kept, unavailable));
        talk.hears(ToService::End(1)).await;
        talk.hears(ToService::End(6)).await;
    });
}

async fn held_after_opens(locks: &navlocks::Locks, talk: &mut crate::peer::Talk) -> navlocks::Lock {
    talk.hears(ToService::Open(open(1, "p"))).await;
    talk.hears(ToService::Open(open(2, ""))).await;
    held(locks, "a", talk).await
}

#[test]
fn session_resumes_when_connection_is_silent_for_half_of_its_lease() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut silent) = connected(&peer, leased_for(7, 4000)).await;
        let lock = held(&locks, "a", &mut silent).await;
        // The network swallows all frames of the old connection, which stays open.
        let (mut talk, resume) = peer.resumes(leased_for(7, 4000)).await;
        assert_eq!((resume.session, resume.alive), (7, vec![1]));
        assert_eq!(lock.loss(), None);
        let again = held(&locks, "b", &mut talk).await;
        assert_eq!((lock.loss(), again.loss()), (None, None));
        drop(silent);
    });
}

#[test]
fn locks_stay_valid_and_requests_keep_their_place_through_many_breaks() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(7)).await;
        let id = locks.client_id();
        let lock = held(&locks, "a", &mut talk).await;
        let waiting = begun(locks.request("b"));
        talk.hears(said(2, "b")).await;
        for _ in 0..3 {
            talk.breaks();
            let resume;
            (talk, resume) = peer.resumes(leased(7)).await;
            assert_eq!(resume.alive, [1, 2]);
            assert_eq!(lock.loss(), None);
            assert_eq!(locks.client_id(), id);
        }
        talk.grants(2, 2).await;
        drop(waiting.await.unwrap());
    });
}

#[test]
fn claim_of_any_length_is_sent_in_pieces() {
    const REQUESTS: u64 = 100_000;
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(7)).await;
        let request = |id: u64| begun(locks.request(id.to_string().as_str()));
        let waiting: Vec<_> = (1..=REQUESTS).map(request).collect();
        for id in 1..=REQUESTS {
            assert_eq!(talk.hear_request().await.id, id);
        }
        for id in 1..=REQUESTS {
            talk.grants(id, id).await;
        }
        talk.settles().await;
        talk.breaks();
        let (_talk, claim) = peer.resumes(leased(7)).await;
        assert!(claim.alive.into_iter().eq(1..=REQUESTS));
        assert!(claim.requests.iter().all(|request| request.token == Some(request.id)));
        drop(waiting);
    });
}

#[test]
fn close_by_service_breaks_connection_alone() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(7)).await;
        let lock = held(&locks, "a", &mut talk).await;
        talk.closes().await;
        let (mut talk, resume) = peer.resumes(leased(7)).await;
        talk.settles().await;
        assert_eq!(resume.alive, [1]);
        assert_eq!(lock.loss(), None);
        drop(lock);
        talk.hears(ToService::End(1)).await;
    });
}

#[test]
fn loss_not_received_before_the_break_is_received_after_it() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(7)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let unheard = begun(locks.request("b"));
        let pending = begun(locks.request("c"));
        talk.hear_request().await;
        talk.hear_request().await;
        talk.grants(2, 2).await;
        talk.settles().await;
        talk.breaks();
        let (mut talk, _) = peer.resumes(leased(7)).await;
        let cause = navlocks_wire::LossCause::Stolen(RequestKey::new(9, 9));
        for id in [1, 2, 3] {
            talk.says(ToClient::Over(Over::lost(id, cause))).await;
        }
        assert!(matches!(lock.lost().await, LossCause::Stolen { .. }));
        assert!(matches!(unheard.await.unwrap_err().kind(), RequestErrorKind::Stolen { .. }));
        assert!(matches!(pending.await.unwrap_err().kind(), RequestErrorKind::Stolen { .. }));
        talk.hears(ToService::End(2)).await;
        talk.hears(ToService::End(3)).await;
        drop(lock);
        talk.hears(ToService::End(1)).await;
    });
}

#[test]
fn connection_that_breaks_during_hello_is_tried_again() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(7)).await;
        let lock = held(&locks, "a", &mut talk).await;
        talk.breaks();
        drop(peer.socket().await);
        peer.accept().await.breaks();
        peer.greeted().await.0.breaks();
        let (_talk, resume) = peer.resumes(leased(7)).await;
        assert_eq!(resume.alive, [1]);
        assert_eq!(lock.loss(), None);
    });
}

#[test]
fn claim_has_clients_that_were_opened_without_a_connection() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(7)).await;
        let first = locks.new_client();
        talk.hears(ToService::Open(open(1, ""))).await;
        let lock = held(&locks, "a", &mut talk).await;
        talk.breaks();
        let (talk, resume) = peer.resumes(leased(7)).await;
        assert_eq!(resume.clients, [open(0, ""), open(1, "")]);
        drop(first);
        locks.end_client();
        let second = lock.locks().new_client();
        talk.breaks();
        let (mut talk, resume) = peer.resumes(leased(7)).await;
        assert_eq!(resume.clients, [open(2, "")]);
        assert!(resume.alive.is_empty());
        assert_eq!(lock.loss(), Some(LossCause::ClientEnded));
        let _waiting = begun(second.request("b"));
        assert_eq!(talk.hear_request().await.client, 2);
    });
}
