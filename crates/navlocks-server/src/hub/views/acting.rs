//! Actions of operators: by the id of a request or the number of a session, never by a name alone.

use std::rc::Rc;
use std::time::Instant;

use navlocks_core::{Mode, Request, RequestId, Scope, Wait};
use navlocks_wire::{self as wire, Act, Action, ClientKey, Fault, FaultCode, RequestKey};

use crate::hub::partitions::{Asking, PartitionIndex};
use crate::hub::sessions::Known;
use crate::hub::{Hub, Peer};

/// The most losses that a preview lists.
const LOSSES_MAX: usize = 50;

/// The tag of a steal by an operator.
const TAG: &str = "dashboard";

impl Hub {
    /// Does what an operator asks for, or tells what would be lost by it.
    pub(super) fn act(
        &mut self,
        peer: &Peer,
        act: &Act,
        now: Instant,
    ) -> Result<wire::Acted, Fault> {
        let acts = peer.viewing.as_ref().filter(|viewing| viewing.acts);
        let Some(author) = acts.map(|viewing| viewing.author.clone()) else {
            let text = "this dashboard may look and not act: serve with --dashboard-actions, and show an operator token";
            return Err(Fault::new(FaultCode::Unauthorized, text));
        };
        let (session, over) = match act.action {
            Action::Release(key) | Action::Steal(key) => (key.session, gone(key)),
            Action::EndSession(number) => (number, ended(number)),
        };
        let acted = self.within_hub_of_session(session, |hub| {
            let acted = match act.action {
                Action::Release(key) => {
                    hub.act_on_lock(peer, key, false, act.preview, &author, now)
                }
                Action::Steal(key) => hub.act_on_lock(peer, key, true, act.preview, &author, now),
                Action::EndSession(number) => {
                    hub.act_on_session(peer, number, act.preview, &author, now)
                }
            };
            hub.settle(now);
            acted
        });
        acted.unwrap_or(Err(over))
    }

    fn act_on_lock(
        &mut self,
        peer: &Peer,
        key: RequestKey,
        steal: bool,
        preview: bool,
        author: &Rc<str>,
        now: Instant,
    ) -> Result<wire::Acted, Fault> {
        let found = self.sessions.get(key.session).and_then(|it| it.requests.get(key.request));
        let Some(Known::Live { partition: index, id }) = found else { return Err(gone(key)) };
        let partition = &self.partitions[index];
        let info = partition.manager().info(id).filter(|info| info.token.is_some());
        let Some(info) = info.filter(|_| partition.key.is_visible_to(peer)) else {
            return Err(gone(key));
        };
        let victims = if steal { self.holders(index, &info.scope) } else { vec![id] };
        let shown = victims.iter().take(LOSSES_MAX);
        let losses = shown.filter_map(|&id| partition.entry(id, now)).collect();
        let acted = wire::Acted { done: !preview, count: victims.len() as u64, losses };
        if preview {
            return Ok(acted);
        }
        let what = if steal { "operator stole" } else { "operator released" };
        let audit = if steal { "steal" } else { "force-release" };
        let losses = victims.len();
        tracing::warn!(audit, %author, from = peer.address(), request = %key, losses, "{what}");
        self.record_act(index, what, Some(id), author, now);
        if steal {
            self.steal_for_a_moment(index, info.scope, now);
        } else {
            let (partitions, mut around) = self.around(now);
            partitions[index].force_release_one(id, &mut around);
        }
        Ok(acted)
    }

    /// Returns all locks that have a name of the scope.
    fn holders(&self, index: PartitionIndex, scope: &Scope) -> Vec<RequestId> {
        let manager = self.partitions[index].manager();
        let queues = scope.names().iter().filter_map(|name| manager.queue_of(name));
        let held = queues.flat_map(|queue| queue.requests().take_while(|queued| queued.held));
        let mut held: Vec<RequestId> = held.map(|queued| queued.request).collect();
        held.sort_unstable();
        held.dedup();
        held
    }

    /// Steals a scope with a client of its own, which ends at once: the next waiters are granted.
    fn steal_for_a_moment(&mut self, index: PartitionIndex, scope: Scope, now: Instant) {
        let nobody = ClientKey::new(0, 0);
        let owner = self.partitions[index].add_client(nobody, None);
        let request = Request { scope, mode: Mode::Exclusive, wait: Wait::Steal };
        let tag = Some(TAG.into());
        let asking = Asking {
            owner,
            client: nobody,
            number: 0,
            request,
            tag,
            since: now,
            place: 0,
            is_placed: false,
            slot: 0,
            max_hold_ms: 0,
        };
        let (partitions, mut around) = self.around(now);
        partitions[index].request(asking, &mut around);
        partitions[index].end_client(owner, &mut around);
    }

    fn act_on_session(
        &mut self,
        peer: &Peer,
        number: u32,
        preview: bool,
        author: &Rc<str>,
        now: Instant,
    ) -> Result<wire::Acted, Fault> {
        let session = self.sessions.get(number);
        let Some(session) = session.filter(|session| peer.sees_tenant(&session.peer.tenant)) else {
            return Err(ended(number));
        };
        let mut acted = wire::Acted { done: !preview, ..wire::Acted::default() };
        let mut touched = Vec::new();
        for client in session.clients.values() {
            let partition = &self.partitions[client.partition];
            touched.push(client.partition);
            for id in partition.manager().requests_of(client.id) {
                acted.count += 1;
                if acted.losses.len() < LOSSES_MAX {
                    acted.losses.extend(partition.entry(id, now));
                }
            }
        }
        if preview {
            return Ok(acted);
        }
        let (from, losses) = (peer.address(), acted.count);
        tracing::warn!(audit = "force-release", %author, from, session = number, losses, "operator ended a session");
        for index in touched.into_iter().take(1) {
            self.record_act(index, "operator ended a session", None, author, now);
        }
        let text = format!("an operator ended the session: ask {author}");
        self.end(number, Some(Fault::new(FaultCode::LeaseLapsed, text)), now);
        Ok(acted)
    }

    fn record_act(
        &mut self,
        index: PartitionIndex,
        what: &'static str,
        id: Option<RequestId>,
        author: &Rc<str>,
        now: Instant,
    ) {
        let partition = &mut self.partitions[index];
        let noted = id.and_then(|id| partition.noted(id)).map(Rc::new);
        if let Some(history) = &mut partition.history {
            history.push_event(what, noted, Some(author.clone()), now);
        }
    }
}

fn ended(session: u32) -> Fault {
    Fault::new(FaultCode::BadState, format!("session {session} is over"))
}

fn gone(key: RequestKey) -> Fault {
    let text = format!("request {key} holds no lock any more: look again");
    Fault::new(FaultCode::BadState, text)
}
