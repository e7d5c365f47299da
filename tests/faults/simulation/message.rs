//! What clients and the service send to each other.

use std::sync::Arc;

use navlocks_tests::record::{Mode, Moment, RequestNo, Wait};

/// A client, by its place in the world.
pub(super) type ClientNo = usize;

/// To the service.
#[derive(Clone, Debug)]
pub(super) enum Up {
    /// The first of each session.
    Hello,
    Ask(Ask),
    Release(RequestNo),
    /// Nobody waits for it any more, granted or not.
    Abandon(RequestNo),
    Force(RequestNo, Arc<str>),
    Query(RequestNo, Moment),
}

#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) number: RequestNo,
    pub(super) names: Vec<Arc<str>>,
    pub(super) mode: Mode,
    pub(super) wait: Wait,
    /// When it was, first of all.
    pub(super) at: Moment,
}

/// To a client.
#[derive(Clone, Debug)]
pub(super) enum Down {
    Granted {
        number: RequestNo,
        token: u64,
        id: Arc<str>,
    },
    Unavailable(RequestNo),
    Lost(RequestNo),
    Forced(RequestNo),
    /// It waits, as asked at this moment.
    Pending {
        number: RequestNo,
        since: Moment,
        id: Arc<str>,
    },
    /// The service of this epoch is gone.
    Gone(u32),
    /// The service can be reached.
    Back,
}
