//! Histories: what clients, the embedder and fate do to a lock manager, and the model that goes
//! through it first.

use core::fmt;

use crate::engine::Engine;
use crate::model::Scopes;
use crate::model::words::{
    Answer, ClientNo, Info, Input, Mode, Name, Policy, RequestNo, Scope, Wait,
};
use crate::story::Story;

/// How many clients take part at a time.
pub const SEATS: usize = 4;
/// The names they ask for.
pub const NAMES: [Name; 5] = ['a', 'b', 'c', 'd', 'e'];

/// What happens next. All numbers are taken modulo what exists, so that every list of ops is a
/// history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// The client in this seat requests. A seat is taken on first use, and again after its client
    /// was terminated.
    #[allow(missing_docs, reason = "the parts of a request")]
    Request { seat: u8, scope: Scope, mode: Mode, wait: Wait },
    /// A lock is released.
    Release(Which),
    /// A request is aborted.
    Abort(Which),
    /// A client dies. Once more is a no-op.
    Terminate(Who),
    /// All locks with this name are released.
    ForceRelease(Name),
    /// A client is suspended.
    Suspend(Who, Policy),
    /// A client is resumed.
    Resume(Who),
    /// Somebody queries.
    Query,
    /// Tokens go on from here, if they have not passed it.
    AdvanceToken(u8),
    /// The embedder polls events after each op (as it does in the beginning), or not any more.
    Polling(bool),
    /// It polls one event.
    Poll,
}

/// A client, by how it fares now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Whoever sits there, dead or alive.
    Seat(u8),
    /// One of those who have a pending request.
    Waiting(u8),
    /// One of those who are suspended.
    Asleep(u8),
}

/// A request, by where it stands now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// One of those held.
    Held(u8),
    /// One of those pending.
    Pending(u8),
    /// One of all that were ever made, counted back from the latest: often one that is over.
    Ever(u8),
}

/// A history, from the empty lock manager on. Prints itself as a story.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// What happens, in order.
    pub ops: Vec<Op>,
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Story::of(&self.ops).fmt(f)
    }
}

/// Somebody who follows a history beside the model and may object.
pub trait Witness {
    /// The model took the input and gave the answer.
    fn see(&mut self, input: &Input, answer: &Answer, model: &Scopes) -> Result<(), String>;
    /// The op is over.
    fn settle(&mut self, model: &Scopes) -> Result<(), String>;
}

/// An objection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The index of the op in which they parted.
    pub op: usize,
    /// What happened up to and with that op.
    pub story: String,
    /// What the witness says.
    pub objection: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}here they differ: {}", self.story, self.objection)
    }
}

impl core::error::Error for Divergence {}

/// Drives the engine and the model side by side and compares everything there is to compare after
/// every op.
pub fn run(ops: &[Op]) -> Result<(), Divergence> {
    play(ops, &mut [&mut Engine::new()])
}

/// Drives the model through the history, before the eyes of the witnesses.
pub fn play(ops: &[Op], witnesses: &mut [&mut dyn Witness]) -> Result<(), Divergence> {
    let mut stage =
        Stage { model: Scopes::default(), seats: [None; SEATS], polling: true, witnesses };
    for (index, op) in ops.iter().enumerate() {
        stage.perform(op).map_err(|objection| Divergence {
            op: index,
            // The story is told by the model alone, so that histories without a divergence need not
            // pay for it.
            story: Story::of(&ops[..=index]).to_string(),
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
                    // A dead client is refused, and somebody else takes the seat.
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

    /// The client that is meant, if there is one.
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

    /// Who sits there, dead or alive; somebody new on an empty seat.
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

    /// The request that is meant, if there ever was one.
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
