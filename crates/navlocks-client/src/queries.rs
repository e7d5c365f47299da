//! One question to the service, until its answer.

use navlocks_wire::{Ask, Fault, Question, Reply};

/// A question as the client knows it.
#[derive(Debug)]
pub(crate) struct KnownQuery {
    /// The question, to be sent again over another connection.
    ask: Ask,
    /// Whether a service may have received it.
    sent: bool,
    reply: Option<Reply>,
    failure: Option<QueryFailure>,
}

/// Why no answer is awaited any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryFailure {
    /// Its client ended.
    ClientEnded,
    /// The service refuses it, or would.
    Refused(Fault),
    /// The service cannot be reached, or is silent.
    Unreachable,
    /// The service may have changed locks for the question, and its answer is missing.
    OutcomeUnknown,
}

impl KnownQuery {
    /// Makes a question without an answer; it is `sent` if there is a connection.
    pub(crate) fn new(ask: Ask, sent: bool) -> Self {
        Self { ask, sent, reply: None, failure: None }
    }

    /// Returns the client that asks.
    pub(crate) fn client(&self) -> u64 {
        self.ask.client
    }

    /// Notes the answer.
    pub(crate) fn answered(&mut self, reply: Reply) {
        self.reply = Some(reply);
    }

    /// Takes the answer, if it has come.
    pub(crate) fn take_reply(&mut self) -> Option<Reply> {
        self.reply.take()
    }

    /// Returns why no answer is awaited any more.
    pub(crate) fn failure(&self) -> Option<QueryFailure> {
        self.failure.clone()
    }

    /// Ends the wait for an answer. One that comes in time counts nevertheless.
    pub(crate) fn give_up(&mut self) {
        let failure = match self.is_in_doubt() {
            true => QueryFailure::OutcomeUnknown,
            false => QueryFailure::Unreachable,
        };
        self.failure.get_or_insert(failure);
    }

    /// Returns true if the service may have changed locks for it, and its answer is missing: it
    /// must not be sent twice.
    pub(crate) fn is_in_doubt(&self) -> bool {
        let has_effect = matches!(self.ask.question, Question::ForceRelease(_));
        has_effect && self.sent && self.reply.is_none()
    }

    /// Returns the question to be sent over a new connection, and notes that. Returns none if no
    /// answer is awaited.
    pub(crate) fn resend(&mut self) -> Option<Ask> {
        if self.reply.is_some() || self.failure.is_some() {
            return None;
        }
        self.sent = true;
        Some(self.ask.clone())
    }
}

#[cfg(test)]
mod tests {
    use navlocks_wire::LocksOf;

    use super::*;

    fn query(question: Question, sent: bool) -> KnownQuery {
        KnownQuery::new(Ask { id: 1, client: 0, question }, sent)
    }

    #[test]
    fn question_with_an_effect_is_not_sent_twice() {
        let release = || Question::ForceRelease("a".into());
        let cases = [
            (Question::Locks(LocksOf::Partition), true, QueryFailure::Unreachable),
            (release(), false, QueryFailure::Unreachable),
            (release(), true, QueryFailure::OutcomeUnknown),
        ];
        for (question, sent, failure) in cases {
            let mut asked = query(question, sent);
            assert_eq!(asked.is_in_doubt(), failure == QueryFailure::OutcomeUnknown);
            asked.give_up();
            assert_eq!((asked.failure(), asked.resend()), (Some(failure), None));
        }
        let mut unsent = query(release(), false);
        assert!(unsent.resend().is_some() && unsent.is_in_doubt());
    }

    #[test]
    fn answer_ends_the_doubt_and_counts_after_a_failure() {
        let mut asked = query(Question::ForceRelease("a".into()), true);
        asked.give_up();
        asked.answered(Reply::Released(1));
        assert!(!asked.is_in_doubt() && asked.resend().is_none());
        assert_eq!(asked.take_reply(), Some(Reply::Released(1)));
    }
}
