//! Verdicts: what becomes of a request that a client names when it comes back.
//!
//! The same for a session that lives here, for one that a registry knows, and in a cluster.

use navlocks_wire::LossCause;

use crate::store::RequestState;

/// The fate of a named request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Its client goes on holding the lock under this token.
    Keep(u64),
    /// It holds the lock under this token, and its client does not know yet.
    Tell(u64),
    /// It goes on waiting at this place.
    Queue(u64),
    /// It is over.
    Lost(LossCause),
    /// It is not known, and counts as a new one.
    New,
}

/// Judges a request by what is known of it, by why it was taken away if it was, and by the token
/// that its client believes in.
pub(super) fn judge(
    known: Option<RequestState>,
    taken: Option<LossCause>,
    believed: Option<u64>,
) -> Verdict {
    match (taken, known, believed) {
        (Some(cause), _, _) | (None, Some(RequestState::Lost(cause)), _) => Verdict::Lost(cause),
        (None, Some(RequestState::Held(token)), None) => Verdict::Tell(token),
        (None, Some(RequestState::Held(token)), Some(believed)) if token == believed => {
            Verdict::Keep(token)
        }
        (None, _, Some(_)) => Verdict::Lost(LossCause::NotReclaimed),
        (None, Some(RequestState::Pending(place)), None) => Verdict::Queue(place),
        (None, None, None) => Verdict::New,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_its_verdict() {
        const FORCED: LossCause = LossCause::ForceReleased;
        const OTHER: LossCause = LossCause::NotReclaimed;
        let (held, pending) = (Some(RequestState::Held(7)), Some(RequestState::Pending(3)));
        let lost = Some(RequestState::Lost(FORCED));
        // The state that is known, and the verdict for no token, the right one, and another one.
        let table = [
            (None, [Verdict::New, Verdict::Lost(OTHER), Verdict::Lost(OTHER)]),
            (held, [Verdict::Tell(7), Verdict::Keep(7), Verdict::Lost(OTHER)]),
            (pending, [Verdict::Queue(3), Verdict::Lost(OTHER), Verdict::Lost(OTHER)]),
            (lost, [Verdict::Lost(FORCED); 3]),
        ];
        for (known, verdicts) in table {
            for (believed, verdict) in [None, Some(7), Some(8)].into_iter().zip(verdicts) {
                assert_eq!(judge(known, None, believed), verdict, "{known:?} {believed:?}");
                let taken = judge(known, Some(LossCause::Evicted), believed);
                assert_eq!(taken, Verdict::Lost(LossCause::Evicted), "{known:?} {believed:?}");
            }
        }
    }
}
