//! A request or release that is answered by return: the same outcome, told once.

use navlocks_core::{
    Answer, ClientId, Event, HandOver, HashKey, LockManager, Mode, Request, RequestId, Scope,
    SuspendPolicy, Wait,
};
use navlocks_tests::history::{Witness, play};
use navlocks_tests::model::{Scopes, words};
use proptest::strategy::{Strategy as _, ValueTree as _};

use crate::arbitrary::{any_ops, runner};

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

/// Two engines that take the same inputs: one tells everything, the other answers where it can.
struct Both {
    telling: LockManager,
    answering: LockManager,
    clients: Vec<ClientId>,
    requests: Vec<RequestId>,
    /// How many releases were answered with the next holder, and how many told of somebody else.
    handed_over: usize,
    told: usize,
}

impl Both {
    fn new() -> Self {
        let engine = || LockManager::new(HashKey::from_bytes([0; 16]));
        Self {
            telling: engine(),
            answering: engine(),
            clients: Vec::new(),
            requests: Vec::new(),
            handed_over: 0,
            told: 0,
        }
    }

    /// The same input to both, told by both.
    fn both<T: PartialEq + std::fmt::Debug>(&mut self, input: impl Fn(&mut LockManager) -> T) -> T {
        let result = input(&mut self.telling);
        assert_eq!(input(&mut self.answering), result);
        assert_eq!(events(&mut self.answering), events(&mut self.telling));
        result
    }

    fn request(&mut self, client: ClientId, request: &Request) {
        let told = self.telling.request(client, request);
        let answered = self.answering.request_answer(client, request);
        assert_eq!(answered.map(|(id, _)| id), told);
        let Ok((id, answer)) = answered else { return };
        self.requests.push(id);
        let mut of_others = events(&mut self.telling);
        let own = of_others.iter().position(|event| outcome(event, id).is_some());
        let own = own.and_then(|place| outcome(&of_others.remove(place), id));
        assert_eq!(answer, own.unwrap_or(Answer::Pending));
        assert_eq!(events(&mut self.answering), of_others);
    }

    fn release(&mut self, lock: RequestId) {
        let released = self.telling.release(lock);
        let hand_over = self.answering.release_answer(lock);
        assert_eq!(hand_over != HandOver::Nothing, released);
        let told = events(&mut self.telling);
        if let HandOver::To(next, next_token) = hand_over {
            assert!(
                matches!(told[..], [Event::Granted { request, token, .. }] if (request, token) == (next, next_token)),
                "{hand_over:?}, but {told:?}"
            );
            assert_eq!(events(&mut self.answering), []);
            self.handed_over += 1;
        } else {
            self.told += usize::from(!told.is_empty());
            assert_eq!(events(&mut self.answering), told);
        }
    }
}

impl Witness for Both {
    fn see(&mut self, input: &words::Input, _: &words::Answer, _: &Scopes) -> Result<(), String> {
        match *input {
            words::Input::Join => {
                let client = self.both(LockManager::add_client);
                self.clients.push(client);
            }
            words::Input::Request { client, ref scope, mode, wait } => {
                let scope = Scope::new(scope.iter().map(char::to_string)).expect("not empty");
                let mode = match mode {
                    words::Mode::Exclusive => Mode::Exclusive,
                    words::Mode::Shared => Mode::Shared,
                };
                let wait = match wait {
                    words::Wait::Queue => Wait::Queue,
                    words::Wait::IfAvailable => Wait::IfAvailable,
                    words::Wait::Steal => Wait::Steal,
                    words::Wait::StealAll => Wait::StealAll,
                    words::Wait::Overtake => Wait::Overtake,
                };
                self.request(self.clients[client], &Request { scope, mode, wait });
            }
            words::Input::Release(request) => self.release(self.requests[request]),
            words::Input::Abort(request) => {
                let request = self.requests[request];
                self.both(|manager| manager.abort(request));
            }
            words::Input::Terminate(client) => {
                let client = self.clients[client];
                self.both(|manager| manager.terminate(client));
            }
            words::Input::Suspend(client, policy) => {
                let policy = match policy {
                    words::Policy::EvictOnContention => SuspendPolicy::EvictOnContention,
                    words::Policy::ReleaseAtOnce => SuspendPolicy::ReleaseAtOnce,
                };
                let client = self.clients[client];
                self.both(|manager| manager.suspend(client, policy));
            }
            words::Input::Resume(client) => {
                let client = self.clients[client];
                self.both(|manager| manager.resume(client));
            }
            words::Input::ForceRelease(name) => {
                let name = name.to_string().into();
                self.both(|manager| manager.force_release(&name));
            }
            words::Input::Query => drop(self.both(LockManager::query)),
            words::Input::AdvanceToken(_) | words::Input::Poll => {}
        }
        Ok(())
    }

    fn settle(&mut self, _: &Scopes) -> Result<(), String> {
        assert_eq!(self.answering.snapshot(), self.telling.snapshot());
        self.answering.check_invariants();
        Ok(())
    }
}

#[test]
fn whatever_happens_answers_and_events_say_the_same() {
    let (mut handed_over, mut told) = (0, 0);
    let mut runner = runner(0, 3_000);
    for _ in 0..3_000 {
        let ops = any_ops(1..=40).new_tree(&mut runner).expect("histories").current();
        let mut both = Both::new();
        play(&ops, &mut [&mut both]).expect("it asserts");
        handed_over += both.handed_over;
        told += both.told;
    }
    assert!(handed_over > 100, "only {handed_over} releases were answered with the next holder");
    assert!(told > 100, "only {told} releases granted several, or somebody asleep");
}
