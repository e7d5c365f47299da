//! Leader election: a candidate is a request, the leader its holder, the term its fencing token.
//!
//! The value of a candidate, such as its address, is the tag of its request, so every query and
//! dashboard shows the leader.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use navlocks_core::{ClientId, FencingToken, Mode, Name, RequestId, Scope};

use crate::error::{LossCause, QueryError, Refusal, RequestError};
use crate::events::{Event, EventKind, Gap};
use crate::lock::Lock;
use crate::locks::Locks;
use crate::query::RequestInfo;
use crate::stream::Events;

/// The leadership of one candidate, until it is dropped, resigned or lost.
///
/// It is the [`Lock`] of the name, so [`lost`](Lock::lost) resolves when another leader may be
/// elected. A leader that was stopped or cut off learns that late: resources that must not see two
/// leaders check the [`term`](Self::term).
#[must_use = "the leadership ends when this is dropped"]
#[derive(Debug)]
pub struct Leadership {
    lock: Lock,
}

impl Leadership {
    /// Returns the term, larger than that of every leader before: the fencing token.
    pub fn term(&self) -> FencingToken {
        self.lock.fencing_token()
    }

    /// Ends the leadership, so that the next candidate is elected.
    ///
    /// # Errors
    ///
    /// The [`LossCause`], if the leadership had ended before.
    pub fn resign(self) -> Result<(), LossCause> {
        self.lock.release()
    }
}

impl Deref for Leadership {
    type Target = Lock;

    fn deref(&self) -> &Lock {
        &self.lock
    }
}

/// A leader, as an observer sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// The number of its term, larger than that of every leader before.
    pub term: FencingToken,
    /// The value that it campaigned with, such as its address.
    pub value: Arc<str>,
    /// Its client.
    pub client: ClientId,
    /// Its process, where a service knows it.
    pub pid: Option<u32>,
    request: RequestId,
}

impl fmt::Display for Leader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in term {}", self.value, self.term)
    }
}

impl Locks {
    /// Campaigns for the leadership of `name`, and resolves when this candidate is elected.
    ///
    /// Candidates are elected in the order in which they began to campaign. Dropping the future
    /// ends the campaign.
    ///
    /// ```
    /// # navlocks::blocking::block_on(async {
    /// use navlocks::Locks;
    ///
    /// let locks = Locks::new();
    /// let leadership = locks.elect("scheduler", "10.0.0.7:7000").await?;
    /// let mut leaders = locks.leaders("scheduler");
    /// let leader = leaders.next().await?.expect("it has a leader");
    /// assert_eq!((&*leader.value, leader.term), ("10.0.0.7:7000", leadership.term()));
    /// leadership.resign()?; // or dropped, or lost: leadership.lost().await
    /// assert_eq!(leaders.next().await?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As of a [request](Locks::request).
    pub async fn elect(
        &self,
        name: impl Into<Name>,
        value: impl Into<Arc<str>>,
    ) -> Result<Leadership, RequestError> {
        let lock = self.request(Scope::from(name.into())).tag(value).await?;
        Ok(Leadership { lock })
    }

    /// Observes the leaders of `name`.
    pub fn leaders(&self, name: impl Into<Name>) -> Leaders {
        let (locks, scope) = (self.clone(), Scope::from(name.into()));
        Leaders { events: locks.events(), locks, scope, seen: None, asks: true }
    }
}

/// The leaders of a name, one after the other. Made by [`Locks::leaders`].
pub struct Leaders {
    locks: Locks,
    events: Events,
    scope: Scope,
    /// The last answer, once there is one.
    seen: Option<Option<Leader>>,
    /// Events are missing, so the service is asked.
    asks: bool,
}

impl Leaders {
    /// Returns the present leader at first, then each change; none while there is no leader.
    ///
    /// Terms only grow. After a lost connection the present leader is returned again only if it is
    /// another one.
    ///
    /// # Errors
    ///
    /// As of a [query](Locks::query). The next call asks again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no change.
    pub async fn next(&mut self) -> Result<Option<Leader>, QueryError> {
        loop {
            if self.asks {
                let now = self.locks.query().await?;
                self.asks = false;
                let leader = now.held.into_iter().find_map(|info| self.leader(info));
                if let Some(change) = self.change(leader) {
                    return Ok(change);
                }
            }
            let change = match self.events.recv().await {
                Some(Ok(event)) => self.receive(event),
                Some(Err(Gap::Lagged { .. } | Gap::ConnectionLost)) => {
                    self.asks = true;
                    None
                }
                Some(Err(Gap::Refused)) | None => return Err(self.refused().await),
            };
            if let Some(change) = change {
                return Ok(change);
            }
        }
    }

    /// Returns the reason why there are no events: the client has ended, or the service refuses.
    async fn refused(&self) -> QueryError {
        let refusal = || Refusal::new(Gap::Refused.to_string().into(), "QuotaExceededError");
        self.locks.query().await.err().unwrap_or_else(|| QueryError::Refused(refusal()))
    }

    fn leader(&self, info: RequestInfo) -> Option<Leader> {
        let RequestInfo { request, client, scope, mode, token, tag, pid, .. } = info;
        let term = token.filter(|_| scope == self.scope && mode == Mode::Exclusive)?;
        Some(Leader { term, value: tag.unwrap_or_default(), client, pid, request })
    }

    /// Returns the leaders after an event, if it changes them.
    fn receive(&mut self, event: Event) -> Option<Option<Leader>> {
        let Event { request, client, scope, mode, tag, pid, kind, .. } = event;
        let now = self.seen.as_ref().and_then(Option::as_ref);
        match kind {
            EventKind::Granted(term) if scope == self.scope && mode == Mode::Exclusive => {
                let value = tag.unwrap_or_default();
                self.change(Some(Leader { term, value, client, pid, request }))
            }
            EventKind::Released | EventKind::Lost(_) | EventKind::Downgraded
                if now.is_some_and(|leader| leader.request == request) =>
            {
                self.change(None)
            }
            _ => None,
        }
    }

    /// Notes the present leader. Returns it if it is another one than before.
    fn change(&mut self, leader: Option<Leader>) -> Option<Option<Leader>> {
        let before = self.seen.as_ref().and_then(Option::as_ref);
        let is_earlier =
            before.zip(leader.as_ref()).is_some_and(|(seen, leader)| leader.term < seen.term);
        if is_earlier || self.seen.as_ref() == Some(&leader) {
            return None;
        }
        self.seen = Some(leader.clone());
        Some(leader)
    }
}

impl fmt::Debug for Leaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaders").field("scope", &self.scope).field("seen", &self.seen).finish()
    }
}
