//! Questions, contention watches and event streams, over connections that break.

use navlocks::events::Gap;
use navlocks::{Locks, QueryError};
use navlocks_wire::{
    self as wire, About, Answer, Ask, ClientKey, Event, LocksOf, Names, Question, Reply,
    RequestEvent, RequestKey, ToClient, ToService, WaitsOf, Watch, What,
};

use crate::client::{connected, held, polled};
use crate::peer::{Peer, Talk, leased, welcome};
use crate::run;

fn ask(id: u64, question: Question) -> ToService {
    ToService::Ask(Ask { id, client: 0, question })
}

fn snapshot(id: u64) -> ToClient {
    ToClient::Answer(Answer { id, reply: Reply::Locks { held: vec![], pending: vec![] } })
}

/// Sends an event of the request with this number.
async fn tells(talk: &mut Talk, client: u64, number: u64) {
    let about = About {
        request: RequestKey::new(9, number),
        client: ClientKey::new(9, 0),
        names: Names("a".into()),
        mode: navlocks::Mode::Exclusive,
        tag: None,
        traceparent: None,
        pid: None,
        process: None,
    };
    talk.says(ToClient::Event(Event::Request(RequestEvent {
        client,
        about,
        what: What::Requested,
    })))
    .await;
}

#[test]
fn unanswered_questions_are_asked_again_in_their_order() {
    run(async {
        for (peer, welcome) in [(Peer::unix().await, welcome(1)), (Peer::tcp().await, leased(1))] {
            let (locks, mut talk) = connected(&peer, welcome.clone()).await;
            let ask_in_background = |locks: &Locks| {
                let locks = locks.clone();
                tokio::spawn(async move { locks.query().await })
            };
            let questions: Vec<_> = (0..20).map(|_| ask_in_background(&locks)).collect();
            for id in 1..=20 {
                talk.hears(ask(id, Question::Locks(LocksOf::Partition))).await;
            }
            talk.says(snapshot(1)).await;
            talk.says(snapshot(3)).await;
            talk.settles().await;
            talk.breaks();
            let resumed = welcome.lease_ms.is_some();
            let mut talk = peer.welcomes(wire::Welcome { resumed, ..welcome }).await.0;
            if resumed {
                talk.hears_claim(&[]).await;
            }
            for id in (1..=20).filter(|id| ![1, 3].contains(id)) {
                talk.hears(ask(id, Question::Locks(LocksOf::Partition))).await;
                talk.says(snapshot(id)).await;
            }
            for question in questions {
                question.await.unwrap().unwrap();
            }
        }
    });
}

#[test]
fn dropped_question_is_not_asked_again() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let mut forgotten = Box::pin(locks.query());
        assert!(polled(&mut forgotten).is_pending());
        talk.hears(ask(1, Question::Locks(LocksOf::Partition))).await;
        drop(forgotten);
        talk.says(snapshot(1)).await;
        talk.settles().await;
        talk.breaks();
        let mut talk = peer.begins(welcome(2)).await;
        let mut next = Box::pin(locks.deadlocks());
        assert!(polled(&mut next).is_pending());
        talk.hears(ask(2, Question::Waits(WaitsOf::Deadlocks))).await;
    });
}

#[test]
fn answer_to_another_question_is_misunderstood() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let (answer, ()) = tokio::join!(locks.query(), async {
            talk.hears(ask(1, Question::Locks(LocksOf::Partition))).await;
            talk.says(ToClient::Answer(Answer { id: 1, reply: Reply::Contended(true) })).await;
        });
        assert_eq!(answer.unwrap_err(), QueryError::Misunderstood);
        let (answer, ()) = tokio::join!(locks.force_release("a"), async {
            talk.hears(ask(2, Question::ForceRelease("a".into()))).await;
            let fault = wire::Fault::new(wire::FaultCode::Unauthorized, "Not you.");
            talk.says(ToClient::Answer(Answer { id: 2, reply: Reply::Refused(fault) })).await;
        });
        assert_eq!(answer.unwrap_err().to_string(), "Not you.");
    });
}

#[test]
fn question_of_client_that_ends_fails_and_is_not_asked_again() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let ending = locks.new_client();
        let question = tokio::spawn({
            let ending = ending.clone();
            async move { ending.query().await }
        });
        talk.hear().await;
        let expected =
            ToService::Ask(Ask { id: 1, client: 1, question: Question::Locks(LocksOf::Partition) });
        talk.hears(expected).await;
        ending.end_client();
        assert_eq!(question.await.unwrap().unwrap_err(), QueryError::ClientEnded);
        talk.hears(ToService::Close(1)).await;
        talk.breaks();
        let mut talk = peer.begins(welcome(2)).await;
        let mut next = Box::pin(locks.query());
        assert!(polled(&mut next).is_pending());
        talk.hears(ask(2, Question::Locks(LocksOf::Partition))).await;
    });
}

#[test]
fn contention_watch_is_sent_again_over_the_next_connection() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(1)).await;
        let lock = held(&locks, "a", &mut talk).await;
        let mut contended = Box::pin(lock.contended());
        assert!(polled(&mut contended).is_pending());
        talk.hears(ToService::Watch(Watch::Contention(1))).await;
        talk.breaks();
        let (mut talk, _) = peer.resumes(leased(1)).await;
        talk.hears(ToService::Watch(Watch::Contention(1))).await;
        talk.says(ToClient::Event(Event::Contended(1))).await;
        contended.await.unwrap();
        // A watch that has fired or was dropped is not sent again.
        talk.breaks();
        let (mut talk, _) = peer.resumes(leased(1)).await;
        talk.settles().await;
        drop(lock);
        talk.hears(ToService::End(1)).await;
    });
}

#[test]
fn event_streams_continue_over_the_next_connection() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(1)).await;
        let mut events = locks.events();
        talk.hears(ToService::Watch(Watch::Events(0))).await;
        talk.says(ToClient::Event(Event::Watching(0))).await;
        tells(&mut talk, 0, 1).await;
        assert_eq!(events.recv().await.unwrap().unwrap().request.to_string(), "r9.1");
        talk.breaks();
        // The gap is marked at once, and only once.
        assert_eq!(events.recv().await.unwrap(), Err(Gap::ConnectionLost));
        let (mut talk, _) = peer.resumes(leased(1)).await;
        talk.hears(ToService::Watch(Watch::Events(0))).await;
        talk.says(ToClient::Event(Event::Watching(0))).await;
        talk.settles().await;
        for _ in 0..2 {
            talk.breaks();
            (talk, _) = peer.resumes(leased(1)).await;
            talk.hears(ToService::Watch(Watch::Events(0))).await;
            talk.says(ToClient::Event(Event::Watching(0))).await;
            talk.settles().await;
        }
        assert_eq!(events.recv().await.unwrap(), Err(Gap::ConnectionLost));
        assert_eq!(events.try_recv(), None);
        talk.breaks();
        let (mut talk, _) = peer.resumes(leased(1)).await;
        assert_eq!(events.recv().await.unwrap(), Err(Gap::ConnectionLost));
        talk.hears(ToService::Watch(Watch::Events(0))).await;
        // Events that the service sends to a resumed session before the subscription are kept.
        tells(&mut talk, 0, 2).await;
        talk.says(ToClient::Event(Event::Watching(0))).await;
        tells(&mut talk, 0, 3).await;
        assert_eq!(events.recv().await.unwrap().unwrap().request.to_string(), "r9.2");
        assert_eq!(events.recv().await.unwrap().unwrap().request.to_string(), "r9.3");
        drop(events);
        talk.hears(ToService::Watch(Watch::NoEvents(0))).await;
    });
}

#[test]
fn stream_dropped_without_connection_ends_over_the_next() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(1)).await;
        let events = locks.events();
        talk.hears(ToService::Watch(Watch::Events(0))).await;
        talk.breaks();
        let (mut talk, _) = peer.greeted().await;
        drop(events);
        // A resumed session keeps its subscription.
        talk.says(ToClient::Welcome(wire::Welcome { resumed: true, ..leased(1) })).await;
        talk.hears_claim(&[]).await;
        talk.hears(ToService::Watch(Watch::NoEvents(0))).await;
        talk.breaks();
        let (mut talk, _) = peer.resumes(leased(1)).await;
        talk.settles().await;
        let _again = locks.events();
        talk.hears(ToService::Watch(Watch::Events(0))).await;
    });
}

#[test]
fn stream_begins_at_its_own_subscription_not_at_a_dropped_one() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let mut always = locks.events();
        talk.hears(ToService::Watch(Watch::Events(0))).await;
        talk.says(ToClient::Event(Event::Watching(0))).await;
        let dropped = locks.events();
        talk.hears(ToService::Watch(Watch::Events(0))).await;
        drop(dropped);
        let mut late = locks.events();
        talk.hears(ToService::Watch(Watch::Events(0))).await;
        // Both answers, with an event between them that happened before the last subscription.
        talk.says(ToClient::Event(Event::Watching(0))).await;
        tells(&mut talk, 0, 1).await;
        talk.says(ToClient::Event(Event::Watching(0))).await;
        tells(&mut talk, 0, 2).await;
        assert_eq!(late.recv().await.unwrap().unwrap().request.to_string(), "r9.2");
        assert_eq!(always.recv().await.unwrap().unwrap().request.to_string(), "r9.1");
        assert_eq!(always.recv().await.unwrap().unwrap().request.to_string(), "r9.2");
    });
}

#[test]
fn events_of_ended_client_are_ignored() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let mut events = locks.events();
        talk.hears(ToService::Watch(Watch::Events(0))).await;
        talk.says(ToClient::Event(Event::Watching(0))).await;
        locks.end_client();
        talk.hears(ToService::Close(0)).await;
        tells(&mut talk, 0, 1).await;
        talk.settles().await;
        assert_eq!(events.try_recv(), None);
        assert_eq!(events.recv().await, None);
    });
}

#[test]
fn streams_end_when_the_client_disconnects() {
    run(async {
        let peer = Peer::unix().await;
        let (locks, mut talk) = connected(&peer, welcome(1)).await;
        let mut asleep = locks.events();
        talk.hears(ToService::Watch(Watch::Events(0))).await;
        let mut other = locks.events();
        talk.hears(ToService::Watch(Watch::Events(0))).await;
        let asleep = tokio::spawn(async move { asleep.recv().await });
        let (_, ()) = tokio::join!(locks.disconnect(), async { talk.sees_leave().await });
        assert_eq!(asleep.await.unwrap(), None);
        assert_eq!(other.recv().await, None);
        assert_eq!(locks.events().recv().await, None);
    });
}

#[test]
fn stream_ends_when_service_refuses_its_client() {
    run(async {
        let peer = Peer::tcp().await;
        let (locks, mut talk) = connected(&peer, leased(1)).await;
        let mut events = locks.events();
        talk.hears(ToService::Watch(Watch::Events(0))).await;
        let asleep = tokio::spawn(async move { events.recv().await });
        talk.breaks();
        let (mut talk, _) = peer.greeted().await;
        talk.fails(wire::FaultCode::Unauthorized, "not you any more").await;
        assert_eq!(asleep.await.unwrap(), None);
    });
}
