//! Histories: the inputs of clients, embedder and faults to a lock manager, applied to the model
//! first.

use core::fmt;

use crate::engine::Engine;
use crate::listing::Listing;
use crate::model::Scopes;
use crate::model::words::{
    Answer, ClientNo, Info, Input, Mode, Name, Policy, RequestNo, Scope, Wait,
};

/// How many clients take part at a time.
pub const SEATS: usize = 4;
/// The names of their requests.
pub const NAMES: [Name; 5] = ['a', 'b', 'c', 'd', 'e'];

/// The next operation. All numbers are taken modulo what exists, so that every list of operations
/// is a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// The client in this seat requests. A seat gets a client on first use, and again after
    /// termination.
    #[allow(missing_docs, reason = "the parts of a request")]
    Request { seat: u8, scope: Scope, mode: Mode, wait: Wait },
    /// A lock is released.
    Release(Which),
    /// A lock is downgraded, or an upgrade is refused.
    Downgrade(Which, Mode),
    /// The time of a lock is over.
    Expire(Which),
    /// A request is aborted.
    Abort(Which),
    /// A client is terminated. A second time is a no-op.
    Terminate(Who),
    /// All locks with this name are released.
    ForceRelease(Name),
    /// A client is suspended.
    Suspend(Who, Policy),
    /// A client is resumed.
    Resume(Who),
    /// A client queries.
    Query,
    /// Tokens continue from here, if they have not passed it.
    AdvanceToken(u8),
    /// The embedder polls events after each operation (as in the beginning), or not any more.
    Polling(bool),
    /// The embedder polls one event.
    Poll,
}

/// A client, by its present state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The client in this seat, terminated or not.
    Seat(u8),
    /// A client with a pending request.
    Waiting(u8),
    /// A suspended client.
    Asleep(u8),
}

/// A request, by its present state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// A held request.
    Held(u8),
    /// A pending request.
    Pending(u8),
    /// Any request ever made, counted back from the latest: often a finished one.
    Ever(u8),
}

/// A history, from the empty lock manager on. Displayed as a story.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The operations, in order.
    pub ops: Vec<Op>,
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Listing::of(&self.ops).fmt(f)
    }
}

/// A follower of a history beside the model, which may object.
pub trait Witness {
    /// Compares an input and its answer with the model.
    fn see(&mut self, input: &Input, answer: &Answer, model: &Scopes) -> Result<(), String>;
    /// Compares the state after an operation.
    fn settle(&mut self, model: &Scopes) -> Result<(), String>;
}

/// An objection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The index of the operation at which they differ.
    pub op: usize,
    /// The story up to and with that operation.
    pub story: String,
    /// The objection of the witness.
    pub objection: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}here they differ: {}", self.story, self.objection)
    }
}

impl core::error::Error for Divergence {}

/// Drives the engine and the model side by side and compares everything after every operation.
pub fn run(ops: &[Op]) -> Result<(), Divergence> {
    play(ops, &mut [&mut Engine::new()])
}

/// Drives the model through the history, with these witnesses.
pub fn play(ops: &[Op], witnesses: &mut [&mut dyn Witness]) -> Result<(), Divergence> {
    let mut stage =
        Stage { model: Scopes::default(), seats: [None; SEATS], polling: true, witnesses };
    for (index, op) in ops.iter().enumerate() {
        stage.perform(op).map_err(|objection| Divergence {
            op: index,
            // The model alone produces the story, so that histories without a divergence do not pay
            // for it.
            story: Listing::of(&ops[..=index]).to_string(),
            objection,
        })?;
    }
    Ok(())
}

struct Stage<'a, 'w> {
    model: Scopes,
    seats: [Option<ClientNo>; SEATS],
    polling: bool,
    witnesses: &'a mut [&'w mut dyn Witness],
}

impl Stage<'_, '_> {
    fn perform(&mut self, op: &Op) -> Result<(), String> {
        match *op {
            Op::Request { seat, ref scope, mode, wait } => {
                let mut client = self.seated(seat)?;
                let request = |client| Input::Request { client, scope: scope.clone(), mode, wait };
                if !self.model.has_client(client) {
                    // A terminated client is refused, and a new one takes the seat.
                    self.input(request(client))?;
                    client = self.join(seat)?;
                }
                self.input(request(client))?;
            }
            Op::Release(which) => {
                if let Some(request) = self.find(which) {
                    self.input(Input::Release(request))?;
                }
            }
            Op::Downgrade(which, mode) => {
                if let Some(request) = self.find(which) {
                    self.input(Input::Downgrade(request, mode))?;
                }
            }
            Op::Expire(which) => {
                if let Some(request) = self.find(which) {
                    self.input(Input::Expire(request))?;
                }
            }
            Op::Abort(which) => {
                if let Some(request) = self.find(which) {
                    self.input(Input::Abort(request))?;
                }
            }
            Op::Terminate(who) => {
                if let Some(client) = self.client(who)? {
                    self.input(Input::Terminate(client))?;
                }
            }
            Op::ForceRelease(name) => {
                self.input(Input::ForceRelease(name))?;
            }
            Op::Suspend(who, policy) => {
                if let Some(client) = self.client(who)? {
                    self.input(Input::Suspend(client, policy))?;
                }
            }
            Op::Resume(who) => {
                if let Some(client) = self.client(who)? {
                    self.input(Input::Resume(client))?;
                }
            }
            Op::Query => {
                self.input(Input::Query)?;
            }
            Op::AdvanceToken(at_least) => {
                self.input(Input::AdvanceToken(u64::from(at_least)))?;
            }
            Op::Polling(polling) => self.polling = polling,
            Op::Poll => {
                self.input(Input::Poll)?;
            }
        }
        if self.polling {
            while self.input(Input::Poll)? != Answer::Event(None) {}
        }
        for witness in &mut *self.witnesses {
            witness.settle(&self.model)?;
        }
        Ok(())
    }

    fn input(&mut self, input: Input) -> Result<Answer, String> {
        let answer = self.model.apply(&input);
        for witness in &mut *self.witnesses {
            witness.see(&input, &answer, &self.model)?;
        }
        Ok(answer)
    }

    /// Returns the client, if there is one.
    fn client(&mut self, who: Who) -> Result<Option<ClientNo>, String> {
        let clients: Vec<ClientNo> = match who {
            Who::Seat(seat) => return self.seated(seat).map(Some),
            Who::Waiting(_) => {
                self.model.snapshot().pending.iter().map(|info| info.client).collect()
            }
            Who::Asleep(_) => {
                let known = self.seats.iter().flatten().copied();
                known.filter(|&client| self.model.is_suspended(client)).collect()
            }
        };
        let (Who::Seat(number) | Who::Waiting(number) | Who::Asleep(number)) = who;
        Ok(usize::from(number).checked_rem(clients.len()).map(|place| clients[place]))
    }

    /// Returns the client of the seat, terminated or not; a new one on an empty seat.
    fn seated(&mut self, seat: u8) -> Result<ClientNo, String> {
        match self.seats[usize::from(seat) % SEATS] {
            Some(client) => Ok(client),
            None => self.join(seat),
        }
    }

    fn join(&mut self, seat: u8) -> Result<ClientNo, String> {
        let Answer::Joined(client) = self.input(Input::Join)? else {
            return Err("who joins gets a number".into());
        };
        self.seats[usize::from(seat) % SEATS] = Some(client);
        Ok(client)
    }

    /// Returns the request, if there ever was one.
    fn find(&self, which: Which) -> Option<RequestNo> {
        let among = |infos: &[Info], number: u8| {
            let place = usize::from(number).checked_rem(infos.len())?;
            Some(infos[place].request)
        };
        let made = self.model.requests_made();
        match which {
            Which::Held(number) => among(&self.model.snapshot().held, number),
            Which::Pending(number) => among(&self.model.snapshot().pending, number),
            Which::Ever(back) => {
                let back = usize::from(back).checked_rem(made)?;
                Some(made - 1 - back)
            }
        }
    }
}
