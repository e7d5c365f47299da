//! Messages to nodes and clients, and changes of ownership.

use crate::bug::Bug;
use crate::notes::Note;
use crate::protocol::{Cluster, TOKEN_BLOCK};
use crate::state::{
    Ask, Body, ClientNumber, Entry, Epoch, Known, NodeNumber, Request, Session, State, Taken,
    ToNode, Wait,
};

/// Ownership.
impl Cluster {
    /// Applies a renewal: a write transaction that compares the node's own key.
    pub(crate) fn apply_renewal(&self, state: &mut State, node: NodeNumber) {
        let it = &mut state.nodes[usize::from(node)];
        if !it.alive {
            (it.renewal, it.owner) = (None, None);
            return;
        }
        if let Some((_, applied)) = &mut it.renewal {
            *applied = true;
        }
        if state.registry.owner == Some(node) && state.registry.owner_is_current {
            state.nodes.iter_mut().for_each(|observer| observer.seen = None);
        }
    }

    /// Takes the slot: one transaction ends the former owner's incarnation and reads the registry.
    pub(crate) fn take(&self, state: &mut State, node: NodeNumber) {
        let registry = &mut state.registry;
        if let Some(former) = registry.owner {
            if former == node {
                self.notes.take(Note::NodeFindsItsOwnKey);
            }
            let former = &mut state.nodes[usize::from(former)];
            if registry.owner_is_current {
                former.alive = false;
            }
            if registry.grace_over < registry.epoch {
                self.notes.take(Note::OwnerReplacedDuringGrace);
            }
        }
        if state.to_node.iter().flatten().flatten().any(|it| matches!(it, ToNode::Release(_))) {
            self.notes.take(Note::ReleaseLostWithOwner);
        }
        let before = registry.epoch;
        registry.epoch = registry.epoch_floor.wrapping_add(before + 1);
        if registry.epoch <= before {
            state.violation = Some("an epoch did not grow");
            return;
        }
        (registry.owner, registry.owner_is_current) = (Some(node), true);
        let owner = self.new_owner(state);
        for it in &mut state.nodes {
            it.seen = None;
        }
        let it = &mut state.nodes[usize::from(node)];
        (it.owner, it.renewed, it.renewal) = (Some(owner), self.scenario.node_lease + 1, None);
    }

    /// Refuses a hello of a peer that has proven nothing, whatever epoch it has seen.
    pub(crate) fn ignore_stranger(&self, state: &mut State) {
        self.notes.take(Note::StrangersEpochIgnored);
        if self.has(Bug::StrangersEpochBelieved) {
            state.registry.epoch_floor = Epoch::MAX;
        }
    }

    /// Restarts a node as a new incarnation: its memory is gone, its former key belongs to another
    /// one.
    pub(crate) fn restart(&self, state: &mut State, node: NodeNumber) {
        let it = &mut state.nodes[usize::from(node)];
        if it.alive {
            state.restarts += 1;
        }
        (it.alive, it.owner, it.renewal, it.seen) = (true, None, None, None);
        it.renewed = self.scenario.node_lease + 1;
        if state.registry.owner == Some(node) {
            state.registry.owner_is_current = false;
        }
    }

    /// Gives the slot away; the owner stops first.
    pub(crate) fn hand_over(&self, state: &mut State, node: NodeNumber) {
        self.notes.take(Note::SlotGivenAway);
        state.registry.owner = None;
        if !self.has(Bug::HandOverWithoutStop) {
            let it = &mut state.nodes[usize::from(node)];
            (it.owner, it.renewal) = (None, None);
        }
    }

    /// Returns true if the owner's write is applied: it compares the epoch. A former owner learns
    /// it.
    pub(crate) fn may_write(&self, state: &mut State, node: NodeNumber) -> bool {
        let epoch = state.registry.epoch;
        let it = &mut state.nodes[usize::from(node)];
        let is_owner = it.owner.as_ref().is_some_and(|owner| owner.epoch == epoch);
        if !is_owner {
            (it.owner, it.renewal) = (None, None);
        }
        is_owner
    }

    /// Records the end of a session before other clients are granted its locks.
    pub(crate) fn lapse(&self, state: &mut State, node: NodeNumber, client: ClientNumber) {
        self.notes.take(Note::LeaseLapses);
        let is_recorded = !self.has(Bug::EndNotRecorded);
        self.end_session(state, node, client, is_recorded);
    }

    fn end_session(
        &self,
        state: &mut State,
        node: NodeNumber,
        client: ClientNumber,
        is_recorded: bool,
    ) {
        if !self.may_write(state, node) {
            return;
        }
        if is_recorded {
            state.registry.sessions[usize::from(client)] = false;
            state.registry.taken.retain(|taken| taken.victim.0 != client);
        }
        if let Some(owner) = &mut state.nodes[usize::from(node)].owner {
            owner.heard[usize::from(client)] = None;
            owner.entries.retain(|entry| entry.client != client);
        }
        self.grant(state, node);
    }
}

/// Messages to nodes.
impl Cluster {
    pub(crate) fn node_receives(&self, state: &mut State, client: ClientNumber, node: NodeNumber) {
        let (c, n) = (usize::from(client), usize::from(node));
        let Some(message) = state.to_node[c][n].pop_front() else { return };
        let Some(owner) = &mut state.nodes[n].owner else { return };
        let epoch = owner.epoch;
        let is_known = owner.heard[c].is_some();
        let send = |state: &mut State, body| self.send_to_client(state, node, client, epoch, body);
        match message {
            ToNode::Hello(age) => {
                if !self.may_write(state, node) {
                    return;
                }
                state.registry.sessions[c] = !self.has(Bug::SessionRegisteredAfterWelcome);
                if let Some(owner) = &mut state.nodes[n].owner {
                    owner.heard[c] = Some(0);
                }
                send(state, Body::Welcome(age));
                return;
            }
            ToNode::Claim(claim) => return self.receive_claim(state, client, node, claim),
            _ if !is_known => return send(state, Body::Refused),
            _ => owner.heard[c] = Some(0),
        }
        match message {
            ToNode::Ask(number) => self.request(state, client, node, number),
            ToNode::Release(number) => {
                owner.entries.retain(|it| (it.client, it.request) != (client, number));
                self.grant(state, node);
            }
            ToNode::Ping(age) => send(state, Body::Pong(age)),
            ToNode::Bye => self.end_session(state, node, client, true),
            ToNode::Hello(_) | ToNode::Claim(_) => {}
        }
    }

    fn request(&self, state: &mut State, client: ClientNumber, node: NodeNumber, number: u8) {
        let ask = self.scenario.scripts[usize::from(client)].asks[usize::from(number)];
        let Some(owner) = &state.nodes[usize::from(node)].owner else { return };
        let epoch = owner.epoch;
        let is_free = !owner.entries.iter().any(|it| it.ask.conflicts(ask));
        match ask.wait {
            Wait::IfAvailable if !is_free => {
                self.send_to_client(state, node, client, epoch, Body::Unavailable(number));
            }
            Wait::IfAvailable | Wait::Queue => {
                self.seat(state, node, client, number, ask, None);
                self.grant(state, node);
                if !is_free {
                    self.tell_place(state, node, client);
                }
            }
            Wait::Steal => self.steal(state, client, node, number, ask),
        }
    }

    /// Records a steal before the loss and the grant are sent.
    pub(crate) fn steal(
        &self,
        state: &mut State,
        client: ClientNumber,
        node: NodeNumber,
        number: u8,
        ask: Ask,
    ) {
        let Some(owner) = &state.nodes[usize::from(node)].owner else { return };
        let epoch = owner.epoch;
        if state.is_thief((client, number)) {
            state.violation = Some("a steal was repeated");
        }
        let is_robbed = |it: &Entry| it.token.is_some() && it.ask.conflicts(ask);
        let victims: Vec<Entry> = owner.entries.iter().copied().filter(is_robbed).collect();
        if !victims.is_empty() && !self.may_write(state, node) {
            return;
        }
        for victim in &victims {
            let victim = (victim.client, victim.request);
            state.registry.taken.push(Taken { victim, thief: (client, number) });
            self.send_to_client(state, node, victim.0, epoch, Body::Lost(victim.1));
        }
        if let Some(owner) = &mut state.nodes[usize::from(node)].owner {
            owner.entries.retain(|it| !victims.contains(it));
        }
        self.seat(state, node, client, number, ask, Some((0, 0)));
        self.grant(state, node);
    }

    /// Seats an entry: with the place (0, 0) before all pending ones, without a place behind them.
    pub(crate) fn seat(
        &self,
        state: &mut State,
        node: NodeNumber,
        client: ClientNumber,
        request: u8,
        ask: Ask,
        place: Option<(u8, u8)>,
    ) {
        let Some(owner) = &mut state.nodes[usize::from(node)].owner else { return };
        let is_first = place == Some((0, 0));
        let place = place.unwrap_or_else(|| {
            owner.next_place += 1;
            (owner.epoch, owner.next_place)
        });
        let entry = Entry { client, request, ask, token: None, place };
        let held = owner.entries.iter().filter(|it| it.token.is_some()).count();
        let seat = if is_first { held } else { owner.entries.len() };
        owner.entries.insert(seat, entry);
    }

    fn tell_place(&self, state: &mut State, node: NodeNumber, client: ClientNumber) {
        let Some(owner) = &state.nodes[usize::from(node)].owner else { return };
        let Some(entry) = owner.entries.iter().find(|it| it.client == client).copied() else {
            return;
        };
        let body = Body::Queued(entry.request, entry.place);
        self.send_to_client(state, node, client, owner.epoch, body);
    }

    /// Grants every entry that no earlier entry conflicts with.
    pub(crate) fn grant(&self, state: &mut State, node: NodeNumber) {
        let n = usize::from(node);
        let mut at = 0;
        while let Some(owner) = &mut state.nodes[n].owner
            && let Some(&entry) = owner.entries.get(at)
        {
            at += 1;
            let mut earlier = owner.entries[..at - 1].iter();
            if entry.token.is_some() || earlier.any(|it| it.ask.conflicts(entry.ask)) {
                continue;
            }
            let token = owner.next_token;
            let (epoch, entries) = (owner.epoch, owner.entries.clone());
            if token > owner.tokens_reserved_to && !self.has(Bug::TokensNotReserved) {
                self.notes.take(Note::TokensReservedAgain);
                if !self.may_write(state, node) {
                    return;
                }
                state.registry.tokens_reserved_to = token + TOKEN_BLOCK - 1;
            }
            let Some(owner) = &mut state.nodes[n].owner else { return };
            owner.tokens_reserved_to = owner.tokens_reserved_to.max(token);
            if owner.tokens_reserved_to < state.registry.tokens_reserved_to {
                owner.tokens_reserved_to = state.registry.tokens_reserved_to;
            }
            owner.next_token += 1;
            owner.entries[at - 1].token = Some(token);
            state.note_grant(entry, token, &entries);
            let body = Body::Granted(entry.request, token);
            self.send_to_client(state, node, entry.client, epoch, body);
        }
    }
}

/// Messages to clients.
impl Cluster {
    pub(crate) fn client_receives(
        &self,
        state: &mut State,
        client: ClientNumber,
        node: NodeNumber,
    ) {
        let channel = &mut state.to_client[usize::from(client)][usize::from(node)];
        let Some(message) = channel.pop_front() else { return };
        let it = &mut state.clients[usize::from(client)];
        if message.epoch < it.epoch && !self.has(Bug::EpochIgnoredByClient) {
            self.notes.take(Note::OldMessageIgnoredAfterClaim);
            return;
        }
        if let Body::Welcome(age) = message.body {
            if it.session == Session::Asked && it.at == node {
                (it.session, it.belief, it.epoch) = (Session::Live, age, message.epoch);
            }
            return;
        }
        if !matches!(it.session, Session::Live | Session::Claiming) {
            return;
        }
        match message.body {
            Body::Granted(number, token) => {
                if let Some(request) = it.request.as_mut().filter(|it| it.number == number) {
                    request.known = Known::Held(token);
                }
            }
            Body::Queued(number, place) => {
                if it.request == Some(Request { number, known: Known::Sent }) {
                    it.request = Some(Request { number, known: Known::Waiting(place) });
                }
            }
            Body::Unavailable(number) | Body::Lost(number) => {
                it.request = it.request.filter(|request| request.number != number);
            }
            Body::Pong(age) => {
                it.ping_on_its_way = false;
                it.belief = it.belief.min(age);
            }
            Body::Claimed(named, age) => {
                (it.session, it.belief) = (Session::Live, it.belief.min(age));
                let named = named.filter(|(number, _)| {
                    it.request.is_some_and(|request| request.number == *number)
                });
                if let Some((number, known)) = named {
                    it.request = known.map(|known| Request { number, known });
                }
            }
            Body::Refused => (it.session, it.request) = (Session::Ended, None),
            Body::Welcome(_) => {}
        }
    }
}
