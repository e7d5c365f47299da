//! The timeout of a request, and the locks that the request waited for.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_timer::Delay;
use navlocks_core::RequestId;

use crate::backend::{Answer, Backend};
use crate::connection::Connection;
use crate::error::{QueryError, RequestErrorKind};
use crate::owner::Owner;
use crate::query::RequestInfo;

/// The longest time that a service has to name the locks that a request waited for.
const ANSWER_MAX: Duration = Duration::from_millis(250);

/// The timeout of a pending request.
pub(crate) struct Timer {
    delay: Delay,
    stage: Stage,
    /// The locks in the way of a request that timed out; none if no service answered.
    pub(crate) holders: Option<Vec<RequestInfo>>,
}

enum Stage {
    Running,
    /// The timeout is over, and the backend was asked for the locks in the way. The mutex is never
    /// locked; it makes the future of a request `Sync`.
    Query(Mutex<HolderQuery>),
    Answered,
}

type HolderQuery = Pin<Box<dyn Future<Output = Option<Vec<RequestInfo>>> + Send>>;

impl Timer {
    pub(crate) fn new(after: Duration) -> Self {
        Self { delay: Delay::new(after), stage: Stage::Running, holders: None }
    }

    /// Returns the answer of this moment. Aborts the request when its time is over.
    pub(crate) fn poll(
        &mut self,
        owner: &Arc<Owner>,
        id: RequestId,
        after: Duration,
        cx: &mut Context<'_>,
    ) -> Answer {
        if after.is_zero() {
            return self.poll_once(owner, id, cx);
        }
        if let Stage::Running = self.stage {
            let answer = owner.backend.poll_request(id, cx.waker());
            if !matches!(answer, Answer::Pending(_)) || self.poll_delay(cx).is_pending() {
                return answer;
            }
            // Sent before the request is aborted, because its place is forgotten then.
            self.ask(owner, id, cx);
            if !owner.backend.time_out(id) {
                // The request was decided just before its timeout, and that decision counts.
                return owner.backend.poll_request(id, cx.waker());
            }
        } else {
            self.poll_asked(cx);
        }
        if matches!(self.stage, Stage::Query(_)) && self.poll_delay(cx).is_pending() {
            return Answer::Pending(id);
        }
        Answer::Failed(over(&*owner.backend, after))
    }

    /// Returns the answer of one attempt. Answers come in order, so a request that is pending when
    /// its place is known was not granted at once.
    fn poll_once(&mut self, owner: &Arc<Owner>, id: RequestId, cx: &mut Context<'_>) -> Answer {
        if let Stage::Running = self.stage {
            self.ask(owner, id, cx);
        } else {
            self.poll_asked(cx);
        }
        let answer = owner.backend.poll_request(id, cx.waker());
        if !matches!((&answer, &self.stage), (Answer::Pending(_), Stage::Answered)) {
            return answer;
        }
        if owner.backend.time_out(id) {
            return Answer::Failed(over(&*owner.backend, Duration::ZERO));
        }
        owner.backend.poll_request(id, cx.waker())
    }

    /// Asks the backend for the locks in the way of the request.
    fn ask(&mut self, owner: &Arc<Owner>, id: RequestId, cx: &mut Context<'_>) {
        let owner = owner.clone();
        let asked: HolderQuery = Box::pin(async move {
            match owner.backend.place_of(owner.sender.client, id).await {
                Ok(place) => Some(place.map(|place| place.held).unwrap_or_default()),
                Err(QueryError::Unreachable) => None,
                Err(_) => Some(Vec::new()),
            }
        });
        self.stage = Stage::Query(Mutex::new(asked));
        self.delay.reset(ANSWER_MAX);
        self.poll_asked(cx);
    }

    fn poll_asked(&mut self, cx: &mut Context<'_>) {
        let Stage::Query(asked) = &mut self.stage else { return };
        let asked = asked.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Poll::Ready(holders) = asked.as_mut().poll(cx) {
            self.holders = holders;
            self.stage = Stage::Answered;
        }
    }

    fn poll_delay(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.delay).poll(cx)
    }
}

/// Returns the kind of failure of a request whose time is over. While its service is out of reach,
/// that is the reason, and says nothing about the lock.
fn over(backend: &dyn Backend, after: Duration) -> RequestErrorKind {
    match backend.connection().0 {
        Connection::Down | Connection::Unreachable => RequestErrorKind::Unreachable,
        _ => RequestErrorKind::TimedOut { after },
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("delay", &self.delay).finish_non_exhaustive()
    }
}
