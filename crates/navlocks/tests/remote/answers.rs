//! Requests and their answers over a connection that stays up.

use std::future::IntoFuture as _;
use std::time::Duration;

use navlocks::{LossCause, RequestError, RequestErrorKind, RequestId};
use navlocks_wire::{
    self as wire, Ask, Fault, FaultCode, Over, Question, Refused, RequestKey, ToClient, ToService,
    Why,
};

use crate::client::{begun, connected, held, polled, request_of, said};
use crate::peer::{Peer, leased, welcome};
use crate::run;

#[test]
fn thousands_of_requests_need_no_answer_in_between() {
    run(async {
        const COUNT: u64 = 5000;
        for (peer, welcome) in [(Peer::unix().await, welcome(1)), (Peer::tcp().await, leased(1))] {
            let (locks, mut talk) = connected(&peer, welcome).await;
            let name = |id: u64| format!("name {id}");
            let waiting: Vec<_> = (1..=COUNT).map(|id| begun(locks.request(name(id)))).collect();
            for id in 1..=COUNT {
                talk.hears(said(id, &name(id))).await;
            }
            for id in 1..=COUNT {
                talk.grants(id, 10_000 + id).await;
            }
            let mut kept = Vec::new();
            for (id, waiting) in (1..).zip(waiting) {
                let lock = waiting.await.unwrap();
                assert_eq!(lock.fencing_token().get(), 10_000 + id);
                kept.push(lock);
            }
            drop(kept);
            for id in 1..=COUNT {
                talk.hears(ToService::End(id)).await;
            }
        }
    });
}

#[test]
fn release_is_sent_before_the_next_request() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        lock.release().unwrap();
        let _again = begun(locks.request("a"));
        talk.hears(ToService::End(1)).await;
        talk.hears(said(2, "a")).await;
    });
}

#[test]
fn request_is_sent_as_it_was_made() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let other = locks.new_client();
        talk.hears(ToService::Open(wire::Open { client: 1, partition: String::new() })).await;
        let _waiting = begun(other.request(["b", "a"]).shared().overtake().tag("who"));
        let request = talk.hear_request().await;
        let names = wire::Names(["a", "b"].into());
        let expected = wire::Request {
            names,
            mode: navlocks::Mode::Shared,
            wait: navlocks_core::Wait::Overtake,
            tag: Some("who".into()),
            ..request_of(1, 1, "")
        };
        assert_eq!(request, expected);
        let trying = tokio::spawn(locks.request("c").if_available().into_future());
        assert_eq!(talk.hear_request().await.wait, navlocks_core::Wait::IfAvailable);
        talk.says(ToClient::Over(Over::unavailable(2))).await;
        assert!(trying.await.unwrap().unwrap().is_none());
    });
}

#[test]
fn refusals_are_the_same_errors_as_in_process() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let cycle = wire::Cycle {
            clients: vec![wire::ClientKey::new(1, 0)],
            requests: vec![RequestKey::new(1, 1)],
            outer: None,
            possible: false,
        };
        let refused = |id, code, cycle| {
            let refused = Refused { fault: Fault::new(code, "No."), cycle };
            ToClient::Over(Over { id, why: Why::Refused(refused) })
        };
        let lost = |id, cause| ToClient::Over(Over::lost(id, cause));
        let thief = RequestKey::new(2, 9);
        type Check = fn(RequestError) -> bool;
        let answers: [(ToClient, Check); 6] = [
            (refused(1, FaultCode::Deadlock, Some(cycle)), |e| {
                matches!(e.kind(), RequestErrorKind::Deadlock(_))
            }),
            (refused(2, FaultCode::ExclusiveOvertake, None), |e| {
                e == RequestErrorKind::ExclusiveOvertake
            }),
            (refused(3, FaultCode::Limit, None), |e| {
                e.to_string() == "no lock on 'a': No."
                    && e.dom_exception_name() == "QuotaExceededError"
            }),
            (lost(4, navlocks_wire::LossCause::Stolen(thief)), |e| {
                matches!(e.kind(), RequestErrorKind::Stolen { .. })
            }),
            (lost(5, navlocks_wire::LossCause::ForceReleased), |e| {
                e == RequestErrorKind::ForceReleased
            }),
            (lost(6, navlocks_wire::LossCause::Evicted), |e| e == RequestErrorKind::Evicted),
        ];
        for (id, (answer, check)) in (1..).zip(answers) {
            let waiting = begun(locks.request("a"));
            talk.hears(said(id, "a")).await;
            talk.says(answer).await;
            let error = waiting.await.unwrap_err();
            assert!(check(error.clone()), "{error:?}");
            if id >= 4 {
                // The client acknowledges each loss.
                talk.hears(ToService::End(id)).await;
            }
        }
    });
}

#[test]
fn stolen_lock_reports_the_thief_until_it_is_dropped() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let other = held(&locks, "b", &mut talk).await;
        assert_eq!(lock.loss(), None);
        let by = RequestKey::new(9, 3);
        let thief = Some("nightly (pid 4712)".into());
        talk.says(ToClient::Over(Over::lost_to(1, navlocks_wire::LossCause::Stolen(by), thief)))
            .await;
        let loss = lock.lost().await;
        assert_eq!(loss, LossCause::Stolen { by: RequestId::from(by).into() });
        assert_eq!(loss.to_string(), "the lock was stolen by nightly (pid 4712)");
        assert_eq!(lock.loss(), Some(loss.clone()));
        assert_eq!(other.loss(), None);
        assert_eq!(lock.release(), Err(loss));
        talk.hears(ToService::End(1)).await;
        drop(other);
        talk.hears(ToService::End(2)).await;
    });
}

#[test]
fn request_that_times_out_is_aborted() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let after = Duration::from_millis(20);
        let waiting = tokio::spawn(locks.request("a").timeout(after).into_future());
        talk.hears(said(1, "a")).await;
        let question = Question::PlaceOf(RequestKey::new(1, 1));
        talk.hears(ToService::Ask(Ask { id: 1, client: 0, question })).await;
        talk.hears(ToService::End(1)).await;
        // No answer comes, and the client waits only a little longer.
        let error = waiting.await.unwrap().unwrap_err();
        assert_eq!(error, RequestErrorKind::TimedOut { after });
        let unanswered = "no lock on 'a' within 20ms: the lock service does not answer";
        assert_eq!(error.to_string(), unanswered);
        // The grant was on its way; the service receives the abort after it, and releases.
        talk.grants(1, 1).await;
        let mut next = begun(locks.request("a"));
        talk.hears(said(2, "a")).await;
        talk.settles().await;
        assert!(polled(&mut next).is_pending());
    });
}

#[test]
fn error_of_timeout_names_lock_and_its_holder() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let after = Duration::from_millis(20);
        let waiting = tokio::spawn(locks.request("a").timeout(after).into_future());
        talk.hears(said(1, "a")).await;
        assert!(matches!(talk.hear().await, ToService::Ask(_)));
        talk.hears(ToService::End(1)).await;
        talk.says_text(
            r#"{"answer":{"id":1,"reply":{"place":{"before":0,"holders":1,"held":[{"about":{
                "request":"9.1","client":"9.0","names":["a"],"tag":"night\u001bly","pid":4711},
                "token":7,"ms":1500}]}}}}"#,
        )
        .await;
        let error = waiting.await.unwrap().unwrap_err();
        assert_eq!(error, RequestErrorKind::TimedOut { after });
        let text = "'a' was not free within 20ms: held by night\\u{1b}ly (pid 4711) for 1.5s";
        assert_eq!(error.to_string(), text);
        assert_eq!((error.holders().len(), error.scope()), (1, &"a".into()));
    });
}

#[test]
fn pending_request_has_the_id_of_the_service() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(7)).await;
        let mut waiting = locks.request("a").into_future();
        assert_eq!(waiting.request_id(), None);
        assert!(polled(&mut waiting).is_pending());
        talk.hears(said(1, "a")).await;
        assert_eq!(waiting.request_id(), Some(RequestKey::new(7, 1).into()));
        // The service has forgotten the session, so the request belongs to another one.
        talk.breaks();
        let (mut talk, _) = peer.greeted().await;
        talk.says(ToClient::Welcome(leased(8))).await;
        talk.hears(said(1, "a")).await;
        assert_eq!(waiting.request_id(), Some(RequestKey::new(8, 1).into()));
        talk.grants(1, 1).await;
        assert_eq!(waiting.await.unwrap().request_id(), RequestKey::new(8, 1).into());
    });
}

#[test]
fn request_too_long_for_the_service_is_not_sent() {
    run(async {
        let peer = Peer::unix().await;
        let mut small = welcome(1);
        small.limits.message_bytes_max = 200;
        let (locks, mut talk) = connected(&peer, small).await;
        let kept = held(&locks, "kept", &mut talk).await;
        // If it were sent, it would end the session, and then the next one.
        let long = "x".repeat(200);
        let error = locks.request(long.as_str()).await.unwrap_err();
        assert_eq!(error.dom_exception_name(), "QuotaExceededError");
        assert!(error.to_string().contains("200"), "{error}");
        let error = locks.force_release(long).await.unwrap_err();
        assert_eq!(error.dom_exception_name(), "QuotaExceededError");
        assert_eq!(kept.loss(), None);
        let _next = begun(locks.request("short"));
        talk.hears(said(2, "short")).await;
    });
}

#[test]
fn request_too_long_for_the_next_service_fails_there() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let long = "x".repeat(200);
        let waiting = begun(locks.request(long.as_str()));
        let patient = begun(locks.request("short"));
        for _ in 0..2 {
            talk.hear().await;
        }
        talk.breaks();
        // The client has noticed that, so the question is not sent yet.
        drop(peer.socket().await);
        let mut asking = Box::pin(locks.force_release(long.as_str()));
        assert!(polled(&mut asking).is_pending());
        let mut small = welcome(2);
        small.limits.message_bytes_max = 200;
        let mut talk = peer.begins(small).await;
        talk.hears(said(2, "short")).await;
        assert_eq!(waiting.await.unwrap_err().dom_exception_name(), "QuotaExceededError");
        assert_eq!(asking.await.unwrap_err().dom_exception_name(), "QuotaExceededError");
        talk.grants(2, 2).await;
        drop(patient.await.unwrap());
    });
}
