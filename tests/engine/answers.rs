//! A request that is answered by return: the same outcome, told once.

use navlocks_core::{Answer, Event, HashKey, LockManager, Mode, Request, RequestId, Wait};

/// A manager in which others hold and wait for `a` in these modes, in this order, and all that was told so far is polled.
fn crowd(modes: &[Mode]) -> LockManager {
    let mut manager = LockManager::new(HashKey::from_bytes([0; 16]));
    for &mode in modes {
        let client = manager.add_client();
        let scope = "a".into();
        let request = Request { scope, mode, wait: Wait::Queue };
        manager.request(client, request).expect("a request is taken");
    }
    events(&mut manager);
    manager
}

fn events(manager: &mut LockManager) -> Vec<Event> {
    std::iter::from_fn(|| manager.poll_event()).collect()
}

/// What an event says of the outcome of `request`, in the words of an answer.
fn outcome(event: &Event, of: RequestId) -> Option<Answer> {
    match *event {
        Event::Granted { request, token, .. } if request == of => Some(Answer::Granted(token)),
        Event::Unavailable { request, .. } if request == of => Some(Answer::Unavailable),
        _ => None,
    }
}

#[test]
fn an_answer_is_the_event_that_is_not_told() {
    use Mode::{Exclusive, Shared};
    let crowds: [&[Mode]; 6] = [
        &[],
        &[Exclusive],
        &[Shared],
        &[Shared, Shared],
        &[Shared, Exclusive, Shared],
        &[Exclusive, Shared, Exclusive],
    ];
    let waits = [Wait::Queue, Wait::IfAvailable, Wait::Steal, Wait::StealAll, Wait::Overtake];
    let mut seen = Vec::new();
    for others in crowds {
        for mode in [Exclusive, Shared] {
            for wait in waits {
                let request = Request { scope: "a".into(), mode, wait };
                let (mut told, mut answered) = (crowd(others), crowd(others));
                let (client, same_client) = (told.add_client(), answered.add_client());
                assert_eq!(client, same_client);
                let Ok(id) = told.request(client, &request) else {
                    assert!(answered.request_answer(client, &request).is_err());
                    continue;
                };
                let (same_id, answer) = answered.request_answer(client, &request).unwrap();
                assert_eq!(same_id, id);
                let (own, of_others): (Vec<Event>, Vec<Event>) =
                    events(&mut told).into_iter().partition(|event| outcome(event, id).is_some());
                let own = own.first().and_then(|event| outcome(event, id));
                assert_eq!(answer, own.unwrap_or(Answer::Pending), "{request:?} among {others:?}");
                assert_eq!(events(&mut answered), of_others, "{request:?} among {others:?}");
                assert_eq!(answered.snapshot(), told.snapshot());
                seen.push(std::mem::discriminant(&answer));
            }
        }
    }
    seen.dedup();
    assert!(seen.len() > 3, "all kinds of answers occurred, and more than once");
}

#[test]
fn a_request_that_was_answered_pending_is_heard_of_later() {
    let mut manager = LockManager::new(HashKey::from_bytes([0; 16]));
    let client = manager.add_client();
    let (first, answer) = manager.request_answer(client, Request::exclusive("a")).unwrap();
    assert!(matches!(answer, Answer::Granted(_)));
    let (second, answer) = manager.request_answer(client, Request::exclusive("a")).unwrap();
    assert_eq!(answer, Answer::Pending);
    assert_eq!(events(&mut manager), []);
    assert!(manager.release(first));
    let told = events(&mut manager);
    assert!(matches!(told[..], [Event::Granted { request, .. }] if request == second));
}
