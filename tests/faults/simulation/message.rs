//! The messages between clients and the service.

use std::sync::Arc;

use navlocks_tests::record::{Mode, Moment, RequestNo, Wait};

/// A client, by its index in the world.
pub(super) type ClientNo = usize;

/// A message to the service.
#[derive(Clone, Debug)]
pub(super) enum Up {
    /// The first message of each session.
    Hello,
    Ask(Ask),
    Release(RequestNo),
    /// The client has dropped the request, granted or not.
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
    /// The time of the request, compared first.
    pub(super) at: Moment,
}

/// A message to a client.
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
    /// The request is pending, as asked at this time.
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
