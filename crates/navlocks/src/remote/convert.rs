//! Translation of the service's messages into the types of this crate.

use std::sync::Arc;
use std::time::Duration;

use navlocks_client::{Over, QueryFailure};
use navlocks_core::{BlockedBy, Deadlock, FencingToken, Name, RequestId};
use navlocks_wire::{self as wire, About, FaultCode};

use crate::backend::Answer;
use crate::deadlock::Cycle;
use crate::error::{LossCause, QueryError, Refusal, RequestErrorKind};
use crate::events::{Event, EventKind};
use crate::query::{PartitionSnapshot, Place, RequestInfo, Snapshot, UnclaimedSession, Waits};

impl From<wire::Fault> for Refusal {
    fn from(fault: wire::Fault) -> Self {
        Self::new(fault.message.into(), fault.code.dom_exception_name())
    }
}

impl From<navlocks_client::LossCause> for LossCause {
    fn from(loss: navlocks_client::LossCause) -> Self {
        use navlocks_client::LossCause;
        match loss {
            LossCause::Taken { cause, thief } => match cause.into() {
                Self::Stolen { by } => Self::Stolen { by: by.described(thief) },
                other => other,
            },
            LossCause::ClientEnded => Self::ClientEnded,
            LossCause::LeaseLapsed => Self::LeaseLapsed,
            LossCause::ServiceGone => Self::ServiceGone,
            LossCause::HeldTooLong => Self::HeldTooLong,
        }
    }
}

impl From<Over> for Answer {
    fn from(over: Over) -> Self {
        Self::Failed(match over {
            Over::Unavailable => return Self::Unavailable,
            Over::Refused(refused) => (*refused).into(),
            Over::Unreachable => RequestErrorKind::Unreachable,
            Over::OutcomeUnknown => RequestErrorKind::OutcomeUnknown,
            Over::Lost(loss) => LossCause::from(loss).into(),
        })
    }
}

impl From<wire::Refused> for RequestErrorKind {
    fn from(wire::Refused { fault, cycle, .. }: wire::Refused) -> Self {
        match (fault.code, cycle) {
            (FaultCode::Deadlock, Some(cycle)) => Self::Deadlock(cycle.into()),
            (FaultCode::ExclusiveOvertake, _) => Self::ExclusiveOvertake,
            _ => Self::Refused(fault.into()),
        }
    }
}

impl From<QueryFailure> for QueryError {
    fn from(failure: QueryFailure) -> Self {
        match failure {
            QueryFailure::ClientEnded => Self::ClientEnded,
            QueryFailure::Refused(fault) => Self::Refused(fault.into()),
            QueryFailure::Unreachable => Self::Unreachable,
            QueryFailure::OutcomeUnknown => Self::OutcomeUnknown,
        }
    }
}

impl From<wire::LossCause> for LossCause {
    fn from(cause: wire::LossCause) -> Self {
        match cause {
            wire::LossCause::Stolen(by) => Self::Stolen { by: RequestId::from(by).into() },
            wire::LossCause::ForceReleased => Self::ForceReleased,
            wire::LossCause::HeldTooLong => Self::HeldTooLong,
            wire::LossCause::Evicted => Self::Evicted,
            wire::LossCause::Suspended => Self::Suspended,
            wire::LossCause::ClientEnded => Self::ClientEnded,
            wire::LossCause::NotReclaimed => Self::ServiceGone,
        }
    }
}

/// Returns a tag as text. A lone surrogate of a JavaScript client becomes an escape.
fn text_of(tag: Name) -> Arc<str> {
    tag.to_str().map_or_else(|| tag.to_string().into(), Into::into)
}

impl From<wire::RequestEvent> for Event {
    fn from(event: wire::RequestEvent) -> Self {
        let wire::RequestEvent { about, what, .. } = event;
        let About { request, client, names, mode, tag, traceparent, pid, .. } = about;
        Self {
            request: request.into(),
            client: client.into(),
            scope: names.0,
            mode,
            tag: tag.map(text_of),
            traceparent: traceparent.map(|trace| trace.as_str().into()),
            pid,
            kind: what.into(),
        }
    }
}

impl From<wire::What> for EventKind {
    fn from(what: wire::What) -> Self {
        use wire::What;
        match what {
            What::Requested => Self::Requested,
            What::Granted(token) => Self::Granted(FencingToken::new(token)),
            What::Unavailable => Self::Unavailable,
            What::Released => Self::Released,
            What::Downgraded => Self::Downgraded,
            What::Withdrawn => Self::Withdrawn,
            What::Aborted(cause) => Self::Aborted(cause.into()),
            What::Lost(cause) => Self::Lost(cause.into()),
            What::Deadlock(cycle) => Self::Deadlock(cycle.into()),
        }
    }
}

impl From<wire::Cycle> for Cycle {
    fn from(cycle: wire::Cycle) -> Self {
        let wire::Cycle { clients, requests, outer, possible } = cycle;
        Deadlock {
            clients: clients.into_iter().map(Into::into).collect(),
            requests: requests.into_iter().map(Into::into).collect(),
            outer: outer.map(Into::into),
            certain: !possible,
        }
        .into()
    }
}

impl From<wire::Info> for RequestInfo {
    fn from(info: wire::Info) -> Self {
        let wire::Info { about, token, ms, left_ms, within, stopped } = info;
        let About { request, client, names, mode, tag, traceparent, pid, process } = about;
        Self {
            request: request.into(),
            client: client.into(),
            scope: names.0,
            mode,
            token: token.map(FencingToken::new),
            tag: tag.map(text_of),
            traceparent: traceparent.map(|trace| trace.as_str().into()),
            age: Duration::from_millis(ms),
            left: left_ms.map(Duration::from_millis),
            pid,
            process: process.map(Into::into),
            within: within.map(Into::into),
            stopped,
        }
    }
}

impl From<wire::Waits> for Waits {
    fn from(told: wire::Waits) -> Self {
        let wire::Waits { held, pending, waits, cycles, more } = told;
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let wait = |wait: wire::BlockedBy| {
            let hard = wait.hard.into_iter().map(Into::into).collect();
            let (soft, holders) = (wait.soft.map(Into::into), count(wait.holders));
            let (request, before) = (wait.request.into(), count(wait.before));
            BlockedBy { request, hard, soft, holders, before }
        };
        Self {
            requests: Snapshot::received(held, pending),
            waits: waits.into_iter().map(wait).collect(),
            cycles: cycles.into_iter().map(Into::into).collect(),
            more: count(more),
        }
    }
}

impl From<wire::Place> for Place {
    fn from(place: wire::Place) -> Self {
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let held = place.held.into_iter().map(Into::into).collect();
        Self { before: count(place.before), holders: count(place.holders), held }
    }
}

impl From<wire::UnclaimedSession> for UnclaimedSession {
    fn from(told: wire::UnclaimedSession) -> Self {
        let wire::UnclaimedSession { session, pid, left_ms, held } = told;
        let held = usize::try_from(held).unwrap_or(usize::MAX);
        Self { session, pid, left: left_ms.map(Duration::from_millis), held }
    }
}

impl Snapshot {
    /// Makes a snapshot of the reply of a service.
    pub(crate) fn received(held: Vec<wire::Info>, pending: Vec<wire::Info>) -> Self {
        let infos = |infos: Vec<wire::Info>| infos.into_iter().map(Into::into).collect();
        Self { held: infos(held), pending: infos(pending) }
    }
}

impl From<wire::Partition> for PartitionSnapshot {
    fn from(told: wire::Partition) -> Self {
        let wire::Partition { partition, tenant, origin, held, pending } = told;
        Self { partition, tenant, origin, snapshot: Snapshot::received(held, pending) }
    }
}
