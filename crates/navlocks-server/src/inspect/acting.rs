//! The actions of operators: by the id of a request or the number of a session.

use std::time::Instant;

use navlocks_core::{LockManager, Mode, Request, RequestId, Scope, Wait};
use navlocks_wire::{ClientKey, Fault, FaultCode, RequestKey};

use super::{Inspect, Inspector, PartitionView, SessionView, Viewer};
use crate::hub::partitions::{NewRequest, PartitionIndex};
use crate::hub::sessions::Known;
use crate::hub::{Hub, SharedHub};

/// The tag of a steal by an operator.
const TAG: &str = "dashboard";

/// An action of an operator. Requests are named by their ids: a name may have another holder by
/// now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Takes away this lock alone: its holder receives the loss as a forced release.
    Release(RequestKey),
    /// Steals the names of this lock from all their holders, and releases them.
    Steal(RequestKey),
    /// Ends a session and all its requests.
    EndSession(u32),
}

impl Action {
    /// Returns the number of the session that it is about.
    fn session(self) -> u32 {
        match self {
            Self::Release(key) | Self::Steal(key) => key.session,
            Self::EndSession(number) => number,
        }
    }
}

/// The requests that an action takes away, each with its partition.
pub type Victims<'a> = Vec<(PartitionView<'a>, RequestId)>;

impl Inspector {
    /// Does what an operator asks for.
    ///
    /// # Errors
    ///
    /// The operator may not, or the lock or the session is gone.
    pub fn act(&self, viewer: &Viewer, action: Action, now: Instant) -> Result<(), Fault> {
        let losses = self.look(|inspect| inspect.victims(viewer, action).map(|it| it.len()))?;
        let hub = self.hub_of(action).ok_or_else(|| gone(action))?;
        let mut hub = hub.borrow_mut();
        let (author, from) = (&*viewer.author, viewer.address());
        match action {
            Action::Release(key) | Action::Steal(key) => {
                let steal = matches!(action, Action::Steal(_));
                let what = if steal { "operator stole" } else { "operator released" };
                let audit = if steal { "steal" } else { "force-release" };
                tracing::warn!(audit, author, from, request = %key, losses, "{what}");
                hub.take_away(key, steal, now);
            }
            Action::EndSession(number) => {
                tracing::warn!(
                    audit = "force-release",
                    author,
                    from,
                    session = number,
                    losses,
                    "operator ended a session"
                );
                let text = format!("an operator ended the session: ask {author}");
                hub.end(number, Some(Fault::new(FaultCode::LeaseLapsed, text)), now);
            }
        }
        Ok(())
    }

    fn hub_of(&self, action: Action) -> Option<SharedHub> {
        match self.hubs.slots() {
            Some(slots) => slots.get(action.session() % slots.count()),
            None => self.hubs.single().cloned(),
        }
    }
}

impl<'a> Inspect<'a> {
    /// Returns the requests that an action would take away.
    ///
    /// # Errors
    ///
    /// The viewer may not act, or the lock or the session is gone.
    pub fn victims(&self, viewer: &Viewer, action: Action) -> Result<Victims<'a>, Fault> {
        if !viewer.acts {
            let text = "this dashboard may look and not act: serve with --dashboard-actions, and show an operator token";
            return Err(Fault::new(FaultCode::Unauthorized, text));
        }
        let hub = *self.hubs.get(&(action.session() % self.count)).ok_or_else(|| gone(action))?;
        let session = hub.sessions.get(action.session()).ok_or_else(|| gone(action))?;
        let steal = match action {
            Action::Release(_) => false,
            Action::Steal(_) => true,
            Action::EndSession(number) => {
                if session.is_unclaimed() || !viewer.sees(&session.peer.tenant) {
                    return Err(gone(action));
                }
                let view = SessionView { hub, number, it: session };
                return Ok(view.requests().collect());
            }
        };
        let (Action::Release(key) | Action::Steal(key)) = action else { return Err(gone(action)) };
        let Some(Known::Live { partition, id }) = session.requests.get(key.request) else {
            return Err(gone(action));
        };
        let view = PartitionView { hub, it: &hub.partitions[partition] };
        let info = view.manager().info(id).filter(|info| info.token.is_some());
        let info = info.filter(|_| viewer.sees(view.key().tenant())).ok_or_else(|| gone(action))?;
        let victims = if steal { holders(view.manager(), &info.scope) } else { vec![id] };
        Ok(victims.into_iter().map(|id| (view, id)).collect())
    }
}

impl Hub {
    /// Takes a lock away for an operator: this one alone, or all that have a name of it.
    fn take_away(&mut self, key: RequestKey, steal: bool, now: Instant) {
        let found = self.sessions.get(key.session).and_then(|it| it.requests.get(key.request));
        let Some(Known::Live { partition: index, id }) = found else { return };
        if steal {
            let scope = self.partitions[index].manager().info(id).map(|info| info.scope);
            scope.into_iter().for_each(|scope| self.steal_for_a_moment(index, scope, now));
        } else {
            let (partitions, mut context) = self.context(now);
            partitions[index].force_release_one(id, &mut context);
        }
        self.settle(now);
    }

    /// Steals a scope with a client of its own, which ends at once: the next waiters are granted.
    fn steal_for_a_moment(&mut self, index: PartitionIndex, scope: Scope, now: Instant) {
        let operator = ClientKey::new(0, 0);
        let owner = self.partitions[index].add_client(operator, None);
        let request = Request { scope, mode: Mode::Exclusive, wait: Wait::Steal };
        let new_request = NewRequest {
            owner,
            client: operator,
            number: 0,
            request,
            tag: Some(TAG.into()),
            traceparent: None,
            since: now,
            place: 0,
            is_placed: false,
            slot: 0,
            max_hold_ms: 0,
            within: None,
        };
        let (partitions, mut context) = self.context(now);
        partitions[index].request(new_request, &mut context);
        partitions[index].end_client(owner, &mut context);
    }
}

/// Returns all locks that have a name of the scope.
fn holders(manager: &LockManager, scope: &Scope) -> Vec<RequestId> {
    let queues = scope.names().iter().filter_map(|name| manager.queue_of(name));
    let held = queues.flat_map(|queue| queue.requests().take_while(|queued| queued.held));
    let mut held: Vec<RequestId> = held.map(|queued| queued.request).collect();
    held.sort_unstable();
    held.dedup();
    held
}

fn gone(action: Action) -> Fault {
    let text = match action {
        Action::Release(key) | Action::Steal(key) => {
            format!("request {key} holds no lock any more: look again")
        }
        Action::EndSession(number) => format!("session {number} is over"),
    };
    Fault::new(FaultCode::BadState, text)
}
