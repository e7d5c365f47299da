//! Leases: how long a client keeps its locks without an answer of the service.

mod stopping;
mod forgetting;
mod presence;
mod unix;

use std::thread;
use std::time::{Duration, Instant};

use navlocks::LossCause;
use navlocks_wire::{FaultCode, ToClient, ToService, Welcome};

use crate::client::{begun, connected, greeting_again, held, polled, request_of, said};
use crate::peer::{Peer, Pings, Talk, leased, leased_for};
use crate::run;

/// Long enough for a busy machine to run the steps within it.
const LEASE_MS: u64 = 1600;
const LEASE: Duration = Duration::from_millis(LEASE_MS);

/// Receives a ping and answers it. Returns when it was received, from which a service counts the
/// lease.
async fn answers_one(talk: &mut Talk) -> Instant {
    talk.pings = Pings::Heard;
    let ToService::Ping(number) = talk.hear().await else { panic!("not a ping") };
    let heard = Instant::now();
    talk.says(ToClient::Pong(number)).await;
    heard
}

/// Blocks the thread of the client, its driver and its timers, for longer than the lease that a
/// service counts from now.
fn held_up() {
    thread::sleep(LEASE);
}

#[test]
fn locks_live_while_pings_are_answered_and_are_lost_in_time_after() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased_for(7, LEASE_MS)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let began = Instant::now();
        let mut heard = answers_one(&mut talk).await;
        while began.elapsed() <= LEASE {
            heard = answers_one(&mut talk).await;
        }
        assert_eq!(lock.loss(), None);
        let loss = lock.lost().await;
        let lost = Instant::now();
        assert_eq!(loss, LossCause::LeaseLapsed);
        assert!(lost <= heard + LEASE, "{:?} late", lost - heard - LEASE);
        assert_eq!(lock.loss(), Some(loss));
        // The client wants nothing of its old session: the next one begins empty.
        talk.pings = Pings::Ignored;
        talk.ends().await;
        peer.begins(leased(8)).await;
        assert_eq!(lock.release(), Err(LossCause::LeaseLapsed));
    });
}

#[test]
fn lock_is_lost_after_its_lease_even_if_no_task_could_run() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased_for(7, LEASE_MS)).await;
        let lock = held(&locks, "a", &mut talk).await;
        held_up();
        assert_eq!(lock.loss(), Some(LossCause::LeaseLapsed));
    });
}

#[test]
fn release_after_the_lease_reports_the_loss() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased_for(7, LEASE_MS)).await;
        let lock = held(&locks, "a", &mut talk).await;
        held_up();
        assert_eq!(lock.release(), Err(LossCause::LeaseLapsed));
    });
}

#[test]
fn grant_not_received_before_the_lease_ended_is_requested_again() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased_for(7, LEASE_MS)).await;
        let mut waiting = begun(locks.request("a"));
        talk.hears(said(1, "a")).await;
        talk.grants(1, 1).await;
        talk.settles().await;
        held_up();
        assert!(polled(&mut waiting).is_pending());
        talk.pings = Pings::Ignored;
        talk.ends().await;
        let mut talk = peer.begins(leased(8)).await;
        talk.hears(said(1, "a")).await;
        talk.grants(1, 10).await;
        assert_eq!(waiting.await.unwrap().fencing_token().get(), 10);
    });
}

/// `holder_asks_first`: the holder reads its loss before the driver can run.
fn a_grant_in_the_buffer(holder_asks_first: bool) {
    run(async move {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased_for(7, LEASE_MS)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let waiting = begun(locks.request("b"));
        talk.hears(said(2, "b")).await;
        talk.grants(2, 2).await;
        held_up();
        if holder_asks_first {
            assert_eq!(lock.loss(), Some(LossCause::LeaseLapsed));
        }
        talk.pings = Pings::Ignored;
        talk.ends().await;
        assert_eq!(lock.loss(), Some(LossCause::LeaseLapsed));
        let mut talk = peer.begins(leased(8)).await;
        talk.hears(said(2, "b")).await;
        talk.grants(2, 20).await;
        let granted = waiting.await.expect("it was granted");
        assert_eq!(granted.fencing_token().get(), 20, "the first grant was over when it was read");
        assert_eq!(granted.loss(), None);
    });
}

#[test]
fn grant_buffered_beyond_the_lease_is_void() {
    a_grant_in_the_buffer(false);
}

#[test]
fn grant_buffered_beyond_the_lease_is_void_when_holder_asks_first() {
    a_grant_in_the_buffer(true);
}

#[test]
fn pong_buffered_beyond_the_lease_renews_nothing() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased_for(7, LEASE_MS)).await;
        let lock = held(&locks, "a", &mut talk).await;
        answers_one(&mut talk).await;
        held_up();
        talk.pings = Pings::Ignored;
        talk.ends().await;
        assert_eq!(lock.loss(), Some(LossCause::LeaseLapsed));
        peer.begins(leased(8)).await;
    });
}

#[test]
fn loss_is_reported_in_time_while_the_service_is_dialled() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased_for(7, LEASE_MS)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let heard = Instant::now();
        talk.breaks();
        // The peer accepts and is silent from then on, as behind a broken network.
        let _silent = peer.socket().await;
        assert_eq!(lock.lost().await, LossCause::LeaseLapsed);
        let lost = Instant::now();
        assert!(lost <= heard + LEASE, "{:?} late", lost - heard - LEASE);
    });
}

#[test]
fn session_resumed_after_the_lease_releases_its_locks() {
    run(async {
        let peer = Peer::tcp().await;
        let (_locks, lock, waiting, mut talk) =
            greeting_again(&peer, leased_for(7, LEASE_MS)).await;
        assert_eq!(lock.lost().await, LossCause::LeaseLapsed);
        // The service answers late, and counts from the hello.
        talk.says(ToClient::Welcome(Welcome { resumed: true, ..leased(7) })).await;
        talk.hears_claim(&[request_of(0, 2, "b")]).await;
        talk.grants(2, 2).await;
        assert_eq!(waiting.await.unwrap().loss(), None);
        assert_eq!(lock.loss(), Some(LossCause::LeaseLapsed));
    });
}

#[test]
fn lapse_reported_by_the_service_is_a_loss() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(7)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let waiting = begun(locks.request("b"));
        talk.hears(said(2, "b")).await;
        talk.fails(FaultCode::LeaseLapsed, "too late").await;
        assert_eq!(lock.lost().await, LossCause::LeaseLapsed);
        talk.closes().await;
        let mut talk = peer.begins(leased(8)).await;
        talk.hears(said(2, "b")).await;
        talk.grants(2, 2).await;
        drop(waiting.await.unwrap());
    });
}
