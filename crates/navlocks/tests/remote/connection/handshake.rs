//! The handshake, up to the welcome.

use navlocks::{ConnectError, Locks};
use navlocks_wire::{self as wire, FaultCode, SUBPROTOCOL, ToClient};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};

use crate::client::{connected, connected_by, connecting, to};
use crate::peer::{Peer, leased, read_head, welcome};
use crate::run;

const TOKEN: &str = "correct-horse-battery";

#[test]
fn hello_has_partition_and_lease() {
    run(async {
        for peer in [Peer::unix().await, Peer::tcp().await] {
            let connect = to(&peer).partition("p").lease(Duration::from_millis(1500));
            let connecting = connecting(connect);
            let (mut talk, hello) = peer.greeted().await;
            assert_eq!(talk.headers[SEC_WEBSOCKET_PROTOCOL], SUBPROTOCOL);
            assert!(!talk.headers.contains_key(AUTHORIZATION), "there is no token");
            assert_eq!(hello.partition, "p");
            assert_eq!(hello.lease_ms, Some(1500));
            assert_eq!(hello.resume, None);
            talk.says(ToClient::Welcome(leased(7))).await;
            let locks = connecting.await.unwrap().unwrap();
            assert_eq!(locks.client_id().to_string(), "c7.0");
        }
    });
}

#[test]
fn token_is_sent_in_the_header_and_shown_in_no_text() {
    run(async {
        let peer = Peer::tcp().await;
        let connect = to(&peer).token(TOKEN);
        assert!(!format!("{connect:?}").contains(TOKEN));
        let connecting = connecting(connect);
        let mut talk = peer.greeted().await.0;
        assert_eq!(talk.headers[AUTHORIZATION], format!("Bearer {TOKEN}"));
        talk.says(ToClient::Welcome(leased(1))).await;
        let locks = connecting.await.unwrap().unwrap();
        let events = locks.events();
        let request = locks.request("a");
        for text in [format!("{locks:#?}"), format!("{events:#?}"), format!("{request:#?}")] {
            assert!(!text.contains(TOKEN) && !text.contains("secret of"), "{text}");
        }
    });
}

#[test]
fn token_that_no_header_can_carry_is_refused_before_dialling() {
    run(async {
        let mut peer = Peer::tcp().await;
        peer.goes_away();
        let error = to(&peer).token("two\nlines").await.unwrap_err();
        assert!(matches!(error, ConnectError::BadToken), "{error:?}");
        assert!(!error.to_string().contains("lines"), "{error}");
    });
}

#[test]
fn error_of_another_version_is_shown() {
    run(async {
        let peer = Peer::unix().await;
        let older = connecting(to(&peer));
        let mut talk = peer.greeted().await.0;
        talk.fails(FaultCode::Version, "speak 2").await;
        let ConnectError::Refused(fault) = older.await.unwrap().unwrap_err() else { panic!() };
        assert_eq!((fault.code, fault.message.as_str()), (FaultCode::Version, "speak 2"));
    });
}

#[test]
fn refusal_keeps_the_text_of_the_service() {
    run(async {
        let peer = Peer::tcp().await;
        for (status, code) in [
            (StatusCode::UNAUTHORIZED, FaultCode::Unauthorized),
            (StatusCode::FORBIDDEN, FaultCode::ForbiddenOrigin),
            (StatusCode::UPGRADE_REQUIRED, FaultCode::Version),
            (StatusCode::SERVICE_UNAVAILABLE, FaultCode::Limit),
            (StatusCode::TOO_MANY_REQUESTS, FaultCode::Limit),
            (StatusCode::BAD_GATEWAY, FaultCode::Internal),
            (StatusCode::NOT_FOUND, FaultCode::Other),
        ] {
            for sentence in ["Bring a token.\n", ""] {
                let refused = connecting(to(&peer));
                peer.refuses(status, sentence).await;
                let error = refused.await.unwrap().unwrap_err();
                let text = error.to_string();
                let ConnectError::Refused(fault) = error else { panic!("{error:?}") };
                assert_eq!(fault.code, code, "{status}");
                let said = if sentence.is_empty() { status.as_str() } else { "Bring a token." };
                assert!(text.contains(said), "{text}");
            }
        }
    });
}

#[test]
fn peer_without_websocket_is_named_in_the_error() {
    run(async {
        let peer = Peer::tcp().await;
        for answer in
            ["220 mail.example ready\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"]
        {
            let connecting = connecting(to(&peer));
            let mut socket = peer.socket().await;
            read_head(&mut *socket).await;
            socket.write_all(answer.as_bytes()).await.unwrap();
            socket.shutdown().await.unwrap();
            match connecting.await.unwrap().unwrap_err() {
                ConnectError::Handshake(_) | ConnectError::Refused(_) => {}
                other => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn websocket_of_another_protocol_is_refused() {
    run(async {
        let peer = Peer::tcp().await;
        for protocol in [None, Some("chat"), Some("navlocks.1")] {
            let connecting = connecting(to(&peer));
            // The client may be gone before the handshake ends on this side.
            let accepted =
                tokio::time::timeout(Duration::from_secs(20), peer.accept_with(protocol));
            drop(accepted.await);
            let error = connecting.await.unwrap().unwrap_err();
            let ConnectError::Handshake(problem) = &error else { panic!("{error:?}") };
            assert!(problem.contains("rotocol") || problem.contains(SUBPROTOCOL), "{problem}");
        }
    });
}

#[test]
fn service_that_ends_connection_at_once_is_unreachable() {
    run(async {
        for peer in [Peer::unix().await, Peer::tcp().await] {
            // The connection breaks before, during and after the handshake.
            let early = connecting(to(&peer));
            drop(peer.socket().await);
            assert_unreachable(early.await.unwrap());

            let late = connecting(to(&peer));
            peer.accept().await.breaks();
            assert_unreachable(late.await.unwrap());

            let later = connecting(to(&peer));
            peer.greeted().await.0.closes().await;
            assert_unreachable(later.await.unwrap());
        }
    });
}

#[track_caller]
fn assert_unreachable(connected: Result<Locks, ConnectError>) {
    match connected {
        Err(ConnectError::Unreachable(_)) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn first_connection_is_tried_again_when_the_service_ends_in_the_handshake() {
    run(async {
        for peer in [Peer::unix().await, Peer::tcp().await] {
            let connecting = connecting(to(&peer).retry());
            let mut socket = peer.socket().await;
            read_head(&mut *socket).await;
            drop(socket);
            let mut talk = peer.greeted().await.0;
            talk.says(ToClient::Welcome(welcome(3))).await;
            assert_eq!(connecting.await.unwrap().unwrap().client_id().to_string(), "c3.0");
        }
    });
}

#[test]
fn where_nobody_listens_the_system_says_why() {
    run(async {
        for mut peer in [Peer::unix().await, Peer::tcp().await] {
            peer.goes_away();
            let ConnectError::Unreachable(error) = to(&peer).await.unwrap_err() else { panic!() };
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        }
    });
}

#[test]
fn service_that_never_answers_times_out() {
    run(async {
        let peer = Peer::tcp().await;
        let to = || to(&peer).answer_timeout(Duration::from_millis(50));
        let unanswered = connecting(to());
        let mut socket = peer.socket().await;
        read_head(&mut *socket).await;
        let error = unanswered.await.unwrap().unwrap_err();
        assert!(matches!(error, ConnectError::Silent { .. }), "{error:?}");
        assert_eq!(socket.read(&mut [0]).await.unwrap(), 0, "the connection is given up");

        let unwelcome = connecting(to());
        let talk = peer.greeted().await.0;
        let error = unwelcome.await.unwrap().unwrap_err();
        assert!(matches!(error, ConnectError::Silent { .. }), "{error:?}");
        assert!(error.to_string().contains("did not answer"), "{error}");
        talk.ends().await;
    });
}

#[test]
fn pings_before_welcome_are_answered() {
    run(async {
        let peer = Peer::unix().await;
        let connecting = connecting(to(&peer));
        let mut talk = peer.greeted().await.0;
        talk.settles().await;
        talk.says(ToClient::Welcome(welcome(3))).await;
        assert_eq!(connecting.await.unwrap().unwrap().client_id().to_string(), "c3.0");
    });
}

#[test]
fn unexpected_first_message_is_named_in_the_error() {
    run(async {
        let peer = Peer::unix().await;
        for first in [r#"{"pong":1}"#, r#"{"hi":1}"#, "no JSON", "{}"] {
            let connecting = connecting(to(&peer));
            let mut talk = peer.greeted().await.0;
            talk.says_text(first).await;
            let error = connecting.await.unwrap().unwrap_err();
            assert!(matches!(error, ConnectError::Handshake(_)), "{error:?}");
            talk.ends().await;
        }
    });
}

#[test]
fn malformed_address_is_refused_before_dialling() {
    run(async {
        for address in ["", "unix:", "http://localhost", "ws://", "localhost:7600", "ws://a b"] {
            let error = Locks::connect(address).await.unwrap_err();
            assert!(matches!(error, ConnectError::BadUrl(_)), "{address}: {error:?}");
            assert!(error.to_string().contains(address), "{error}");
        }
        let error = Locks::connect("wss://localhost")
            .root_certificates("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----");
        assert!(matches!(error.await.unwrap_err(), ConnectError::BadCertificate(_)));
    });
}

#[test]
fn partition_and_further_clients_are_opened_in_order() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let other = locks.partition("other");
        let like = other.new_client();
        assert_eq!(like.client_id().to_string(), "c1.2");
        for client in [1, 2] {
            let open = wire::Open { client, partition: "other".into() };
            talk.hears(wire::ToService::Open(open)).await;
        }
        drop(other);
        talk.hears(wire::ToService::Close(1)).await;
    });
}

#[test]
fn new_client_of_an_ended_client_has_the_same_partition() {
    run(async {
        let peer = Peer::unix().await;
        let connect = to(&peer).partition("builds");
        let (locks, mut talk) = connected_by(connect, &peer, welcome(1)).await;
        let other = locks.partition("other");
        talk.hear().await;
        for (client, ended, partition) in [(2, &locks, "builds"), (3, &other, "other")] {
            ended.end_client();
            talk.hear().await;
            let next = ended.new_client();
            let open = wire::Open { client, partition: partition.into() };
            talk.hears(wire::ToService::Open(open)).await;
            drop(next);
            talk.hears(wire::ToService::Close(client)).await;
        }
    });
}
