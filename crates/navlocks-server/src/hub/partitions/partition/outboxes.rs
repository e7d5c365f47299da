//! The outboxes that the notices of a partition go to: those of sessions and of subscribers.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_core::kit::{About, Notes, Notice, Sink};
use navlocks_core::{RequestId, Scope};
use navlocks_wire::{Event, Granted, LossCause, Over, RequestKey, ToClient, TraceParent, What};

use super::address::{Address, Label, Owner, Served, Thief, address, cycle, told, told_cause};
use crate::audit::{Act, Audit};
use crate::hub::backlog::Unfinished;
use crate::hub::holds::Holds;
use crate::hub::metrics::Reason;
use crate::hub::partitions::subscribers::Subscribers;
use crate::hub::sessions::Sessions;
use crate::hub::shares::Share;
use crate::hub::tokens::Tokens;
use crate::hub::{Metrics, Recorder};
use crate::store::{Registry, Slot};

/// The state outside a partition that a step in it needs.
pub(crate) struct HubContext<'a> {
    pub(crate) sessions: &'a mut Sessions,
    pub(crate) tokens: &'a mut Tokens,
    pub(crate) metrics: &'a Metrics,
    pub(crate) audit: &'a Audit,
    pub(crate) registry: &'a mut Registry,
    pub(crate) holds: &'a mut Holds,
    /// The work that inputs left, in turn.
    pub(crate) unfinished: &'a mut VecDeque<Unfinished>,
    /// In a cluster: clients are told their places, of this epoch.
    pub(crate) epoch: Option<u64>,
    /// Why the input takes requests out of the queue.
    pub(crate) reason: Reason,
    pub(crate) now: Instant,
}

impl HubContext<'_> {
    /// Writes who steals which names. A line for each loss follows.
    pub(super) fn audit_steal(&self, address: Address, scope: &Scope, label: Option<&Label>) {
        if !self.audit.admits(Act::Steal, self.now) {
            return;
        }
        let Address { session, number, .. } = address;
        let peer = self.sessions.get(session).map(|session| &session.peer);
        let (tenant, from) = (peer.map(|peer| &*peer.tenant), peer.map(|peer| peer.address()));
        let pid = peer.and_then(|peer| peer.pid());
        let (request, names) = (RequestKey::new(session, number), scope.to_string());
        let traceparent = label.and_then(|label| label.traceparent.as_ref());
        let traceparent = traceparent.map(TraceParent::as_str);
        tracing::warn!(audit = "steal", %request, tenant, from, pid, names, traceparent, "a request steals");
    }
}

/// Where the notices of a partition go.
pub(super) struct Outboxes<'p, 'a> {
    pub(super) context: &'p mut HubContext<'a>,
    pub(super) clients: &'p [Owner],
    pub(super) subscribers: &'p mut Subscribers,
    pub(super) bytes: &'p mut usize,
    pub(super) share: &'p Rc<Share>,
    pub(super) thief: Option<&'p Thief>,
    /// How many more messages are sent in this turn.
    pub(super) room: usize,
    pub(super) recorder: Option<&'p mut (dyn Recorder + 'static)>,
}

impl Sink<Served> for Outboxes<'_, '_> {
    #[inline]
    fn now(&self) -> Instant {
        self.context.now
    }

    #[inline]
    fn notify(&mut self, id: RequestId, notes: &mut Notes<Served>, notice: &Notice<'_, Instant>) {
        let Address { session, bytes, client, number, slot, max_hold_ms, .. } = address(notes, id);
        let key = RequestKey::new(session, number);
        self.room = self.room.saturating_sub(1);
        let HubContext { sessions, tokens, metrics, registry, holds, reason, now, .. } =
            &mut *self.context;
        let age = |since| now.saturating_duration_since(since);
        match *notice {
            Notice::Granted { token, since } => {
                metrics.granted(age(since));
                tokens.given(token);
                let left = (max_hold_ms != 0).then(|| Duration::from_millis(max_hold_ms));
                registry.hold(slot, token.get(), left);
                left.inspect(|&left| holds.begin(key, *now + left));
                let waited = left.map_or(Duration::ZERO, |_| age(since));
                let granted = Granted::after(waited, number, token.get());
                sessions.say(session, &ToClient::Granted(granted));
            }
            Notice::Downgraded(mode) => registry.set_mode(slot, mode),
            Notice::Unavailable => {
                metrics.requests.unavailable.inc();
                sessions.say(session, &Over::unavailable(number).into());
            }
            Notice::Contended => sessions.say(session, &ToClient::Event(Event::Contended(number))),
            Notice::Released { since } => metrics.observe_hold(age(since)),
            Notice::ClientEnded { held_since: Some(since) } => {
                metrics.observe_hold(age(since));
                metrics.losses.client_ended.inc();
            }
            Notice::Lost { cause, since } => {
                metrics.observe_hold(age(since));
                metrics.losses.count(cause);
                self.lose((session, client, number), slot, told_cause(cause, notes));
            }
            Notice::Aborted(cause) => {
                metrics.requests.aborted.inc();
                self.lose((session, client, number), slot, told_cause(cause, notes));
            }
            Notice::Deadlock(_) => {
                metrics.deadlocks.inc();
            }
            Notice::Withdrawn | Notice::ClientEnded { held_since: None } => {
                metrics.requests.withdrawn(*reason);
            }
            Notice::Requested => {}
        }
        if notice.is_last() {
            *self.bytes -= bytes as usize;
            self.context.holds.end(key);
            if !matches!(notice, Notice::Lost { .. } | Notice::Aborted(_)) {
                self.context.registry.end_request(slot);
            }
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.record(key, notice, self.context.now);
        }
    }

    #[inline]
    fn has_enough(&self) -> bool {
        self.room == 0
    }

    fn publish(
        &mut self,
        id: RequestId,
        about: &About<Label>,
        notes: &Notes<Served>,
        notice: &Notice<'_, Instant>,
    ) {
        let what = match *notice {
            Notice::Requested => What::Requested,
            Notice::Granted { token, .. } => What::Granted(token.get()),
            Notice::Unavailable => What::Unavailable,
            Notice::Downgraded(_) => What::Downgraded,
            Notice::Released { .. } => What::Released,
            Notice::Withdrawn => What::Withdrawn,
            Notice::Aborted(cause) => What::Aborted(told_cause(cause, notes)),
            Notice::Lost { cause, .. } => What::Lost(told_cause(cause, notes)),
            Notice::ClientEnded { held_since: Some(_) } => What::Lost(LossCause::ClientEnded),
            Notice::ClientEnded { held_since: None } => What::Aborted(LossCause::ClientEnded),
            Notice::Deadlock(deadlock) => What::Deadlock(cycle(deadlock, self.clients, notes)),
            Notice::Contended => return,
        };
        let about = told(about, address(notes, id), self.clients);
        self.room = self.room.saturating_sub(self.subscribers.len());
        self.subscribers.send(about, what, self.share, self.context.sessions);
    }
}

impl Outboxes<'_, '_> {
    /// Sends a loss, which session and registry remember until the client has taken note.
    fn lose(&mut self, (session, client, number): (u32, u64, u64), slot: Slot, cause: LossCause) {
        let HubContext { sessions, registry, audit, now, .. } = &mut *self.context;
        registry.lose(RequestKey::new(session, number), slot, cause);
        if audit.admits(Act::Loss, *now) {
            let peer = sessions.get(session).map(|session| &session.peer);
            let (tenant, from) = (peer.map(|peer| &*peer.tenant), peer.map(|peer| peer.address()));
            let pid = peer.and_then(|peer| peer.pid());
            let victim = RequestKey::new(session, number);
            tracing::warn!(audit = "loss", %victim, tenant, from, pid, %cause, "a lock is lost");
        }
        let thief = self.thief.filter(|thief| cause == LossCause::Stolen(thief.key));
        let thief = thief.map(|thief| thief.words.clone());
        let words = thief.as_deref().map(Into::into);
        let owner = sessions.get_mut(session);
        if !owner.is_some_and(|owner| owner.lose(number, client, cause, thief, slot)) {
            registry.end_lost(RequestKey::new(session, number), slot);
        }
        sessions.say(session, &Over::lost_to(number, cause, words).into());
    }
}
