//! Where a lock space lives: in this process, or behind a service. The same verbs either way.

use std::sync::Arc;
use std::task::{Poll, Waker};

use navlocks_core::{Blockers, ClientId, Name, RequestId, Scope};

use crate::deadlock::Cycle;
use crate::error::{Loss, QueryError};
use crate::query::Snapshot;
#[cfg(feature = "service")]
use crate::remote::Handle;
use crate::request::Request;
use crate::space::{Answer, Space};
use crate::subscribers::Inboxes;
use crate::watch::Watched;
#[cfg(feature = "service")]
use navlocks_wire::{Question, Reply, RequestKey};

/// A lock space, as its clients reach it.
#[derive(Clone, Debug)]
pub(crate) enum Home {
    Local(Arc<Space>),
    #[cfg(feature = "service")]
    Remote(Arc<Handle>),
}

/// Says the same to whichever it is.
macro_rules! either {
    ($home:expr, $space:ident => $local:expr, $session:ident => $remote:expr) => {
        match $home {
            Home::Local($space) => $local,
            #[cfg(feature = "service")]
            Home::Remote($session) => $remote,
        }
    };
}

impl Home {
    /// The part of the lock space that requests of this scope concern first, below [`PARTS`](crate::space::PARTS).
    #[inline]
    pub(crate) fn part_of(&self, scope: &Scope) -> usize {
        either!(self, _space => Space::part_of(scope), _session => 0)
    }

    #[inline]
    pub(crate) fn request(&self, request: &Request, waker: &Waker) -> Answer {
        either!(self, space => space.request(request, waker), session => session.request(request, waker))
    }

    pub(crate) fn poll_request(&self, id: RequestId, waker: &Waker) -> Answer {
        either!(self, space => space.poll_request(id, waker), session => session.poll_request(id, waker))
    }

    pub(crate) fn abandon(&self, id: RequestId) {
        either!(self, space => space.abandon(id), session => session.abandon(id));
    }

    pub(crate) fn time_out(&self, id: RequestId) -> bool {
        either!(self, space => space.time_out(id), session => session.time_out(id))
    }

    #[inline]
    pub(crate) fn release(&self, id: RequestId) -> Result<(), Loss> {
        either!(self, space => space.release(id), session => session.release(id))
    }

    #[inline]
    pub(crate) fn losses(&self) -> u64 {
        either!(self, space => space.losses(), session => session.losses())
    }

    pub(crate) fn loss(&self, id: RequestId) -> Option<Loss> {
        either!(self, space => space.loss(id), session => session.loss(id))
    }

    pub(crate) fn poll_watch(
        &self,
        id: RequestId,
        scope: &Scope,
        watched: Watched,
        watch: &mut Option<u64>,
        waker: &Waker,
    ) -> Poll<Result<(), Loss>> {
        either!(self,
            space => space.poll_watch(id, scope, watched, watch, waker),
            session => session.poll_watch(id, watched, watch, waker))
    }

    pub(crate) fn unwatch(&self, id: RequestId, watch: u64) {
        either!(self, space => space.unwatch(id, watch), session => session.unwatch(id, watch));
    }

    pub(crate) fn end_client(&self, client: ClientId) {
        either!(self,
            space => space.end_client(client),
            session => session.end_client(client.serial()));
    }

    /// Runs `work` on the event streams of a client; `None` when the client is no more.
    pub(crate) fn listen<T>(
        &self,
        client: ClientId,
        work: impl FnOnce(&mut Inboxes) -> T,
    ) -> Option<T> {
        let _only_a_service_asks_for_whom = client;
        either!(self,
            space => Some(space.listen(work)),
            session => session.listen(client.serial(), work))
    }

    fn knows(&self, client: ClientId) -> bool {
        either!(self,
            space => space.knows(client),
            session => session.knows(client.serial()))
    }

    fn alive(&self, client: ClientId) -> Result<(), QueryError> {
        if self.knows(client) { Ok(()) } else { Err(QueryError::ClientEnded) }
    }

    pub(crate) async fn query(&self, client: ClientId) -> Result<Snapshot, QueryError> {
        self.alive(client)?;
        either!(self, space => Ok(space.query()), session => {
            match session.ask(client.serial(), Question::Query).await? {
                Reply::Snapshot { held, pending } => Ok(Snapshot::told(held, pending)),
                _ => Err(QueryError::Misunderstood),
            }
        })
    }

    pub(crate) async fn blockers(
        &self,
        client: ClientId,
        request: RequestId,
    ) -> Result<Blockers, QueryError> {
        self.alive(client)?;
        either!(self, space => Ok(space.blockers(request)), session => {
            // What the service did not name it does not know, and so nobody blocks it.
            let Ok(key) = RequestKey::try_from(request) else { return Ok(Blockers::default()) };
            match session.ask(client.serial(), Question::Blockers(key)).await? {
                Reply::Blockers { hard, soft } => {
                    let ids = |keys: Vec<RequestKey>| keys.into_iter().map(Into::into).collect();
                    Ok(Blockers { hard: ids(hard), soft: ids(soft) })
                }
                _ => Err(QueryError::Misunderstood),
            }
        })
    }

    pub(crate) async fn is_contended(
        &self,
        client: ClientId,
        lock: RequestId,
    ) -> Result<bool, QueryError> {
        self.alive(client)?;
        either!(self, space => Ok(space.is_contended(lock)), session => {
            let Ok(key) = RequestKey::try_from(lock) else { return Ok(false) };
            match session.ask(client.serial(), Question::Contended(key)).await? {
                Reply::Contended(contended) => Ok(contended),
                _ => Err(QueryError::Misunderstood),
            }
        })
    }

    pub(crate) async fn deadlocks(&self, client: ClientId) -> Result<Vec<Cycle>, QueryError> {
        self.alive(client)?;
        either!(self, space => {
            Ok(space.deadlocks().into_iter().map(Cycle::from).collect())
        }, session => {
            match session.ask(client.serial(), Question::Deadlocks).await? {
                Reply::Deadlocks(cycles) => Ok(cycles.into_iter().map(Into::into).collect()),
                _ => Err(QueryError::Misunderstood),
            }
        })
    }

    pub(crate) async fn force_release(
        &self,
        client: ClientId,
        name: Name,
    ) -> Result<usize, QueryError> {
        self.alive(client)?;
        either!(self, space => Ok(space.force_release(&name)), session => {
            match session.ask(client.serial(), Question::ForceRelease(name)).await? {
                Reply::Released(count) => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
                _ => Err(QueryError::Misunderstood),
            }
        })
    }
}
