//! The fast path for one name and the slow path give the same answers, events and snapshots.
//!
//! A second name that no other request wants changes no outcome and keeps a request off the fast
//! path. So the same history is played twice: once as it is, once with such a name in each scope.

use navlocks_core::{
    Answer, ClientId, Event, HashKey, LockManager, LossCause, Mode, Name, Request, RequestId,
    RequestInfo, Scope, Snapshot, SuspendPolicy, Wait,
};
use navlocks_tests::history::{Witness, play};
use navlocks_tests::model::{Scopes, words};
use proptest::strategy::{Strategy as _, ValueTree as _};

use super::arbitrary::{any_ops, runner};
use crate::support::manager;

fn events(manager: &mut LockManager) -> Vec<Event> {
    std::iter::from_fn(|| manager.poll_event()).collect()
}

#[test]
fn request_outcome_is_the_answer_and_no_event() {
    let mut manager = manager();
    let client = manager.add_client();
    let (first, answer) = manager.request(client, Request::exclusive("a")).unwrap();
    assert!(matches!(answer, Answer::Granted(_)));
    let tried = Request::shared("a").wait(Wait::IfAvailable);
    assert_eq!(manager.request(client, tried).unwrap().1, Answer::Unavailable);
    let (second, answer) = manager.request(client, Request::exclusive("a")).unwrap();
    assert_eq!(answer, Answer::Pending);
    assert_eq!(events(&mut manager), []);
    assert!(manager.release(first));
    let caused = events(&mut manager);
    assert!(matches!(caused[..], [Event::Granted { request, .. }] if request == second));
}

#[test]
fn steal_answers_with_token_between_losses_and_later_grants() {
    let mut manager = manager();
    let client = manager.add_client();
    let (victim, _) = manager.request(client, Request::exclusive(["a", "b"])).unwrap();
    let (heir, _) = manager.request(client, Request::exclusive("b")).unwrap();
    let steal = Request::exclusive("a").wait(Wait::Steal);
    let (thief, answer) = manager.request(client, steal).unwrap();
    let Answer::Granted(own) = answer else { panic!("{answer:?}") };
    let lost = Event::Lost { request: victim, client, cause: LossCause::Stolen { by: thief } };
    let caused = events(&mut manager);
    let [first, Event::Granted { request, token, .. }] = caused[..] else { panic!("{caused:?}") };
    assert_eq!((first, request), (lost, heir));
    assert!(own < token);
}

/// The part of an event that is equal in both engines: slots differ, serials do not.
type Told = (&'static str, u64, ClientId, Option<u64>);

fn told(event: Event) -> Told {
    let by = |cause| match cause {
        LossCause::Stolen { by } => by.serial(),
        LossCause::ForceReleased => 0,
        LossCause::HeldTooLong => u64::MAX - 2,
        LossCause::Evicted => u64::MAX,
        LossCause::Suspended => u64::MAX - 1,
    };
    match event {
        Event::Granted { request, client, token } => {
            ("granted", request.serial(), client, Some(token.get()))
        }
        Event::Lost { request, client, cause } => {
            ("lost", request.serial(), client, Some(by(cause)))
        }
        Event::Aborted { request, client, cause } => {
            ("aborted", request.serial(), client, Some(by(cause)))
        }
        Event::Evicted { client } => ("evicted", 0, client, None),
    }
}

/// A line of a snapshot without slots, and without the names that no other request wants.
type Line = (u64, ClientId, Vec<Name>, Mode, Option<u64>);

fn shown(snapshot: &Snapshot) -> Vec<Line> {
    let line = |info: &RequestInfo| {
        let names = info.scope.names().iter().filter(|name| name.to_string().len() == 1);
        let token = info.token.map(|token| token.get());
        (info.request.serial(), info.client, names.cloned().collect(), info.mode, token)
    };
    snapshot.held.iter().chain(&snapshot.pending).map(line).collect()
}

/// Two engines that take the same inputs, the second with one more name in each scope.
struct Both {
    engines: [LockManager; 2],
    clients: Vec<ClientId>,
    requests: Vec<[RequestId; 2]>,
    /// How many pending requests were granted by a release.
    handed_over: usize,
    released: usize,
}

impl Both {
    fn new() -> Self {
        let engine = || LockManager::new(HashKey::from_bytes([0; 16]));
        Self {
            engines: [engine(), engine()],
            clients: Vec::new(),
            requests: Vec::new(),
            handed_over: 0,
            released: 0,
        }
    }

    /// Gives both the same input. Returns the result and the events, on which both agree.
    fn both<T: PartialEq + std::fmt::Debug>(
        &mut self,
        input: impl Fn(&mut LockManager, usize) -> T,
    ) -> (T, Vec<Told>) {
        let [fast, slow] = &mut self.engines;
        let results = [(fast, 0), (slow, 1)].map(|(engine, which)| {
            let result = input(engine, which);
            (result, events(engine).into_iter().map(told).collect::<Vec<Told>>())
        });
        let [fast, slow] = results;
        assert_eq!(fast, slow);
        fast
    }

    fn request(&mut self, client: ClientId, names: &[String], mode: Mode, wait: Wait) {
        let number = self.requests.len();
        let made: std::cell::RefCell<Vec<RequestId>> = std::cell::RefCell::default();
        let (result, _) = self.both(|engine, which| {
            let unique = (which == 1).then(|| format!("only {number}"));
            let scope = Scope::new(names.iter().cloned().chain(unique)).expect("not empty");
            engine.request(client, Request { scope, mode, wait }).map(|(id, answer)| {
                made.borrow_mut().push(id);
                (id.serial(), answer)
            })
        });
        if let (Ok(_), &[fast, slow]) = (result, made.take().as_slice()) {
            self.requests.push([fast, slow]);
        }
    }
}

impl Witness for Both {
    fn see(&mut self, input: &words::Input, _: &words::Answer, _: &Scopes) -> Result<(), String> {
        match *input {
            words::Input::Join => {
                let (client, _) = self.both(|engine, _| engine.add_client());
                self.clients.push(client);
            }
            words::Input::Request { client, ref scope, mode, wait } => {
                let names: Vec<String> = scope.iter().map(char::to_string).collect();
                self.request(self.clients[client], &names, mode.into(), wait.into());
            }
            words::Input::Release(request) => {
                let ids = self.requests[request];
                let (released, caused) = self.both(|engine, which| engine.release(ids[which]));
                self.released += usize::from(released);
                self.handed_over += usize::from(caused.len() == 1);
            }
            words::Input::Downgrade(request, mode) => {
                let ids = self.requests[request];
                self.both(|engine, which| engine.downgrade(ids[which], mode.into()).is_ok());
            }
            words::Input::Expire(request) => {
                let ids = self.requests[request];
                self.both(|engine, which| engine.expire(ids[which]));
            }
            words::Input::Abort(request) => {
                let ids = self.requests[request];
                self.both(|engine, which| engine.abort(ids[which]));
            }
            words::Input::Terminate(client) => {
                let client = self.clients[client];
                self.both(|engine, _| engine.terminate(client));
            }
            words::Input::Suspend(client, policy) => {
                let policy = match policy {
                    words::Policy::EvictOnContention => SuspendPolicy::EvictOnContention,
                    words::Policy::ReleaseAtOnce => SuspendPolicy::ReleaseAtOnce,
                };
                let client = self.clients[client];
                self.both(|engine, _| engine.suspend(client, policy));
            }
            words::Input::Resume(client) => {
                let client = self.clients[client];
                self.both(|engine, _| engine.resume(client));
            }
            words::Input::ForceRelease(name) => {
                let name = name.to_string().into();
                self.both(|engine, _| engine.force_release(&name));
            }
            words::Input::Query => drop(self.both(|engine, _| shown(&engine.query()))),
            words::Input::AdvanceToken(_) | words::Input::Poll => {}
        }
        Ok(())
    }

    fn settle(&mut self, _: &Scopes) -> Result<(), String> {
        let [fast, slow] = &self.engines;
        assert_eq!(shown(&fast.snapshot()), shown(&slow.snapshot()));
        self.engines.iter().for_each(LockManager::check_invariants);
        Ok(())
    }
}

#[test]
fn fast_path_and_slow_path_agree_on_random_histories() {
    let (mut handed_over, mut released) = (0, 0);
    let mut runner = runner(0, 3_000);
    for _ in 0..3_000 {
        let ops = any_ops(1..=40).new_tree(&mut runner).expect("histories").current();
        let mut both = Both::new();
        play(&ops, &mut [&mut both]).expect("it asserts");
        handed_over += both.handed_over;
        released += both.released;
    }
    assert!(handed_over > 100, "only {handed_over} releases granted exactly one request");
    assert!(released > handed_over + 100, "only {released} releases");
}
