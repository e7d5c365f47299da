//! The arguments of a request that few requests have.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use navlocks_core::{BadLimit, RequestId};

use crate::error::RequestErrorKind;

#[derive(Clone, Debug, Default)]
pub(crate) struct Extras {
    pub(crate) timeout: Option<Duration>,
    pub(crate) tag: Option<Arc<str>>,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) traceparent: Option<Arc<str>>,
    /// The number that [`Request::limit`](crate::Request::limit) got, if it is no limit.
    pub(crate) bad_limit: Option<BadLimit>,
    /// The held lock within which the request is made.
    pub(crate) within: Option<RequestId>,
}

/// The shortest and the longest maximum hold. JavaScript knows the milliseconds of it exactly.
const MAX_HOLDS: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_millis((1 << 53) - 1);

impl Extras {
    /// Returns the first wrong argument.
    pub(crate) fn error(&self) -> Option<RequestErrorKind> {
        let bad_limit = self.bad_limit.map(RequestErrorKind::BadLimit);
        let bad_hold = self.max_hold.filter(|time| !MAX_HOLDS.contains(time));
        bad_limit.or_else(|| bad_hold.map(RequestErrorKind::BadMaxHold))
    }
}
