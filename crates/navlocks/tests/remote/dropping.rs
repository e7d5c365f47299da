//! Futures, guards and clients that are dropped at every point.

use std::future::IntoFuture as _;

use navlocks_wire::{Event, Over, ToClient, ToService, Watch};
use tokio::io::AsyncReadExt as _;

use crate::client::{begun, connected, connecting, held, polled, said, to};
use crate::peer::{Peer, leased, read_head, welcome};
use crate::run;

#[test]
fn dropped_connect_future_closes_the_connection_at_every_stage() {
    run(async {
        for peer in [Peer::unix().await, Peer::tcp().await] {
            // Dropped before the handshake is answered.
            let dropped = connecting(to(&peer));
            let mut socket = peer.socket().await;
            read_head(&mut *socket).await;
            dropped.abort();
            assert_eq!(socket.read(&mut [0]).await.unwrap(), 0);

            // Dropped before the welcome.
            let dropped = connecting(to(&peer));
            let talk = peer.greeted().await.0;
            dropped.abort();
            talk.ends().await;

            // Dropped after the welcome, before the future was polled.
            let mut dropped = to(&peer).into_future();
            assert!(polled(&mut dropped).is_pending());
            let mut talk = peer.begins(leased(1)).await;
            talk.settles().await;
            drop(dropped);
            talk.sees_leave().await;
        }
    });
}

#[test]
fn request_never_polled_sends_nothing() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        drop(locks.request("a").into_future());
        let _next = begun(locks.request("b"));
        talk.hears(said(1, "b")).await;
    });
}

#[test]
fn request_dropped_at_any_point_is_aborted_at_the_service() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;

        // Dropped before the answer, which crosses.
        let pending = begun(locks.request("a"));
        talk.hears(said(1, "a")).await;
        talk.grants(1, 1).await;
        drop(pending);
        talk.hears(ToService::End(1)).await;

        // Dropped after the answer, before the future was polled.
        let unheard = begun(locks.request("a"));
        talk.hears(said(2, "a")).await;
        talk.grants(2, 2).await;
        talk.settles().await;
        drop(unheard);
        talk.hears(ToService::End(2)).await;

        // Dropped after the loss, before the future was polled.
        let lost = begun(locks.request("a"));
        talk.hears(said(3, "a")).await;
        talk.says(ToClient::Over(Over::lost(3, navlocks_wire::LossCause::ForceReleased))).await;
        talk.settles().await;
        drop(lost);
        talk.hears(ToService::End(3)).await;

        // The work under the lock is dropped.
        let mut work =
            Box::pin(locks.request("a").with(async |_| std::future::pending::<()>().await));
        assert!(polled(&mut work).is_pending());
        talk.hears(said(4, "a")).await;
        talk.grants(4, 4).await;
        talk.settles().await;
        assert!(polled(&mut work).is_pending());
        drop(work);
        talk.hears(ToService::End(4)).await;
    });
}

#[test]
fn dropped_watch_leaves_the_lock() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        {
            let mut contended = Box::pin(lock.contended());
            let mut lost = Box::pin(lock.lost());
            assert!(polled(&mut contended).is_pending());
            assert!(polled(&mut lost).is_pending());
        }
        talk.hears(ToService::Watch(Watch::Contention(1))).await;
        talk.says(ToClient::Event(Event::Contended(1))).await;
        talk.settles().await;
        let mut again = Box::pin(lock.contended());
        assert!(polled(&mut again).is_pending());
        talk.hears(ToService::Watch(Watch::Contention(1))).await;
        talk.says(ToClient::Event(Event::Contended(1))).await;
        again.await.unwrap();
        assert_eq!(lock.loss(), None);
    });
}

#[test]
fn drop_of_last_handle_ends_the_session() {
    run(async {
        for (peer, welcome) in [(Peer::unix().await, welcome(1)), (Peer::tcp().await, leased(1))] {
            let (locks, mut talk) = connected(&peer, welcome).await;
            let lock = held(&locks, "a", &mut talk).await;
            let clone = locks.clone();
            let events = locks.events();
            talk.hears(ToService::Watch(Watch::Events(0))).await;
            drop((locks, clone));
            drop(events);
            talk.hears(ToService::Watch(Watch::NoEvents(0))).await;
            // The guard alone keeps its client and the session.
            talk.settles().await;
            assert_eq!(lock.loss(), None);
            drop(lock);
            talk.hears(ToService::End(1)).await;
            talk.hears(ToService::Close(0)).await;
            talk.sees_leave().await;
        }
    });
}

#[test]
fn ended_client_loses_its_locks_before_the_service_receives_it() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let waiting = begun(locks.request("b"));
        talk.hears(said(2, "b")).await;
        locks.end_client();
        assert_eq!(lock.loss(), Some(navlocks::LossCause::ClientEnded));
        assert_eq!(waiting.await.unwrap_err(), navlocks::RequestErrorKind::ClientEnded);
        talk.hears(ToService::Close(0)).await;
        talk.hears(ToService::End(2)).await;
        // A grant that crosses has no request any more, and the client is still ended.
        talk.grants(2, 2).await;
        talk.settles().await;
        assert!(locks.request("c").await.is_err());
    });
}
