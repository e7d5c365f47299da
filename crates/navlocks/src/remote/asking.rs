//! Questions to the service, and their answers.

use std::future::poll_fn;
use std::task::{Poll, Waker};

use super::clock;
use super::session::{LinkState, Session, State};
use crate::error::QueryError;
use crate::wakes::Wakes;
use navlocks_client::{KnownQuery, QueryFailure};
use navlocks_wire::{self as wire, Answer, Ask, Question, Reply, ToService};

/// A question without an answer yet, with the task that waits for it.
#[derive(Debug)]
pub(super) struct Asked {
    known: KnownQuery,
    waker: Option<Waker>,
}

impl Asked {
    pub(super) fn client(&self) -> u64 {
        self.known.client()
    }

    /// Ends the wait because the service is silent, and wakes the waiting task.
    pub(super) fn give_up(&mut self, wakes: &mut Wakes) {
        self.known.give_up();
        self.wake(wakes);
    }

    pub(super) fn wake(&mut self, wakes: &mut Wakes) {
        wakes.add_all(self.waker.take());
    }
}

impl From<QueryFailure> for QueryError {
    fn from(failure: QueryFailure) -> Self {
        match failure {
            QueryFailure::Unreachable => Self::Unreachable,
            QueryFailure::OutcomeUnknown => Self::OutcomeUnknown,
        }
    }
}

/// Drops the question when its future is dropped.
struct Waiting<'a> {
    session: &'a Session,
    number: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.session.input(|state| {
            let asked = state.asked.remove(&self.number);
            state.wakes.discard_all(asked.and_then(|asked| asked.waker));
        });
    }
}

impl Session {
    /// Asks the service. Dropping the future forgets the question.
    pub(super) async fn ask(&self, client: u64, question: Question) -> Result<Reply, QueryError> {
        let number = self.input(|state| {
            if !state.clients.contains_key(&client) {
                return Err(QueryError::ClientEnded);
            }
            let number = state.next_ask;
            state.next_ask += 1;
            let message = ToService::Ask(Ask { id: number, client, question });
            let text = wire::write(&message);
            state.known.fits(&text).map_err(|fault| QueryError::Refused(fault.into()))?;
            state.say_text(text);
            state.keepalive.begin(clock::now());
            if let ToService::Ask(ask) = message {
                let sent = state.link == LinkState::Up;
                let known = KnownQuery::new(ask, sent);
                state.asked.insert(number, Asked { known, waker: None });
            }
            Ok(number)
        })?;
        let waiting = Waiting { session: self, number };
        let reply = poll_fn(|cx| self.poll_answer(waiting.number, cx.waker())).await?;
        match reply {
            Reply::Refused(fault) => Err(QueryError::Refused(fault.into())),
            reply => Ok(reply),
        }
    }

    fn poll_answer(&self, number: u64, waker: &Waker) -> Poll<Result<Reply, QueryError>> {
        let waker = waker.clone();
        self.input(|state| {
            let State { asked, link, clients, wakes, .. } = state;
            // The question stays until its future is dropped.
            let Some(asked) = asked.get_mut(&number) else {
                return Poll::Ready(Err(QueryError::ClientEnded));
            };
            if let Some(reply) = asked.known.take_reply() {
                return Poll::Ready(Ok(reply));
            }
            if !clients.contains_key(&asked.client()) {
                return Poll::Ready(Err(QueryError::ClientEnded));
            }
            if let Some(failure) = asked.known.failure() {
                return Poll::Ready(Err(failure.into()));
            }
            match link {
                LinkState::Hopeless => return Poll::Ready(Err(QueryError::Unreachable)),
                LinkState::Refused(refusal) => {
                    return Poll::Ready(Err(QueryError::Refused(refusal.clone())));
                }
                LinkState::Leaving | LinkState::Gone => {
                    return Poll::Ready(Err(QueryError::ClientEnded));
                }
                LinkState::Up | LinkState::Down => {}
            }
            wakes.discard_all(asked.waker.replace(waker));
            Poll::Pending
        })
    }
}

impl State {
    pub(super) fn answered(&mut self, answer: Answer) {
        let Answer { id, reply } = answer;
        if let Some(asked) = self.asked.get_mut(&id) {
            asked.known.answered(reply);
            asked.wake(&mut self.wakes);
        }
    }

    /// Fails the questions that must not be sent twice, because the connection broke.
    pub(super) fn doubt_effects(&mut self) {
        let Self { asked, wakes, .. } = self;
        asked
            .values_mut()
            .filter(|asked| asked.known.is_in_doubt())
            .for_each(|asked| asked.give_up(wakes));
    }

    /// Sends unanswered questions again. A question that is too long for this service fails.
    pub(super) fn ask_again(&mut self) {
        let clients = &self.clients;
        let asked = self.asked.values_mut();
        let of_clients = asked.filter(|asked| clients.contains_key(&asked.client()));
        let mut asks: Vec<Ask> = of_clients.filter_map(|asked| asked.known.resend()).collect();
        asks.sort_unstable_by_key(|ask| ask.id);
        for ask in asks {
            let id = ask.id;
            let text = wire::write(&ToService::Ask(ask));
            match self.known.fits(&text) {
                Ok(()) => self.say_text(text),
                Err(fault) => self.answered(Answer { id, reply: Reply::Refused(fault) }),
            }
        }
    }
}
