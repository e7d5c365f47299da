//! A lock space in shards produces the same events as one manager, and one manager can replace the
//! shards at any time.

use navlocks_core::{
    ClientId, Event, HashKey, LockManager, Name, Request, RequestId, Scope, Snapshot, State,
};
use navlocks_tests::engine::decided;
use navlocks_tests::history::{Op, Witness, play};
use navlocks_tests::model::{Scopes, words};
use proptest::prelude::*;

use super::arbitrary::{any_ops, check, histories, single_name_ops};

const SHARDS: usize = 4;

/// Keeps single names in their shards, moves to the whole for other requests, and back when it is
/// empty.
struct Divided {
    shards: [LockManager; SHARDS],
    whole: Option<LockManager>,
    clients: Vec<ClientId>,
    requests: Vec<RequestId>,
}

impl Divided {
    fn new() -> Self {
        let shards = LockManager::shards(HashKey::from_bytes([0; 16]));
        Self { shards, whole: None, clients: Vec::new(), requests: Vec::new() }
    }

    fn whole(&self) -> LockManager {
        LockManager::whole(&self.shards.each_ref())
    }

    fn gather(&mut self) {
        if self.whole.is_none() {
            self.whole = Some(self.whole());
            self.shards.iter_mut().for_each(LockManager::forget_requests);
        }
    }

    fn divide_when_idle(&mut self) {
        if self.whole.as_ref().is_some_and(|whole| whole.name_count() == 0) {
            self.whole = None;
        }
    }

    fn shard(&mut self, shard: usize) -> &mut LockManager {
        self.whole.as_mut().unwrap_or(&mut self.shards[shard])
    }

    fn of_name(&mut self, name: &Name) -> &mut LockManager {
        self.shard(LockManager::shard_of::<SHARDS>(name))
    }

    fn of_request(&mut self, request: RequestId) -> &mut LockManager {
        self.shard(request.slot() % SHARDS)
    }

    /// Gives all managers the same input; all return the same.
    fn all<T: PartialEq + std::fmt::Debug>(&mut self, input: impl Fn(&mut LockManager) -> T) -> T {
        let managers = self.shards.iter_mut().chain(&mut self.whole);
        let answers: Vec<T> = managers.map(input).collect();
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
        answers.into_iter().next().expect("there are shards")
    }

    fn poll(&mut self) {
        for manager in self.shards.iter_mut().chain(&mut self.whole) {
            while let Some(event) = manager.poll_event() {
                assert!(!matches!(event, Event::Evicted { .. }));
            }
        }
    }

    /// Returns a snapshot in the numbers of the model.
    fn in_words(&self, snapshot: &Snapshot) -> [Vec<(usize, usize)>; 2] {
        [&snapshot.held, &snapshot.pending].map(|infos| {
            let request = |id| self.requests.iter().position(|&known| known == id);
            let client = |id| self.clients.iter().position(|&known| known == id);
            infos.iter().filter_map(|info| request(info.request).zip(client(info.client))).collect()
        })
    }
}

impl Witness for Divided {
    fn see(
        &mut self,
        input: &words::Input,
        answer: &words::Answer,
        _: &Scopes,
    ) -> Result<(), String> {
        let own = match *input {
            words::Input::Join => {
                let client = self.all(LockManager::add_client);
                self.clients.push(client);
                words::Answer::Joined(self.clients.len() - 1)
            }
            words::Input::Request { client, ref scope, mode, wait } => {
                let scope = Scope::new(scope.iter().map(char::to_string)).expect("not empty");
                if scope.names().len() > 1 {
                    self.gather();
                }
                let client = self.clients[client];
                let manager = self.of_name(&scope.names()[0].clone());
                let &words::Answer::Made(_, answer_of_model) = answer else { return Ok(()) };
                let made = Request { scope, mode: mode.into(), wait: wait.into() };
                let Ok((request, answer)) = manager.request(client, made) else { return Ok(()) };
                let latest = self.requests.last();
                assert!(latest.is_none_or(|latest| latest.serial() < request.serial()));
                self.requests.push(request);
                // Tokens of shards have gaps, so they differ from the model's.
                let decided = match (decided(answer), answer_of_model) {
                    (words::Decided::Granted { .. }, granted @ words::Decided::Granted { .. }) => {
                        granted
                    }
                    (own, _) => own,
                };
                words::Answer::Made(self.requests.len() - 1, decided)
            }
            words::Input::Release(request) => {
                let request = self.requests[request];
                words::Answer::Effect(self.of_request(request).release(request))
            }
            words::Input::Downgrade(request, mode) => {
                let request = self.requests[request];
                let downgraded = self.of_request(request).downgrade(request, mode.into());
                words::Answer::Effect(downgraded.is_ok())
            }
            words::Input::Expire(request) => {
                let request = self.requests[request];
                words::Answer::Effect(self.of_request(request).expire(request))
            }
            words::Input::Abort(request) => {
                let request = self.requests[request];
                words::Answer::Effect(self.of_request(request).abort(request))
            }
            words::Input::Terminate(client) => {
                let client = self.clients[client];
                let has_any = |shard: &&LockManager| shard.requests_of(client).next().is_some();
                if self.shards.iter().filter(has_any).count() > 1 {
                    self.gather();
                }
                words::Answer::Effect(self.all(|manager| manager.terminate(client)))
            }
            words::Input::ForceRelease(name) => {
                let name = name.to_string().into();
                words::Answer::Count(self.of_name(&name).force_release(&name))
            }
            _ => return Ok(()),
        };
        self.poll();
        if own == *answer { Ok(()) } else { Err(format!("{own:?}, not {answer:?}")) }
    }

    fn settle(&mut self, model: &Scopes) -> Result<(), String> {
        let shards: Vec<&LockManager> = self.shards.iter().chain(&self.whole).collect();
        let snapshot = LockManager::snapshot_of(&shards);
        let numbers = |infos: &[words::Info]| -> Vec<(usize, usize)> {
            infos.iter().map(|info| (info.request, info.client)).collect()
        };
        let words::Snapshot { held, pending } = model.snapshot();
        let (own, expected) = (self.in_words(&snapshot), [numbers(&held), numbers(&pending)]);
        if own != expected {
            return Err(format!("{own:?}, not {expected:?}"));
        }
        for number in 0..self.requests.len() {
            let request = self.requests[number];
            let held = matches!(self.of_request(request).state(request), Some(State::Held(_)));
            let expected = matches!(model.state(number), Some(words::State::Held { .. }));
            assert_eq!(held, expected, "r{number}");
        }
        shards_or_whole(self, &snapshot, model);
        self.divide_when_idle();
        Ok(())
    }
}

/// Checks that one manager made of all shards shows the same snapshot, and the right deadlocks.
fn shards_or_whole(divided: &Divided, snapshot: &Snapshot, model: &Scopes) {
    let made = divided.whole();
    let whole = divided.whole.as_ref().unwrap_or(&made);
    divided.shards.iter().for_each(LockManager::check_invariants);
    whole.check_invariants();
    assert_eq!(&whole.snapshot(), snapshot);
    let numbers: Vec<Vec<usize>> = whole
        .possible_deadlocks()
        .iter()
        .map(|deadlock| {
            let requests = deadlock.requests.iter();
            requests
                .filter_map(|id| divided.requests.iter().position(|known| known == id))
                .collect()
        })
        .collect();
    let expected: Vec<Vec<usize>> =
        model.cycles_of_clients().into_iter().map(|deadlock| deadlock.requests).collect();
    assert_eq!(numbers, expected);
}

/// Removes suspensions: clients of a divided space are not suspended.
fn awake(ops: Vec<Op>) -> Vec<Op> {
    let awake = |op: &Op| !matches!(op, Op::Suspend(..) | Op::AdvanceToken(_));
    ops.into_iter().filter(awake).collect()
}

#[test]
fn single_names_in_shards_follow_model() {
    let waits = [
        words::Wait::Queue,
        words::Wait::IfAvailable,
        words::Wait::Steal,
        words::Wait::StealAll,
        words::Wait::Overtake,
    ];
    let ops = single_name_ops(&waits).prop_map(awake);
    check("single_names_in_shards_follow_model", histories(10), ops, |ops| {
        play(ops, &mut [&mut Divided::new()])
    });
}

#[test]
fn scopes_that_gather_shards_follow_model() {
    let ops = any_ops(1..=40).prop_map(awake);
    check("scopes_that_gather_shards_follow_model", histories(10), ops, |ops| {
        play(ops, &mut [&mut Divided::new()])
    });
}

#[test]
fn names_spread_over_all_shards() {
    for prefix in ["", "name", "user/", "a/name/that/is/longer/than/fits/inside/"] {
        let mut counts = [0; 8];
        for number in 0..8_000 {
            counts[LockManager::shard_of::<8>(&format!("{prefix}{number}").into())] += 1;
        }
        assert!(counts.iter().all(|count| (500..2_000).contains(count)), "{prefix}: {counts:?}");
    }
}
