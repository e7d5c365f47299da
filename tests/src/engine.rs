//! The engine as a witness: takes the inputs of the model, translates its answers, and objects to
//! any difference.

use core::fmt::Debug;

use navlocks_core as core_api;
use navlocks_core::{
    ClientId, FencingToken, HashKey, LockManager, Request, RequestError, RequestId,
};

use crate::history::{NAMES, Witness};
use crate::model::Scopes;
use crate::model::words::{
    Answer, Blockers, ClientNo, Deadlock, Decided, Event, Info, Input, LossCause, Mode, Name,
    Policy, Refusal, RequestNo, Scope, Snapshot, State, Wait,
};
use crate::quiet::quietly;
use crate::replay::replay;

/// The engine, with its ids by the order in which it gave them.
#[derive(Debug)]
pub struct Engine {
    manager: LockManager,
    names: [core_api::Name; NAMES.len()],
    clients: Vec<ClientId>,
    requests: Vec<RequestId>,
    /// The number of operations so far.
    turn: usize,
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

impl Engine {
    /// Makes an engine without clients.
    pub fn new() -> Self {
        Self {
            manager: LockManager::new(HashKey::from_bytes(*b"navlocks history")),
            // All kinds of names: ASCII, empty, too long for any small buffer, not ASCII, not even
            // Unicode.
            names: [
                "a".into(),
                "".into(),
                "a/name/that/is/longer/than/what/fits/into/a/few/words".into(),
                "клавиша/鍵/🔑".into(),
                core_api::Name::from_utf16(&[0xD83D, 0x61]),
            ],
            clients: Vec::new(),
            requests: Vec::new(),
            turn: 0,
        }
    }

    /// Returns the snapshot of the engine.
    pub fn snapshot(&self) -> core_api::Snapshot {
        self.manager.snapshot()
    }

    /// Takes the input and returns the engine's answer in the terms of the model, or an objection.
    pub fn apply(&mut self, input: &Input) -> Result<Answer, String> {
        quietly(|| self.take(input))?
    }

    fn take(&mut self, input: &Input) -> Result<Answer, String> {
        Ok(match *input {
            Input::Join => {
                let client = self.manager.add_client();
                if self.clients.last().is_some_and(|last| last.serial() >= client.serial()) {
                    return Err(format!("{client} is not newer than the client before"));
                }
                self.clients.push(client);
                Answer::Joined(self.clients.len() - 1)
            }
            Input::Request { client, ref scope, mode, wait } => {
                match self.manager.request(self.clients[client], self.request(scope, mode, wait)) {
                    Ok((request, answer)) => {
                        if self
                            .requests
                            .last()
                            .is_some_and(|last| last.serial() >= request.serial())
                        {
                            return Err(format!("{request} is not newer than the request before"));
                        }
                        self.requests.push(request);
                        Answer::Made(self.requests.len() - 1, decided(answer))
                    }
                    Err(RequestError::UnknownClient) => Answer::Refused(Refusal::UnknownClient),
                    Err(RequestError::ClientSuspended) => Answer::Refused(Refusal::ClientSuspended),
                    Err(RequestError::ExclusiveOvertake) => {
                        Answer::Refused(Refusal::ExclusiveOvertake)
                    }
                }
            }
            Input::Release(request) => Answer::Effect(self.manager.release(self.requests[request])),
            Input::Downgrade(request, mode) => {
                Answer::Effect(self.manager.downgrade(self.requests[request], mode.into()).is_ok())
            }
            Input::Expire(request) => Answer::Effect(self.manager.expire(self.requests[request])),
            Input::Abort(request) => Answer::Effect(self.manager.abort(self.requests[request])),
            Input::Terminate(client) => {
                Answer::Effect(self.manager.terminate(self.clients[client]))
            }
            Input::ForceRelease(name) => {
                Answer::Count(self.manager.force_release(&self.names[place(name)]))
            }
            Input::Suspend(client, policy) => {
                let policy = match policy {
                    Policy::EvictOnContention => core_api::SuspendPolicy::EvictOnContention,
                    Policy::ReleaseAtOnce => core_api::SuspendPolicy::ReleaseAtOnce,
                };
                Answer::Effect(self.manager.suspend(self.clients[client], policy))
            }
            Input::Resume(client) => Answer::Effect(self.manager.resume(self.clients[client])),
            Input::Query => {
                let snapshot = self.manager.query();
                Answer::Snapshot(self.in_words(&snapshot)?)
            }
            Input::AdvanceToken(at_least) => {
                let advanced = self.manager.advance_token(FencingToken::new(at_least));
                assert_eq!(advanced, Ok(()), "a small token is taken");
                Answer::Nothing
            }
            Input::Poll => {
                let event = self.manager.poll_event();
                Answer::Event(event.map(|event| self.event(event)).transpose()?)
            }
        })
    }

    fn request(&self, scope: &Scope, mode: Mode, wait: Wait) -> Request {
        let names = scope.iter().map(|&name| self.names[place(name)].clone());
        Request {
            scope: core_api::Scope::new(names).expect("the scopes of histories are not empty"),
            mode: mode.into(),
            wait: wait.into(),
        }
    }
}

impl From<Mode> for core_api::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Exclusive => Self::Exclusive,
            Mode::Shared => Self::Shared,
            Mode::Limited(limit) => Self::limited(limit.into()).expect("histories have small ones"),
        }
    }
}

impl From<Wait> for core_api::Wait {
    fn from(wait: Wait) -> Self {
        match wait {
            Wait::Queue => Self::Queue,
            Wait::IfAvailable => Self::IfAvailable,
            Wait::Steal => Self::Steal,
            Wait::StealAll => Self::StealAll,
            Wait::Overtake => Self::Overtake,
        }
    }
}

/// Translates an answer of the engine to the model's.
pub fn decided(answer: core_api::Answer) -> Decided {
    match answer {
        core_api::Answer::Granted(token) => Decided::Granted { token: token.get() },
        core_api::Answer::Unavailable => Decided::Unavailable,
        core_api::Answer::Pending => Decided::Pending,
    }
}

fn place(name: Name) -> usize {
    NAMES.iter().position(|&known| known == name).expect("histories use these names only")
}

/// Translation from the engine to the model.
impl Engine {
    fn request_no(&self, id: RequestId) -> Result<RequestNo, String> {
        let place = self.requests.binary_search_by_key(&id.serial(), |known| known.serial());
        let place = place.map_err(|_| format!("{id} was never made"))?;
        if self.requests[place] == id {
            Ok(place)
        } else {
            Err(format!("{id} has another slot than before"))
        }
    }

    fn client_no(&self, id: ClientId) -> Result<ClientNo, String> {
        let place = self.clients.iter().position(|&known| known == id);
        place.ok_or_else(|| format!("{id} never joined"))
    }

    fn requests_no(&self, ids: &[RequestId]) -> Result<Vec<RequestNo>, String> {
        ids.iter().map(|&id| self.request_no(id)).collect()
    }

    fn event(&self, event: core_api::Event) -> Result<Event, String> {
        Ok(match event {
            core_api::Event::Granted { request, client, token } => Event::Granted {
                request: self.request_no(request)?,
                client: self.client_no(client)?,
                token: token.get(),
            },
            core_api::Event::Lost { request, client, cause } => Event::Lost {
                request: self.request_no(request)?,
                client: self.client_no(client)?,
                cause: self.cause(cause)?,
            },
            core_api::Event::Aborted { request, client, cause } => Event::Aborted {
                request: self.request_no(request)?,
                client: self.client_no(client)?,
                cause: self.cause(cause)?,
            },
            core_api::Event::Evicted { client } => {
                Event::Evicted { client: self.client_no(client)? }
            }
        })
    }

    fn cause(&self, cause: core_api::LossCause) -> Result<LossCause, String> {
        Ok(match cause {
            core_api::LossCause::Stolen { by } => LossCause::Stolen { by: self.request_no(by)? },
            core_api::LossCause::ForceReleased => LossCause::ForceReleased,
            core_api::LossCause::HeldTooLong => LossCause::HeldTooLong,
            core_api::LossCause::Evicted => LossCause::Evicted,
            core_api::LossCause::Suspended => LossCause::Suspended,
        })
    }

    fn scope(&self, scope: &core_api::Scope) -> Result<Scope, String> {
        let names = scope.names();
        if !names.is_sorted_by(|one, next| one.encode_utf16().lt(next.encode_utf16())) {
            return Err(format!("the names of {scope:?} are not sorted by code unit"));
        }
        names
            .iter()
            .map(|name| {
                let place = self.names.iter().position(|known| known == name);
                Ok(NAMES[place.ok_or_else(|| format!("{name:?} was never requested"))?])
            })
            .collect()
    }

    fn infos(&self, infos: &[core_api::RequestInfo]) -> Result<Vec<Info>, String> {
        infos
            .iter()
            .map(|info| {
                Ok(Info {
                    request: self.request_no(info.request)?,
                    client: self.client_no(info.client)?,
                    scope: self.scope(&info.scope)?,
                    mode: match info.mode {
                        core_api::Mode::Exclusive => Mode::Exclusive,
                        core_api::Mode::Shared => Mode::Shared,
                        core_api::Mode::Limited(limit) => Mode::Limited(limit.get() as u8),
                    },
                    token: info.token.map(FencingToken::get),
                })
            })
            .collect()
    }

    fn in_words(&self, snapshot: &core_api::Snapshot) -> Result<Snapshot, String> {
        Ok(Snapshot { held: self.infos(&snapshot.held)?, pending: self.infos(&snapshot.pending)? })
    }

    fn deadlock(&self, deadlock: &core_api::Deadlock) -> Result<Deadlock, String> {
        let clients: Result<_, String> =
            deadlock.clients.iter().map(|&client| self.client_no(client)).collect();
        Ok(Deadlock { requests: self.requests_no(&deadlock.requests)?, clients: clients? })
    }
}

/// The comparison.
impl Engine {
    fn compare(&self, model: &Scopes) -> Result<(), String> {
        self.manager.check_invariants();

        let snapshot = self.manager.snapshot();
        let expected = model.snapshot();
        let shown = self.in_words(&snapshot)?;
        if shown != expected {
            return Err(format!("snapshot:\n      engine: {shown}\n      model:  {expected}"));
        }
        same("held_count", &self.manager.held_count(), &expected.held.len())?;
        same("pending_count", &self.manager.pending_count(), &expected.pending.len())?;
        same("client_count", &self.manager.client_count(), &model.client_count())?;
        same("name_count", &self.manager.name_count(), &model.name_count())?;

        let in_words = |found: Vec<core_api::Deadlock>| -> Result<Vec<Deadlock>, String> {
            found.iter().map(|deadlock| self.deadlock(deadlock)).collect()
        };
        let expected_deadlocks = model.deadlocks();
        let found = self.manager.deadlocks();
        found.iter().try_for_each(|deadlock| self.check_cycle(deadlock))?;
        same("deadlocks", &in_words(found)?, &expected_deadlocks)?;
        let possible = self.manager.possible_deadlocks();
        possible.iter().try_for_each(|deadlock| self.check_cycle(deadlock))?;
        same("possible deadlocks", &in_words(possible)?, &model.possible_deadlocks())?;
        self.check_explanation(&snapshot)?;

        for (number, &request) in self.requests.iter().enumerate() {
            let state = self.manager.state(request).map(|state| match state {
                core_api::State::Pending => State::Pending,
                core_api::State::Held(token) => State::Held { token: token.get() },
            });
            same(&format_args!("state of r{number}"), &state, &model.state(number))?;

            let blockers = self.manager.blockers(request);
            let blockers = Blockers {
                hard: self.requests_no(&blockers.hard)?,
                soft: self.requests_no(&blockers.soft)?,
            };
            same(&format_args!("blockers of r{number}"), &blockers, &model.blockers(number))?;
        }

        // One request a turn, the others in later turns, because each reads all entries again.
        if let Some(number) = self.turn.checked_rem(self.requests.len()) {
            let through = self.manager.deadlock_through(self.requests[number], usize::MAX);
            let through = through.map(|deadlock| self.deadlock(&deadlock)).transpose()?;
            let expected =
                expected_deadlocks.iter().find(|deadlock| deadlock.requests.contains(&number));
            same(&format_args!("deadlock through r{number}"), &through.as_ref(), &expected)?;
        }
        replay(&snapshot)
    }

    /// Checks that an explanation is the snapshot, the blockers and the deadlocks of one moment.
    fn check_explanation(&self, snapshot: &core_api::Snapshot) -> Result<(), String> {
        let bounds = core_api::ExplainBounds { holders_max: 2, ..Default::default() };
        let explained = self.manager.explain(core_api::Explained::All, bounds);
        let Some(explained) = explained else { return Err("there is no explanation".into()) };
        same("explained requests", &explained.requests, snapshot)?;
        let cycles = [self.manager.deadlocks(), self.manager.possible_deadlocks()].concat();
        same("explained deadlocks", &explained.deadlocks, &cycles)?;
        let wait = |info: &core_api::RequestInfo| {
            let core_api::Blockers { mut hard, soft } = self.manager.blockers(info.request);
            let (holders, before) = (hard.len(), soft.len());
            hard.truncate(2);
            let (request, soft) = (info.request, soft.last().copied());
            core_api::BlockedBy { request, hard, soft, holders, before }
        };
        let waits: Vec<_> = snapshot.pending.iter().map(wait).collect();
        same("explained waits", &explained.waits, &waits)?;
        let caught = self.manager.explain(core_api::Explained::Deadlocked, bounds);
        let caught = caught.map(|caught| caught.requests).unwrap_or_default();
        let is_caught = |info: &&core_api::RequestInfo| {
            cycles.iter().any(|cycle| cycle.clients.contains(&info.client))
        };
        let held: Vec<_> = snapshot.held.iter().filter(is_caught).cloned().collect();
        same("deadlocked holders", &caught.held, &held)
    }

    /// Checks that the shortest cycle of a deadlock has requests of it alone, each of which waits
    /// for the next: a pending one for a blocker, a held one for a nested request, or in a possible
    /// cycle for one of its client.
    fn check_cycle(&self, deadlock: &core_api::Deadlock) -> Result<(), String> {
        let cycle = self.manager.shortest_cycle(deadlock);
        let nexts = cycle.iter().cycle().skip(1);
        for (step, next) in cycle.iter().zip(nexts) {
            let waits = match &step.name {
                Some(_) => {
                    let core_api::Blockers { hard, soft } = self.manager.blockers(step.request);
                    hard.contains(&next.request) || soft.contains(&next.request)
                }
                None if deadlock.certain => {
                    self.manager.outer_of(next.request) == Some(step.request)
                }
                None => step.client == next.client,
            };
            if !waits || !deadlock.requests.contains(&step.request) {
                return Err(format!("{step:?} and {next:?} are no steps of {deadlock:?}"));
            }
        }
        if cycle.len() < 2 { Err(format!("{deadlock:?} has no cycle")) } else { Ok(()) }
    }
}

fn same<T: Debug + PartialEq>(
    what: &(impl core::fmt::Display + ?Sized),
    engine: &T,
    model: &T,
) -> Result<(), String> {
    if engine == model {
        return Ok(());
    }
    Err(format!("{what}:\n      engine: {engine:?}\n      model:  {model:?}"))
}

impl Witness for Engine {
    fn see(&mut self, input: &Input, answer: &Answer, model: &Scopes) -> Result<(), String> {
        let own = self.apply(input)?;
        same(&format_args!("answer to {input}"), &own, answer)?;
        if let &Answer::Made(request, _) = answer
            && let Some(outer) = model.outer(request)
        {
            self.manager.nest(self.requests[request], self.requests[outer]);
        }
        Ok(())
    }

    fn settle(&mut self, model: &Scopes) -> Result<(), String> {
        self.turn += 1;
        quietly(|| self.compare(model))?
    }
}
