//! Peers that violate the protocol.

use navlocks::LossCause;
use navlocks_wire::{
    self as wire, Answer, Event, Fault, FaultCode, Granted, Over, Reply, ToClient, ToService,
    Welcome,
};
use tokio_tungstenite::tungstenite::Message;

use crate::client::{begun, connected, connecting, held, said, to};
use crate::peer::{Peer, leased, leased_for, welcome};
use crate::run;

#[test]
fn malformed_message_ends_only_the_connection() {
    let nested = "[".repeat(100_000);
    let texts = [
        "",
        "garbage",
        "null",
        "[]",
        "{}",
        "\u{0}",
        r#""pong""#,
        r#"{"unknown":1}"#,
        r#"{"granted":{"id":1}}"#,
        r#"{"granted":{"id":-1,"token":1}}"#,
        r#"{"granted":{"id":1.5,"token":1}}"#,
        r#"{"granted":{"id":1,"token":18446744073709551616}}"#,
        r#"{"over":{"id":1,"why":{"lost":{"cause":{"stolen":"nobody"}}}}}"#,
        r#"{"over":{"id":1,"why":{"lost":{"cause":{"stolen":"4294967296.1"}}}}}"#,
        r#"{"pong":1}{"pong":2}"#,
        &nested,
    ]
    .map(str::to_owned);
    run(async move {
        for text in texts {
            let peer = Peer::tcp().await;
            let (locks, mut talk) = connected(&peer, leased(7)).await;
            let lock = held(&locks, "a", &mut talk).await;
            talk.says_text(text).await;
            talk.ends().await;
            let (_talk, resume) = peer.resumes(leased(7)).await;
            assert_eq!(resume.alive, [1]);
            assert_eq!(lock.loss(), None);
        }
    });
}

#[test]
fn malformed_frame_ends_only_the_connection() {
    let frames: [&[u8]; 6] = [
        // A text that is not UTF-8.
        &[0x81, 0x02, 0xC3, 0x28],
        // A text of 2^62 bytes, and one of 2^63.
        &[0x81, 127, 0x40, 0, 0, 0, 0, 0, 0, 0],
        &[0x81, 127, 0x80, 0, 0, 0, 0, 0, 0, 0],
        // An unknown kind of frame, a reserved bit, a continuation of nothing.
        &[0x83, 0],
        &[0xC1, 0],
        &[0x80, 0],
    ];
    run(async move {
        for frame in frames {
            let peer = Peer::tcp().await;
            let (locks, mut talk) = connected(&peer, leased(7)).await;
            let lock = held(&locks, "a", &mut talk).await;
            talk.says_bytes(frame).await;
            talk.ends().await;
            let (_talk, resume) = peer.resumes(leased(7)).await;
            assert_eq!(resume.alive, [1], "{frame:?}");
            assert_eq!(lock.loss(), None);
        }
    });
}

#[test]
fn messages_about_unknown_numbers_are_ignored() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(7)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let fault = Fault::new(FaultCode::Limit, "No.");
        let unknown = 99;
        for message in [
            ToClient::Granted(Granted::new(unknown, 1)),
            ToClient::Granted(Granted::new(u64::MAX, u64::MAX)),
            ToClient::Over(Over::unavailable(unknown)),
            ToClient::Over(Over::lost(unknown, navlocks_wire::LossCause::ForceReleased)),
            ToClient::Over(Over::refused(unknown, fault.clone())),
            ToClient::Event(Event::Contended(unknown)),
            ToClient::Event(Event::Contended(1)),
            ToClient::Answer(Answer { id: unknown, reply: Reply::Contended(true) }),
            ToClient::Event(Event::Watching(unknown)),
            ToClient::Event(Event::Watching(0)),
            ToClient::Pong(u64::MAX),
            ToClient::Welcome(leased(8)),
            ToClient::Welcome(welcome(u32::MAX)),
        ] {
            talk.says(message).await;
        }
        talk.say(Message::binary(vec![1, 2, 3])).await.unwrap();
        talk.say(Message::Pong("unasked".into())).await.unwrap();
        talk.settles().await;
        assert_eq!(lock.loss(), None);
        assert_eq!(locks.client_id().to_string(), "c7.0");
        let _waiting = begun(locks.request("b"));
        talk.hears(said(2, "b")).await;
    });
}

#[test]
fn contradicting_messages_about_held_lock_change_nothing() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(7)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let mut unheard = begun(locks.request("b"));
        talk.hears(said(2, "b")).await;
        talk.grants(2, 2).await;
        for id in [1, 2] {
            let fault = Fault::new(FaultCode::Limit, "No.");
            talk.grants(id, 77).await;
            talk.says(ToClient::Over(Over::unavailable(id))).await;
            talk.says(ToClient::Over(Over::refused(id, fault))).await;
        }
        talk.settles().await;
        assert_eq!(lock.loss(), None);
        assert_eq!(lock.fencing_token().get(), 1);
        let second = (&mut unheard).await.unwrap();
        assert_eq!(second.fencing_token().get(), 2);
        talk.breaks();
        let (_talk, resume) = peer.resumes(leased(7)).await;
        assert_eq!(resume.alive, [1, 2]);
    });
}

#[test]
fn welcome_with_extreme_numbers_is_accepted() {
    run(async {
        let peer = Peer::tcp().await;
        // A session of any number, with an endless lease.
        let strange = leased_for(u32::MAX, u64::MAX);
        let (locks, mut talk) = connected(&peer, strange.clone()).await;
        let lock = held(&locks, "a", &mut talk).await;
        assert_eq!(lock.loss(), None);
        talk.breaks();
        let (_talk, resume) = peer.resumes(strange).await;
        assert_eq!(resume.session, u32::MAX);
        assert_eq!(lock.loss(), None);
    });
}

#[test]
fn lease_of_zero_ends_at_once_and_a_new_session_begins() {
    run(async {
        let peer = Peer::tcp().await;
        for lease in 0..4 {
            let none = Welcome { lease_ms: Some(lease), ..welcome(1) };
            let (locks, talk) = connected(&peer, none).await;
            let waiting = begun(locks.request("a"));
            // Closing is enough: a driver that had panicked would not connect again.
            drop(talk);
            let mut talk = loop {
                let (mut talk, _) = peer.greeted().await;
                talk.says(ToClient::Welcome(leased(2))).await;
                if let Some(ToService::Request(_)) = talk.hear_or_end().await {
                    break talk;
                }
            };
            talk.grants(1, 1).await;
            drop(waiting.await.unwrap());
        }
    });
}

#[test]
fn session_resumed_without_lease_ends_with_its_connection() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(7)).await;
        let lock = held(&locks, "a", &mut talk).await;
        talk.breaks();
        let (talk, resume) = peer.resumes(welcome(7)).await;
        assert_eq!(resume.alive, [1]);
        talk.breaks();
        assert_eq!(lock.lost().await, LossCause::ServiceGone);
        peer.begins(leased(8)).await;
    });
}

#[test]
fn peer_that_pings_and_never_reads_is_not_read_either() {
    run(async {
        for peer in [Peer::tcp().await, Peer::unix().await] {
            let (locks, mut talk) = connected(&peer, leased(7)).await;
            let lock = held(&locks, "a", &mut talk).await;
            talk.pings_until_blocked().await;
            talk.breaks();
            let (_talk, resume) = peer.resumes(leased(7)).await;
            assert_eq!(resume.alive, [1]);
            assert_eq!(lock.loss(), None);
        }
    });
}

#[test]
fn unknown_members_are_ignored() {
    run(async {
        let peer = Peer::unix().await;
        let connecting = connecting(to(&peer));
        let mut talk = peer.greeted().await.0;
        let text = wire::write(&ToClient::Welcome(welcome(7)));
        talk.says_text(text.replace(r#""session":"#, r#""mood":{"good":[1]},"session":"#)).await;
        let locks = connecting.await.unwrap().unwrap();
        let waiting = begun(locks.request("a"));
        talk.hears(said(1, "a")).await;
        talk.says_text(r#"{"granted":{"id":1,"token":5,"by":"me"}}"#).await;
        assert_eq!(waiting.await.unwrap().fencing_token().get(), 5);
    });
}

#[test]
fn fragmented_message_is_read_as_one() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let waiting = begun(locks.request("a"));
        talk.hears(said(1, "a")).await;
        let text = wire::write(&ToClient::Granted(Granted::new(1, 5)));
        let (first, second) = text.as_bytes().split_at(9);
        talk.says_bytes(&[&[0x01, first.len() as u8], first].concat()).await;
        talk.settles().await;
        for byte in [&[0x80, second.len() as u8], second].concat() {
            talk.says_bytes(&[byte]).await;
        }
        assert_eq!(waiting.await.unwrap().fencing_token().get(), 5);
    });
}

#[test]
fn error_of_unknown_kind_ends_the_session() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(7)).await;
        let lock = held(&locks, "a", &mut talk).await;
        talk.says_text(r#"{"error":{"code":"moon-phase","message":"Not today."}}"#).await;
        assert_eq!(lock.lost().await, LossCause::ServiceGone);
        talk.closes().await;
        peer.begins(leased(8)).await;
    });
}
