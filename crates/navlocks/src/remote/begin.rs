//! The first connection of a session: one attempt or several, within a time.

use std::time::Duration;

use tokio::time::sleep;

use super::connect::Options;
use super::driver::Driver;
use super::errors::ConnectError;
use super::user_service::{self, Start};
use navlocks_client::{Backoff, Begin};

/// How the first connection is tried.
pub(super) struct Attempts {
    /// How to start the user's own service, if at all.
    pub(super) start: Option<Start>,
    pub(super) timeout: Option<Duration>,
    pub(super) retry: bool,
}

/// Makes the first connection, by one or several attempts.
pub(super) async fn begin(
    options: &Options,
    attempts: Attempts,
    begin: Begin,
) -> Result<Driver, ConnectError> {
    let Some(after) = attempts.timeout else {
        return try_all(options, &attempts, begin, &mut None).await;
    };
    let mut last = None;
    match tokio::time::timeout(after, try_all(options, &attempts, begin, &mut last)).await {
        Ok(begun) => begun,
        Err(_) => Err(ConnectError::TimedOut { after, last: last.map(Box::new) }),
    }
}

/// Tries once, or until it succeeds. Keeps the error of the last attempt.
async fn try_all(
    options: &Options,
    attempts: &Attempts,
    begin: Begin,
    last: &mut Option<ConnectError>,
) -> Result<Driver, ConnectError> {
    let mut backoff = Backoff::between_dials(&options.addresses);
    loop {
        match try_once(options, attempts, begin).await {
            Err(error) if attempts.retry && may_pass(&error) => *last = Some(error),
            begun => return begun,
        }
        sleep(backoff.next_pause()).await;
    }
}

async fn try_once(
    options: &Options,
    attempts: &Attempts,
    begin: Begin,
) -> Result<Driver, ConnectError> {
    if let (Some(start), Some(socket)) = (&attempts.start, options.addresses.socket()) {
        user_service::start(socket, start).await?;
    }
    Driver::begin(options, begin).await
}

/// Returns true if another attempt may succeed.
fn may_pass(error: &ConnectError) -> bool {
    match error {
        ConnectError::Unreachable(_) | ConnectError::Silent { .. } => true,
        ConnectError::Refused(fault) => !fault.code.is_final(),
        _ => false,
    }
}
