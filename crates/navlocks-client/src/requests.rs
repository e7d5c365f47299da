//! One request of a session, from its beginning to its end.

use navlocks_core::{FencingToken, Wait};
use navlocks_wire::{QueuePlace, Request};

use crate::moment::Moment;

/// A request as the client knows it. `Over` is how it ended.
#[derive(Debug)]
pub struct KnownRequest<Over> {
    /// The message, to be sent again over another connection.
    pub request: Request,
    /// The stage of the request.
    pub stage: Stage<Over>,
    /// Whether a service may have received it.
    pub sent: bool,
    /// The place in the queue, if the service sent one.
    pub place: Option<QueuePlace>,
    /// When it was made, or granted.
    since: Moment,
}

/// The stage of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage<Over> {
    /// Not answered yet.
    Pending,
    /// Granted, and its future has not received that: if the session ends first, it is requested
    /// again.
    Granted(FencingToken),
    /// Its lock has a guard.
    Held(FencingToken),
    /// Over, until its future has received that or its guard is dropped.
    Over(Over),
}

/// The effect of the end of a session on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lapsed {
    /// It waits for the next session, or was over before.
    Unchanged,
    /// It steals, and the service may have done that: another client may hold the lock by now.
    OutcomeUnknown,
    /// Its lock is lost.
    Lost,
}

impl<Over> KnownRequest<Over> {
    /// Makes a pending request; it is `sent` if there is a connection.
    pub fn new(request: Request, sent: bool, now: Moment) -> Self {
        Self { request, stage: Stage::Pending, sent, place: None, since: now }
    }

    /// Returns true if a later request of the same client takes this lock away: it steals, and
    /// their scopes intersect.
    pub fn is_stolen_by(&self, steal: &Request) -> bool {
        let own = &self.request;
        steal.id > own.id
            && steal.client == own.client
            && is_steal(steal)
            && steal.names.0.intersects(&own.names.0)
    }

    /// Returns true if the service must keep it.
    pub fn is_alive(&self) -> bool {
        !matches!(self.stage, Stage::Over(_))
    }

    /// Returns the request as a claim has it: with its age, and the token of a held one or the
    /// place of a pending one. Returns none when it is over.
    pub fn claim(&self, now: Moment) -> Option<Request> {
        let (token, place) = match self.stage {
            Stage::Pending => (None, self.place),
            Stage::Granted(token) | Stage::Held(token) => (Some(token.get()), None),
            Stage::Over(_) => return None,
        };
        let ms = u64::try_from(now.saturating_since(self.since).as_millis()).ok();
        Some(Request { token, place, ms, ..self.request.clone() })
    }

    /// Grants it.
    pub fn grant(&mut self, token: FencingToken, now: Moment) {
        self.stage = Stage::Granted(token);
        self.since = now;
    }

    /// Ends its session. A request that waits has no place any more, and a grant that its future
    /// has not received is void. The caller ends a request that is lost or in doubt.
    pub fn lapse(&mut self) -> Lapsed {
        self.place = None;
        match self.stage {
            Stage::Pending | Stage::Granted(_) => {
                self.stage = Stage::Pending;
                match std::mem::take(&mut self.sent) && is_steal(&self.request) {
                    true => Lapsed::OutcomeUnknown,
                    false => Lapsed::Unchanged,
                }
            }
            Stage::Held(_) => Lapsed::Lost,
            Stage::Over(_) => Lapsed::Unchanged,
        }
    }
}

/// Returns true if the request takes locks away from their holders.
pub fn is_steal(request: &Request) -> bool {
    matches!(request.wait, Wait::Steal | Wait::StealAll)
}

#[cfg(test)]
mod tests {
    use super::*;
    use navlocks_wire::ToService;

    fn at(seconds: u64) -> Moment {
        Moment::from_nanoseconds(seconds * 1_000_000_000)
    }

    fn known(message: &str) -> KnownRequest<&'static str> {
        let Ok(ToService::Request(request)) = navlocks_wire::read(message) else {
            panic!("{message}")
        };
        KnownRequest::new(request, true, at(100))
    }

    #[test]
    fn claim_has_the_age_of_the_stage_and_its_token_or_place() {
        let mut request = known(r#"{"request":{"id":7,"names":["a"]}}"#);
        let shown = |request: &KnownRequest<_>, now| {
            let claimed = request.claim(now)?;
            Some((claimed.token, claimed.place, claimed.ms))
        };
        let place = QueuePlace { epoch: 1, number: 4 };
        request.place = Some(place);
        assert_eq!(shown(&request, at(103)), Some((None, Some(place), Some(3000))));
        request.grant(FencingToken::new(9), at(110));
        assert_eq!(shown(&request, at(112)), Some((Some(9), None, Some(2000))));
        request.stage = Stage::Held(FencingToken::new(9));
        assert_eq!(shown(&request, at(105)), Some((Some(9), None, Some(0))));
        request.stage = Stage::Over("lost");
        assert_eq!(shown(&request, at(113)), None);
    }

    #[test]
    fn end_of_a_session_loses_locks_and_leaves_steals_in_doubt() {
        let token = FencingToken::new(9);
        let (plain, steal) = (
            r#"{"request":{"id":7,"names":["a"]}}"#,
            r#"{"request":{"id":7,"names":["a"],"wait":"steal"}}"#,
        );
        let cases = [
            (plain, Stage::Pending, Lapsed::Unchanged, Stage::Pending),
            (plain, Stage::Granted(token), Lapsed::Unchanged, Stage::Pending),
            (plain, Stage::Held(token), Lapsed::Lost, Stage::Held(token)),
            (plain, Stage::Over("no"), Lapsed::Unchanged, Stage::Over("no")),
            (steal, Stage::Pending, Lapsed::OutcomeUnknown, Stage::Pending),
            (steal, Stage::Granted(token), Lapsed::OutcomeUnknown, Stage::Pending),
            (steal, Stage::Held(token), Lapsed::Lost, Stage::Held(token)),
        ];
        for (message, stage, expected, left) in cases {
            let mut request = known(message);
            (request.stage, request.place) = (stage.clone(), Some(QueuePlace::default()));
            assert_eq!((request.lapse(), &request.stage), (expected, &left), "{message} {stage:?}");
            assert_eq!(request.place, None);
        }
        let mut unsent = known(steal);
        unsent.sent = false;
        assert_eq!(unsent.lapse(), Lapsed::Unchanged);
    }

    #[test]
    fn lock_is_stolen_by_a_later_steal_of_its_client_on_its_names() {
        let held = known(r#"{"request":{"id":7,"names":["a","b"]}}"#);
        let cases = [
            (r#"{"request":{"id":8,"names":["b"],"wait":"steal"}}"#, true),
            (r#"{"request":{"id":8,"names":["c"],"wait":"steal"}}"#, false),
            (r#"{"request":{"id":6,"names":["b"],"wait":"steal"}}"#, false),
            (r#"{"request":{"id":8,"client":1,"names":["b"],"wait":"steal"}}"#, false),
            (r#"{"request":{"id":8,"names":["b"]}}"#, false),
        ];
        for (message, stolen) in cases {
            assert_eq!(held.is_stolen_by(&known(message).request), stolen, "{message}");
        }
    }
}
