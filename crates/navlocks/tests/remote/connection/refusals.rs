//! A service that refuses a client for good.

use navlocks::{Locks, LossCause, QueryError, RequestErrorKind};
use navlocks_wire::{FaultCode, ToService};
use tokio_tungstenite::tungstenite::http::StatusCode;

use crate::client::{begun, connected, held, polled, said};
use crate::peer::{Peer, leased};
use crate::run;

/// The ways to refuse a client for good.
#[derive(Clone, Copy, Debug)]
enum Refuses {
    Http(StatusCode),
    OtherCluster,
    Error(FaultCode),
}

async fn refuses(peer: &Peer, how: Refuses) {
    match how {
        Refuses::Http(status) => peer.refuses(status, "Not you.").await,
        Refuses::OtherCluster => {
            peer.refuses(StatusCode::MISDIRECTED_REQUEST, "This is cluster b. Not you.").await;
        }
        Refuses::Error(code) => {
            let mut talk = peer.greeted().await.0;
            talk.fails(code, "Not you.").await;
            talk.ends().await;
        }
    }
}

#[test]
fn refused_reconnection_ends_all_locks_and_requests() {
    for how in [
        Refuses::Http(StatusCode::UNAUTHORIZED),
        Refuses::Http(StatusCode::FORBIDDEN),
        Refuses::Http(StatusCode::UPGRADE_REQUIRED),
        Refuses::OtherCluster,
        Refuses::Error(FaultCode::Unauthorized),
        Refuses::Error(FaultCode::Version),
    ] {
        run(async move {
            let peer = Peer::tcp().await;
            let (locks, mut talk) = connected(&peer, leased(7)).await;
            let lock = held(&locks, "a", &mut talk).await;
            let waiting = begun(locks.request("b"));
            talk.hears(said(2, "b")).await;
            let question = tokio::spawn({
                let locks = locks.clone();
                async move { locks.query().await }
            });
            assert!(matches!(talk.hear().await, ToService::Ask(_)));
            talk.breaks();
            refuses(&peer, how).await;

            let error = waiting.await.unwrap_err();
            assert!(matches!(error.kind(), RequestErrorKind::Refused(_)), "{how:?}: {error:?}");
            assert!(error.to_string().ends_with("Not you."), "{error}");
            assert!(matches!(question.await.unwrap(), Err(QueryError::Refused(_))));
            assert_eq!(lock.lost().await, LossCause::ServiceGone);
            // Later requests fail at once, also those of new clients.
            for locks in [locks.clone(), locks.new_client()] {
                let mut request = locks.request("c").into_future();
                assert!(polled(&mut request).is_ready());
                assert!(matches!(locks.query().await, Err(QueryError::Refused(_))));
            }
            assert_leaves(&locks).await;
            let error = locks.request("c").await.unwrap_err();
            assert!(matches!(error.kind(), RequestErrorKind::Refused(_)));
        });
    }
}

/// Checks that disconnecting ends at once.
async fn assert_leaves(locks: &Locks) {
    locks.disconnect().await;
    locks.disconnect().await;
}

#[test]
fn temporary_refusal_is_tried_again() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(7)).await;
        let lock = held(&locks, "a", &mut talk).await;
        talk.breaks();
        for how in [
            Refuses::Http(StatusCode::SERVICE_UNAVAILABLE),
            Refuses::Http(StatusCode::TOO_MANY_REQUESTS),
            // The answers of proxies whose service is being restarted.
            Refuses::Http(StatusCode::BAD_GATEWAY),
            Refuses::Http(StatusCode::NOT_FOUND),
            Refuses::Http(StatusCode::REQUEST_TIMEOUT),
            Refuses::Http(StatusCode::MISDIRECTED_REQUEST),
            Refuses::Error(FaultCode::Limit),
            Refuses::Error(FaultCode::ShuttingDown),
            Refuses::Error(FaultCode::Internal),
        ] {
            refuses(&peer, how).await;
        }
        let (_talk, resume) = peer.resumes(leased(7)).await;
        assert_eq!(resume.alive, [1]);
        assert_eq!(lock.loss(), None);
    });
}
