//! Questions to the service, and their answers.

use navlocks_wire::{self as wire, Answer, Ask, Question, Reply, ToService};

use super::{Event, LinkState, Machine};
use crate::moment::Moment;
use crate::queries::{KnownQuery, QueryFailure};

impl<T> Machine<T> {
    /// Asks the service, and returns the number of the question. [`Event::Answered`] follows.
    ///
    /// # Errors
    ///
    /// The client has ended, or the service would refuse the question.
    pub fn ask(
        &mut self,
        client: u64,
        question: Question,
        now: Moment,
    ) -> Result<u64, QueryFailure> {
        if !self.clients.contains_key(&client) {
            return Err(QueryFailure::ClientEnded);
        }
        if let Some(fault) = self.refusal_of(client) {
            return Err(QueryFailure::Refused(fault));
        }
        let number = self.next_query;
        let message = ToService::Ask(Ask { id: number, client, question });
        let text = wire::write(&message);
        self.session.check_length(&text).map_err(QueryFailure::Refused)?;
        self.next_query += 1;
        let sent = self.link == LinkState::Up;
        if sent {
            self.send_text(text);
            self.keepalive.begin(now);
        }
        if let ToService::Ask(ask) = message {
            self.queries.insert(number, KnownQuery::new(ask, sent));
        }
        Ok(number)
    }

    /// Returns the answer to a question, or why there will be none. Returns none while it is
    /// awaited.
    pub fn answer(&mut self, number: u64) -> Option<Result<Reply, QueryFailure>> {
        let Some(query) = self.queries.get_mut(&number) else {
            return Some(Err(QueryFailure::ClientEnded));
        };
        match query.take_reply() {
            Some(Reply::Refused(fault)) => return Some(Err(QueryFailure::Refused(fault))),
            Some(reply) => return Some(Ok(reply)),
            None => {}
        }
        if !self.clients.contains_key(&query.client()) {
            return Some(Err(QueryFailure::ClientEnded));
        }
        let failure = query.failure().or_else(|| match &self.link {
            LinkState::Up | LinkState::Down => None,
            LinkState::GaveUp => Some(QueryFailure::Unreachable),
            LinkState::Refused(fault) => Some(QueryFailure::Refused(fault.clone())),
            LinkState::Leaving | LinkState::Gone => Some(QueryFailure::ClientEnded),
        });
        failure.map(Err)
    }

    /// Forgets a question: its answer is not awaited any more.
    pub fn forget_query(&mut self, number: u64) {
        self.queries.remove(&number);
    }

    pub(super) fn answered(&mut self, answer: Answer) {
        if let Some(query) = self.queries.get_mut(&answer.id) {
            query.answered(answer.reply);
            self.events.push_back(Event::Answered(answer.id));
        }
    }

    /// Ends the wait for these answers.
    pub(super) fn give_up_queries(&mut self, which: impl Fn(&KnownQuery) -> bool) {
        for (&number, query) in self.queries.iter_mut().filter(|(_, query)| which(query)) {
            query.give_up();
            self.events.push_back(Event::Answered(number));
        }
    }

    /// Sends unanswered questions again. A question that is too long for this service fails.
    pub(super) fn ask_again(&mut self) {
        let clients = &self.clients;
        let queries = self.queries.values_mut();
        let of_clients = queries.filter(|query| clients.contains_key(&query.client()));
        let asks: Vec<Ask> = of_clients.filter_map(KnownQuery::resend).collect();
        for ask in asks {
            let (id, refused) = (ask.id, self.refusal_of(ask.client));
            let text = wire::write(&ToService::Ask(ask));
            let checked = refused.map_or(Ok(()), Err);
            match checked.and_then(|()| self.session.check_length(&text)) {
                Ok(()) => self.send_text(text),
                Err(fault) => self.answered(Answer { id, reply: Reply::Refused(fault) }),
            }
        }
    }
}
