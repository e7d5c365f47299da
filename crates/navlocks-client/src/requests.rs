//! One request of a session, from its beginning to its end.

use std::time::Duration;

use navlocks_core::{FencingToken, Mode, Wait};
use navlocks_wire::{self as wire, Fault, Granted, Lost, QueuePlace, Refused, Request};

use crate::holds::{earliest_grant, hold_deadline};
use crate::moment::Moment;

/// A request as the client knows it, with the data that the driver attached.
#[derive(Debug)]
pub(crate) struct KnownRequest<T> {
    /// The message, to be sent again over another connection.
    pub(crate) request: Request,
    pub(crate) stage: Stage,
    /// Whether a service may have received it.
    pub(crate) sent: bool,
    /// The place in the queue, if the service sent one.
    pub(crate) place: Option<QueuePlace>,
    /// The driver watches the lock for contention that has not come.
    pub(crate) is_watched: bool,
    /// When it was made or sent, or its lock was granted at the earliest.
    since: Moment,
    /// Until when its lock may be held.
    pub(crate) until: Moment,
    /// The unanswered downgrade of its lock. The message above has the mode already.
    pub(crate) downgrade: Option<Mode>,
    /// Its grant waits for the outcome of a steal of its client.
    pub(crate) is_crossing: bool,
    pub(crate) data: T,
}

/// The stage of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
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

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// It wanted its lock only if available, and it is not.
    Unavailable,
    /// The service refuses it, or would.
    Refused(Box<Refused>),
    /// The service cannot be reached, or is silent.
    Unreachable,
    /// It steals, and its session ended before the answer, or came to a new owner of a cluster's
    /// locks: another client may hold the lock.
    OutcomeUnknown,
    /// Its lock was lost, or it was aborted while it was pending.
    Lost(LossCause),
}

/// Why a lock was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// The service took it away.
    Taken {
        /// The cause.
        cause: wire::LossCause,
        /// The thief in words, if the service sent them.
        thief: Option<Box<str>>,
    },
    /// Its client ended.
    ClientEnded,
    /// The lease ended before the service answered.
    LeaseLapsed,
    /// The service ended the session, or is gone.
    ServiceGone,
    /// Its longest time is over by the clock of the client.
    HeldTooLong,
}

impl Over {
    /// Makes the end of a request that is refused for this reason.
    pub(crate) fn refused(fault: Fault) -> Self {
        Self::Refused(Box::new(Refused { fault, cycle: None }))
    }
}

impl From<Lost> for LossCause {
    fn from(Lost { cause, thief }: Lost) -> Self {
        Self::Taken { cause, thief }
    }
}

/// The effect of the end of a session on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lapsed {
    /// It waits for the next session, or was over before.
    Unchanged,
    /// It steals, and the service may have done that: another client may hold the lock by now.
    OutcomeUnknown,
    /// Its lock is lost.
    Lost,
}

impl<T> KnownRequest<T> {
    /// Makes a pending request; it is `sent` if there is a connection.
    pub(crate) fn new(request: Request, sent: bool, now: Moment, data: T) -> Self {
        Self {
            request,
            stage: Stage::Pending,
            sent,
            place: None,
            is_watched: false,
            since: now,
            until: Moment::NEVER,
            downgrade: None,
            is_crossing: false,
            data,
        }
    }

    pub(crate) fn is_pending(&self) -> bool {
        matches!(self.stage, Stage::Pending)
    }

    pub(crate) fn loss(&self) -> Option<&LossCause> {
        match &self.stage {
            Stage::Over(Over::Lost(loss)) => Some(loss),
            _ => None,
        }
    }

    /// Returns true if the service must keep it.
    pub(crate) fn is_alive(&self) -> bool {
        !matches!(self.stage, Stage::Over(_))
    }

    /// Returns true if it steals, and a service that has not answered may have done that.
    pub(crate) fn is_steal_in_doubt(&self) -> bool {
        self.is_pending() && self.sent && is_steal(&self.request)
    }

    /// Returns the request as a claim has it: with its age, and the token of a held one or the
    /// place of a pending one. Returns none when it is over.
    pub(crate) fn claim(&self, now: Moment) -> Option<Request> {
        let (token, place) = match self.stage {
            Stage::Pending => (None, self.place),
            Stage::Granted(token) | Stage::Held(token) => (Some(token.get()), None),
            Stage::Over(_) => return None,
        };
        let ms = u64::try_from(now.saturating_since(self.since).as_millis()).ok();
        Some(Request { token, place, ms, ..self.request.clone() })
    }

    /// Notes that it is sent, and that a service may have received it. The first time counts, and
    /// a service that received none of these messages counts from the next.
    pub(crate) fn note_sent(&mut self, now: Moment) {
        if !std::mem::replace(&mut self.sent, true) {
            self.since = now;
        }
    }

    /// Grants it, after it waited for so long at the service.
    pub(crate) fn grant(&mut self, granted: &Granted, is_far: bool, now: Moment) {
        self.stage = Stage::Granted(FencingToken::new(granted.token));
        let Some(max_ms) = self.request.max_hold_ms else {
            self.since = now;
            return;
        };
        let waited = Duration::from_millis(granted.waited_ms);
        self.since = earliest_grant(self.since, waited, is_far).min(now);
        self.until = hold_deadline(self.since, Duration::from_millis(max_ms), is_far);
    }

    /// Gives its lock a mode that allows more holders. Returns false if this one allows fewer.
    pub(crate) fn downgrade(&mut self, mode: Mode) -> bool {
        let allowed = self.request.mode.downgrades_to(mode);
        if allowed {
            self.request.mode = mode;
            self.downgrade = Some(mode);
        }
        allowed
    }

    /// Takes the mode that the service gave its lock. Returns true if no downgrade is left without
    /// an answer.
    pub(crate) fn downgraded(&mut self, mode: Mode) -> bool {
        if self.downgrade.is_some_and(|asked| asked.downgrades_to(mode)) {
            self.downgrade = None;
        }
        self.downgrade.is_none()
    }

    /// Ends its session. A request that waits has no place any more, and a grant that its future
    /// has not received is void. The caller ends a request that is lost or in doubt.
    pub(crate) fn lapse(&mut self) -> Lapsed {
        (self.place, self.until, self.downgrade) = (None, Moment::NEVER, None);
        self.is_crossing = false;
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
pub(crate) fn is_steal(request: &Request) -> bool {
    matches!(request.wait, Wait::Steal | Wait::StealAll)
}

#[cfg(test)]
mod tests {
    use super::*;
    use navlocks_wire::ToService;

    fn at(seconds: u64) -> Moment {
        Moment::from_nanoseconds(seconds * 1_000_000_000)
    }

    fn known(message: &str) -> KnownRequest<()> {
        let Ok(ToService::Request(request)) = navlocks_wire::read(message) else {
            panic!("{message}")
        };
        KnownRequest::new(request, true, at(100), ())
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
        request.grant(&Granted::new(7, 9), false, at(110));
        assert_eq!(shown(&request, at(112)), Some((Some(9), None, Some(2000))));
        request.stage = Stage::Held(FencingToken::new(9));
        assert_eq!(shown(&request, at(105)), Some((Some(9), None, Some(0))));
        request.stage = Stage::Over(Over::Lost(LossCause::ServiceGone));
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
            (
                plain,
                Stage::Over(Over::Unavailable),
                Lapsed::Unchanged,
                Stage::Over(Over::Unavailable),
            ),
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
}
